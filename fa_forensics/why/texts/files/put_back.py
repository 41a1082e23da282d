"""How a damaged file is put back: by pip, by conda, by R, by whoever installed it."""

from __future__ import annotations

import os
import re
import shlex

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.owner import is_cuda_library
from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import base, pip_name, version_of
from fa_forensics.why.texts.files.driver_file import OF_DRIVER

#: ``PREFIX/lib/libmkl_core.so`` of an environment of conda's.
_IN_CONDA = lazily(
    r"(?P<prefix>/[^\s:]{0,300}?(?:conda|miniforge|mambaforge|micromamba|/envs/)[^\s:]{0,200}?)/lib/"
    r"(?P<file>[^/\s]{1,100})$"
)
#: The way by which conda's torch names libraries of its environment, whatever that is called.
_OUT_OF_TORCH = lazily(
    r"(?P<prefix>\S{1,300}?)(?:/lib)?/python\d[\d.]*/site-packages/torch/(?:lib/)?(?:\.\./){3,4}"
    r"(?:lib/)?(?P<file>[^/\s]{1,100})$"
)
#: Which package of conda has a library, by how its name begins (conda-forge and defaults).
_CONDA_PACKAGES = (
    ("libmkl_", "mkl"), ("libiomp5", "intel-openmp"), ("libopenblas", "libopenblas"),
    ("libstdc++", "libstdcxx-ng"), ("libgcc_s", "libgcc-ng"), ("libgomp", "libgomp"),
    ("libtorch", "pytorch"), ("libc10", "pytorch"),
)  # fmt: skip
#: Libraries of CUDA up to 11, by names that CUDA 12 does not have: one package brings all.
_OF_CUDATOOLKIT = lazily(
    r"lib(?:cufft|cusolver)\.so\.10(?!\d)|lib(?:cublas|cublasLt|cusparse)\.so\.1[01](?!\d)"
    r"|lib(?:cudart|nvrtc)\.so\.(?:9|1[01])\.\d"
)
_SITE = lazily(r"(?P<site>\S{1,400}/(?:site|dist)-packages)/")
#: Libraries of the package torch for R: PREFIX/torch/lib/liblantern.so.
_OF_R = lazily(r"/torch/(?:lib|deps)/(?:liblantern|libtorch|libc10)|liblantern\.(?:so|dylib)")


def reinstall(seen: Seen, owner: str | None) -> tuple[str, ...]:
    """Install the owner again, in the version that is known; () where pip's name for it is not."""
    from fa_forensics.rules.remedy import row_of

    name = pip_name(seen, owner)
    if name is None:
        return ()
    if name == "torch":
        return (torch_again(seen),) if _on_the_index(seen) else ()
    version = version_of(seen, name)
    pinned = f"{name}=={version}" if version and not re.search(r"[+]|dev\d", version) else name
    if other := _of_torch(seen, name, version or ""):
        pinned = f"{name}=={other}{index_option(index_of(seen))}"
    row = row_of(name)
    isolated = "--no-build-isolation " if row is not None and row["source_build"] else ""
    return (f"{seen.pip} install {isolated}--force-reinstall --no-deps --no-cache-dir {pinned}",)


def _of_torch(seen: Seen, name: str, version: str) -> str:
    """The release that belongs to the torch there, where the one there was built for another."""
    torch = (seen.torch or "").partition("+")[0]
    built = torch_of(name, version) if torch and version else None
    return (partner_of(name, torch) or "") if built not in (None, torch) else ""


def torch_again(seen: Seen) -> str:
    """The very torch again: its release, and the index for its CUDA where it is told."""
    told = seen.versions.get("torch", "")
    release = (seen.torch or told).partition("+")[0]
    head = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir"
    if not release or re.search(r"dev\d|a0|git", seen.torch or told):
        return f"{head} {same_version(seen, 'torch')}"
    pinned = f'"torch=={release}"'
    return f"{head} {pinned}{index_option(index_of(seen))}"


def _on_the_index(seen: Seen) -> bool:
    """Whether the torch of the text can be on the package index, which begins with 1.0."""
    told = seen.torch or seen.versions.get("torch", "")
    return not told.startswith("0.")


def index_of(seen: Seen) -> str:
    """How the index of a torch ends that is not the package index's own build; "" for that one."""
    told = seen.versions.get("torch", "").partition("+")[2]
    if re.fullmatch(r"cpu|cu\d{2,3}|rocm[\d.]{1,6}", told):
        return told
    from fa_forensics.facts.torch_cuda import published_cuda

    release = (seen.torch or "").partition("+")[0]
    cudas = published_cuda().get(".".join(release.split(".")[:2]), ())
    atlas = seen.tables.atlas
    build = atlas.build(release, seen.place.machine) if atlas is not None else None
    for key in ("torch_cuda", "index_cuda", "cuda"):
        cuda = ".".join(seen.versions.get(key, "").split(".")[:2])
        if cuda in cudas and build is not None and cuda != build.cuda:
            return cuda_label(cuda)
    return ""


def same_version(seen: Seen, name: str) -> str:
    """``NAME==VERSION`` as a shell asks pip's records for it, without importing anything."""
    if _before(seen.python_version, 8):  # importlib.metadata came with Python 3.8
        shown = f"$({seen.pip} show {name} | sed -n 's/^Version: //p')"
        return f'"{name}=={shown}"'
    return (
        f'"{name}==$({seen.python} -c "import importlib.metadata as m; '
        f"print(m.version('{name}'))\")\""
    )


def _before(python: str | None, minor: int) -> bool:
    """Whether a Python is older than 3.MINOR, as far as that is told."""
    found = re.match(r"(\d)\.(\d{1,2})", python or "")
    return found is not None and (int(found[1]), int(found[2])) < (3, minor)


def whole_wheel(seen: Seen, path: str) -> tuple[tuple[str, ...], list[str]]:
    """(commands, notes) that bring a library of NVIDIA's as its own wheel has it."""
    from fa_forensics.why.texts.libraries.brought_text import wheel_of

    name = base(path)
    major = (seen.torch_cuda or "").split(".")[0]
    numbered = re.search(r"\.so\.(1[1-9])\b", name)
    wheel = wheel_of(seen, name, major or (numbered[1] if numbered else ""))
    if wheel is None:
        return (), []
    head = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir"
    return (f"{head} {same_version(seen, wheel)}",), [
        f"As it was published, the file is in {wheel}: the command with pip puts that back, in the "
        "release that is installed. The copy in a bundle, or in a repaired wheel, is another file, "
        "and has to be made again from it."
    ]  # fmt: skip


def newer_release(seen: Seen, owner: str | None, since: str = "") -> tuple[str, ...]:
    """Get a newer release of a package; () where pip's name for it is not known, and of torch."""
    name = pip_name(seen, owner)
    if name is None or name == "torch":
        return ()
    return (f"{seen.pip} install --upgrade " + (f'"{name}>={since}"' if since else name),)


def put_back(seen: Seen, owner: str | None, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) that bring a damaged file back, by where it lies."""
    if owner in OF_DRIVER:
        return (), ()
    if _is_of_r(path):
        return (
            ("Rscript -e 'torch::install_torch(reinstall = TRUE)'",),
            ("The file belongs to the package torch for R, which fetches it by itself; its "
             "directory is best removed before.",),
        )  # fmt: skip
    conda = of_conda(path)
    if conda is not None:
        return _from_conda(*conda)
    from fa_forensics.why.texts.files.file_text import brought_along

    if owner == "torch" and brought_along(path):
        return (), (_ROOM_ALONE,)
    known = reinstall(seen, owner)
    by_conda = _CONDAS_TORCH.match(path) if owner == "torch" else None
    if by_conda is not None and (not known or seen.versions.get("flag:from-conda")):
        return _torch_of_conda(by_conda["prefix"])
    if known:
        from_conda = (_MAY_BE_CONDAS,) if by_conda is not None else ()
        return known, (*_index_note(known[0]), *from_conda, _ROOM)
    if owner == "torch":
        return (), (_ROOM_ALONE,)
    site = _SITE.search(path)
    if site is None and _BUILT.search(path):
        return _built_again(path)
    if site is None and owner is not None and is_cuda_library(base(path)):
        return _by_its_place(base(path))
    if site is None and path.startswith("/") and "..." not in path and _OF_A_BUILD.search(path):
        return _made_by_hand(path)
    if site is None:
        return (), (_ROOM_ALONE,)
    return _from_a_record(seen, path, site["site"])


def _index_note(command: str) -> tuple[str, ...]:
    """Where a build with its CUDA in the version comes from."""
    if "m.version('torch')" in command:
        return (
            "The command takes the release that is installed. Where pip finds no such version "
            "(one with + and a CUDA in it), --index-url has to name the index that it came from.",
        )
    return ()


_ROOM_ALONE = (
    "See first that the disk (and a quota) has room: a second download ends where the first did "
    "otherwise."
)
_ROOM = (
    "See first that the disk (and a quota) has room: a second download ends where the first did "
    "otherwise. --no-cache-dir keeps pip from taking its damaged copy again."
)


#: What setup.py or CMake leaves beside the sources: ``mmdet/ops/x.cpython-36m-...so``.
_BUILT = lazily(r"\.(?:cpython-\d{2,3}m?|abi3)[\w-]*\.so$")


def _built_again(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A compiled module in a source tree: nobody but its own build brings it."""
    from fa_forensics.why.texts.files.file_text import quoted

    return (
        f"rm {quoted(path)}",
        "rm -rf build && python -m pip install -v --no-build-isolation --no-deps -e .",
    ), (
        "The file lies in a source tree, so it was built or copied there: a build that was "
        "stopped, a full disk, or a copy from another machine or system. The last command builds "
        "it again, in the directory that has setup.py or pyproject.toml.",
    )  # fmt: skip


#: Directories that a build by make or CMake writes into.
_OF_A_BUILD = lazily(r"/(?:build[\w.-]{0,40}|cmake-(?:build|out)[\w-]{0,40}|dll|Release|Debug)/")


def _made_by_hand(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A library in the directory of a build: what made it makes it again."""
    return (f"rm {shlex.quote(path)}",), (
        "By its directory it comes out of a build (make, cmake --build, setup.py): one that was "
        "stopped, a full disk, or one on another system (a folder that a virtual machine or a "
        "container shares with its host, a copy, a checkout with it inside). Removed, it is built "
        "again in this system, by the project's own command.",
    )


#: Libraries that NVIDIA gives out by themselves: no CUDA toolkit has them.
_APART = lazily(r"lib(?:cudnn|nccl|cusparseLt|nvshmem|cudss|cutensor)")
_APART_NAMES = {
    "cudnn": "cuDNN", "nccl": "NCCL", "cusparselt": "cuSPARSELt", "nvshmem": "NVSHMEM",
    "cudss": "cuDSS", "cutensor": "cuTENSOR",
}  # fmt: skip


def _by_its_place(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A library of NVIDIA's whose place the text does not tell: a wheel's, conda's, a toolkit's."""
    stem = name.partition(".so")[0] + ".so*"
    look = f"find / -name {shlex.quote(stem)} -not -path '/proc/*' -exec ls -lL {{}} + 2>/dev/null"
    if (apart := _APART.match(name)) is not None:
        product = _APART_NAMES[apart[0].removeprefix("lib").lower()]
        return (look,), (
            "The command with find prints every copy of it with its size, links followed: the "
            "damaged one is empty, or smaller than another of the same release. In "
            "site-packages/nvidia it is a wheel's (pip install --force-reinstall --no-cache-dir of "
            "the nvidia-... package that pip list shows), in a conda environment conda's, else it "
            f"is of NVIDIA's own archive or package of {product}, which no CUDA toolkit brings: "
            "install that again.",
            "An archive has each library once, and links to it under the shorter names: files that "
            "are copied out of it keep these with the option -P (or -d) of cp.",
            _ROOM,
        )
    return (look,), (
        "The command with find prints every copy of it with its size, links followed: the "
        "damaged one is empty, or smaller than another of the same release. In "
        "site-packages/nvidia it is a wheel's (pip install --force-reinstall --no-cache-dir of the "
        "nvidia-... package that pip list shows), in a conda environment conda's, else a CUDA "
        "toolkit's or the distribution's: install that again.",
        _ROOM,
    )  # fmt: skip


def _is_of_r(path: str) -> bool:
    return "-packages/" not in path and _OF_R.search(path) is not None and (
        "lantern" in path or "/R/" in path or "/library/" in path
    )  # fmt: skip


def of_conda(path: str) -> tuple[str, str] | None:
    """(prefix, file) of a library in the lib directory of an environment of conda's."""
    out = _OUT_OF_TORCH.match(path)
    if out is not None:
        return out["prefix"], out["file"]
    whole = os.path.normpath(path) if path.startswith("/") else path
    found = _IN_CONDA.match(whole)
    if found is None or "-packages" in whole:
        return None
    return found["prefix"], found["file"]


#: torch in an environment of conda's, whoever installed it there.
_CONDAS_TORCH = lazily(
    r"(?P<prefix>/[^\s:]{0,300}?(?:conda|miniforge|mambaforge|micromamba|/envs/)[^\s:]{0,200}?)/lib/"
    r"python\d[\d.]*/site-packages/torch/"
)
_MAY_BE_CONDAS = (
    "Where conda list pytorch names a channel that is not pypi, conda installed this torch, and "
    "not pip puts it back: remove pytorch-* from conda's package cache (conda info shows where "
    "that is; conda clean keeps what is installed), then conda install --force-reinstall pytorch."
)


def _out_of_the_cache(package: str) -> str:
    """Remove a package of conda's, unpacked and as an archive, where a base keeps them."""
    return f'rm -rf "$(conda info --base)"/pkgs/{package}-[0-9]*'


def _torch_of_conda(prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """conda's torch again, from outside of its cache, where the same damaged file lies.

    conda clean --packages leaves out what is linked from an environment (find_pkgs of
    conda/cli/main_clean.py: a file of it with more than one link).
    """
    from fa_forensics.why.texts.files.file_text import quoted

    cut = "..." in prefix
    there = "$CONDA_PREFIX" if cut else quoted(prefix)
    return (
        f"conda list -p {there} torch",
        _out_of_the_cache("pytorch"),
        f"conda install -p {there} --force-reinstall pytorch",
    ), (
        "conda links files out of its package cache, so torch's package is removed there first: "
        "what is damaged there comes back damaged, and conda clean keeps what is installed. Where "
        "conda info names another package cache, it lies there. Where the list names the channel "
        "pypi, pip installed that torch, and pip puts it back. See first that the disk (and a "
        "quota) has room.",
    )  # fmt: skip


def _from_conda(prefix: str, file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from fa_forensics.why.texts.files.file_text import quoted

    cut = "..." in prefix or not prefix.startswith("/")
    there = "$CONDA_PREFIX" if cut else quoted(prefix)
    package = next((name for start, name in _CONDA_PACKAGES if file.startswith(start)), None)
    of_cuda = _OF_CUDATOOLKIT.match(file) is not None
    package = "cudatoolkit" if of_cuda else package
    which = f"grep -lF lib/{file} {there}/conda-meta/*.json"
    again = f"conda install -p {there} --force-reinstall {package or 'PACKAGE'}"
    told = (
        f"By its name and place, conda's {package} brings it, unless the environment has "
        "pytorch-cuda, which takes a package for each library (libcufft and the like): the command "
        "with grep prints its record."
        if of_cuda
        else f"By its name and place, conda's {package} brings it."
        if package
        else "The command with grep prints the record of the package of conda that brings it: "
        "PACKAGE is that name without version and build."
    )
    return (which, _out_of_the_cache(package or "PACKAGE"), again), (
        f"{told} conda links files out of its package cache, so the package is removed there "
        "first: what is damaged there comes back damaged (conda clean keeps what is installed; "
        "conda info shows where the cache is).",
    )


def _from_a_record(seen: Seen, path: str, site: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The distribution of a file whose package nothing is known of: pip's record has it."""
    from fa_forensics.why.texts.files.file_text import quoted

    where = quoted(site)
    if "..." in site or not site.startswith("/"):
        where = f"$({seen.python} -c 'import site; print(site.getsitepackages()[0])')"
    return (
        f"grep -lF {base(path)} {where}/*.dist-info/RECORD",
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir NAME",
    ), (
        "The command with grep prints the distribution that the file came with: NAME is what "
        "stands before the version. What was built here, and is on no index, has to be built again "
        "from an empty build directory.",
        *_of_nvidia(path),
        *_of_an_image(seen),
        _ROOM,
    )  # fmt: skip


def _of_nvidia(path: str) -> tuple[str, ...]:
    """Which wheels have a directory below site-packages/nvidia."""
    found = re.search(r"/nvidia/(\w{2,30})/lib/", path)
    if found is None:
        return ()
    wheel = f"nvidia-{found[1].replace('_', '-')}"
    if re.fullmatch(r"cu\d\d", found[1]):
        return ()
    return (
        f"By its directory it is of {wheel}-cu12 (torch for CUDA 12), {wheel}-cu11 (CUDA 11) or "
        f"{wheel}.",
    )


def _of_an_image(seen: Seen) -> tuple[str, ...]:
    if "flag:image" not in seen.versions:
        return ()
    return (
        "The text is of a container's image: where the file is damaged in a fresh container too, "
        "the image is. docker rmi it and pull it again; if it comes back so, the image was "
        "published so, and only its makers, or an install in the container, put it right.",
    )
