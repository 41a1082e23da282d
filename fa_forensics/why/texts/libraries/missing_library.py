"""Answers to ``libX.so.N: cannot open shared object file``: whose library it is decides."""

from __future__ import annotations

from fa_forensics.facts.owner import is_cuda_library, is_rocm, is_torch, owner_of_library, title_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.gpu.rocm_text import (
    about_rocm,
    by_its_number,
    cuda_build_on_rocm,
    is_torch_itself,
    other_release,
    same_release,
    torch_of_rocm,
)
from fa_forensics.why.texts.libraries.cuda_missing import (
    cuda_library,
    cuda_major_of_soname,
    tensorflow,
)
from fa_forensics.why.texts.libraries.import_first import not_whole, torch_library
from fa_forensics.why.texts.libraries.needing import needing, package_of_text, rebuild_commands
from fa_forensics.why.texts.libraries.outside_text import outside_answer
from fa_forensics.why.texts.libraries.system_text import HASHED, system_library
from fa_forensics.why.texts.libraries.wheels_path import folder_on_path

KIND, CODE = "missing-library", "FA202"

_PYTHON_LIBRARY = lazily(r"libpython(3\.\d{1,2})m?\.so")
_DRIVER = ("cuda-driver", "nvml")
#: Parts of ROCm that extensions are linked with as often as torch itself is.
_OF_EXTENSIONS = ("hip", "hsa")


def missing_library(seen: Seen) -> Answer:
    """A library that the loader does not find."""
    path = seen.mention.library or ""
    soname = path.rsplit("/", 1)[-1]
    owner = owner_of_library(soname)
    if not soname:
        return _nameless(seen)
    if "musl" in soname or seen.mention.detail.get("libc") == "musl":
        from fa_forensics.why.texts.libraries.musl_text import between_c_libraries

        answer = between_c_libraries(seen, soname)
        if answer is not None:
            return answer
    if owner is not None and is_torch(owner):
        return torch_library(seen, path, soname)
    if "/torch/lib/" in path and HASHED.match(soname):
        return not_whole(seen, path)
    if owner in _DRIVER and about_rocm(seen):
        return cuda_build_on_rocm(seen, soname, owner)
    if owner in _DRIVER:
        return _driver(seen, soname, owner)
    if owner is not None and is_rocm(owner):
        return _rocm(seen, soname, owner)
    if soname.startswith("libnvrtc-builtins.so"):
        from fa_forensics.why.texts.libraries.nvrtc_text import nvrtc_builtins

        return nvrtc_builtins(seen)
    python = _PYTHON_LIBRARY.match(soname)
    if python is not None:
        return _python(seen, soname, python[1])
    outside = outside_answer(seen, soname, owner)
    if outside is not None:
        return outside
    if seen.mention.detail.get("by") == "tensorflow" and is_cuda_library(soname):
        return tensorflow(seen, soname, owner)
    if cuda_major_of_soname(seen, soname) is not None or _is_cuda(seen, soname):
        if about_rocm(seen):
            return cuda_build_on_rocm(seen, soname, owner)
        return cuda_library(seen, soname, owner)
    return system_library(seen, soname, owner)


def _is_cuda(seen: Seen, soname: str) -> bool:
    table = seen.tables.libraries
    return is_cuda_library(soname) or (table is not None and soname in table.sonames())


def _driver_link(seen: Seen, soname: str) -> Answer:
    """``libcuda.so`` without its number: the driver's own library has it, ``libcuda.so.1``."""
    opener = (seen.mention.file or "").rsplit("/", 1)[-1]
    who = f"{opener} opens" if opener else "What asks for it opens"
    cause = (
        f"{who} the driver's library by the name {soname}, without the number that the driver's "
        "file has (libcuda.so.1). Most likely the driver is there, and that name is not where the "
        "loader looks: under WSL it lies in /usr/lib/wsl/lib, elsewhere it is a link beside "
        "libcuda.so.1, which comes with the driver's package. Only where nvidia-smi fails too is "
        "there no driver, or it was not handed into the container."
    )
    return seen.answer(
        "gpu-driver", "FA209", cause, owner="cuda-driver", direction=NONE, confidence="medium",
        help=("nvidia-smi; ldconfig -p | grep libcuda; ls -l /usr/lib/wsl/lib",
              folder_on_path(seen.python, "/usr/lib/wsl/lib"),
              "ldconfig"),
        notes=(
            "The second command is for WSL. On other systems ldconfig, as root, lists the driver's "
            "directory again; where the name is missing altogether, installing the driver's "
            "package again brings it (libnvidia-compute on Ubuntu, nvidia-driver-cuda-libs on "
            "Fedora and RHEL). In a container it is docker run --gpus all.",
            "cuDNN itself, CUDA and torch have no part in this: nothing of theirs is to be "
            "installed.",
        ),
    )  # fmt: skip


def _driver(seen: Seen, soname: str, owner: str) -> Answer:
    if soname == "libcuda.so" and not seen.mention.detail.get("board"):
        return _driver_link(seen, soname)
    cause = (
        f"{soname} is a part of the NVIDIA driver: this machine has no driver, or, in a container, "
        "the driver's libraries were not handed in (docker run --gpus all, with the NVIDIA "
        "container toolkit). No toolkit and no wheel brings it."
    )
    board = bool(seen.mention.detail.get("board"))
    by = seen.mention.detail.get("without_gpus", "")
    if by and not board:
        return _not_handed_in(seen, soname, owner, by)
    if board:
        cause += (
            " On a Jetson it is a part of JetPack (L4T), and docker run --runtime nvidia hands it "
            "in."
        )
    return seen.answer(
        "gpu-driver", "FA209", cause, owner=owner, direction=NONE, confidence="high",
        help=("cat /etc/nv_tegra_release" if board else "nvidia-smi",
              "ldconfig -p | grep -E 'libcuda|libnvidia-ml'",
              "docker info | grep -i runtime"),
        notes=(
            "docker build hands in no driver, whatever GPU the machine has: what imports that "
            "library goes to the run, or the daemon's default-runtime is nvidia "
            "(/etc/docker/daemon.json). The stub of the toolkit (lib64/stubs) is for linking "
            "alone.",
        ),
    )  # fmt: skip


def _not_handed_in(seen: Seen, soname: str, owner: str, by: str) -> Answer:
    """The text starts a container and hands no GPU in."""
    driver = seen.versions.get("driver", "")
    words = ("--gpus", "all") if by == "docker" else ("--device", "nvidia.com/gpu=all")
    option = " ".join(words)
    cause = (
        f"{soname} is a part of the NVIDIA driver, and a container has it from its host alone. The "
        f"text has {by} run without {option}: the driver's libraries were not handed in. Start the "
        f"container with {by} run {option} and all else as it is; the host needs the NVIDIA "
        "container toolkit for that. Nothing is to be installed in the image."
    )
    if driver:
        cause += f" The host has a driver, {driver}."
    more = ("docker info | grep -i runtime",) if by == "docker" else ()
    trial = " ".join((by, "run", "--rm", option, "ubuntu", "nvidia-smi"))
    helps = ("nvidia-smi", trial, *more)
    return seen.answer(
        "gpu-driver", "FA209", cause, owner=owner, direction=NONE,
        confidence="high" if driver else "medium", help=helps,
        notes=(
            "The first command is for the host: without a driver there, that comes first. The "
            "second one shows the GPU where the container toolkit works.",
        ),
    )  # fmt: skip


def _rocm(seen: Seen, soname: str, owner: str) -> Answer:
    told = seen.mention.file or seen.mention.detail.get("import")
    of_torch = not told and package_of_text(seen) in (None, "", "torch", "pytorch")
    if is_torch_itself(seen) or (of_torch and owner not in _OF_EXTENSIONS):
        return torch_of_rocm(seen, soname, owner)
    cause = (
        f"{soname} belongs to {title_of(owner)}: {needing(seen)} was built for AMD GPUs. With "
        "torch for NVIDIA it is the wrong build; with torch for ROCm, that library is not "
        "installed or not on the loader's path."
    )
    if (found := same_release(seen, soname, owner, needing(seen))) is not None:
        return found
    other = other_release(seen, soname, needing(seen))
    again = rebuild_commands(seen) if other else ()
    number = ("A link from one name to the other joins two interfaces that differ: none is to be "
              "made.",) if other else by_its_number(soname)  # fmt: skip
    return seen.answer(
        "rocm", CODE, other or cause, owner=owner, direction=NONE, confidence="high",
        help=(*again,
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'",
              "ls -d /opt/rocm*; cat /opt/rocm*/.info/version",
              *(() if other else (seen.inspect_command(),))),
        notes=number,
    )  # fmt: skip


def _python(seen: Seen, soname: str, version: str) -> Answer:
    running = ".".join((seen.python_version or "").split(".")[:2])
    libdir = 'sysconfig.get_config_var("LIBDIR")'
    helps = [f"{seen.python} -c 'import sys, sysconfig; print(sys.version, {libdir})'"]
    cause = f"{soname} is the library of Python {version}: {needing(seen)} was linked with it."
    if running == version:
        cause += (
            f" Python {version} is what runs, so that no other version is to be installed: its "
            "program has that code inside (conda's and many others are built so), and the library "
            "is not there, or lies where the loader does not look."
        )
    else:
        cause += (
            f" The Python that runs is another one, or Python {version} was built without its "
            "shared library or has it where the loader does not look."
        )
    module = seen.mention.detail.get("import") or seen.module or "MODULE"
    helps.append(
        f"LD_LIBRARY_PATH=$({seen.python} -c 'import sysconfig; print({libdir})') "
        f"{seen.python} -c 'import {module}'"
    )
    return seen.answer(
        "python-abi", CODE, cause, owner="python", direction=NONE, confidence="medium",
        help=(*helps, f"find / -name 'libpython{version}*.so*' 2>/dev/null"),
        notes=(
            "Where the second command works, the library is there: LD_LIBRARY_PATH has to name "
            "its directory before Python starts. What a shell exports does not reach a kernel of "
            "Jupyter or VS Code that was not started from it: it goes under env in the kernel's "
            "kernel.json.",
            f"Where no file is found: a distribution's own Python {version} has it in a package of "
            f"its own (Debian and Ubuntu: apt-get install libpython{version}); a Python that was "
            "built from source has it where it was configured with --enable-shared; conda's python "
            "package brings it.",
            "An extension module should not be linked with libpython at all: a build that is not, "
            "loads in every Python of that version.",
        ),
    )  # fmt: skip


def _nameless(seen: Seen) -> Answer:
    return seen.answer(
        KIND, CODE,
        "A library is not found, and the text does not say which: paste the whole line.",
        direction=NONE, confidence="low", help=(seen.inspect_command(),),
    )  # fmt: skip
