"""``env`` as Markdown, to paste into an issue: a table for each layer, then what is wrong."""

from __future__ import annotations

from fa_forensics.render.env import STATE_WORDS, TITLES, home_of, text_of
from fa_forensics.render.environment import environment_line
from fa_forensics.render.markdown import code, finding_lines, prose
from fa_forensics.report_env import LAYERS, EnvReport


def env_markdown(report: EnvReport, verbose: bool = False) -> str:
    """The report, ending in one newline. ``verbose`` adds the details of each line."""
    blocks = [[prose(environment_line(report.environment))]]
    home = home_of(report)
    for layer in LAYERS:
        lines = [line for line in report.lines if line.layer == layer]
        if not lines:
            continue
        rows = ["| | | |", "|---|---|---|"]
        for line in lines:
            text = prose(text_of(line, home))
            for detail in line.details if verbose else ():
                text += f"<br>{prose(detail)}"
            rows.append(f"| {STATE_WORDS[line.state]} | {prose(line.subject)} | {text} |")
        blocks += [[f"### {TITLES[layer]}"], rows]
    for line in report.lines:
        if line.finding is not None and (verbose or line.finding.severity != "note"):
            blocks.append([f"{code(line.subject)}:"])
            blocks.append(finding_lines(line.finding, verbose, files=True))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
