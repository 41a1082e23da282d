"""``env`` as text: one line for each thing looked at, by layer, then what is wrong in full."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.render.facts import environment_line
from fa_forensics.render.style import (
    MIN_WIDTH,
    Paint,
    counted,
    escape,
    file_name,
    flow,
    painter,
    pieces,
    sentence,
)
from fa_forensics.render.terminal import finding_lines
from fa_forensics.report import INCONCLUSIVE, Finding, TargetReport
from fa_forensics.report_env import (
    ARTEFACT,
    COPIES,
    COULD_NOT_LOOK,
    LAYERS,
    NOTE,
    OK,
    PACKAGE,
    RUNTIME,
    WRONG,
    EnvReport,
    Line,
)

_TITLES = {
    PACKAGE: "Python packages",
    ARTEFACT: "extension files",
    RUNTIME: "runtime",
    COPIES: "library copies",
}
#: The words of a state and their colour.
_STATES = {
    OK: ("ok", "green"),
    WRONG: ("wrong", "red"),
    COULD_NOT_LOOK: ("could not look", "yellow"),
    NOTE: ("note", "dim"),
}
_COLUMN = max(len(word) for word, _ in _STATES.values()) + 2
#: So wide is the column of subjects at most; a longer one starts a line of its own.
_SUBJECT = 28


def env_text(report: EnvReport, color: bool, verbose: bool, width: int) -> str:
    """The whole report, ending in one newline; ``width`` is in columns."""
    paint = painter(color)
    width = max(width, MIN_WIDTH)
    head = flow(pieces(environment_line(report.environment)), width, "", "  ")
    blocks = [[paint(line, "dim") for line in head]]
    for layer in LAYERS:
        lines = [line for line in report.lines if line.layer == layer]
        if lines:
            blocks.append(_layer(layer, lines, paint, verbose, width))
    blocks += [
        finding_lines(line.finding, _place(line), paint, verbose, width)
        for line in report.lines
        if line.finding is not None and (verbose or line.finding.severity != "note")
    ]
    blocks.append(_summary(report, paint, width))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _layer(layer: str, lines: Sequence[Line], paint: Paint, verbose: bool, width: int) -> list[str]:
    out = [paint(_TITLES[layer], "bold")]
    column = min(max(len(escape(line.subject)) for line in lines), _SUBJECT) + 2
    for line in lines:
        word, style = _STATES[line.state]
        subject = escape(line.subject)
        first = f"  {word:<{_COLUMN}}{subject:<{column}}"
        rest = " " * (2 + _COLUMN + column)
        if len(subject) > column - 2:
            out.append(_painted(first.rstrip(), word, style, paint))
            out += sentence(_with_code(line), width, rest, rest)
        else:
            rows = sentence(_with_code(line), width, first, rest)
            rows[0] = _painted(rows[0], word, style, paint)
            out += rows
        for detail in line.details if verbose else ():
            out += sentence(detail, width, rest + "- ", rest + "  ")
    return out


def _painted(line: str, word: str, style: str, paint: Paint) -> str:
    return "  " + paint(word, style) + line[2 + len(word) :]


def _with_code(line: Line) -> str:
    return line.text if line.finding is None else f"{line.text} [{line.finding.code}]"


def _place(line: Line) -> TargetReport:
    """What a finding of a line is about, as the shared renderer wants it."""
    finding: Finding | None = line.finding
    files = [entry.file for entry in finding.evidence if entry.file] if finding else []
    path = line.facts.get("path")
    where = path if isinstance(path, str) else (files[0] if len(files) == 1 else line.subject)
    return TargetReport(where, None, INCONCLUSIVE, file_name(where))


def _summary(report: EnvReport, paint: Paint, width: int) -> list[str]:
    wrong = [line for line in report.lines if line.state == WRONG]
    blind = [line for line in report.lines if line.state == COULD_NOT_LOOK]
    fine = sum(line.state == OK for line in report.lines)
    parts = [f"{counted(len(wrong), 'thing')} wrong" if wrong else "nothing wrong"]
    if blind:
        parts.append(f"{len(blind)} could not be looked at")
    parts.append(f"{fine} ok")
    mark, style = ("!!", "red") if wrong else (("??", "yellow") if blind else ("ok", "green"))
    lines = sentence(", ".join(parts), width, f"{mark} ", "   ")
    lines[0] = paint(mark, style) + lines[0][len(mark) :]
    return lines
