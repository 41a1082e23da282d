"""Documents of this program, read back: what each says, in facts that can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts
from fa_forensics.compare.of_env import put_lines
from fa_forensics.compare.of_environment import about, put_environment
from fa_forensics.compare.of_inspect import put_targets
from fa_forensics.compare.places import Places
from fa_forensics.errors import UnreadableReport
from fa_forensics.facts.files import read_bounded
from fa_forensics.report import SCHEMA_VERSION
from fa_forensics.report_compare import Compared

#: The kinds of documents, by the field that only they have.
_KINDS = (
    ("env", "lines"),
    ("inspect", "targets"),
    ("why", "answers"),
    ("upgrade", "packages"),
)

#: Bytes of one report that are read: that of a large environment with all kernels is 30 MB.
MAX_BYTES = 256 << 20


def read_document(path: str) -> Mapping[str, object]:
    """A report as it was written. Raises ``UnreadableReport`` with one sentence."""
    try:
        raw = read_bounded(path, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableReport(f"{path} cannot be read: {reason}") from error
    if len(raw) > MAX_BYTES:
        raise UnreadableReport(f"{path} is larger than {MAX_BYTES >> 20} MiB: it is no report")
    return parse_document(raw, path)


def parse_document(raw: bytes, name: str) -> Mapping[str, object]:
    """The document in ``raw``. Raises ``UnreadableReport`` where it is none of ours."""
    hint = "write one with: fa-forensics env --format json > report.json"
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        empty = "it is empty" if not raw.strip() else "it is not JSON"
        raise UnreadableReport(f"{name} is no report of fa-forensics: {empty}", hint) from error
    tool = document.get("tool") if isinstance(document, dict) else None
    if (
        not isinstance(document, dict)
        or not isinstance(tool, Mapping)
        or tool.get("name") != "fa-forensics"
    ):
        raise UnreadableReport(f"{name} is JSON, but no report of fa-forensics", hint)
    version = document.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise UnreadableReport(f"{name} does not say which schema version it has", hint)
    if version != SCHEMA_VERSION:
        raise UnreadableReport(
            f"{name} is a report of schema version {version}, which this fa-forensics does not "
            f"read: it reads version {SCHEMA_VERSION}",
            "write it again with this release, or compare with the release that wrote it",
        )
    return document


def facts_of(
    document: Mapping[str, object], name: str, per_process: frozenset[str] = frozenset()
) -> Facts:
    """What a document says. ``per_process`` are variables that are not compared.

    Raises ``UnreadableReport`` where it says nothing of a machine.
    """
    error = plain.mapping(document, "error")
    if error:
        message = plain.text(error, "message") or "no reason is given"
        raise UnreadableReport(f"{name} tells of a run that failed: {message}")
    kind = next((kind for kind, field in _KINDS if field in document), None)
    environment = document.get("environment")
    if kind is None or (kind in ("why", "upgrade") and not isinstance(environment, Mapping)):
        raise UnreadableReport(
            f"{name} says nothing of a machine: it is neither of env nor of inspect"
        )
    known = environment if isinstance(environment, Mapping) else {}
    version = plain.text(plain.mapping(document, "tool"), "version") or "of unknown version"
    into = Facts(Compared(name, kind, version, about(known) if known else "no environment"))
    places = Places(known)
    if known:
        put_environment(into, known, places, per_process)
    if kind == "env":
        put_lines(into, document, places, per_process)
    elif kind == "inspect":
        put_targets(into, document, places)
    return into
