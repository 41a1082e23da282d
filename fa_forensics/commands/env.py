"""``fa-forensics env``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fa_forensics.console import COLOR, FORMAT, PYTHON, fail, print_result, wants_color, width
from fa_forensics.errors import EXIT_FINDINGS, EXIT_INCONCLUSIVE, EXIT_OK, ForensicsError

if TYPE_CHECKING:
    from fa_forensics.report_env import EnvReport

_LEVELS = {"error": 1, "warning": 2, "note": 3, "never": 0}


@click.command()
@PYTHON
@FORMAT
@click.option("--hashes", is_flag=True, help="Read every installed file and compare its hash.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    default="error",
    show_default=True,
    help="The weakest finding that makes the exit code 1.",
)
@click.option("-v", "--verbose", is_flag=True, help="List everything.")
@COLOR
def env(
    python: str | None, form: str, hashes: bool, fail_on: str, verbose: bool, color: bool | None
) -> None:
    """Look at a whole environment: packages, extension files, runtime, library copies.

    Each line is ok, wrong or could not look. Nothing is imported or loaded. Exit code 1 when a
    finding is at or above --fail-on, 4 when none is but a package, an extension file or a
    library copy could not be looked at.
    """
    from fa_forensics.env import inspect_environment

    try:
        report = inspect_environment(python, hashes=hashes)
    except ForensicsError as error:
        fail(error, form, "env")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_env import env_document

        print_result(dumps(env_document(report)))
    else:
        from fa_forensics.render.env import env_text

        print_result(env_text(report, wants_color(color), verbose, width()))
    sys.exit(exit_code(report, fail_on))


def exit_code(report: EnvReport, fail_on: str) -> int:
    """The exit code of a report; the table in the README."""
    limit = _LEVELS[fail_on]
    if any(_LEVELS[finding.severity] <= limit for finding in report.findings):
        return EXIT_FINDINGS
    # That this machine has no driver or no GPU to ask leaves no judgement open.
    if any(line.state == "could-not-look" and line.layer != "runtime" for line in report.lines):
        return EXIT_INCONCLUSIVE
    return EXIT_OK
