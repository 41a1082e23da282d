"""Which other target a build can take: older code of the same major number runs on a newer GPU."""

from __future__ import annotations

from collections.abc import Callable

from fa_forensics.facts.drivers import CudaVersion, parse_cuda
from fa_forensics.facts.gpus import Capability, Family, capability_text, gpu_table
from fa_forensics.rules.coverage import NATIVE, code_for, fit


def runs_instead(wanted: Capability, can: Callable[[Family], bool]) -> str | None:
    """``8.6`` for 8.9: the newest target whose machine code runs on a GPU and that can be made.

    None for Tegra parts, and where nothing older of the same major number can be made.
    """
    families = gpu_table().families
    for family in sorted(families, key=lambda row: row.capability, reverse=True):
        capability = family.capability
        if capability >= wanted or family.integrated or not can(family):
            continue
        code = code_for(f"sm_{capability[0]}{capability[1]}")
        if fit(code, wanted).runs == NATIVE:
            return capability_text(capability)
    return None


def by_toolkit(cuda: CudaVersion) -> Callable[[Family], bool]:
    """Whether the nvcc of a CUDA release compiles for a family."""

    def can(family: Family) -> bool:
        ended = family.last_cuda is not None and cuda > parse_cuda(family.last_cuda)
        return cuda >= parse_cuda(family.since_cuda) and not ended

    return can


def before(cuda: CudaVersion) -> Callable[[Family], bool]:
    """Whether some nvcc older than a CUDA release compiles for a family."""
    return lambda family: parse_cuda(family.since_cuda) < cuda


def oldest_toolkit(wanted: Capability) -> str:
    """The first CUDA release that makes machine code which runs on a GPU: 11.0 for 8.9."""
    rows = [
        family
        for family in gpu_table().families
        if fit(code_for(f"sm_{family.capability[0]}{family.capability[1]}"), wanted).runs == NATIVE
    ]
    return min((row.since_cuda for row in rows), key=parse_cuda)
