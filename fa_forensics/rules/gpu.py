"""FA5xx: the GPU code inside the file, and what the second witness says of it."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_NONE, Context, Judged


def damaged_container(ctx: Context) -> Sequence[Judged]:
    """FA501: a container of GPU code is damaged; what could be read is listed."""
    if ctx.gpu is None or not ctx.gpu.problems:
        return ()
    finding = Finding(
        code="FA501",
        severity="warning",
        confidence="high",
        title=f"part of the GPU code of {ctx.name} cannot be read",
        evidence=tuple(Evidence(problem, ctx.elf.path) for problem in ctx.gpu.problems),
        notes=(f"{ctx.gpu.image_count} images were still read and listed.",),
    )
    return (Judged(RANK_NONE, finding),)


def witness_disagrees(ctx: Context) -> Sequence[Judged]:
    """FA502: cuobjdump lists other GPU code than this tool's own reader."""
    if ctx.gpu is None or ctx.gpu.witness_status != "disagrees":
        return ()
    finding = Finding(
        code="FA502",
        severity="warning",
        confidence="medium",
        title="cuobjdump lists other GPU code than this tool reads",
        evidence=tuple(Evidence(row, ctx.elf.path) for row in ctx.gpu.witness_differences),
        notes=(ctx.gpu.witness_detail,),
    )
    return (Judged(RANK_NONE, finding),)


def witness_stopped(ctx: Context) -> Sequence[Judged]:
    """FA503: cuobjdump stopped before the end of the file; the native list is whole."""
    if ctx.gpu is None or ctx.gpu.witness_status != "stopped":
        return ()
    finding = Finding(
        code="FA503",
        severity="note",
        confidence="high",
        title="cuobjdump stopped before the end of this file; the list here is whole",
        notes=(ctx.gpu.witness_detail,),
    )
    return (Judged(RANK_NONE, finding),)
