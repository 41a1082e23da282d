"""FA7xx: what the table of torch releases says, and the words other rules take from it."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.demangle import demangle, readable
from fa_forensics.facts.numbers import release_numbers
from fa_forensics.facts.package import satisfies, torch_requirement
from fa_forensics.report import Evidence, Finding, ReleaseFacts
from fa_forensics.resolve.explain import Missing
from fa_forensics.rules.base import RANK_NONE, Context, Judged
from fa_forensics.rules.remedy import links_here, pip

TABLE = "table of torch releases"
#: Intervals that are listed for one finding; the rest is counted.
_SHOWN = 5


def wrong_claim(ctx: Context) -> Sequence[Judged]:
    """FA701: the package claims torch releases that its binary does not link with.

    A note where the torch at hand does fit: nothing is wrong yet, but an upgrade of torch
    that the metadata allows breaks the package.
    """
    facts, distribution = ctx.releases, ctx.distribution
    if facts is None or distribution is None or not facts.package_links or not facts.symbols:
        return ()
    wanted = torch_requirement(distribution.requires)
    if not wanted:
        return ()
    claimed = [release for release in facts.known if satisfies(release, wanted)]
    broken = [release for release in claimed if release not in facts.links_with]
    if not broken:
        return ()
    some = f"{len(broken)} of those {len(claimed)} releases"
    what = "any of those releases" if len(broken) == len(claimed) else some
    honest = _honest(facts)
    finding = Finding(
        code="FA701",
        severity="note" if links_here(ctx) else "warning",
        confidence="high",
        title=f"{distribution.name} {distribution.version} claims torch{wanted}, but {ctx.name} "
        f"does not link with {what}",
        evidence=(
            Evidence(f"Requires-Dist: torch{wanted}", distribution.metadata_path),
            Evidence(f"links with torch {facts.links_text}", ctx.elf.path, TABLE),
            *_lacking(facts, broken),
        ),
        notes=(
            "pip believes the claim and may install a torch that the binary cannot use; what the "
            f"binary keeps to is {honest}.",
        ),
        help=(pip(ctx, f'install "{honest}"'),),
    )
    return (Judged(RANK_NONE, finding),)


def _honest(facts: ReleaseFacts) -> str:
    """What a package's binaries keep to: their run of releases around the likeliest."""
    inside = set(facts.package_links)
    at = facts.known.index(facts.best if facts.best in inside else facts.package_links[0])
    first = last = at
    while first > 0 and facts.known[first - 1] in inside:
        first -= 1
    while last + 1 < len(facts.known) and facts.known[last + 1] in inside:
        last += 1
    text = f"torch>={facts.known[first]}"
    return text if last + 1 == len(facts.known) else f"{text},<={facts.known[last]}"


def _lacking(facts: ReleaseFacts, broken: Sequence[str]) -> list[Evidence]:
    """One name for the first and the last of the claimed releases that lack any."""
    rows = []
    for release in dict.fromkeys((broken[0], broken[-1])):
        for releases, names in facts.missing:
            if release in releases:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                name = readable(demangle(names[0]))
                rows.append(Evidence(f"torch {release} does not export {name}{more}", None, TABLE))
    return rows


def direction(ctx: Context, missing: Sequence[Missing]) -> str:
    """Whether a file that lacks torch names is older or newer than the torch at hand.

    ``file-older``, ``file-newer`` or ``unknown``, by the releases that export what is
    missing, else by what the file was built on.
    """
    torch = ctx.environment.torch if ctx.environment else None
    if ctx.releases is None or torch is None:
        return "unknown"
    here = release_numbers(torch.release)
    for releases in (
        {r for m in missing for r in ctx.releases.exported_by.get(m.binding.symbol, ())},
        set(ctx.releases.built_on),
    ):
        if releases and all(release_numbers(r) < here for r in releases):
            return "file-older"
        if releases and all(release_numbers(r) > here for r in releases):
            return "file-newer"
    return "unknown"


_DIRECTIONS = {
    "file-older": "the file is older than this torch",
    "file-newer": "the file is newer than this torch",
}


def life_notes(ctx: Context, missing: Sequence[Missing]) -> tuple[str, ...]:
    """Which releases export the first missing name, and what the file was built on."""
    facts = ctx.releases
    if facts is None or not missing:
        return ()
    symbol = missing[0].binding.symbol
    name = readable(missing[0].demangled)
    if symbol not in facts.exported_by:
        return ()
    if not facts.exported_by[symbol]:
        parts = [
            f"No published torch release exports {name} ({facts.machine}, to {facts.known[-1]})"
        ]
    else:
        parts = [f"{name} is exported by torch {facts.exported_text[symbol]}"]
        where = _DIRECTIONS.get(direction(ctx, missing))
        parts += [where] if where else []
    built = built_words(facts)
    who = "it" if len(parts) > 1 else "the file"
    parts += [f"{who} was built on {built}"] if built else []
    return ("; ".join(parts) + ".",)


def life_evidence(ctx: Context, missing: Sequence[Missing]) -> tuple[Evidence, ...]:
    """How many of the missing names each interval of releases exports."""
    facts = ctx.releases
    if facts is None:
        return ()
    groups: dict[str, list[str]] = {}
    for item in missing:
        symbol = item.binding.symbol
        if symbol in facts.exported_by:
            groups.setdefault(facts.exported_text[symbol], []).append(symbol)
    if len(groups) < 2:
        return ()  # the note says it
    rows = [
        Evidence(
            f"{len(names)} of these {'are' if names[1:] else 'is'} exported by torch {text}",
            None,
            TABLE,
        )
        for text, names in list(groups.items())[:_SHOWN]
    ]
    if len(groups) > _SHOWN:
        rows.append(Evidence(f"... and by {len(groups) - _SHOWN} other sets of releases"))
    return tuple(rows)


def built_words(facts: ReleaseFacts) -> str:
    """``2.4.0``, ``2.4 (window 2.4.0 to 2.6.0)`` or "" where nothing is known."""
    if facts.best is None:
        return ""
    minor = ".".join(facts.best.split(".")[:2])
    if len(facts.built_on) == 1:
        return f"torch {facts.best}"
    return f"torch {minor} (window {facts.built_text})"


def flavour_note(ctx: Context) -> tuple[str, ...]:
    """Which published releases have the flavour and all the names of a file."""
    facts = ctx.releases
    if facts is None or not facts.symbols:
        return ()
    if facts.links_with:
        return (f"The file links with torch {facts.links_text}, as published.",)
    return ("No published torch release has all its names in that flavour.",)
