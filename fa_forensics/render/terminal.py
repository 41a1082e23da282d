"""Reports as text for a person: the verdict first, then each finding, then the facts.

A finding has the shape of a compiler's message: ``error[FA201]: title``, the file,
evidence, notes and, under ``help``, commands to paste. Commands are printed whole on
one line. Of several targets the healthy ones take one line each unless ``verbose``.
Without colour the text holds no escape sequence, and it is the same each time for the
same report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.render.environment import environment_line, environment_notes
from fa_forensics.render.facts import fact_rows
from fa_forensics.render.gpu import gpu_tables
from fa_forensics.render.lang import Say, columns, padded, plain
from fa_forensics.render.releases import (
    minors_table,
    reason_lines,
    release_rows,
    verdict_table,
)
from fa_forensics.render.several import (
    VERDICTS,
    healthy_lines,
    is_healthy,
    names_of,
    summary,
)
from fa_forensics.render.style import (
    MIN_WIDTH,
    Paint,
    escape,
    file_name,
    flow,
    painter,
    pieces,
    said_parts,
    sentence,
    short_path,
    without_arguments,
)
from fa_forensics.report import Evidence, Finding, Report, TargetReport

#: How many pieces of evidence, and how many findings of one code, are shown unless verbose.
SHOWN = 10

#: The finding that says of every file of a package what its metadata claims.
_CLAIM = "FA701"

_SEVERITY_STYLE = {"error": "red", "warning": "yellow", "note": "cyan"}
_LABEL_WIDTH = 11
_BAR = "   |  "
_LABELS = ("needs", "has", "tried", "found")
#: How a sentence begins whose subject is the file of the evidence.
_OF_FILES = (
    "is ", "was ", "does ", "cannot ", "says ", "assigns ", "points to ", "goes before ", "lists ",
)  # fmt: skip


def inspect_text(
    report: Report,
    color: bool,
    verbose: bool,
    width: int,
    coverage: bool = False,
    say: Say = plain,
) -> str:
    """The report of ``inspect``, ending in one newline; ``width`` is in columns.

    ``coverage`` shows the table of GPUs without the rest of what ``verbose`` adds; ``say``
    puts our own sentences and labels into another language.
    """
    paint = painter(color)
    width = max(width, MIN_WIDTH)
    lines = flow(pieces(say(environment_line(report.environment))), width, "", "  ")
    lines = [paint(line, "dim") for line in lines]
    if verbose:
        for note in environment_notes(report.environment):
            lines += _noted(say(note), width, f"  {say('note')}: ")
    if len({t.torch.requested for t in report.targets if t.torch is not None}) > 1:
        lines += _by_torch_lines(report.targets, paint, say, verbose, width, coverage)
    elif len(report.targets) > 1:
        lines += _several_lines(report.targets, paint, say, verbose, width, coverage)
    else:
        for target in report.targets:
            lines += ["", *_target_lines(target, paint, say, verbose, width)]
            lines += gpu_tables(target, paint, width, table=verbose or coverage)
    return "\n".join(lines) + "\n"


def _several_lines(
    targets: Sequence[TargetReport],
    paint: Paint,
    say: Say,
    verbose: bool,
    width: int,
    coverage: bool,
) -> list[str]:
    """The failing ones first and in full, then the healthy ones, each in a line; the count."""
    names = names_of(targets)
    lines: list[str] = []
    claims: set[object] = set()
    for target in targets:
        if not is_healthy(target):
            shown = target if verbose else _claims_once(target, claims)
            lines += ["", *_target_lines(shown, paint, say, verbose, width)]
            lines += gpu_tables(target, paint, width, table=verbose or coverage)
    short = not verbose
    healthy = [pair for pair in zip(targets, names, strict=True) if is_healthy(pair[0])]
    if healthy and short:
        lines.append("")
    for target, name in healthy:
        if short:
            lines += healthy_lines(target, name, paint, width, say)
        else:
            lines += ["", *_target_lines(target, paint, say, verbose, width)]
        tables = gpu_tables(target, paint, width, table=verbose or coverage)
        lines += [*tables, ""] if tables and short else tables
    if verbose or len(healthy) < len(targets):
        table = minors_table(targets, [" ".join(name) for name in names], width)
        lines += ["", *table] if table else []
    count = flow(summary(targets, names, say), width, "", "  ")
    return [*lines, "", *(paint(line, "bold") for line in count)]


def _claims_once(target: TargetReport, said: set[object]) -> TargetReport:
    """A target without the findings on its package's metadata that another one has shown."""
    kept = []
    for finding in target.findings:
        claim = (finding.code, finding.evidence[:1])
        if finding.code != _CLAIM or claim not in said:
            kept.append(finding)
        said.add(claim)
    return replace(target, findings=tuple(kept))


def _by_torch_lines(
    targets: Sequence[TargetReport],
    paint: Paint,
    say: Say,
    verbose: bool,
    width: int,
    coverage: bool,
) -> list[str]:
    """Files judged against several torches: a table, the reasons; whole reports if verbose."""
    groups: dict[tuple[str, str | None], list[TargetReport]] = {}
    for target in targets:
        groups.setdefault((target.path, target.member), []).append(target)
    names = names_of([reports[0] for reports in groups.values()])
    called = [" ".join(name) for name in names]
    lines = ["", *verdict_table(list(groups.values()), called, width, paint)]
    for reports, name in zip(groups.values(), called, strict=True):
        first = reports[0]
        lines += ["", paint(name, "bold")]
        for report in reports:
            if verbose:
                lines += ["", *_target_lines(report, paint, say, verbose, width)]
                continue
            mark = VERDICTS[report.verdict][0]
            reason = said_parts(reason_lines(report), say)
            lines += flow(reason, width, f"{mark} ", "   ") if reason else []
        if not verbose:
            for label, parts in release_rows(replace(first, torch=None), verbose):
                head = "   " + padded(say(label), _LABEL_WIDTH)
                lines += flow(said_parts(parts, say), width, head, " " * columns(head))
        # The same under every torch, so once.
        lines += gpu_tables(first, paint, width, table=verbose or coverage)
    return lines


def _target_lines(
    target: TargetReport, paint: Paint, say: Say, verbose: bool, width: int
) -> list[str]:
    mark, word, style = VERDICTS[target.verdict]
    first = f"{mark} {say(word)}: "
    lines = sentence(say(target.headline), width, first, "   ")
    lines[0] = paint(first.rstrip(), style) + lines[0][len(first.rstrip()) :]
    findings, left_out = _selected(target.findings, verbose)
    for finding in findings:
        lines += ["", *finding_lines(finding, target, paint, verbose, width, say)]
    for code, number in left_out.items():
        lines += ["", say(f"... and {number} more of {escape(code)} (--verbose shows all)")]
    if findings:
        lines.append("")
    last = ""
    for label, parts in fact_rows(target, verbose):
        shown = "" if label == last else label
        last = label
        shown = say(shown)
        head = "   " + padded(shown, _LABEL_WIDTH)
        row = flow(said_parts(parts, say), width, head, " " * columns(head))
        row[0] = "   " + paint(shown, "bold") + row[0][3 + len(shown) :]
        lines += row
    if target.hint and target.elf is None:
        lines += _labelled(say("help"), say(target.hint), "green", paint, width)
    return lines


def _selected(findings: Sequence[Finding], verbose: bool) -> tuple[list[Finding], dict[str, int]]:
    """The findings to show, in their order, and how many of each code are left out."""
    if verbose:
        return list(findings), {}
    seen: dict[str, int] = {}
    shown = []
    for finding in findings:
        seen[finding.code] = seen.get(finding.code, 0) + 1
        if seen[finding.code] <= SHOWN:
            shown.append(finding)
    return shown, {code: number - SHOWN for code, number in seen.items() if number > SHOWN}


def finding_lines(
    finding: Finding,
    target: TargetReport,
    paint: Paint,
    verbose: bool,
    width: int,
    say: Say = plain,
    place: str | None = None,
) -> list[str]:
    """One finding about ``target``: its title, evidence, notes and the commands that help.

    ``place`` is shown for the file's name where that alone names several.
    """
    style = _SEVERITY_STYLE.get(finding.severity, "bold")
    head = f"{say(escape(finding.severity))}[{escape(finding.code)}]"
    title = say(finding.title)
    if finding.confidence != "high":
        title += f" {say(f'({finding.confidence} confidence)')}"
    lines = sentence(title, width, f"{head}: ", "  ")
    lines[0] = paint(head, style) + paint(lines[0][len(head) :], "bold")
    lines.append(
        f"  {paint('-->', 'cyan')} {escape(place or file_name(target.member or target.path))}"
    )
    evidence = finding.evidence if verbose else finding.evidence[:SHOWN]
    column = max((columns(say(_label_of(e)[0])) for e in evidence), default=0)
    block: list[str] = []
    for entry in evidence:
        rows = _evidence_rows(entry, finding.title, target, None if verbose else width)
        rows = [said_parts(row, say) for row in rows]
        shown = _evidence_lines(say(_label_of(entry)[0]), rows, column, width)
        # Overloads whose parameters were left out read alike; one of them says it.
        if block[-len(shown) :] != shown:
            block += shown
    if len(evidence) < len(finding.evidence):
        more = f"... and {len(finding.evidence) - SHOWN} more (--verbose shows all)"
        block.append(_BAR + say(more))
    lines += [f"   {paint('|', 'cyan')}{line[4:]}" for line in block]
    for note in finding.notes:
        lines += _labelled(say("note"), say(note), "bold", paint, width)
    word = paint(f"= {say('help')}:", "green")
    lines += [f"   {word} {escape(command)}" for command in finding.help]
    return lines


def _labelled(label: str, text: str, style: str, paint: Paint, width: int) -> list[str]:
    lines = _noted(text, width, f"   = {label}: ")
    lines[0] = lines[0].replace(f"= {label}:", paint(f"= {label}:", style), 1)
    return lines


def _noted(text: str, width: int, first: str) -> list[str]:
    return sentence(text, width, first, " " * columns(first))


def _label_of(entry: Evidence) -> tuple[str, str]:
    """The word that labels a line of evidence (``needs``, ``has``), and the rest of its text."""
    word, _, rest = entry.text.partition(" ")
    if word in _LABELS or (entry.symbol is not None and not rest and len(word) <= 10):
        return word, rest.strip()
    return "", entry.text


def _evidence_rows(
    entry: Evidence, title: str, target: TargetReport, room: int | None
) -> list[list[str]]:
    """The text or the readable name, with where it stands; below it the mangled name.

    A readable name that the title says already is left out, and one wider than ``room``
    (None: unlimited) loses its parameters: the mangled name below says them all.
    """
    _, text = _label_of(entry)
    symbol = entry.symbol
    below = []
    if symbol is not None and (symbol not in text or text.startswith(symbol)):
        below = [escape(f"{symbol}@{entry.version}" if entry.version else symbol)]
        if not text or text.startswith(symbol):
            # "symbol = readable name", or a label alone: the readable name comes first.
            text = text.partition(" = ")[2] or _readable(symbol, target)
            if text == symbol or text in title:
                return [below + _where(entry, target)]
        elif room is not None and entry.text.startswith("has "):
            below = []
        name, remark = _name_and_remark(text)
        if room is not None and len(name) > room - 15:
            text = without_arguments(name) + remark
    where = _where(entry, target)
    if text.startswith(_OF_FILES) and where and where[0].startswith("in "):
        # "flash_attn/bert.py is not there" reads better than "is not there in ...".
        where[0] = where[0].removeprefix("in ")
        return [[*where, *pieces(escape(text))]]
    first = pieces(escape(text)) + where
    return [first, below] if below else [first]


def _name_and_remark(text: str) -> tuple[str, str]:
    """``f(int) (other parameters)`` in its two parts, the second with the space before it."""
    cut = text.rfind(") (") + 1
    return (text[:cut], text[cut:]) if cut else (text, "")


def _readable(symbol: str, target: TargetReport) -> str:
    return next((b.demangled for b in target.undefined if b.symbol == symbol), symbol)


def _evidence_lines(label: str, rows: list[list[str]], column: int, width: int) -> list[str]:
    first, rest = _BAR, _BAR + "  "
    if label:
        first, rest = f"{_BAR}{padded(escape(label), column)}  ", _BAR + " " * (column + 2)
    lines: list[str] = []
    for row in rows:
        lines += flow(row, width, rest if lines else first, rest)
    return lines


def _where(entry: Evidence, target: TargetReport) -> list[str]:
    """``(.dynsym[118])`` and, when it is another file than the target, ``in`` that file."""
    out = []
    table, index = entry.table or "", entry.entry or ""
    if table and index and not index.startswith(table):
        table += index if index.startswith("[") else f"[{index}]"
    elif index:
        table = index
    # A wheel's member is read from a temporary copy, whose path says nothing.
    copy = target.member is not None and file_name(entry.file or "") == file_name(target.member)
    if entry.file and entry.file not in (target.path, target.member) and not copy:
        out.append(f"in {escape(short_path(entry.file))}")
    # "in libc10_cuda.so" says enough; its table alone would add nothing.
    if table and (index or not out):
        out.insert(0, f"({escape(table)})")
    return out
