"""A missing library that no torch brings along: what it belongs to, and what does bring it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from fa_forensics.facts.library_names import OutsideLibrary, outside_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import on_path, there_already
from fa_forensics.why.texts.libraries.cuda_missing import other_toolkit
from fa_forensics.why.texts.libraries.needing import needing, rebuild_commands
from fa_forensics.why.texts.libraries.wheels_path import folder_on_path

KIND, CODE = "missing-library", "FA202"

_WHEEL_PLACE = (
    "The loader does not search a wheel's own directory (site-packages/nvidia/.../lib) by itself: "
    "where the file still does not find it there, that directory has to be on LD_LIBRARY_PATH."
)
_TENSORRT_PLACE = (
    "The loader does not search the wheel's own directory (site-packages/tensorrt_libs) by itself: "
    "the command with export puts it on LD_LIBRARY_PATH, for the program that is started after it. "
    "torch-tensorrt asks for one release of TensorRT: pip show torch-tensorrt and pip check tell "
    "which."
)
#: Packages that come in parts for several FFmpeg releases, and take the first that loads.
_TRIES = ("torchcodec", "torchaudio")


def outside_answer(seen: Seen, soname: str, owner: str | None) -> Answer | None:
    """The answer for a library of the table; None for others."""
    library = outside_library(soname)
    return None if library is None else _WAYS[library.way](seen, library, owner)


def _find(library: OutsideLibrary) -> str:
    stem = library.soname.split(".so")[0]
    return f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null"


def _conda(package: str) -> str:
    return f'conda install -c conda-forge "{package}"'


def _toolkit(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    """A part of the CUDA toolkit that torch does not need."""
    own = (seen.torch_cuda or "").split(".")[0]
    if own and library.major and own != library.major:
        return other_toolkit(seen, library.soname, owner, library.major, seen.torch_cuda or "")
    cause = (
        f"{library.soname} belongs to {library.title} of CUDA {library.major}, a part of the CUDA "
        f"toolkit that torch does not bring along: {needing(seen)} needs it from elsewhere."
    )
    wheel = library.row["wheels"].get(library.major)
    helps = [f"{seen.pip} install {wheel}", on_path(seen, wheel)] if wheel else []
    helps += [_of_condas_cuda(library), _find(library)]
    notes = [
        f"A CUDA {library.major} toolkit has it too: its lib64, for example "
        f"/usr/local/cuda-{library.major}/lib64, has to be on LD_LIBRARY_PATH when Python starts."
    ]
    notes += [_WHEEL_PLACE] if wheel else []
    if _IMAGE_LINE.search(seen.mention.line):
        notes.insert(0, _IMAGE)
    if "torchcodec" in _who(seen):
        notes.append("torchcodec's build without CUDA does not need it, and decodes on the CPU.")
    return seen.answer(
        KIND, CODE, cause, owner=owner or "cuda-toolkit", direction=NONE, confidence="medium",
        help=tuple(helps), notes=(*notes, *there_already(seen)),
    )  # fmt: skip


_IMAGE_LINE = lazily(r"load image\s[Pp]ython\sextension")
#: torchvision's warning at import (torchvision/io/image.py; setup.py of 0.13 and newer).
_IMAGE = (
    "The line is a warning: torchvision goes on, and only torchvision.io's reading and writing of "
    "images needs that file. A build of one's own that is to do without nvJPEG is built again with "
    "TORCHVISION_USE_NVJPEG=0 set; torchvision's wheels have the library inside."
)


def _of_condas_cuda(library: OutsideLibrary) -> str:
    """conda's package of the CUDA release: conda-forge has those of CUDA 12 and newer alone."""
    channel = "conda-forge" if library.major.isdigit() and int(library.major) > 11 else "nvidia"
    return f'conda install -c {channel} "{library.row["conda"]}={library.major}.*"'


def _product(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    """A library of NVIDIA with versions of its own."""
    binding = library.title == "TensorRT" and "tensorrt" in _who(seen)
    if seen.mention.detail.get("board") or "flag:jetson" in seen.versions:
        return _product_on_board(seen, library)
    who = "the Python binding of TensorRT" if binding else needing(seen)
    cause = (
        f"{library.soname} belongs to {library.title} {library.major}, which neither torch nor the "
        f"CUDA toolkit brings along: {who} "
        "was built with it. The number in the name is that of "
        f"{library.title}, not of CUDA, and another one does not count."
    )
    cuda = (seen.torch_cuda or seen.versions.get("cuda") or "12").split(".")[0]
    wheel = library.row["wheel"].format(cuda=cuda, major=library.major)
    release = _release_in_text(seen, library) if binding else ""
    if release:
        wheel = f"{wheel.partition('==')[0]}=={release}"
    folder = _named_folder(seen, library)
    helps = [_find(library)]
    if folder:
        helps.append(folder_on_path(seen.python, folder))
    helps.append(f'{seen.pip} install "{wheel}"')
    if library.title == "TensorRT":
        helps.append(
            f"export LD_LIBRARY_PATH=$({seen.python} -c 'import tensorrt_libs as t; "
            "print(list(t.__path__)[0])')${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
        )
    notes = [_TENSORRT_PLACE if library.title == "TensorRT" else _WHEEL_PLACE]
    if "notebook_export" in seen.mention.detail:
        notes.insert(0, _NOTEBOOK)
    if binding:
        notes.append(
            "The wheel of an archive of NVIDIA's is the binding alone: the libraries are in the "
            "archive's directory lib, which has to be on LD_LIBRARY_PATH when Python starts, or in "
            "a file of /etc/ld.so.conf.d, with ldconfig after that. pip's tensorrt brings them in "
            "a wheel of its own."
        )
    return seen.answer(
        KIND, CODE, cause, owner=library.title, direction=NONE, confidence="medium",
        help=tuple(helps), notes=(*notes, *there_already(seen)),
    )  # fmt: skip


def _product_on_board(seen: Seen, library: OutsideLibrary) -> Answer:
    """On a Jetson such libraries come with JetPack, or from NVIDIA's repository for Jetson."""
    told = seen.mention.file or seen.mention.detail.get("import") or seen.mention.detail.get("by")
    who = needing(seen) if told else "a torch for Jetson, or an extension,"
    cause = (
        f"{library.soname} belongs to {library.title} {library.major}, which {who} was built with, "
        "and it is not installed on this Jetson, or not in this container. The number in the name "
        f"is that of {library.title}, not of CUDA, and another one does not count."
    )
    package = "cudss" if library.title == "cuDSS" else ""
    get = (f"apt-get install {package}",) if package else ()
    return seen.answer(
        KIND, CODE, cause, owner=library.title, direction=NONE, confidence="medium",
        help=(_find(library), "cat /etc/nv_tegra_release", *get),
        notes=(
            f"NVIDIA's downloads of {library.title} have packages for Jetson (aarch64-jetson), "
            "whose repository is to be added first; PyPI's wheels are for servers. Where torch "
            "itself asks for it, a torch for this JetPack that was built without it (an earlier "
            "release of the same maker's index) is the other way.",
            *there_already(seen),
        ),
    )  # fmt: skip


_NOTEBOOK = (
    "What a notebook's cell exports behind ! is set in a shell of its own, which ends with that "
    "line: Python does not see it. The variable is set where the kernel is started (env in its "
    "kernel.json, or the container's environment); in Colab, a file of /etc/ld.so.conf.d and "
    "ldconfig, both behind !, do the same."
)
_RELEASE = r"\b{major}\.\d{{1,2}}\.\d{{1,2}}(?:\.post\d{{1,3}})?(?:\.dev\d{{1,3}})?(?![\w.]*\d)"


def _release_in_text(seen: Seen, library: OutsideLibrary) -> str:
    """The release of the binding that the text names, as pip spells it: 9.1.0.post12.dev4."""
    told = seen.mention.detail.get("binding", "")
    return told if re.fullmatch(_RELEASE.format(major=library.major), told) else ""


def _named_folder(seen: Seen, library: OutsideLibrary) -> str:
    """The directory of an archive of that product which LD_LIBRARY_PATH has in the text."""
    path = seen.versions.get("env:LD_LIBRARY_PATH", "")
    wanted = re.compile(
        rf"/[^:\s]{{0,200}}{library.title}-{library.major}\.[\d.]{{1,12}}/lib", re.IGNORECASE
    )
    found = wanted.search(path)
    return found[0] if found is not None else ""


def _driver(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    """A part of the driver that containers are given on request."""
    cause = (
        f"{library.soname} is a part of the NVIDIA driver, and no toolkit, no wheel and no torch "
        "brings it: this machine has no driver or only a part of it, or, in a container, that part "
        f"of the driver was not asked for (NVIDIA_DRIVER_CAPABILITIES with {library.title})."
    )
    return seen.answer(
        "gpu-driver", "FA209", cause, owner="cuda-driver", direction=NONE, confidence="high",
        help=("nvidia-smi", f"ldconfig -p | grep {shlex.quote(library.soname.split('.so')[0])}",
              "echo $NVIDIA_DRIVER_CAPABILITIES"),
        notes=(f"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility,"
               f"{library.title} hands it in.",),
    )  # fmt: skip


def _jetson(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    cause = (
        f"{library.soname} is a part of NVIDIA's system for Jetson boards (JetPack): no wheel "
        "brings it. The container was started without it (docker run --runtime nvidia hands it "
        "in), the image is for another JetPack release than the board, or this is no Jetson."
    )
    return seen.answer(
        KIND, CODE, cause, owner="JetPack", direction=NONE, confidence="medium",
        help=("cat /etc/nv_tegra_release", _find(library),
              "docker info | grep -i 'default runtime'"),
    )  # fmt: skip


def _who(seen: Seen) -> str:
    """All that the text says of who needs the library."""
    detail = seen.mention.detail
    words = (detail.get("import"), detail.get("by"), seen.mention.file, seen.mention.line)
    return " ".join(filter(None, words))


def _ffmpeg(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    release = library.release
    of = f"FFmpeg {release}" if release else "FFmpeg"
    cause = f"{library.soname} is a library of {of}, not of torch or CUDA."
    trying = next((name for name in _TRIES if name in _who(seen)), None)
    notes = (
        "An ffmpeg program alone (a static download, imageio-ffmpeg) has no shared libraries; "
        "conda-forge's and the distributions' packages do.",
    )
    look = "ldconfig -p | grep -E 'libav(util|codec)'"
    if trying is not None:
        cause += (
            f" {trying} comes in parts for several FFmpeg releases, tries one after the other and "
            "tells of each that fails: one FFmpeg of any of these releases is enough, with its "
            "shared libraries where the loader looks."
        )
        helps: tuple[str, ...] = (look, _conda("ffmpeg<8"), "apt-get install ffmpeg")
    else:
        cause += (
            f" {_start(needing(seen))} was built with that release and takes no other; it is not "
            "installed, or not where the loader looks."
        )
        wanted = f"ffmpeg={release}" if release and release.isdigit() else "ffmpeg"
        helps = (look, _conda(wanted), *rebuild_commands(seen))
    return seen.answer(
        KIND, CODE, cause, owner="FFmpeg", direction=NONE, help=helps, notes=notes,
        confidence="high" if trying else "medium",
    )  # fmt: skip


def _start(words: str) -> str:
    """At the beginning of a sentence."""
    return f"{words[0].upper()}{words[1:]}" if " " in words else words


_ONEAPI = ". /opt/intel/oneapi/setvars.sh"


def _mkl(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    releases, wanted = library.release or ("", "mkl")
    of = f", in the releases {releases}" if releases else ""
    cause = (
        f"{library.soname} is a library of Intel's oneMKL{of}. torch's wheels from PyPI have MKL "
        "inside; a torch of conda, of Intel (XPU) or of a build of its own needs it as libraries: "
        "MKL is not installed there, is another release, or oneAPI's variables are not set."
    )
    return seen.answer(
        KIND, CODE, cause, owner="mkl", direction=NONE, confidence="high",
        help=(_find(library), _conda(wanted), _ONEAPI),
        notes=("setvars.sh helps where oneAPI is installed on the system, conda where Python is "
               "conda's: one of the two is enough.", *there_already(seen)),
    )  # fmt: skip


def _mkl_sycl(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    """MKL for Intel's GPUs: the number in its name is another with each year's oneAPI."""
    who, year = needing(seen), library.release
    cause = (
        f"{library.soname} is the part of Intel's oneMKL for Intel's GPUs, under a number that is "
        f"another with each year's oneAPI: {who} was built with one, and the oneAPI that is there "
        "is of another year, or none is, or its variables are not set in this shell. The ways out "
        "are MKL of that year, or a release of the package that was built for the oneAPI that is "
        "there."
    )
    helps: tuple[str, ...] = ()
    if year is not None:
        cause += f" The number {library.major} is that of oneAPI {year} alone."
        helps = (f'{seen.pip} install "mkl-dpcpp>={year},<{int(year) + 1}"',)
    return seen.answer(
        KIND, CODE, cause, owner="mkl", direction=NONE, confidence="medium",
        help=(_find(library), "ls -d /opt/intel/oneapi/mkl/*", *helps),
        notes=(
            "Where the first command finds that very number, oneAPI's setvars.sh, or vars.sh in "
            "env of that release of MKL, is to be sourced before Python starts. Another number "
            "under this name, by a link, is another library.",
            "pip puts the library into lib of Python's own prefix, which has to be on "
            "LD_LIBRARY_PATH where the file still does not find it; mkl-dpcpp takes the SYCL "
            "runtime of its time along.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _oneapi(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    cause = (
        f"{library.soname} belongs to {library.title}: it is not installed, is another release "
        "than the file was built with, or oneAPI's variables are not set in this shell."
    )
    return seen.answer(
        KIND, CODE, cause, owner=library.title, direction=NONE, confidence="medium",
        help=(_find(library), _ONEAPI, _conda(library.row["conda"])),
        notes=("setvars.sh helps where oneAPI is installed on the system, conda where Python is "
               "conda's: one of the two is enough.", *there_already(seen)),
    )  # fmt: skip


def _ascend(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    cause = (
        f"{library.soname} belongs to {library.title}: its variables are not set in this shell, "
        "it is not installed, or, in a container, the driver of the host was not handed in."
    )
    return seen.answer(
        KIND, CODE, cause, owner="CANN", direction=NONE, confidence="medium",
        help=(". /usr/local/Ascend/ascend-toolkit/set_env.sh", "npu-smi info", _find(library)),
        notes=("A container needs /usr/local/Ascend/driver of the host, with --device "
               "/dev/davinci0 and the manager's devices.",),
    )  # fmt: skip


def _ascend_driver(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    """A library of the NPU's driver, which no CANN brings: the toolkit has a stub to link with."""
    cause = (
        f"{library.soname} belongs to the driver of Ascend NPUs, below /usr/local/Ascend/driver, "
        "and not to CANN or torch_npu: in a container, the driver of the host was not handed in; "
        "on the host, it is not installed, or its directories are not on LD_LIBRARY_PATH."
    )
    home = "/usr/local/Ascend/driver/lib64"
    return seen.answer(
        KIND, CODE, cause, owner="Ascend driver", direction=NONE, confidence="high",
        help=(f"ls {home}/driver {home}/common",
              f"export LD_LIBRARY_PATH={home}/driver:{home}/common:$LD_LIBRARY_PATH",
              "npu-smi info"),
        notes=(
            "docker run takes -v /usr/local/Ascend/driver:/usr/local/Ascend/driver, --device "
            "/dev/davinci0 (one for each NPU), and the devices /dev/davinci_manager, "
            "/dev/devmm_svm and /dev/hisi_hdc.",
            "A library of that name in a directory devlib or stub of CANN is there to link with "
            "alone, and does not belong on the path.",
        ),
    )  # fmt: skip


def _old(seen: Seen, library: OutsideLibrary, owner: str | None) -> Answer:
    cause = (
        f"{library.soname} is a library of {library.title}, which this system does not have: "
        f"{needing(seen)} was built on a system that does. A build of it for this system, or that "
        "very library beside it, are the two ways; another version under that name is not one."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner or library.title, direction=NONE, confidence="medium",
        help=(_find(library), _conda(library.row["conda"]), *rebuild_commands(seen)),
        notes=there_already(seen),
    )  # fmt: skip


_WAYS: dict[str, Callable[[Seen, OutsideLibrary, str | None], Answer]] = {
    "toolkit": _toolkit,
    "product": _product,
    "driver": _driver,
    "jetson": _jetson,
    "ffmpeg": _ffmpeg,
    "mkl": _mkl,
    "mkl_sycl": _mkl_sycl,
    "oneapi": _oneapi,
    "ascend": _ascend,
    "ascend_driver": _ascend_driver,
    "old": _old,
}
