"""The document of ``wheels`` in JSON schema version 1."""

from __future__ import annotations

from fa_forensics.render.json import Document, finding_document, head, inspect_document
from fa_forensics.report import Report
from fa_forensics.report_wheels import Candidate, JudgedWheel, Way, WheelQuery, WheelsReport


def wheels_document(report: WheelsReport) -> Document:
    """The document of ``wheels``."""
    return {
        **head(report.tool_version, report.environment),
        "query": None if report.query is None else _query(report.query),
        "wheels": [_judged(wheel) for wheel in report.wheels],
    }


def _query(query: WheelQuery) -> Document:
    return {
        "package": query.package,
        "wanted": {key: query.wanted[key] for key in sorted(query.wanted)},
        "as_of": query.as_of,
        "best": None if query.best is None else query.best.file_name,
        "candidates": [_candidate(one) for one in query.candidates],
        "findings": [finding_document(finding) for finding in query.findings],
        "ways": [_way(way) for way in query.ways],
        "notes": list(query.notes),
        "unknown": list(query.unknown),
    }


def _candidate(one: Candidate) -> Document:
    return {
        "release": one.release,
        "date": one.date,
        "file_name": one.file_name,
        "url": one.url,
        "torch": one.torch,
        "torch_built": one.torch_built,
        "cuda": one.cuda,
        "cuda_built": one.cuda_built,
        "cxx11_abi": one.cxx11_abi,
        "python": one.python,
        "platform": one.platform,
        "nightly": one.nightly,
        "glibc": one.glibc,
        "blocked": one.blocked,
        "cautions": list(one.cautions),
        "command": one.command,
    }


def _way(way: Way) -> Document:
    return {"kind": way.kind, "text": way.text, "notes": list(way.notes), "help": list(way.help)}


def _judged(wheel: JudgedWheel) -> Document:
    return {
        "given": wheel.given,
        "kind": wheel.kind,
        "name": wheel.name,
        "version": wheel.version,
        "verdict": wheel.verdict,
        "headline": wheel.headline,
        "checks": [
            {
                "subject": check.subject,
                "state": check.state,
                "text": check.text,
                "finding": None if check.finding is None else check.finding.code,
            }
            for check in wheel.checks
        ],
        "findings": [
            finding_document(check.finding) for check in wheel.checks if check.finding is not None
        ],
        "targets": inspect_document(Report("", None, wheel.targets))["targets"],
        "official": None if wheel.official is None else _candidate(wheel.official),
        "size_bytes": wheel.size,
        "received_bytes": wheel.received,
        "help": list(wheel.help),
        "problem": wheel.problem,
        "hint": wheel.hint,
    }
