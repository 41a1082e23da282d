"""A line of the runtime in the state that its finding gives it."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.report import Finding
from fa_forensics.report_env import NOTE, OK, RUNTIME, WRONG, Line


def line_of(subject: str, text: str, finding: Finding | None, facts: Mapping[str, object]) -> Line:
    """A line in the state that its finding gives it: none is "ok", a note is "note"."""
    if finding is None:
        return Line(RUNTIME, subject, OK, text, None, (), facts)
    state = NOTE if finding.severity == "note" else WRONG
    details = () if finding.title == text else (text,)
    return Line(RUNTIME, subject, state, finding.title, finding, details, facts)
