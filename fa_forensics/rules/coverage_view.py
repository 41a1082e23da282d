"""The coverage of a file as plain values: what JSON holds and what the renderers draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fa_forensics.facts.drivers import Driver, cuda_text
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.rules.coverage import JIT, NATIVE, NONE, CodeGroup, GpuFit, fit

_STRENGTH = {NONE: 0, JIT: 1, NATIVE: 2}


class _Row(NamedTuple):
    """All code of one architecture, whatever its kind."""

    name: str
    groups: tuple[CodeGroup, ...]


def coverage_view(
    groups: Sequence[CodeGroup],
    fits: Sequence[GpuFit],
    driver: Driver | None,
    gpus_from: str,
) -> dict[str, object]:
    """The table of one file: a row for each architecture, a column for each GPU.

    ``gpus_from`` says whose GPUs these are: ``all``, ``option`` (--gpu) or ``machine``.
    Sizes are bytes as stored. The cells of a row are in the order of ``gpus``.
    """
    return {
        "gpus_from": gpus_from,
        "driver": None
        if driver is None
        else {
            "version": driver.version,
            "cuda": None if not driver.cuda else cuda_text(driver.cuda),
        },
        "gpus": [_gpu(one) for one in fits],
        "rows": [_row(row, [one.gpu for one in fits]) for row in _rows(groups)],
    }


def _gpu(one: GpuFit) -> dict[str, object]:
    family = gpu_table().family(one.gpu.capability)
    return {
        "name": one.gpu.name,
        "capability": capability_text(one.gpu.capability),
        "family": family.label if family is not None else None,
        "runs": one.runs,
        "arch": one.arch,
        "ptx_isa": one.isa,
        "reason": one.reason,
        "needs_driver_for_cuda": cuda_text(one.needs_cuda) if one.needs_cuda else None,
        "driver_ok": one.driver_ok,
        "driver_reason": one.driver_reason,
        "sources": {"native": one.native, "jit": one.by_jit, "without": one.without},
    }


def _row(row: _Row, gpus: Sequence[Gpu]) -> dict[str, object]:
    linked = [group for group in row.groups if not group.relocatable]
    counted = {kind: sum(g.images for g in linked if g.kind == kind) for kind in ("cubin", "ptx")}
    return {
        "arch": row.name,
        "cubins": counted["cubin"],
        "ptx": counted["ptx"],
        "other": sum(g.images for g in linked) - counted["cubin"] - counted["ptx"],
        "unlinked": sum(g.images for g in row.groups if g.relocatable),
        "bytes": sum(group.stored_bytes for group in row.groups),
        "runs": [_cell(row, gpu) for gpu in gpus],
    }


def _cell(row: _Row, gpu: Gpu) -> str:
    found = [fit(group, gpu.capability).runs for group in row.groups]
    return max(found, key=lambda runs: _STRENGTH[runs])


def _rows(groups: Sequence[CodeGroup]) -> list[_Row]:
    """One row for sm_90 and compute_90 together, another for sm_90a; rising."""
    rows: dict[tuple[int, str], list[CodeGroup]] = {}
    for group in groups:
        rows.setdefault(_number(group.arch), []).append(group)
    return [_Row(_name(rows[key]), tuple(rows[key])) for key in sorted(rows)]


def _number(arch: str) -> tuple[int, str]:
    digits = arch.partition("_")[2].rstrip("af")
    if not digits.isdecimal() or len(digits) > 6:
        return 0, arch
    return int(digits), arch.partition("_")[2][len(digits) :]


def _name(groups: Sequence[CodeGroup]) -> str:
    """The name of the machine code, else of the PTX, else of what is there."""
    order = {"cubin": 0, "ptx": 1}
    return min(groups, key=lambda group: order.get(group.kind, 2)).arch
