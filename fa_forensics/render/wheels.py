"""``wheels`` as text: the wheel to take and how, or what speaks against a given one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fa_forensics.render.lang import Say, columns, padded, plain
from fa_forensics.render.style import (
    Paint,
    counted,
    escape,
    flow,
    painter,
    pieces,
    sentence,
    size_text,
)
from fa_forensics.render.terminal import finding_lines
from fa_forensics.report import TargetReport
from fa_forensics.report_env import COULD_NOT_LOOK, OK, WRONG
from fa_forensics.report_wheels import (
    DOES_NOT_FIT,
    FITS,
    Candidate,
    JudgedWheel,
    Way,
    WheelQuery,
    WheelsReport,
)

#: Releases that are listed besides the one to take, unless all are asked for.
_SHOWN = 6

#: Findings about the files inside that are shown unless all are asked for.
_FINDINGS = 3

_MARKS = {OK: ("ok", "green"), WRONG: ("!!", "red"), COULD_NOT_LOOK: ("??", "yellow")}


def wheels_text(
    report: WheelsReport,
    color: bool,
    verbose: bool,
    everything: bool,
    width: int,
    say: Say = plain,
) -> str:
    """The whole report, with a line feed at its end."""
    paint = painter(color)
    blocks: list[list[str]] = []
    if report.query is not None:
        blocks += _query(report.query, paint, say, verbose, everything, width)
    for wheel in report.wheels:
        blocks += _judged(wheel, paint, say, verbose, width)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _query(
    query: WheelQuery, paint: Paint, say: Say, verbose: bool, everything: bool, width: int
) -> Iterator[list[str]]:
    yield _wanted(query.wanted, width, say)
    yield _answer(query, paint, say, width)
    if everything or not query.findings:
        yield _others(query, everything, width, say)
    for finding in query.findings:
        nothing = TargetReport(query.package, None, "", "")
        yield finding_lines(finding, nothing, paint, verbose, width, say)
    if query.ways and query.best is not None:
        yield [say("The other ways:")]
    for number, way in enumerate(query.ways, 1):
        yield _way(way, number if len(query.ways) > 1 else None, paint, say, width)
    notes = [*query.notes, *query.unknown]
    first = f"{say('note')}: "
    yield [line for note in notes for line in _noted(say(note), width, first)]


def _noted(text: str, width: int, first: str) -> list[str]:
    return sentence(text, width, first, " " * columns(first))


def _wanted(wanted: Mapping[str, object], width: int, say: Say) -> list[str]:
    """What the wheel must be for, in one sentence."""
    cuda = wanted.get("cuda")
    parts = [
        f"torch {wanted.get('torch_version') or wanted.get('torch')}",
        f"Python {wanted.get('python')}",
        f"CUDA {cuda}" if cuda else ("no CUDA" if cuda == "" else "CUDA unknown"),
        str(wanted.get("cxx11_abi") or "flavour unknown"),
        str(wanted.get("platform")),
    ]
    if wanted.get("glibc"):
        parts.append(f"glibc {wanted['glibc']}")
    return _noted(say(", ".join(parts)), width, f"{say('looking for')}: ")


def _answer(query: WheelQuery, paint: Paint, say: Say, width: int) -> list[str]:
    best = query.best
    if best is None:
        if query.findings:
            return []
        text = (
            f"{counted(len(query.candidates), 'wheel')} may fit, but which of them does cannot be "
            "told"
        )
        lines = sentence(say(text), width, "?? ", "   ")
        return [paint("??", "yellow") + lines[0][2:], *lines[1:]]
    mark, style = ("!!", "red") if best.cautions else ("ok", "green")
    text = f"flash-attn {best.release} ({best.date}), built on torch {best.torch_built}, "
    text += f"CUDA {best.cuda_built}"
    lines = sentence(say(text), width, f"{mark} ", "   ")
    lines[0] = paint(mark, style) + lines[0][len(mark) :]
    lines.append(f"   {escape(best.file_name)}")
    for caution in best.cautions:
        lines += sentence(say(f"but {caution}"), width, "   ", "   ")
    lines.append(f"   {paint(_help(say), 'cyan')} {escape(best.command)}")
    text = (
        f"The release's workflow was set to build it (table of {query.as_of}); whether the page "
        "has it, and whether what is in it fits, fa-forensics wheels says of its address."
    )
    lines += _noted(say(text), width, f"   = {say('note')}: ")
    return lines


def _help(say: Say) -> str:
    return f"= {say('help')}:"


def _others(query: WheelQuery, everything: bool, width: int, say: Say) -> list[str]:
    """The other wheels that fit, newest first: one line each."""
    rows = [one for one in query.candidates if one is not query.best]
    if not everything:
        newest: dict[str, Candidate] = {}
        for one in rows:
            flavour = "" if query.best is not None else one.cxx11_abi
            newest.setdefault(one.release + flavour, one)
        if query.best is not None:
            newest.pop(query.best.release, None)
        shown = list(newest.values())[:_SHOWN]
    else:
        shown = rows
    if not shown:
        return []
    lines = [say("also:" if query.best is not None else "candidates:")]
    for one in shown:
        caution = f"  ({say(one.cautions[0])})" if one.cautions else ""
        lines += flow(pieces(escape(one.file_name + caution)), width, "   ", "     ")
    if len(rows) > len(shown):
        more = f"... {counted(len(rows) - len(shown), 'more file')} (--all lists them)"
        lines.append(f"   {say(more)}")
    return lines


def _way(way: Way, number: int | None, paint: Paint, say: Say, width: int) -> list[str]:
    first = f"{number}. " if number is not None else ""
    lines = sentence(say(way.text), width, first, " " * len(first))
    for note in way.notes:
        lines += _noted(say(note), width, f"   = {say('note')}: ")
    lines += [f"   {paint(_help(say), 'cyan')} {escape(command)}" for command in way.help]
    return lines


def _judged(
    wheel: JudgedWheel, paint: Paint, say: Say, verbose: bool, width: int
) -> Iterator[list[str]]:
    mark, style = {FITS: ("ok", "green"), DOES_NOT_FIT: ("!!", "red")}.get(
        wheel.verdict, ("??", "yellow")
    )
    lines = [escape(wheel.given)]
    head = sentence(say(wheel.headline), width, f"{mark} ", "   ")
    lines += [paint(mark, style) + head[0][len(mark) :], *head[1:]]
    if wheel.size is not None:
        read = f", {size_text(wheel.received)} of it fetched" if wheel.received is not None else ""
        lines.append(
            f"   {escape(wheel.name)} {escape(wheel.version)}, {size_text(wheel.size)}{read}"
        )
    yield lines
    yield _checks(wheel, paint, say, width)
    for check in wheel.checks:
        if check.finding is not None:
            target = TargetReport(wheel.given, None, "", "")
            yield finding_lines(check.finding, target, paint, verbose, width, say)
    yield from _inside(wheel.targets, paint, say, verbose, width)
    yield [f"   {paint(_help(say), 'cyan')} {escape(command)}" for command in wheel.help]


def _checks(wheel: JudgedWheel, paint: Paint, say: Say, width: int) -> list[str]:
    """Each question in one line: its state, what was asked, the answer."""
    column = max((columns(say(check.subject)) for check in wheel.checks), default=0)
    lines: list[str] = []
    for check in wheel.checks:
        mark, style = _MARKS.get(check.state, ("--", "dim"))
        first = f"{mark} {padded(say(check.subject), column)}  "
        rows = _noted(say(check.text), width, first)
        lines += [paint(mark, style) + rows[0][2:], *rows[1:]]
    return lines


def _inside(
    targets: Sequence[TargetReport], paint: Paint, say: Say, verbose: bool, width: int
) -> Iterator[list[str]]:
    """What ``inspect`` finds in its extensions: the first errors and warnings, or everything."""
    found = [
        (finding, target)
        for target in targets
        for finding in target.findings
        if verbose or finding.severity != "note"
    ]
    shown = found if verbose else found[:_FINDINGS]
    for finding, target in shown:
        yield finding_lines(finding, target, paint, verbose, width, say)
    if len(found) > len(shown):
        yield [say(f"... and {counted(len(found) - len(shown), 'more finding')} (--verbose)")]
