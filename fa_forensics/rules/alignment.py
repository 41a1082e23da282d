"""FA108: how the segments of a file lie in pages, and which loaders refuse that."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.elf.alignment import LARGEST_PAGE, Load, misaligned, page_limit
from fa_forensics.facts.elf.refusal import NOT_PAGE_ALIGNED, SMALLEST_PAGE
from fa_forensics.facts.system_releases import aligns_by_page
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_FILE, RANK_NONE, Context, Judged
from fa_forensics.rules.remedy import reinstall


def segment_alignment(ctx: Context) -> Sequence[Judged]:
    """FA108: the file's segments do not lie as the loader needs them for the size of a page.

    An error where the loader here refuses the file; a warning where others do: kernels of
    aarch64 with pages of 16 or 64 KiB, and glibc before 2.35, which held a segment to its own
    alignment.
    """
    segments = ctx.elf.segments
    other = ctx.environment is not None and ctx.environment.machine != ctx.elf.machine
    if ctx.elf.cut_short or not segments:
        return ()
    system = None if other else ctx.system
    page = max(system.page_size or 0 if system else 0, SMALLEST_PAGE)
    glibc = system.glibc if system else None
    limit, crooked = page_limit(segments), misaligned(segments)
    if limit < page:
        what = f"the loader refuses {ctx.name}: its segments do not lie on pages of {page:,} bytes"
        return (_judged(ctx, "error", what, _off(segments, page)),)
    if crooked and glibc is not None and not aligns_by_page(glibc):
        what = f"glibc {glibc} here refuses {ctx.name}: its segments are not aligned as they say"
        return (_judged(ctx, "error", what, crooked),)
    if ctx.elf.machine == "aarch64" and limit < LARGEST_PAGE:
        what = f"{ctx.name} does not load on kernels with pages of more than {limit:,} bytes"
        return (_judged(ctx, "warning", what, _off(segments, LARGEST_PAGE)),)
    if crooked:
        what = f"glibc before 2.35 refuses {ctx.name}: its segments are not aligned as they say"
        return (_judged(ctx, "warning", what, crooked),)
    return ()


def _off(segments: Sequence[Load], page: int) -> list[Load]:
    """The segments that do not lie on pages of a size."""
    return [s for s in segments if (s[1] - s[0]) % page]


def _judged(ctx: Context, severity: str, title: str, rows: Sequence[Load]) -> Judged:
    finding = Finding(
        code="FA108",
        severity=severity,
        confidence="high",
        title=title,
        evidence=tuple(
            Evidence(
                f"PT_LOAD at offset {offset:#x}, address {address:#x}, alignment {align:#x}",
                ctx.elf.path,
                "program headers",
            )
            for offset, address, align in rows
        ),
        notes=(
            f'The loader says "{NOT_PAGE_ALIGNED}", or "not properly aligned".',
            "A linker makes such a file only when it is told a smaller page than the machine has "
            "(-z max-page-size); tools that rewrite ELF files do too (patchelf, or strip after "
            "it).",
        ),
        help=reinstall(ctx) if severity == "error" else (),
    )
    return Judged(RANK_FILE if severity == "error" else RANK_NONE, finding)
