"""Torch releases in text: what a file links with, what it was built on, tables of several."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.render.style import (
    Paint,
    counted,
    escape,
    natural_key,
    pieces,
    release_parts,
    without_arguments,
)
from fa_forensics.report import FAILS, LOADS, JudgedTorch, ReleaseFacts, TargetReport

Row = tuple[str, list[str]]

#: Names that are listed for one group of releases; the rest is counted.
_NAMES = 20
#: A table has a row for each file up to here, then one for each kind of row.
_ROWS = 12

#: A parameter list longer than this is left out of a sentence; --verbose has it whole.
_LINE = 100

_CELLS = {"loads": "loads", "links": "links", "fails": "fails", "no-gpu-code": "no GPU"}


def release_rows(target: TargetReport, verbose: bool) -> list[Row]:
    """The rows on releases under a verdict."""
    rows: list[Row] = []
    if target.torch is not None and target.torch.judged_by != "nothing":
        rows.append(("judged", judged_parts(target.torch)))
    facts = target.releases
    if facts is None:
        if target.links_with:
            rows.append(("links with", ["torch", *release_parts(target.links_with)]))
        if target.built_on:
            rows.append(("built on", ["torch", *release_parts(target.built_on)]))
        return rows
    rows.append(("links with", _links_parts(target, facts)))
    if facts.built_on:
        rows.append(("built on", _built_parts(facts, bool(target.findings) and not verbose)))
    if verbose:
        rows += [("evidence", pieces(escape(text))) for text in facts.evidence]
        rows += [("lacking", _lacking_parts(releases, names)) for releases, names in facts.missing]
    return rows


def judged_parts(torch: JudgedTorch) -> list[str]:
    """What a file was judged against, and how that torch was known."""
    cuda = f"CUDA {escape(torch.cuda)}" if torch.cuda else "no CUDA"
    how = "the table of its exports" if torch.judged_by == "table" else "its own libraries here"
    text = f"against torch {escape(torch.version)} ({cuda}, {escape(torch.cxx11_abi)}), by {how}"
    return pieces(f"{text}: {escape(torch.note)}")


def _links_parts(target: TargetReport, facts: ReleaseFacts) -> list[str]:
    if not facts.symbols:
        return pieces("any torch: it needs no name of it")
    if not facts.links_with:
        known = f"{facts.known[0]} to {facts.known[-1]}, {facts.machine}" if facts.known else ""
        return pieces(f"no published torch release ({escape(known)})")
    text = f"torch {escape(facts.links_text)}"
    if target.stable_abi:
        text += ", by the stable ABI: a floor, no ceiling"
    return pieces(text)


def _built_parts(facts: ReleaseFacts, evident: bool) -> list[str]:
    """``2.4 (window 2.4.0 - 2.6.0: evidence)``; the evidence where something was found."""
    best = facts.best or "?"
    minor = ".".join(best.split(".")[:2])
    text = f"torch {escape(best if len(facts.built_on) == 1 else minor)}"
    inside = f"window {escape(facts.built_text)}" if len(facts.built_on) > 1 else ""
    shown = [_brief(line.rstrip(".")) for line in facts.evidence[:2] if evident]
    evidence = "; ".join(escape(line) for line in shown)
    inside = ": ".join(part for part in (inside, evidence) if part)
    if facts.confidence != "high":
        inside += f"{'; ' if inside else ''}{escape(facts.confidence)} confidence"
    return pieces(f"{text} ({inside})") if inside else pieces(text)


def _brief(sentence: str) -> str:
    """A sentence whose longest parameter list, where it fills a line, stands as ``(...)``."""
    depth, start = 0, 0
    spans = []
    for at, char in enumerate(sentence):
        if char == "(":
            start = start if depth else at
            depth += 1
        elif char == ")" and depth:
            depth -= 1
            spans += [] if depth else [(at - start, start, at)]
    size, first, last = max(spans, default=(0, 0, 0))
    return f"{sentence[:first]}(...){sentence[last + 1 :]}" if size > _LINE else sentence


def _lacking_parts(releases: Sequence[str], names: Sequence[str]) -> list[str]:
    """``torch 2.7.0 to 2.9.1: 4 names:`` and the names."""
    first, last = escape(releases[0]), escape(releases[-1])
    span = first if first == last else f"{first} to {last}"
    shown = [escape(name) for name in names[:_NAMES]]
    if len(names) > _NAMES:
        shown.append(f"and {len(names) - _NAMES} more")
    return ["torch", f"{span}:", f"{counted(len(names), 'name')}:", *shown]


def minors_table(targets: Sequence[TargetReport], names: Sequence[str], width: int) -> list[str]:
    """Target by minor release: ``x`` all its releases, ``/`` some of them, ``.`` none.

    Only the minor releases around those that any file links with; empty where fewer than
    two files can be placed, and where that would not fit.
    """
    placed = [
        (name, target.releases)
        for target, name in zip(targets, names, strict=True)
        if target.releases is not None and target.releases.symbols
    ]
    if len(placed) < 2:
        return []
    minors = list(dict.fromkeys(_minor(r) for _, facts in placed for r in facts.known))
    minors.sort(key=natural_key)
    rows = [(name, [_mark(facts, minor) for minor in minors]) for name, facts in placed]
    used = [at for at in range(len(minors)) if any(marks[at] != "." for _, marks in rows)]
    if not used:
        return []
    shown = range(max(used[0] - 1, 0), min(used[-1] + 2, len(minors)))
    cells = [(name, [marks[at] for at in shown]) for name, marks in _merged(rows)]
    head = [minors[at] for at in shown]
    lines = _lay_out(("links with torch", head), cells, width)
    return [*lines, "(x: every release of it, /: some, .: none)"] if lines else []


def _minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _mark(facts: ReleaseFacts, minor: str) -> str:
    known = [release for release in facts.known if _minor(release) == minor]
    hits = sum(release in facts.links_with for release in known)
    if not hits:
        return "."
    return "x" if hits == len(known) else "/"


def _merged(rows: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """One row for all files alike, when there are too many for a row each."""
    if len(rows) <= _ROWS:
        return list(rows)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, marks in rows:
        alike.setdefault(tuple(marks), []).append(name)
    return [
        (names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more", list(marks))
        for marks, names in alike.items()
    ]


def verdict_table(groups: Sequence[Sequence[TargetReport]], names: Sequence[str], width: int,
                  paint: Paint) -> list[str]:  # fmt: skip
    """Target by torch that was asked for: the verdict, and how many names are missing.

    Each group holds one file's reports, one for each torch, in one order.
    """
    head = [report.torch.requested if report.torch else "here" for report in groups[0]]
    rows = []
    for name, reports in zip(names, groups, strict=True):
        rows.append((name, [_cell(report) for report in reports]))
    lines = _lay_out(("torch", [escape(text) for text in head]), rows, width)
    if lines:
        return lines
    # Too many columns for the window: a line for each pair.
    return [
        f"{name}  {escape(text)}  {cell}"
        for name, cells in rows
        for text, cell in zip(head, cells, strict=True)
    ]


def _cell(report: TargetReport) -> str:
    word = _CELLS.get(report.verdict, "?")
    count = len(report.missing)
    return f"{word} ({count})" if report.verdict == FAILS and count else word


def reason_lines(report: TargetReport) -> list[str]:
    """Why a file does not load with one torch, in parts: its headline, the first finding."""
    if report.verdict == LOADS:
        return []
    asked = report.torch.requested if report.torch else "this torch"
    first = next((f for f in report.findings if f.severity == "error"), None)
    text = f"torch {escape(asked)}: {escape(report.headline)}"
    if first is not None and first.title not in report.headline:
        text += f"; {escape(first.code)}: {escape(_short(first.title))}"
    return pieces(text)


def _short(title: str) -> str:
    return title if len(title) < 120 else without_arguments(title)


def _lay_out(
    head: tuple[str, list[str]], rows: Sequence[tuple[str, list[str]]], width: int
) -> list[str]:
    """Columns under their heads, names to the left; empty when that is wider than the window."""
    first = max(len(name) for name, _ in (head, *rows))
    sizes = [max(len(row[at]) for _, row in (head, *rows)) for at in range(len(head[1]))]
    gap = "  " if max(sizes) > 4 else " "
    if first + sum(sizes) + len(gap) * len(sizes) > width:
        first = max(width - sum(sizes) - len(gap) * len(sizes), 0)
        if first < 12:
            return []
    lines = []
    for name, cells in (head, *rows):
        shown = name if len(name) <= first else name[: first - 3] + "..."
        columns = (f"{cell:<{size}}" for cell, size in zip(cells, sizes, strict=True))
        lines.append((f"{shown:<{first}}{gap}" + gap.join(columns)).rstrip())
    return lines
