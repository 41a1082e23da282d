"""The missing libraries of a file, sorted by the cause behind them."""

from __future__ import annotations

import re
from dataclasses import field

from fa_forensics.facts.owner import is_cuda_library
from fa_forensics.records import dataclass
from fa_forensics.resolve.explain import Sibling
from fa_forensics.resolve.resolution import Library
from fa_forensics.rules.base import Context

_MAJOR = re.compile(r"\.so\.(\d+)")
#: torch's libraries that only CUDA builds have.
_CUDA_ONLY = (
    "libc10_cuda.so",
    "libtorch_cuda.so",
    "libtorch_cuda_linalg.so",
    "libtorch_nvshmem.so",
)
_DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")


@dataclass(slots=True)
class LibraryCauses:
    """Missing libraries by cause; each library stands in exactly one list."""

    no_torch: list[Library] = field(default_factory=list)
    cpu_only: list[Library] = field(default_factory=list)
    cuda_major: list[Library] = field(default_factory=list)
    sibling: list[tuple[Library, Sibling]] = field(default_factory=list)
    driver: list[Library] = field(default_factory=list)
    damaged: list[Library] = field(default_factory=list)
    other: list[Library] = field(default_factory=list)


def cuda_major_of(soname: str) -> str | None:
    """The CUDA major version in the soname of a library that carries it, else None.

    libcudart, libnvrtc, libcublas(Lt) and libnvJitLink number their sonames by the toolkit's
    major version (11.0 for CUDA 11's cudart); cuSPARSE, cuDNN, NCCL, cuFFT, cuRAND and
    cuSOLVER count on their own.
    """
    if not soname.startswith(
        ("libcudart.so", "libnvrtc.so", "libcublas.so", "libcublasLt.so", "libnvJitLink.so")
    ):
        return None
    match = _MAJOR.search(soname)
    return None if match is None else match[1]


def library_causes(ctx: Context) -> LibraryCauses:
    """Sort the missing libraries of a context by cause."""
    causes = LibraryCauses()
    torch = ctx.environment.torch if ctx.environment else None
    torch_major = torch.cuda.split(".")[0] if torch is not None and torch.cuda else None
    with_torch = {miss.soname for miss in ctx.resolution.torch_misses} if ctx.resolution else set()
    siblings = {sibling.soname: sibling for sibling in ctx.siblings}
    for library in ctx.missing_libraries:
        soname = library.soname
        major = cuda_major_of(soname)
        if soname in with_torch:
            continue  # torch itself lacks it: FA603 says so
        if library.problem is not None:
            causes.damaged.append(library)
        elif soname in siblings:
            causes.sibling.append((library, siblings[soname]))
        elif soname in _DRIVER:
            causes.driver.append(library)
        elif (
            torch is not None
            and not torch.has_cuda_libs
            and (soname in _CUDA_ONLY or is_cuda_library(soname))
        ):
            causes.cpu_only.append(library)
        elif major is not None and torch_major is not None and major != torch_major:
            causes.cuda_major.append(library)
        else:
            causes.other.append(library)
    if causes.cuda_major:
        # The libraries whose sonames count on their own (cuSPARSE, cuDNN …) are missing for
        # the same reason as those that name the major version.
        causes.cuda_major += [lib for lib in causes.other if is_cuda_library(lib.soname)]
        causes.other = [lib for lib in causes.other if lib not in causes.cuda_major]
    return causes
