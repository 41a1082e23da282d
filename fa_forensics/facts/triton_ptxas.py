"""Which CUDA the ptxas programs in Triton's wheels are of: ``data/triton_ptxas.json``."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from fa_forensics.facts.drivers import CudaVersion, parse_cuda
from fa_forensics.facts.tables import read_table


class TritonWheel(NamedTuple):
    """A release of Triton, the minor releases of torch that ask for it, and its two programs.

    blackwell: the program for compute capability 10.0 and newer; None where ptxas does that too.
    """

    release: str
    torch: tuple[str, ...]
    ptxas: CudaVersion
    blackwell: CudaVersion | None

    def cuda_for(self, new: bool) -> CudaVersion:
        """The CUDA of the program that compiles for a GPU; ``new``: of 10.0 and newer."""
        return self.blackwell if new and self.blackwell is not None else self.ptxas


@lru_cache(maxsize=1)
def triton_wheels() -> tuple[TritonWheel, ...]:
    """The table, oldest release first."""
    return tuple(
        TritonWheel(
            row["triton"],
            tuple(row["torch"]),
            parse_cuda(row["ptxas"]),
            parse_cuda(row["blackwell"]) if "blackwell" in row else None,
        )
        for row in read_table("triton_ptxas.json")["rows"]
    )


def wheel_of(triton: str | None, torch: str | None) -> TritonWheel | None:
    """The wheel of a release of Triton ("3.5.0+git7416ffcb"), or of a torch that asks for one."""
    release = (triton or "").split("+")[0]
    for wheel in triton_wheels():
        if wheel.release == release:
            return wheel
    if triton is not None or torch is None:
        return None
    minor = ".".join(torch.split("+")[0].split(".")[:2])
    asked = [wheel for wheel in triton_wheels() if minor in wheel.torch]
    return asked[-1] if asked and "dev" not in torch and "a0" not in torch else None


def first_with(cuda: CudaVersion, new: bool) -> TritonWheel | None:
    """The first release from which on all have a program of this CUDA or newer."""
    wheels = triton_wheels()
    good = None
    for wheel in reversed(wheels):
        if wheel.cuda_for(new) < cuda:
            break
        good = wheel
    return good


def oldest() -> CudaVersion:
    """The oldest CUDA that a ptxas in a wheel is of: older ones are of no release on record."""
    return min(wheel.ptxas for wheel in triton_wheels())
