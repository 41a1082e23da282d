"""The documents of ``compare`` and ``ranks`` in JSON schema version 1."""

from __future__ import annotations

from fa_forensics.render.json import Document, finding_document, head
from fa_forensics.report_compare import CompareReport, Difference, RanksReport


def compare_document(report: CompareReport) -> Document:
    """The document of ``compare``."""
    return {**head(report.tool_version, None), **_comparison(report)}


def ranks_document(report: RanksReport) -> Document:
    """The document of ``ranks``: that of ``compare``, and what became of each rank."""
    comparison = report.comparison
    return {
        **head(comparison.tool_version, None),
        **_comparison(comparison),
        "world_size": report.world_size,
        "ranks": [
            {
                "rank": rank.rank,
                "host": rank.host,
                "state": rank.state,
                "detail": rank.detail,
                "finding": None if rank.finding is None else finding_document(rank.finding),
            }
            for rank in report.ranks
        ],
        "answered": list(report.answered),
    }


def _comparison(report: CompareReport) -> Document:
    return {
        "compared": [
            {
                "name": one.name,
                "kind": one.kind,
                "tool_version": one.tool_version,
                "about": one.about,
            }
            for one in report.reports
        ],
        "differences": [_difference(difference) for difference in report.differences],
        "same": report.same,
        "not_compared": [
            {"subject": one.subject, "reason": one.reason, "reports": list(one.reports)}
            for one in report.not_compared
        ],
        "unread": [
            {"name": one.name, "message": one.message, "hint": one.hint} for one in report.unread
        ],
    }


def _difference(difference: Difference) -> Document:
    return {
        "group": difference.group,
        "subject": difference.subject,
        "aspect": difference.aspect,
        "values": [
            {
                "value": list(one.value) if isinstance(one.value, tuple) else one.value,
                "reports": list(one.reports),
            }
            for one in difference.held
        ],
        "numbers": difference.effect,
        "reason": difference.reason,
        "source": difference.source,
        "finding": finding_document(difference.finding),
    }
