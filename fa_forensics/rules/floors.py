"""What a file needs at least, against what its wheel promises."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.manylinux import beyond
from fa_forensics.facts.system_releases import GLIBC, brings, newest
from fa_forensics.facts.wheel import Platform, platform_of_tag
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_NONE, Context, Judged

#: Versions that are named in a title; the evidence has them all.
_NAMED = 3


def wheel_tag(ctx: Context) -> Sequence[Judged]:
    """FA109: the wheel's platform tag promises an older system than the file needs.

    A note where the file's needs are met here: what is wrong is the tag, by which pip installs
    the wheel on systems where it cannot load.
    """
    floors = ctx.floors
    tag = _oldest_promise(ctx)
    if floors is None or tag is None or tag.floor is None:
        return ()
    over = beyond(ctx.elf.machine, tag.floor, [(f, v) for f, v, _ in ctx.elf.versions_needed])
    if not over:
        return ()
    named = ", ".join(over[-_NAMED:])
    more = f" and {len(over) - _NAMED} more" if len(over) > _NAMED else ""
    claim = floors.claim
    assert claim is not None  # the tag is one of its
    top = newest(over, GLIBC) or over[-1]
    source = brings(top)
    words = [f"{top} comes with {source}." if source else ""]
    words.append(
        "pip goes by the tag, and installs the wheel on systems where this file cannot load; by "
        f"its symbol versions it keeps to {floors.manylinux.tag}."
    )
    finding = Finding(
        code="FA109",
        severity="note" if _met_here(ctx) else "warning",
        confidence="high",
        title=f"the wheel's tag {tag.tag} admits systems with glibc {tag.floor[0]}.{tag.floor[1]}, "
        f"but {ctx.name} needs {named}{more}, which they need not have",
        evidence=(
            Evidence(f"needs {', '.join(over)}", ctx.elf.path, ".gnu.version_r"),
            Evidence(f"tagged {', '.join(claim.platform_tags)}", claim.source),
        ),
        notes=tuple(word for word in words if word),
    )
    return (Judged(RANK_NONE, finding),)


def _oldest_promise(ctx: Context) -> Platform | None:
    """The tag of the file's wheel that lets the oldest glibc in: any one tag is enough for pip."""
    claim = ctx.floors.claim if ctx.floors is not None else None
    if claim is None:
        return None
    tags = [platform_of_tag(tag) for tag in claim.platform_tags]
    glibc = [t for t in tags if t.libc == "glibc" and t.floor and t.machine == ctx.elf.machine]
    return min(glibc, key=lambda tag: tag.floor or (), default=None)


def _met_here(ctx: Context) -> bool:
    """Whether all versions were looked up here and found."""
    if ctx.resolution is None or ctx.system is None:
        return False
    return not ctx.resolution.version_misses
