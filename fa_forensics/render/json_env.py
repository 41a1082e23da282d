"""The document of ``env`` in JSON schema version 1."""

from __future__ import annotations

from fa_forensics.render.json import Document, finding_document, head, plain
from fa_forensics.report_env import STATES, EnvReport, Line


def env_document(report: EnvReport) -> Document:
    """The document of ``env``: every line, and how many there are of each state."""
    return {
        **head(report.tool_version, report.environment),
        "lines": [_line(line) for line in report.lines],
        "counts": {state: sum(line.state == state for line in report.lines) for state in STATES},
        "problem": report.problem,
    }


def _line(line: Line) -> Document:
    return {
        "layer": line.layer,
        "subject": line.subject,
        "state": line.state,
        "text": line.text,
        "finding": None if line.finding is None else finding_document(line.finding),
        "details": list(line.details),
        "facts": plain(line.facts),
    }
