"""FA83x: copies of libraries: the wrong one is taken, or none, or parts of two.

Pure, as all rules: the copies and what torch's process lacks go in, findings come out, each
with the soname it is about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fa_forensics.facts.library_version import version_key
from fa_forensics.facts.system_releases import brings
from fa_forensics.report import Evidence, Finding
from fa_forensics.resolve.copies import TORCH, WHEEL, Copy, Group
from fa_forensics.resolve.lacking import Lacking, displaced_torch
from fa_forensics.rules.copy_remedy import CopyFacts, cure, nothing_needed, reinstall, without
from fa_forensics.rules.evidence import others

#: So many names are shown as evidence; the title counts them all.
MAX_NAMES = 5


class About(NamedTuple):
    """A finding and the soname it is about."""

    soname: str
    finding: Finding


def copy_findings(facts: CopyFacts) -> tuple[About, ...]:
    """All findings, what keeps torch from being imported first."""
    return tuple(about for rule in COPY_RULES for about in rule(facts))


def described(copy: Copy) -> str:
    """``nvJitLink 12.0.140``, or the library alone where its version is not known."""
    title = copy.name.family.title
    return f"{title} {copy.version.version}" if copy.version.version else title


def lacking_names(facts: CopyFacts) -> Sequence[About]:
    """FA830, FA831: the copy taken lacks names that a library of torch's process needs.

    FA830: another copy within reach has them all. FA831: none has.
    """
    found = []
    for row in (row for row in facts.lacking if not row.is_version):
        taken = _copy_at(facts, row.soname, row.provider)
        holder = next(iter(sorted(row.holders, key=_own_first)), None)
        version = f", version {row.version}" if row.version else ""
        evidence = [
            Evidence(f"needs {name}{version}", row.needed_by, ".dynsym", None, name, row.version)
            for name in row.names[:MAX_NAMES]
        ]
        evidence.append(_taken(row.soname, row.provider, taken))
        if holder is not None:
            evidence.append(Evidence(f"has them all: {described(holder)}", holder.path, ".dynsym"))
        count = len(row.names)
        what = row.names[0] + (f" and {count - 1} other names" if count > 1 else "")
        needer = os.path.basename(row.needed_by)
        title = (
            f"{needer} needs {what} of {row.soname}; the copy taken, {row.provider}, has no such"
        )
        if holder is not None and taken is not None:
            title = (
                f"{row.provider}{_by(taken)} goes before {_whose(holder)} {row.soname}, "
                f"and lacks {what}, which {needer} needs"
            )
        finding = Finding(
            code="FA830" if holder is not None else "FA831",
            severity="error",
            confidence="high",
            title=title,
            evidence=tuple(evidence),
            notes=(
                f'`import torch` ends with "{needer}: undefined symbol: {row.names[0]}{version}".',
                *nothing_needed(taken),
            ),
            help=cure(facts, row, taken),
        )
        found.append(About(row.soname, finding))
    return found


def lacking_versions(facts: CopyFacts) -> Sequence[About]:
    """FA832: the copy taken does not define a symbol version that torch's libraries need."""
    found = []
    grouped: dict[tuple[str, str], list[Lacking]] = {}
    for row in (row for row in facts.lacking if row.is_version):
        grouped.setdefault((row.soname, row.provider), []).append(row)
    for (soname, provider), rows in grouped.items():
        newest = max(rows, key=lambda row: version_key(row.names[0].rpartition("_")[2]))
        taken = _copy_at(facts, soname, provider)
        holder = next(iter(newest.holders), None)
        needer = os.path.basename(newest.needed_by)
        evidence = [Evidence(f"needs {row.names[0]}", row.needed_by, ".gnu.version_r")
                    for row in rows[:MAX_NAMES]]  # fmt: skip
        evidence.append(_taken(soname, provider, taken))
        if holder is not None:
            evidence.append(Evidence(f"has it: {described(holder)}", holder.path, ".gnu.version_d"))
        finding = Finding(
            code="FA832",
            severity="error",
            confidence="high",
            title=f"{needer} needs {newest.names[0]} of {soname}, and {provider}"
            f"{_by(taken) if taken else ''} is older than that",
            evidence=tuple(evidence),
            notes=_version_notes(newest),
            help=cure(facts, newest, taken),
        )
        found.append(About(soname, finding))
    return found


def _version_notes(row: Lacking) -> tuple[str, ...]:
    by = brings(row.names[0])
    if by is None:
        return ("A newer library has all versions of the older ones too.",)
    return (f"{row.names[0]} came with {by}; a newer one has it too.",
            "Without it, only a torch that was built for an older system runs here.")  # fmt: skip


def not_found(facts: CopyFacts) -> Sequence[About]:
    """FA834: the loader finds no copy of a library that torch's own files need."""
    found = []
    groups = {group.soname: group for group in facts.copies.groups}
    for miss in facts.misses:
        group = groups.get(miss.soname)
        elsewhere = group.rivals if group is not None else ()
        finding = Finding(
            code="FA834",
            severity="error",
            confidence="high",
            title=f"{os.path.basename(miss.needed_by)} needs {miss.soname}, which "
            + ("cannot be used" if miss.problem else "the loader does not find"),
            evidence=(
                Evidence(f"needs {miss.soname}", miss.needed_by, "DT_NEEDED"),
                *((Evidence(miss.problem),) if miss.problem else ()),
                *(Evidence(f"there is {described(copy)}", copy.path) for copy in elsewhere),
            ),
            notes=("Until torch imports, no extension of it can.",),
            help=(reinstall(facts),),
        )
        found.append(About(miss.soname, finding))
    return found


def displaced(facts: CopyFacts) -> Sequence[About]:
    """FA838: torch's own libraries are taken from another place than torch's directory."""
    rows: list[tuple[Group, Copy, Copy]] = []
    for group in displaced_torch(facts.copies):
        taken = group.winner
        own = next(copy for copy in group.others if TORCH in copy.places)
        if taken is not None and (taken.build_id is None or taken.build_id != own.build_id):
            rows.append((group, taken, own))
    if not rows:
        return ()
    # One comes in by a variable; the others by the search path that this one has.
    group, taken, own = next((row for row in rows if without(facts, row[1])), rows[0])
    evidence = [_taken(group.soname, taken.path, taken)]
    evidence += [_taken(g.soname, t.path, t) for g, t, _ in rows if t is not taken]
    finding = Finding(
        code="FA838",
        severity="error",
        confidence="medium",
        title=f"{taken.path}{_by(taken)} is taken in place of torch's own {group.soname}"
        + others(len(rows) - 1, "other library"),
        evidence=(*evidence, Evidence(f"torch's own: {described(own)}", own.path)),
        notes=("Torch's libraries fit one another only as they come in one wheel.",),
        help=without(facts, taken) or (reinstall(facts),),
    )
    return (About(group.soname, finding),)


def shadowed(facts: CopyFacts) -> Sequence[About]:
    """FA833: another version of a CUDA library is taken than the one that torch came with."""
    told = {row.soname for row in facts.lacking}
    found = []
    for group in facts.copies.groups:
        taken, own = group.winner, _wheel_copy(group)
        if taken is None or own is None or not taken.loaded or group.soname in told:
            continue
        if taken.name.family.torch:
            continue  # FA838 says it
        versions = taken.version.version, own.version.version
        if {WHEEL, TORCH} & set(taken.places) or None in versions or _same(*versions):
            continue
        older = version_key(versions[0] or "") < version_key(versions[1] or "")
        finding = Finding(
            code="FA833",
            severity="warning" if older else "note",
            confidence="high",
            title=f"{described(taken)} is taken{_by(taken)} in place of the {versions[1]} "
            "that torch was installed with",
            evidence=(
                _taken(group.soname, taken.path, taken),
                Evidence(f"installed with torch: {described(own)}", own.path),
            ),
            notes=(
                "All names that torch's libraries need are there; it is not what torch was tested "
                "with" + (", and it is older." if older else "."),
                *nothing_needed(taken),
            ),
            help=without(facts, taken),
        )
        found.append(About(group.soname, finding))
    return found


def two_majors(facts: CopyFacts) -> Sequence[About]:
    """FA835: `import torch` maps one CUDA library in two major versions."""
    by_family: dict[str, list[Copy]] = {}
    for group in facts.copies.groups:
        if group.winner is not None and group.winner.loaded:
            by_family.setdefault(group.winner.name.family.name, []).append(group.winner)
    found = []
    for copies in (copies for copies in by_family.values() if len(copies) > 1):
        first, second = copies[0], copies[1]
        finding = Finding(
            code="FA835",
            severity="warning",
            confidence="high",
            title=f"`import torch` maps both {described(first)} and {described(second)}",
            evidence=tuple(_taken(c.soname or c.path, c.path, c) for c in copies),
            notes=("Each keeps its own state; what one allocates the other does not know.",),
        )
        found.append(About(second.soname or os.path.basename(second.path), finding))
    return found


def split_parts(facts: CopyFacts) -> Sequence[About]:
    """FA836: a library opens its other parts from another directory than its own."""
    winners = {
        group.winner.name.family.name: group.winner
        for group in facts.copies.groups
        if group.winner is not None
    }
    found = []
    for group in facts.copies.groups:
        part = group.winner
        opener = None if part is None else winners.get(part.name.family.row.get("opened_by", ""))
        if part is None or opener is None or not opener.loaded:
            continue
        if os.path.dirname(part.real) == os.path.dirname(opener.real):
            continue
        if _same(part.version.version, opener.version.version):
            continue
        finding = Finding(
            code="FA836",
            severity="error",
            confidence="medium",
            title=f"{described(opener)} opens its parts by name, and gets them of another "
            f"version: {described(part)}",
            evidence=(
                Evidence(described(opener), opener.path),
                Evidence(f"is what it gets for {group.soname}", part.path),
            ),
            notes=("The parts of one release belong together; a mixture stops at its first use.",),
            help=without(facts, part),
        )
        found.append(About(group.soname, finding))
    return found


def contradiction(facts: CopyFacts) -> Sequence[About]:
    """FA837: a file says another version of itself than its wheel or its name."""
    found = []
    for group in facts.copies.groups:
        for copy in group.copies:
            if copy.version.contradicts is None:
                continue
            finding = Finding(
                code="FA837",
                severity="warning",
                confidence="high",
                title=f"{copy.path} is {described(copy)}, though it is labelled "
                f"{copy.version.contradicts}",
                evidence=(Evidence(copy.version.how, copy.path),),
                notes=("Another file was put in the place of the one that was installed.",),
            )
            found.append(About(group.soname, finding))
    return found


COPY_RULES: tuple[Callable[[CopyFacts], Sequence[About]], ...] = (
    not_found,
    lacking_versions,
    lacking_names,
    displaced,
    split_parts,
    shadowed,
    two_majors,
    contradiction,
)


def _same(one: str | None, other: str | None) -> bool:
    """Whether two versions are one as far as both are told: 13.0 and 13.0.96."""
    if one is None or other is None:
        return True
    return all(a == b for a, b in zip(version_key(one), version_key(other), strict=False))


def _copy_at(facts: CopyFacts, soname: str, path: str) -> Copy | None:
    group = next((g for g in facts.copies.groups if g.soname == soname), None)
    return next((c for c in group.copies if c.path == path), None) if group else None


def _wheel_copy(group: Group) -> Copy | None:
    """The copy that came with torch: in its own directory or in one of NVIDIA's wheels."""
    return next((c for c in group.rivals if {WHEEL, TORCH} & set(c.places)), None)


def _own_first(copy: Copy) -> int:
    return 0 if {WHEEL, TORCH} & set(copy.places) else 1


def _whose(copy: Copy) -> str:
    return "torch's own" if {WHEEL, TORCH} & set(copy.places) else "another"


def _by(copy: Copy) -> str:
    """`` (LD_LIBRARY_PATH)``: the loader's rule, where it says something."""
    return f" ({copy.found_by})" if copy.found_by else ""


def _taken(soname: str, path: str, copy: Copy | None) -> Evidence:
    what = f"is taken for {soname}"
    if copy is not None and copy.found_by is not None:
        what += (
            f", found {copy.found_by}"
            if copy.found_by.startswith("by ")
            else (f", found by {copy.found_by}")
        )
    if copy is not None and copy.version.version is not None:
        what += f": {described(copy)} ({copy.version.how})"
    return Evidence(what, path)
