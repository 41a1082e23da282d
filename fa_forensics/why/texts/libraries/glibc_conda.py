"""A glibc that is too old for a library of a conda environment, which is none of torch's files."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.owner import is_cuda_library
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import base
from fa_forensics.why.texts.files.put_back import of_conda
from fa_forensics.why.texts.libraries.brought_text import brought_by_torch

#: What conda's channels call the package of a library of NVIDIA's, for CUDA 12 and newer.
_PACKAGES = (
    ("libcublas", "libcublas"), ("libcurand", "libcurand"), ("libcufft", "libcufft"),
    ("libcusparseLt", "cusparselt"), ("libcusparse", "libcusparse"),
    ("libcusolver", "libcusolver"), ("libnvJitLink", "libnvjitlink"),
    ("libcudart", "cuda-cudart"), ("libnvrtc", "cuda-nvrtc"), ("libcupti", "cuda-cupti"),
    ("libcufile", "libcufile"), ("libnvjpeg", "libnvjpeg"), ("libnpp", "libnpp"),
    ("libcudnn", "cudnn"), ("libnccl", "nccl"),
)  # fmt: skip

#: Tags of NVIDIA's wheels: nvidia-curand-cu12 10.3.7.77 (CUDA 12.6) is manylinux2014,
#: 10.3.9.90 (CUDA 12.8) is manylinux_2_27; nvidia-cublas-cu12 12.6.4.1 and 12.8.4.1 likewise.
_BY_CUDA = (
    "NVIDIA builds its libraries for glibc 2.17 up to CUDA 12.6 and for glibc 2.27 from CUDA 12.8 "
    "on, as the tags of its wheels say: conda took one that is newer than this system. One of the "
    "CUDA that torch was built with, up to 12.6, loads here."
)


def conda_library(path: str) -> bool:
    """Whether a file lies in the lib directory of conda's environment, outside of all packages."""
    return of_conda(path) is not None


def called(path: str) -> str:
    """What follows the name of such a library in a sentence."""
    if is_cuda_library(base(path)):
        return ", a library of NVIDIA's that conda installed into the environment,"
    return ", a library that conda installed into the environment,"


def ways(
    seen: Seen, path: str, needed: tuple[int, ...] | None
) -> tuple[tuple[str, ...], list[str]]:
    """(commands, notes): which package brings it, and an older release of that one."""
    found = of_conda(path)
    if found is None:
        return (), []
    prefix, file = found
    cut = "..." in prefix or not prefix.startswith("/")
    there = "$CONDA_PREFIX" if cut else shlex.quote(prefix)
    stem = file.split(".so")[0]
    helps = [f"grep -lF lib/{stem}.so {there}/conda-meta/*.json"]
    package = next((name for start, name in _PACKAGES if file.startswith(start)), None)
    wanted = brought_by_torch(seen, file) if package else None
    release = re.match(r"[\w-]+==(\d+\.\d+\.\d+)", wanted or "")
    old_enough = (seen.torch_cuda or "").startswith(("11.", "12.1", "12.4", "12.6"))
    if package and release is not None and old_enough:
        helps.append(f'conda install -p {there} -c nvidia "{package}={release[1]}"')
    notes = [
        f"{file} is of a package of conda of its own, not of torch's: the command with grep prints "
        "that package with its release. An older release of it, or the same from another channel, "
        "may load on this system, and torch stays as it is.",
    ]
    if is_cuda_library(file) and needed is not None and (2, 17) < needed <= (2, 27):
        notes.append(_BY_CUDA)
    notes.append(
        "A newer system (or a container of one) is the other way out; so is pip's torch in a new "
        "environment: it brings NVIDIA's libraries as wheels of its own, whose tags tell pip the "
        "glibc that they need."
        if is_cuda_library(file)
        else "A newer system (or a container of one) is the other way out."
    )
    return tuple(helps), notes
