"""FA205: names of the extension's own package that nothing it lists defines."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fa_forensics.facts.demangle import readable
from fa_forensics.facts.owner import OWN
from fa_forensics.report import Evidence, Finding
from fa_forensics.resolve.explain import Missing
from fa_forensics.rules.base import Context, Judged, symbol_rank
from fa_forensics.rules.evidence import others, symbol_evidence
from fa_forensics.rules.remedy import build_for_this_torch, import_command


def own_symbols(ctx: Context) -> Sequence[Judged]:
    """FA205: a name of the extension itself that neither it nor a library that it lists defines."""
    items = [m for m in ctx.causes if m.owner == OWN]
    if not items:
        return ()
    nowhere = [m for m in items if m.binding.symbol not in ctx.defined_in]
    if not nowhere:
        return (_in_the_package(ctx, items),)
    first = nowhere[0]
    finding = Finding(
        code="FA205",
        severity="error",
        confidence="medium",
        title=f"nothing defines {readable(first.demangled)}"
        + others(len(nowhere) - 1, "other symbol")
        + ", which is the package's own",
        evidence=symbol_evidence(ctx, nowhere),
        notes=(
            "No torch release ever decides this: a source file was left out of the build, or a "
            "library of the same package is missing or of another version.",
            *_elsewhere(ctx, items),
        ),
        help=build_for_this_torch(ctx),
    )
    return (Judged(symbol_rank(items[0]), finding),)


def _in_the_package(ctx: Context, items: Sequence[Missing]) -> Judged:
    """All of them are in other files of the package, which this one does not list."""
    files = list(dict.fromkeys(ctx.defined_in[m.binding.symbol] for m in items))
    names = ", ".join(os.path.basename(path) for path in files)
    finding = Finding(
        code="FA205",
        severity="error",
        confidence="high",
        title=f"{ctx.name} does not load by itself: {readable(items[0].demangled)}"
        + others(len(items) - 1, "other symbol")
        + (" is" if len(items) == 1 else " are")
        + f" in {names} of the same package, which it does not list",
        evidence=(
            *symbol_evidence(ctx, items),
            *(Evidence("exports it", path) for path in files),
        ),
        notes=(
            "The loader looks only into the libraries that a file lists (DT_NEEDED) and into those "
            "that were opened for all (RTLD_GLOBAL): the package's own code has to load that file "
            "first, in that way; imported through the package this may be no fault.",
        ),
        help=import_command(ctx),
    )
    return Judged(symbol_rank(items[0]), finding)


def _elsewhere(ctx: Context, items: Sequence[Missing]) -> tuple[str, ...]:
    """One sentence on the names that another file of the package does define."""
    there = [m for m in items if m.binding.symbol in ctx.defined_in]
    if not there:
        return ()
    files = dict.fromkeys(os.path.basename(ctx.defined_in[m.binding.symbol]) for m in there)
    count = f"{len(there)} other missing symbol{'s are' if len(there) > 1 else ' is'}"
    return (f"{count} in {', '.join(files)} of the same package, which this file does not list.",)
