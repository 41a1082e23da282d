"""The answers of ``why`` as text for a person."""

from __future__ import annotations

from fa_forensics.render.answers import answer_lines
from fa_forensics.render.environment import environment_line
from fa_forensics.render.lang import Say, plain
from fa_forensics.render.style import MIN_WIDTH, escape, flow, painter, pieces
from fa_forensics.report_why import WhyReport


def why_text(report: WhyReport, color: bool, width: int, say: Say = plain) -> str:
    """The answers of ``why``, ending in one newline; ``width`` is in columns."""
    paint = painter(color)
    width = max(width, MIN_WIDTH)
    place = environment_line(report.environment)
    where = None if report.environment is None else "here"
    if report.torch is not None:
        where = "there"
        place = (
            f"torch {escape(report.torch.version)} as it was released ({escape(report.torch.note)})"
            "; nothing here was looked at"
        )
    if report.note is not None:
        place = report.note
    lines = flow(pieces(say(place)), width, "", "  ")
    lines = [paint(line, "dim") for line in lines]
    for answer in report.answers:
        lines.append("")
        lines += answer_lines(answer, where, paint, width, say)
    return "\n".join(lines) + "\n"
