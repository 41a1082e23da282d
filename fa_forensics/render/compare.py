"""``compare`` as text: only what differs, by group, the gravest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fa_forensics.render.style import (
    Paint,
    counted,
    escape,
    file_name,
    flow,
    painter,
    pieces,
    sentence,
)
from fa_forensics.report_compare import (
    CAN,
    CANNOT,
    EFFECTS,
    GROUPS,
    UNKNOWN,
    CompareReport,
    Difference,
    Held,
    Value,
)

TITLES = {
    "torch": "torch",
    "python": "Python",
    "libraries": "CUDA and system libraries",
    "extensions": "extension files",
    "kernels": "kernels",
    "driver": "driver",
    "gpus": "GPUs",
    "system": "system",
    "toolkit": "CUDA toolkit",
    "variables": "environment variables",
    "packages": "packages",
    "other": "other",
}

_MARKS = {CAN: "!!", UNKNOWN: " ?", CANNOT: "  "}
_COLORS = {CAN: "red", UNKNOWN: "yellow", CANNOT: "dim"}
_EFFECTS = {
    CAN: "can change the numbers that are computed",
    UNKNOWN: "of unknown effect",
    CANNOT: "without effect on the numbers",
}

#: What is shown unless verbose: subjects of a group, members of a set, names of reports,
#: characters of a value.
_SUBJECTS, _MEMBERS, _NAMES, _LONG = 24, 6, 4, 160
#: Columns of the names of aspects.
_LABEL = 12
#: Subjects that are there in the same reports only, from how many on they share one entry.
_FOLD = 3
#: Subjects that differ alike, of which so many are named.
_ALIKE = 6

#: How the reports that hold a value are named.
Who = Callable[[Sequence[int]], str]

#: Aspects that are told of a file that is another build; the rest follows from that.
_TELLING = {
    "", "build-id", "version", "verdict", "findings", "GPU code", "kernels", "state", "taken from",
}  # fmt: skip


def compare_text(report: CompareReport, color: bool, verbose: bool, width: int) -> str:
    """The whole report, with a line feed at its end."""
    names = short_names([one.name for one in report.reports])
    head = []
    for one, name in zip(report.reports, names, strict=True):
        head += sentence(f"{name} ({one.kind}): {one.about}", width, "compare: ", "         ")
    who = _named(names, verbose)
    blocks = [head, *difference_blocks(report, who, color, verbose, width)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def difference_blocks(
    report: CompareReport, who: Who, color: bool, verbose: bool, width: int
) -> list[list[str]]:
    """The groups, what could not be compared, and the summary."""
    paint = painter(color)
    blocks = []
    for group in GROUPS:
        found = [one for one in report.differences if one.group == group]
        if found:
            blocks.append(_group(group, found, who, paint, verbose, width))
    blocks.append(_aside(report, who, width))
    blocks.append(_summary(report, paint, width))
    return blocks


def short_names(names: Sequence[str]) -> list[str]:
    """The file names where these tell the reports apart, else the whole paths."""
    short = [file_name(name) for name in names]
    return [
        escape(brief if short.count(brief) == 1 else name)
        for brief, name in zip(short, names, strict=True)
    ]


def _group(
    group: str,
    found: Sequence[Difference],
    who: Who,
    paint: Paint,
    verbose: bool,
    width: int,
) -> list[str]:
    subjects: dict[str, list[Difference]] = {}
    for one in found:
        subjects.setdefault(one.subject, []).append(one)
    folded = {} if verbose else _fold(subjects)
    alike = [[rows] for rows in subjects.values()] if verbose else _alike(subjects)
    ordered = sorted(alike, key=lambda same: min(map(_rank, same[0])))
    shown = ordered if verbose else ordered[:_SUBJECTS]
    lines = [paint(TITLES[group], "bold")]
    reasons: set[str] = set()
    for same in shown:
        lines += _subject(same, who, paint, verbose, width, reasons)
    for rows in folded.values():
        lines += _folded(rows, who, paint, width, reasons)
    if len(ordered) > len(shown):
        more = sum(len(same) for same in ordered[_SUBJECTS:])
        lines.append(f"   ... and {more} more (--verbose shows all)")
    return lines


def _rank(difference: Difference) -> int:
    return EFFECTS.index(difference.effect)


def _subject(
    same: Sequence[list[Difference]],
    who: Who,
    paint: Paint,
    verbose: bool,
    width: int,
    reasons: set[str],
) -> list[str]:
    """Subjects that differ alike, in one entry."""
    rows = same[0]
    worst = min(rows, key=_rank)
    mark = paint(_MARKS[worst.effect], _COLORS[worst.effect])
    names = ", ".join(other[0].subject for other in same[:_ALIKE])
    more = f" and {len(same) - _ALIKE} more" if len(same) > _ALIKE else ""
    lines = flow(pieces(escape(names) + more), width, f"{mark} ", "   ")
    rebuilt = not verbose and any(row.aspect == "build-id" for row in rows)
    told = [row for row in rows if not rebuilt or row.aspect in _TELLING]
    for row in told:
        lines += _values(row, who, verbose, width)
    rest = [row.aspect for row in rows if row not in told]
    if rest:
        first = f"      {'also':<{_LABEL}}  "
        lines += flow(pieces(escape(", ".join(rest))), width, first, " " * (_LABEL + 8))
    for row in sorted(told, key=_rank):
        if row.effect == worst.effect or verbose:
            lines += _reason(row, width, reasons)
    return lines


def _reason(row: Difference, width: int, told: set[str]) -> list[str]:
    """Why a difference has its effect, once in each group."""
    if row.reason in told:
        return []
    told.add(row.reason)
    source = f" [{row.source}]" if row.source else ""
    return sentence(row.reason + source, width, "      = note: ", "              ")


_Subjects = dict[str, list[Difference]]


def _alike(subjects: _Subjects) -> list[list[list[Difference]]]:
    """Subjects with the same values in the same reports together."""
    alike: dict[object, list[list[Difference]]] = {}
    for rows in subjects.values():
        alike.setdefault(tuple((row.aspect, row.held, row.effect) for row in rows), []).append(rows)
    return list(alike.values())


def _fold(subjects: _Subjects) -> dict[object, list[Difference]]:
    """Take out what is merely there in some reports and absent from the same others."""
    folded: dict[object, list[Difference]] = {}
    for rows in subjects.values():
        if len(rows) == 1 and rows[0].group != "variables" and not rows[0].aspect:
            holders = tuple(one.reports for one in rows[0].held if one.value is not None)
            folded.setdefault((rows[0].effect, holders), []).append(rows[0])
    folded = {key: rows for key, rows in folded.items() if len(rows) >= _FOLD}
    for rows in folded.values():
        for row in rows:
            del subjects[row.subject]
    return folded


def _folded(
    rows: Sequence[Difference], who: Who, paint: Paint, width: int, reasons: set[str]
) -> list[str]:
    """Subjects that only the same reports have, in one entry."""
    effect = rows[0].effect
    holders = [at for one in rows[0].held if one.value is not None for at in one.reports]
    lines = [f"{paint(_MARKS[effect], _COLORS[effect])} only in {who(holders)}"]
    names = [row.subject + _versions(row) for row in rows]
    text = escape(", ".join(names[:_SUBJECTS]))
    more = f" and {len(names) - _SUBJECTS} more" if len(names) > _SUBJECTS else ""
    return [
        *lines,
        *flow(pieces(text + more), width, "      ", "      "),
        *_reason(rows[0], width, reasons),
    ]


def _versions(row: Difference) -> str:
    found = [one.value for one in row.held if isinstance(one.value, str) and one.value != "there"]
    return f" {' / '.join(found)}" if found else ""


def _values(row: Difference, who: Who, verbose: bool, width: int) -> list[str]:
    label = row.aspect or ("value" if row.group == "variables" else "is")
    common = _common(row.held)
    lines = []
    for at, held in enumerate(row.held):
        first = f"      {escape(label) if not at else '':<{_LABEL}}  "
        text = escape(_value(held.value, common, row.group == "variables", verbose))
        lines += flow(pieces(f"{who(held.reports)}: {text}"), width, first, " " * (_LABEL + 8))
    return lines


def _common(held: Sequence[Held]) -> frozenset[str] | None:
    """The members that all sets share; None where not all values are sets."""
    sets = [frozenset(one.value) for one in held if isinstance(one.value, tuple)]
    if len(sets) < len(held):
        return None
    return frozenset.intersection(*sets)


def _named(names: Sequence[str], verbose: bool) -> Who:
    """Reports by their names, the first few of them unless verbose."""

    def who(reports: Sequence[int]) -> str:
        shown = reports if verbose else reports[:_NAMES]
        more = len(reports) - len(shown)
        return ", ".join(names[at] for at in shown) + (f" and {more} more" if more else "")

    return who


def _value(value: Value, common: frozenset[str] | None, variable: bool, verbose: bool) -> str:
    if value is None:
        return "not set" if variable else "absent"
    if isinstance(value, str):
        return value if verbose or len(value) <= _LONG else value[:_LONG] + "..."
    own = [member for member in value if common is None or member not in common]
    if common and not own and len(value) == len(common):
        return f"only the {len(common)} that all have"
    if common is not None and not own:
        return "none" if not value else "the same in another order: " + ", ".join(value[:_MEMBERS])
    shown = own if verbose else own[:_MEMBERS]
    more = f" and {len(own) - len(shown)} more" if len(own) > len(shown) else ""
    beside = f" (beside {len(common)} in common)" if common else ""
    return ", ".join(shown) + more + beside


def _aside(report: CompareReport, who: Who, width: int) -> list[str]:
    """What could not be compared, and the reports that could not be used."""
    lines = []
    for one in report.not_compared:
        text = f"{one.subject} ({who(one.reports)}): {one.reason}"
        lines += sentence(text, width, "not compared: ", "              ")
    for unread in report.unread:
        lines += sentence(unread.message, width, "not compared: ", "              ")
    return lines


def _summary(report: CompareReport, paint: Paint, width: int) -> list[str]:
    if len(report.reports) < 2:
        return ["there are not two left to compare"]
    same = f"{counted(report.same, 'fact')} {'is' if report.same == 1 else 'are'} the same"
    if not report.differences:
        looked = (
            "nothing differs in what could be compared"
            if report.not_compared
            else ("nothing differs")
        )
        return [paint(f"{looked}; {same}", "bold")]
    text = (
        f"{counted(len(report.differences), 'difference')}: {_counts(report.differences)}; {same}"
    )
    return sentence(text, width, "", "   ")


def _counts(differences: Iterable[Difference]) -> str:
    found = [difference.effect for difference in differences]
    return ", ".join(
        f"{found.count(effect)} {_EFFECTS[effect]}" for effect in EFFECTS if effect in found
    )
