"""``atlas diff`` and ``atlas releases`` as text."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.render.style import (
    Paint,
    counted,
    escape,
    flow,
    painter,
    pieces,
    sentence,
)
from fa_forensics.report_releases import (
    ExportedName,
    ReleaseDifference,
    ReleaseTableReport,
    Signatures,
)

#: Entries of one list that are shown; the rest is counted.
SHOWN = 20
#: A readable name longer than this is cut; template instances can take a page each.
_LONGEST = 400


def diff_text(found: ReleaseDifference, color: bool, verbose: bool, width: int) -> str:
    """The difference, with a line feed at its end."""
    paint = painter(color)
    limit = None if verbose else SHOWN
    blocks = [_head(found, width), _flavour(found, verbose, width)]
    blocks.append(_signatures(found.resigned, paint, limit, width))
    blocks.append(_names("removed", "red", "-", found.removed, paint, limit, width))
    # What a file needs and the older release lacks is what a newer one brings.
    blocks.append(_names("added", "green", "+", found.added, paint, limit, width))
    if found.used is not None:
        blocks.append(_names("in neither", "yellow", "?", found.nowhere, paint, limit, width))
    blocks.append(_summary(found, width))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(found: ReleaseDifference, width: int) -> list[str]:
    lines = []
    for sign, row in (("---", found.old), ("+++", found.new)):
        cuda = f"CUDA {row.cuda}" if row.cuda else "no CUDA"
        text = f"torch {row.release} ({row.date}, {cuda}, {row.flavour}, {row.machine})"
        lines += sentence(text, width, f"{sign} ", "    ")
    narrowed = []
    if found.namespace:
        narrowed.append(f"names in {found.namespace}")
    if found.libraries:
        narrowed.append(f"exports of {', '.join(found.libraries)}")
    if found.used is not None:
        files = found.used_by
        who = files[0].rpartition("/")[2] if len(files) == 1 else counted(len(files), "file")
        need = "needs" if len(files) == 1 else "need"
        narrowed.append(f"the {counted(found.used, 'torch name')} that {who} {need}")
    if narrowed:
        lines += sentence(f"only {'; '.join(narrowed)}", width, "    ", "    ")
    return lines


def _flavour(found: ReleaseDifference, verbose: bool, width: int) -> list[str]:
    """The turn of the std::string flavour in one line; the pairs only when asked for."""
    if not found.flavour:
        return []
    count = counted(len(found.flavour), "function")
    text = (
        f"{count} with a std::string changed from {found.old.flavour} to {found.new.flavour} and "
        "not otherwise: a file built for the one flavour finds none of them in the other"
    )
    lines = sentence(text, width, "flavour: ", "  ")
    if verbose or found.used is not None:
        shown = found.flavour if verbose else found.flavour[:SHOWN]
        for pair in shown:
            lines += _entry("~", pair.before[0], width)
        lines += _more(len(found.flavour) - len(shown))
    return lines


def _signatures(
    rows: Sequence[Signatures], paint: Paint, limit: int | None, width: int
) -> list[str]:
    if not rows:
        return []
    lines = [paint(f"re-signed: {counted(len(rows), 'function')}", "bold")]
    for row in rows[:limit]:
        lines += flow(pieces(_cut(row.name)), width, "  ", "      ")
        for sign, names in (("-", row.before), ("+", row.after)):
            for name in names[: limit and 3]:
                lines += flow(pieces(_cut(name.demangled)), width, f"    {sign} ", "        ")
            if limit and len(names) > 3:
                lines.append(f"    {sign} ... and {len(names) - 3} more")
    return lines + _more(len(rows) - len(rows[:limit]))


def _names(
    title: str,
    style: str,
    sign: str,
    names: Sequence[ExportedName],
    paint: Paint,
    limit: int | None,
    width: int,
) -> list[str]:
    if not names:
        return []
    lines = [paint(f"{title}: {counted(len(names), 'name')}", style)]
    for name in names[:limit]:
        lines += _entry(sign, name, width)
    return lines + _more(len(names) - len(names[:limit]))


def _entry(sign: str, name: ExportedName, width: int) -> list[str]:
    return flow(pieces(_cut(name.demangled)), width, f"  {sign} ", "      ")


def _cut(text: str) -> str:
    shown = escape(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."


def _more(count: int) -> list[str]:
    return [f"  ... and {count} more (--verbose lists all)"] if count > 0 else []


def _summary(found: ReleaseDifference, width: int) -> list[str]:
    parts = [
        f"{len(found.removed)} removed",
        f"{len(found.added)} added",
        f"{len(found.resigned)} re-signed",
    ]
    if found.flavour:
        parts.append(f"{len(found.flavour)} of the other flavour")
    if found.generated:
        parts.append(f"{len(found.generated)} that nvcc names anew in each build")
    text = ", ".join(parts)
    if found.used is not None:
        lost = len(found.removed) + len(found.resigned) + len(found.flavour) - _only_new(found)
        if lost:
            text += f": built for {found.old.release}, it does not load with {found.new.release}"
        elif not any((found.added, found.resigned, found.nowhere)):
            text = f"nothing that is needed differs between {found.old.release} and "
            text += found.new.release
    return sentence(text, width, "", "  ")


def _only_new(found: ReleaseDifference) -> int:
    """Re-signed functions and turned names of which the files use the newer form alone."""
    used = found.used_names
    rows = (*found.resigned, *found.flavour)
    return sum(not any(name.demangled in used for name in row.before) for row in rows)


def releases_text(report: ReleaseTableReport, width: int) -> str:
    """A table, a row for each release and machine."""
    rows = [("release", "date", "CUDA", "flavour", "machine", "Pythons")]
    rows += [
        (row.release, row.date, row.cuda or "none", row.flavour, row.machine, _span(row.pythons))
        for row in report.rows
    ]
    sizes = [max(len(row[at]) for row in rows) for at in range(5)]
    lines = []
    for row in rows:
        cells = "  ".join(f"{cell:<{size}}" for cell, size in zip(row, sizes, strict=False))
        lines += flow(pieces(row[5]), width, cells + "  ", " " * (len(cells) + 2))
    return "\n".join(lines) + "\n"


def _span(pythons: Sequence[str]) -> str:
    """``3.9 - 3.13``; free-threaded builds by name."""
    plain = [python for python in pythons if not python.endswith("t")]
    threaded = [python for python in pythons if python.endswith("t")]
    text = f"{plain[0]} - {plain[-1]}" if len(plain) > 1 else "".join(plain)
    return " ".join([text, *threaded])
