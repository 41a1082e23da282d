"""Reports of ``inspect`` as Markdown, to paste into an issue: verdicts, findings, coverage tables.

Names from files are shown as code, so that nothing in them is read as markup.
"""

from __future__ import annotations

import re

from fa_forensics.render.coverage import coverage_markdown, gpu_sentences
from fa_forensics.render.environment import environment_line
from fa_forensics.render.facts import fact_rows
from fa_forensics.render.floors import floor_sentences
from fa_forensics.render.kernels import kernel_lines
from fa_forensics.render.several import VERDICTS, told
from fa_forensics.render.style import escape, file_name, short_path
from fa_forensics.report import Evidence, Finding, Report, TargetReport

#: An underscore within a word is no markup.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~$&!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
#: Columns of the list of kernels, which stands as it is in the terminal.
_WIDTH = 100
#: How many pieces of evidence are shown unless verbose.
SHOWN = 10


def inspect_markdown(report: Report, verbose: bool = False) -> str:
    """The report, ending in one newline. ``verbose`` adds the facts of each file."""
    blocks = [[prose(environment_line(report.environment))]]
    for target in report.targets:
        blocks += _target(target, verbose)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _target(target: TargetReport, verbose: bool) -> list[list[str]]:
    name = file_name(target.member or target.path)
    word = VERDICTS[target.verdict][1]
    # Headings of one file under several torches must not be alike.
    beside = f" with torch {code(target.torch.version)}" if target.torch is not None else ""
    blocks = [[f"## {code(name)}{beside}: {word}"], [prose(target.headline)]]
    if target.torch is not None:
        blocks.append([f"Judged against torch {code(target.torch.version)}."])
    blocks += [finding_lines(finding, verbose) for finding in target.findings]
    floors = floor_sentences(target)
    if floors and not verbose:
        blocks.append(["### Needs at least"])
        blocks.append([f"- {prose(text)}" for text in floors])
    view = target.coverage
    if view is not None or target.other_gpu_code:
        blocks.append(["### GPU code"])
    if view is not None:
        if view.get("gpus_from") != "all":
            blocks.append([f"- {prose(text)}" for text in gpu_sentences(view)])
        blocks.append(coverage_markdown(view))
    blocks.append([f"- {prose(other.text)}" for other in target.other_gpu_code])
    if target.kernels is not None:
        lines = kernel_lines(target.kernels, _WIDTH, everything=verbose)
        # Indented, so that no name can end the block.
        blocks += [["### Kernels"], [f"    {line}".rstrip() for line in lines]]
    if verbose:
        blocks.append(["### Facts"])
        rows = [f"- {label}: {prose(' '.join(parts))}" for label, parts in fact_rows(target, True)]
        blocks.append(rows)
    elif told(target):
        blocks.append(["### Not looked at"])
        blocks.append([f"- {code(s.rule)}: {prose(s.reason)}" for s in told(target)])
    return blocks


def finding_lines(finding: Finding, verbose: bool, files: bool = False) -> list[str]:
    """One finding; with ``files`` each piece of evidence names its file."""
    lines = [f"**{finding.severity} {finding.code}**: {prose(finding.title)}", ""]
    shown = finding.evidence if verbose else finding.evidence[:SHOWN]
    lines += [f"- {_place(entry) if files else ''}{prose(_evidence(entry))}" for entry in shown]
    if len(shown) < len(finding.evidence):
        lines.append(f"- ... and {len(finding.evidence) - SHOWN} more (--verbose shows all)")
    lines += [f"- note: {prose(note)}" for note in finding.notes]
    lines += [f"- help: {code(command)}" for command in finding.help]
    return lines


def _place(entry: Evidence) -> str:
    return "" if entry.file is None else f"{code(short_path(entry.file))}: "


def _evidence(entry: Evidence) -> str:
    if entry.symbol is None or entry.symbol in entry.text:
        return entry.text
    return f"{entry.text} {entry.symbol}"


def code(text: str) -> str:
    """A text as inline code, whatever it holds: the fence is longer than any within it."""
    shown = escape(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[:1] == "`" or shown[-1:] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def prose(text: str) -> str:
    """Words of a sentence with whatever Markdown or HTML would read in them made harmless."""
    return _SPECIAL.sub(r"\\\1", escape(text))
