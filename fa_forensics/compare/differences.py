"""Facts of several reports held against one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fa_forensics.compare.effects import effect_of
from fa_forensics.compare.model import Facts, Key, family_of
from fa_forensics.report import Evidence, Finding
from fa_forensics.report_compare import (
    CAN,
    CANNOT,
    GROUPS,
    Difference,
    Held,
    NotCompared,
    Value,
)

#: Aspects that follow from others: where one of those differs, they are not told.
_FOLLOWS = {
    "size in bytes": {"build-id"},
    "GPU images": {"GPU code"},
    "source version": {"version"},
    "copies": {"version", "origin"},
    "location": {"origin"},
    "git version": {"version"},
    "CUDA it supports": {"version"},
    "kernel module": {"version"},
    "library": {"version"},
    "state": {""},
    "requires": {"version"},
    "wheel tags": {"version"},
    "loaded build-id": {"build-id"},
    "loaded from": {"taken from"},
    "taken from": {"loaded"},
    "lies at": {"loaded"},
}

_CODES = {CAN: ("FA862", "warning"), CANNOT: ("FA863", "note")}
_UNKNOWN = ("FA864", "note")

#: Members of a set, and characters of a text, that a finding repeats.
_MEMBERS, _LONG = 6, 300


class Outcome(NamedTuple):
    """What differs, how many things are the same, and what could not be compared."""

    differences: tuple[Difference, ...]
    same: int
    not_compared: tuple[NotCompared, ...]


class _Values(NamedTuple):
    """What the reports say of one aspect: values by report, problems by report."""

    said: dict[int, Value]
    problems: dict[int, str]


class _Kept(NamedTuple):
    """What one reason kept from being compared, and in which reports."""

    subjects: dict[str, None]
    reports: set[int]


def compare_facts(reports: Sequence[Facts]) -> Outcome:
    """Everything in which the reports differ, in the order of the groups."""
    subjects: dict[tuple[str, str], dict[str, None]] = {}
    for report in reports:
        for group, subject, aspect in report.facts:
            subjects.setdefault((group, subject), {})[aspect] = None
    found: list[Difference] = []
    problems: dict[tuple[str, str], _Kept] = {}
    same = 0
    for group, subject in sorted(subjects, key=lambda s: (GROUPS.index(s[0]), s[1])):
        told: list[Difference] = []
        for aspect in _in_order(subjects[group, subject]):
            values = _values(reports, (group, subject, aspect))
            for at, reason in values.problems.items():
                kept = problems.setdefault((aspect, reason), _Kept({}, set()))
                kept.subjects[subject] = None
                kept.reports.add(at)
            held = _held(values.said)
            if len(held) > 1:
                told.append(_difference(group, subject, aspect, held, reports))
            elif len(values.said) > 1:
                same += 1
        presence = _presence(reports, group, subject)
        if presence is not None:
            told = [presence, *told]
        differing = {difference.aspect for difference in told}
        found += [d for d in told if not _FOLLOWS.get(d.aspect, set()) & differing]
    return Outcome(tuple(found), same, _not_compared(problems))


def _in_order(aspects: Iterable[str]) -> list[str]:
    """What says most comes first."""
    first = ("", "state", "verdict", "version", "build-id")
    return sorted(aspects, key=lambda a: (first.index(a) if a in first else len(first), a))


def _values(reports: Sequence[Facts], key: Key) -> _Values:
    """The values of one aspect, absent ones included where their absence means something."""
    group, subject, aspect = key
    said: dict[int, Value] = {}
    problems: dict[int, str] = {}
    makers = {_maker(report) for report in reports if key in report.facts}
    for at, report in enumerate(reports):
        fact = report.facts.get(key)
        if fact is not None:
            if fact.problem is None:
                said[at] = fact.value
            else:
                problems[at] = fact.problem
        elif (group, subject, "") in report.facts and group != "variables":
            continue  # it could not look at the subject at all, and says so
        elif group == "variables":
            if (group, "") in report.speaks_of and _as_new(report, reports, key):
                said[at] = None
        elif aspect.startswith("skipped: "):
            continue  # it did look
        elif _maker(report) in makers and report.has(group, subject):
            said[at] = None
    return _Values(said, problems)


def _maker(report: Facts) -> tuple[str, str]:
    """Reports of one command and release have the same fields: one that lacks there is absent."""
    return report.report.kind, report.report.tool_version


def _as_new(report: Facts, reports: Sequence[Facts], key: Key) -> bool:
    """Whether the release that wrote a report knows what another report tells.

    An older one may not have looked: then that it says nothing means nothing.
    """
    version = report.report.tool_version
    return any(key in other.facts and other.report.tool_version == version for other in reports)


def _presence(reports: Sequence[Facts], group: str, subject: str) -> Difference | None:
    """The difference that a subject is there in some reports and absent from others."""
    if group in ("variables", "kernels"):  # unset is a value; the file itself is told
        return None
    said: dict[int, Value] = {}
    for at, report in enumerate(reports):
        if report.has(group, subject):
            version = report.facts.get((group, subject, "version"))
            value = version.value if version is not None else None
            said[at] = value if isinstance(value, str) else "there"
        elif {(group, ""), (group, family_of(subject))} & report.speaks_of and _would_tell(
            report, reports, group, subject
        ):
            said[at] = None
    if None not in said.values() or len(set(said.values())) < 2:
        return None
    return _difference(group, subject, "", _held(said), reports)


#: Groups whose subjects are whatever is installed: releases of this program do not differ in
#: which of them they know.
_OPEN = {"torch", "packages", "extensions", "kernels"}


def _would_tell(report: Facts, reports: Sequence[Facts], group: str, subject: str) -> bool:
    """Whether a report would name a subject that others name, if it were there.

    Each command lists subjects of its own choice, and so may each release of it.
    """
    holders = [other.report for other in reports if other.has(group, subject)]
    same = [one for one in holders if one.kind == report.report.kind]
    version = report.report.tool_version
    return any(group in _OPEN or one.tool_version == version for one in same)


def _held(said: dict[int, Value]) -> tuple[Held, ...]:
    """Equal values together: that of the most reports first, of equals the first report's."""
    places: dict[Value, list[int]] = {}
    for at, value in said.items():
        places.setdefault(value, []).append(at)
    ordered = sorted(places, key=lambda value: (-len(places[value]), places[value][0]))
    return tuple(Held(value, tuple(places[value])) for value in ordered)


def _difference(
    group: str, subject: str, aspect: str, held: tuple[Held, ...], reports: Sequence[Facts]
) -> Difference:
    effect = effect_of(group, subject, aspect)
    code, severity = _CODES.get(effect.numbers, _UNKNOWN)
    what = f"{subject}: {aspect}" if aspect else subject
    finding = Finding(
        code=code,
        severity=severity,
        confidence="high" if effect.numbers != "unknown" else "medium",
        title=f"{what}: not the same in all reports",
        evidence=tuple(
            Evidence(f"{names_of(one.reports, reports)}: {short_value(one.value)}") for one in held
        ),
        notes=(effect.reason,),
    )
    return Difference(
        group, subject, aspect, held, effect.numbers, effect.reason, effect.source, finding
    )


def names_of(places: Sequence[int], reports: Sequence[Facts]) -> str:
    """The names of reports: the first few, and how many more."""
    names = [reports[at].report.name for at in places[:_MEMBERS]]
    more = len(places) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def short_value(value: Value) -> str:
    """A value as one short text."""
    if value is None:
        return "absent"
    if isinstance(value, str):
        return value if len(value) <= _LONG else value[:_LONG] + "..."
    more = len(value) - _MEMBERS
    text = ", ".join(value[:_MEMBERS]) or "none"
    return (text if len(text) <= _LONG else text[:_LONG] + "...") + (
        f" and {more} more" if more > 0 else ""
    )


def _not_compared(problems: Mapping[tuple[str, str], _Kept]) -> tuple[NotCompared, ...]:
    """One line for each reason, however many subjects it kept from being compared."""
    lines = []
    for (aspect, reason), kept in sorted(problems.items()):
        what = aspect.removeprefix("skipped: ")
        name, more = next(iter(kept.subjects)), len(kept.subjects) - 1
        name = f"{name} and {more} more" if more else name
        places = tuple(sorted(kept.reports))
        lines.append(NotCompared(f"{name}: {what}" if what else name, reason, places))
    return tuple(lines)
