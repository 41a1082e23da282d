"""One verdict from the findings, and the sentence that stands beside it."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.torch_install import is_unreleased
from fa_forensics.report import FAILS, INCONCLUSIVE, LINKS, LOADS, NO_GPU_CODE, Finding
from fa_forensics.rules.base import Context, Judged
from fa_forensics.rules.gpu_fit import no_kernel_headline
from fa_forensics.rules.remedy import build_torch, build_words, same_minor


def in_loader_order(judged: Sequence[Judged]) -> tuple[Finding, ...]:
    """The findings, what stops the load first first; at equal rank errors before the rest."""
    severity = {"error": 0, "warning": 1, "note": 2}
    ordered = sorted(judged, key=lambda j: (j.rank, severity[j.finding.severity], j.finding.code))
    return tuple(item.finding for item in ordered)


def static_verdict(ctx: Context, findings: Sequence[Finding]) -> tuple[str, str]:
    """(verdict, headline) from the facts alone, before any real load."""
    no_kernel = no_kernel_headline(findings)
    if no_kernel is not None:
        return NO_GPU_CODE, no_kernel + _unlinked(ctx)
    first = next((f for f in findings if f.severity == "error"), None)
    if first is not None:
        return FAILS, _failure(ctx, first)
    if ctx.resolution is None:
        no_torch = ctx.environment is not None and ctx.environment.torch is None
        if ctx.uses_torch and no_torch and ctx.asked is None:
            return INCONCLUSIVE, _without_torch(ctx)
        return INCONCLUSIVE, ctx.skips[0].reason if ctx.skips else "it was not resolved"
    count = sum(1 for b in ctx.resolution.bindings if b.provider is not None)
    if not ctx.uses_torch:
        return (
            LOADS,
            f"all {count} symbols it needs have a provider here; it needs nothing of torch",
        )
    torch = ctx.environment.torch if ctx.environment else None
    here = f"torch {torch.version}" if torch else "this environment"
    if ctx.judged_in_part:
        return LINKS, f"all {count} torch and CUDA symbols it needs have a provider in {here}"
    if not ctx.uses_torch_names:
        said = "it lists libraries of torch, but takes no name of them"
        return LOADS, f"all {count} symbols it needs have a provider in {here}; {said}"
    if ctx.stable_abi:
        return LOADS, f"all {count} symbols it needs have a provider in {here}; {_stable(ctx)}"
    return _by_build_torch(ctx, count, here)


def _unlinked(ctx: Context) -> str:
    """What is to be said beside a lack of kernels: whether the file loads was not judged."""
    if ctx.resolution is not None:
        return ""
    reason = f": {ctx.skips[0].reason}" if ctx.skips else ""
    return f"; whether it loads was not judged{reason}"


def _without_torch(ctx: Context) -> str:
    said = "the file was read, but there is no torch here to link it against"
    facts = ctx.releases
    if facts is None or not facts.symbols:
        return said
    if facts.links_with:
        return f"{said}; it links with torch {facts.links_text}"
    return f"{said}; no published torch release has all that it needs"


def _stable(ctx: Context) -> str:
    """The stable interface only grows: a floor and no ceiling."""
    said = "it keeps to torch's stable ABI"
    floor = ctx.releases.stable_floor if ctx.releases is not None else None
    return f"{said}, whose names it needs are in torch {floor} and later" if floor else said


def _failure(ctx: Context, first: Finding) -> str:
    """How much is missing, counted; the finding that comes first says what."""
    parts = []
    libraries = len(ctx.missing_libraries)
    if libraries:
        parts.append(
            f"{libraries} needed {'library is' if libraries == 1 else 'libraries are'} not found"
        )
    if ctx.resolution is not None and ctx.resolution.version_misses:
        parts.append("a needed library is too old")
    unmet = len(ctx.causes) + len(ctx.unlinked)
    if unmet:
        torch = ctx.environment.torch if ctx.environment else None
        where = f"torch {torch.version}" if torch else "this environment"
        total = len(ctx.elf.undefined)
        parts.append(
            f"{unmet} of the {total} symbols it needs "
            f"{'has' if unmet == 1 else 'have'} no provider in {where}"
        )
    return "; ".join(parts) or first.title


def _by_build_torch(ctx: Context, count: int, here: str) -> tuple[str, str]:
    """Symbols that resolve prove less than a load: layouts change under unchanged names."""
    torch = ctx.environment.torch if ctx.environment else None
    where = build_torch(ctx)
    all_there = f"all {count} symbols it needs have a provider in {here}"
    if where is None or torch is None:
        return LINKS, f"{all_there}; which torch it was built on is not known"
    if not where[2]:
        window = ctx.releases.built_text if ctx.releases is not None else where[0]
        return LINKS, f"{all_there}; it was built on one of torch {window}"
    words = build_words(ctx)
    if words.startswith("built") and is_unreleased(torch.version):
        # A nightly or NGC build shares a release's number, not its code.
        return LINKS, f"{all_there}, a build of its own; the file was {words}"
    if same_minor(where[0], torch.release):
        exact = words.startswith("made") and (
            where[0] == torch.version
            or torch.release in (where[0], where[0] + ".0")
            or where[0].count(".") < 2
        )
        return (
            LOADS,
            f"{all_there}, {'the release it was made for' if exact else f'and it was {words}'}",
        )
    return LINKS, f"{all_there}, but it was {words}"
