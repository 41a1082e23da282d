"""``fa-forensics env``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from fa_forensics.console import (
    COLOR,
    LANG,
    PYTHON,
    fail,
    language,
    print_result,
    wants_color,
    width,
)
from fa_forensics.errors import EXIT_FINDINGS, EXIT_INCONCLUSIVE, EXIT_OK, ForensicsError

if TYPE_CHECKING:
    from fa_forensics.report_env import EnvReport

#: No more processes than this share the work: each opens torch's libraries anew.
MAX_JOBS = 4

_LEVELS = {"error": 1, "warning": 2, "note": 3, "never": 0}


@click.command()
@PYTHON
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Text for people, JSON (schema version 1) for programs, Markdown to paste.",
)
@click.option("--hashes", is_flag=True, help="Read every installed file and compare its hash.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    default="error",
    show_default=True,
    help="The weakest finding that makes the exit code 1.",
)
@click.option(
    "--lock",
    "part",
    is_flag=False,
    flag_value="all",
    type=click.Choice(["all", "requirements", "environment", "dockerfile"]),
    help="Print what builds this environment again, in place of the report: all three files or one "
    "of them.",
)
@click.option(
    "--lock-index",
    metavar="URL",
    help="Ask this package index (the address of its simple pages) for hashes that are not known "
    "here.",
)
@click.option("-v", "--verbose", is_flag=True, help="List everything.")
@LANG
@COLOR
def env(
    python: str | None,
    form: str,
    hashes: bool,
    fail_on: str,
    part: str | None,
    lock_index: str | None,
    verbose: bool,
    lang: str | None,
    color: bool | None,
) -> None:
    """Look at a whole environment: packages, extension files, runtime, library copies.

    Each line is ok, wrong or could not look. Nothing is imported or loaded. Exit code 1 when a
    finding is at or above --fail-on, 4 when none is but a package, an extension file or a
    library copy could not be looked at.
    """
    if lock_index is not None and part is None:
        raise click.UsageError("--lock-index goes with --lock")
    if part is not None:
        _lock(python, form, part, lock_index)
    from fa_forensics.env import inspect_environment
    from fa_forensics.forked import cores

    try:
        report = inspect_environment(python, hashes=hashes, jobs=min(cores(), MAX_JOBS))
    except ForensicsError as error:
        fail(error, form, "env")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_env import env_document

        print_result(dumps(env_document(report)))
    elif form == "markdown":
        from fa_forensics.render.env_markdown import env_markdown

        print_result(env_markdown(report, verbose))
    else:
        from fa_forensics.render.env import env_text
        from fa_forensics.render.lang import speaker

        say = speaker(language(lang))
        print_result(env_text(report, wants_color(color), verbose, width(), say))
    sys.exit(exit_code(report, fail_on))


def _lock(python: str | None, form: str, part: str, index: str | None) -> NoReturn:
    """Print the files that build the environment again; exit code 4 where something is lost."""
    from fa_forensics.lock import lock
    from fa_forensics.report_lock import CONDA

    try:
        report = lock(python, index=index)
    except ForensicsError as error:
        fail(error, form, "env --lock")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_lock import lock_document

        print_result(dumps(lock_document(report)))
    else:
        from fa_forensics.render.lock import lock_text

        print_result(lock_text(report, part))
    lost = any(pin.line is None and pin.source != CONDA for pin in report.pins)
    sys.exit(EXIT_INCONCLUSIVE if lost else EXIT_OK)


def exit_code(report: EnvReport, fail_on: str) -> int:
    """The exit code of a report; the table in the README."""
    limit = _LEVELS[fail_on]
    if any(_LEVELS[finding.severity] <= limit for finding in report.findings):
        return EXIT_FINDINGS
    # That this machine has no driver or no GPU to ask leaves no judgement open.
    if any(line.state == "could-not-look" and line.layer != "runtime" for line in report.lines):
        return EXIT_INCONCLUSIVE
    return EXIT_OK
