"""``fa-forensics compare``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fa_forensics.console import COLOR, FORMAT, fail, print_result, wants_color, warn, width
from fa_forensics.errors import (
    EXIT_FINDINGS,
    EXIT_INCONCLUSIVE,
    EXIT_NOT_ANALYSED,
    EXIT_OK,
    ForensicsError,
)

if TYPE_CHECKING:
    from fa_forensics.report_compare import CompareReport


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT.json...")
@FORMAT
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "note", "never"]),
    default="note",
    show_default=True,
    help="What makes the exit code 1: a difference that can change the numbers computed "
    "(warning), any difference (note).",
)
@click.option("-v", "--verbose", is_flag=True, help="List everything, with whole values.")
@COLOR
def compare(
    reports: tuple[str, ...], form: str, fail_on: str, verbose: bool, color: bool | None
) -> None:
    """Say what differs between machines, and whether it can change what is computed.

    REPORT.json are files that env or inspect wrote with --format json, two or more, in any
    mix. Paths that differ only in their home, prefix or site-packages are the same.
    """
    from fa_forensics.compare.run import compare_files

    try:
        found = compare_files(reports)
    except ForensicsError as error:
        fail(error, form, "compare")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_compare import compare_document

        print_result(dumps(compare_document(found)))
    else:
        from fa_forensics.render.compare import compare_text

        print_result(compare_text(found, wants_color(color), verbose, width()))
    for report in found.unread:
        warn(report.message, report.hint)
    sys.exit(_exit_code(found, fail_on))


def _exit_code(found: CompareReport, fail_on: str) -> int:
    if found.unread:
        return EXIT_NOT_ANALYSED
    counted = {"warning": {"warning"}, "note": {"warning", "note"}, "never": set[str]()}[fail_on]
    if any(difference.finding.severity in counted for difference in found.differences):
        return EXIT_FINDINGS
    return EXIT_INCONCLUSIVE if found.not_compared and not found.differences else EXIT_OK
