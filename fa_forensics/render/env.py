"""``env`` as text: one line for each thing looked at, by layer, then what is wrong in full."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.render.environment import environment_line
from fa_forensics.render.lang import Say, columns, padded, plain
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
from fa_forensics.report import INCONCLUSIVE, SEVERITIES, TargetReport
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

#: The layers in words.
TITLES = {
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
STATE_WORDS = {state: word for state, (word, _) in _STATES.items()}
#: So wide is the column of subjects at most; a longer one has a line of its own.
_SUBJECT = 36


def env_text(report: EnvReport, color: bool, verbose: bool, width: int, say: Say = plain) -> str:
    """The whole report, ending in one newline; ``width`` is in columns."""
    paint = painter(color)
    width = max(width, MIN_WIDTH)
    head = flow(pieces(say(environment_line(report.environment))), width, "", "  ")
    blocks = [[paint(line, "dim") for line in head]]
    for layer in LAYERS:
        lines = [line for line in report.lines if line.layer == layer]
        if lines:
            blocks.append(_layer(layer, lines, home_of(report), paint, say, verbose, width))
    blocks += _findings(report.lines, paint, say, verbose, width)
    blocks.append(_summary(report, paint, say, width))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _findings(
    lines: Sequence[Line], paint: Paint, say: Say, verbose: bool, width: int
) -> list[list[str]]:
    """Every finding in full; of those that share code and package, or cure, the first alone."""
    blocks: list[list[str]] = []
    first: dict[tuple[object, ...], int] = {}
    others: dict[int, list[str]] = {}
    # What stops an import goes before what is merely odd; within that, the order of the lines.
    for line in sorted(lines, key=_gravity):
        finding = line.finding
        if finding is None or (finding.severity == "note" and not verbose):
            continue
        about = line.facts.get("package") or line.subject
        key = (line.layer, finding.help if line.layer == COPIES else about, finding.code)
        if key in first and not verbose and line.layer in (ARTEFACT, COPIES):
            others.setdefault(first[key], []).append(file_name(line.subject))
            continue
        first.setdefault(key, len(blocks))
        subject = line.subject if line.layer == ARTEFACT else None
        blocks.append(finding_lines(finding, _place(line), paint, verbose, width, say, subject))
    for at, names in others.items():
        text = f"{', '.join(names)}: {'as well' if names[1:] else 'too'} (--verbose shows it)"
        head = f"   = {say('note')}: "
        blocks[at] += sentence(say(text), width, head, " " * columns(head))
    return blocks


def _gravity(line: Line) -> int:
    return len(SEVERITIES) if line.finding is None else SEVERITIES.index(line.finding.severity)


def home_of(report: EnvReport) -> str:
    """The environment's own directory of packages: what lies in it is named from there on."""
    sites = (report.environment or {}).get("site_dirs")
    places = [str(site) for site in sites] if isinstance(sites, list) else []
    return next((p for p in places if p.endswith(("/site-packages", "/dist-packages"))), "")


def _layer(
    layer: str,
    lines: Sequence[Line],
    home: str,
    paint: Paint,
    say: Say,
    verbose: bool,
    width: int,
) -> list[str]:
    out = [paint(say(TITLES[layer]), "bold")]
    subjects = [len(escape(line.subject)) for line in lines]
    column = max([size for size in subjects if size <= _SUBJECT], default=_SUBJECT) + 2
    words = max(columns(say(_STATES[line.state][0])) for line in lines) + 2
    for line in lines:
        word, style = _STATES[line.state]
        word = say(word)
        subject = escape(line.subject)
        first = f"  {padded(word, words)}{subject:<{column}}"
        rest = " " * (2 + words + column)
        if len(subject) > column - 2:
            out.append(_painted(first.rstrip(), word, style, paint))
            out += sentence(text_of(line, home, say), width, rest, rest)
        else:
            rows = sentence(text_of(line, home, say), width, first, rest)
            rows[0] = _painted(rows[0], word, style, paint)
            out += rows
        for detail in line.details if verbose else ():
            out += sentence(say(detail), width, rest + "- ", rest + "  ")
    return out


def _painted(line: str, word: str, style: str, paint: Paint) -> str:
    return "  " + paint(word, style) + line[2 + len(word) :]


def text_of(line: Line, home: str, say: Say = plain) -> str:
    """The sentence with the code of its finding; paths begin at the directory of packages."""
    text = say(line.text.replace(home + "/", "") if home else line.text)
    return text if line.finding is None else f"{text} [{line.finding.code}]"


def _place(line: Line) -> TargetReport:
    """What a finding of a line is about, as the shared renderer wants it."""
    path = line.facts.get("path")
    where = path if line.layer == ARTEFACT and isinstance(path, str) else line.subject
    return TargetReport(where, None, INCONCLUSIVE, where)


def _summary(report: EnvReport, paint: Paint, say: Say, width: int) -> list[str]:
    wrong = [line for line in report.lines if line.state == WRONG]
    blind = [line for line in report.lines if line.state == COULD_NOT_LOOK]
    fine = sum(line.state == OK for line in report.lines)
    parts = [f"{counted(len(wrong), 'thing')} wrong" if wrong else "nothing wrong"]
    if blind:
        parts.append(f"{len(blind)} could not be looked at")
    parts.append(f"{fine} ok")
    mark, style = ("!!", "red") if wrong else (("??", "yellow") if blind else ("ok", "green"))
    lines = sentence(say(", ".join(parts)), width, f"{mark} ", "   ")
    lines[0] = paint(mark, style) + lines[0][len(mark) :]
    return lines
