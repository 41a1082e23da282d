"""``compare``: reports of several machines, and only what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fa_forensics import __version__
from fa_forensics.compare.differences import compare_facts
from fa_forensics.compare.documents import facts_of, read_document
from fa_forensics.compare.model import Facts
from fa_forensics.errors import UnreadableReport, UsageError
from fa_forensics.report_compare import CompareReport, Unread


def compare_files(paths: Sequence[str]) -> CompareReport:
    """Compare report files. One that cannot be used is told; the others are still compared.

    Raises ``UsageError`` for fewer than two files.
    """
    if len(paths) < 2:
        raise UsageError(
            "two reports or more are needed to compare",
            "write one on each machine: fa-forensics env --format json > report.json",
        )
    return _compare([(path, partial(read_document, path)) for path in paths])


def compare_documents(documents: Sequence[tuple[str, Mapping[str, object]]]) -> CompareReport:
    """Compare (name, document) pairs; as ``compare_files``."""
    return _compare([(name, partial(_as_it_is, document)) for name, document in documents])


def _as_it_is(document: Mapping[str, object]) -> Mapping[str, object]:
    return document


def _compare(sources: Sequence[tuple[str, Callable[[], Mapping[str, object]]]]) -> CompareReport:
    read: list[Facts] = []
    unread: list[Unread] = []
    for name, document in sources:
        try:
            read.append(facts_of(document(), name))
        except UnreadableReport as error:
            unread.append(Unread(name, error.message, error.hint))
    return compare_read(read, unread)


def compare_read(read: Sequence[Facts], unread: Sequence[Unread] = ()) -> CompareReport:
    """Compare facts that were read already."""
    outcome = compare_facts(read)
    return CompareReport(
        tool_version=__version__,
        reports=tuple(facts.report for facts in read),
        differences=outcome.differences,
        same=outcome.same,
        not_compared=outcome.not_compared,
        unread=tuple(unread),
    )
