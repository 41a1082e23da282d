"""The document of ``env --lock`` in JSON schema version 1."""

from __future__ import annotations

from fa_forensics.render.json import Document, head
from fa_forensics.render.lock import dockerfile, environment_yml, requirements
from fa_forensics.report_lock import LockReport, Pin


def lock_document(report: LockReport) -> Document:
    """The document of ``env --lock``: the pins, and the three files as text."""
    return {
        **head(report.tool_version, report.environment),
        "lock": {
            "python": report.python,
            "pip": report.pip,
            "pins": [_pin(pin) for pin in report.pins],
            "conda": [
                {"name": p.name, "version": p.version, "build": p.build, "channel": p.channel}
                for p in report.conda
            ],
            "image": report.image,
            "driver": report.driver,
            "whole": report.whole,
            "variables": {
                name: (report.variables or {})[name] for name in sorted(report.variables or {})
            },
            "notes": list(report.notes),
            "files": {
                "requirements.txt": "\n".join(requirements(report)) + "\n",
                "environment.yml": "\n".join(environment_yml(report)) + "\n",
                "Dockerfile": "\n".join(dockerfile(report)) + "\n",
            },
        },
    }


def _pin(pin: Pin) -> Document:
    return {
        "name": pin.name,
        "version": pin.version,
        "source": pin.source,
        "line": pin.line,
        "url": pin.url,
        "hashes": list(pin.hashes),
        "hash_source": pin.hash_source,
        "notes": list(pin.notes),
    }
