"""``fa-forensics wheels``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fa_forensics.console import (
    COLOR,
    FORMAT,
    LANG,
    fail,
    language,
    print_result,
    wants_color,
    warn,
    width,
)
from fa_forensics.errors import (
    EXIT_FINDINGS,
    EXIT_INCONCLUSIVE,
    EXIT_NOT_ANALYSED,
    EXIT_OK,
    ForensicsError,
)

if TYPE_CHECKING:
    from fa_forensics.report_wheels import WheelsReport


@click.command()
@click.argument("given", nargs=-1, metavar="[WHEEL]...")
@click.option(
    "--python",
    metavar="PATH|VERSION",
    help="The environment to find a wheel for (its python, or its directory), or a version (3.11).",
)
@click.option(
    "--torch", metavar="RELEASE", help="For this torch, which need not be installed: 2.6.0, 2.6."
)
@click.option("--cuda", metavar="VERSION", help="For this CUDA version of torch: 12 or 12.4.")
@click.option(
    "--abi", metavar="FLAVOUR", help="torch's std::string flavour: TRUE (cxx11), FALSE (pre-cxx11)."
)
@click.option("--platform", metavar="TAG", help="linux_x86_64 or linux_aarch64.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GPU",
    help='For this GPU: "RTX 4090", sm_89, 8.9. May be given several times. [default: this '
    "machine's]",
)
@click.option("--package", default="flash-attn", show_default=True, help="The package to find.")
@click.option(
    "--content/--no-content",
    default=None,
    help="Read all of a wheel, or its name and metadata only. [default: read it, but at an address "
    "only where its tags fit]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.01, 3600),
    default=30.0,
    show_default=True,
    help="Seconds to wait for a server's next bytes.",
)
@click.option("--all", "everything", is_flag=True, help="List every wheel that fits.")
@FORMAT
@click.option("-v", "--verbose", is_flag=True, help="List every finding with its evidence.")
@LANG
@COLOR
def wheels(
    given: tuple[str, ...],
    python: str | None,
    torch: str | None,
    cuda: str | None,
    abi: str | None,
    platform: str | None,
    gpus: tuple[str, ...],
    package: str,
    content: bool | None,
    timeout: float,
    everything: bool,
    form: str,
    verbose: bool,
    lang: str | None,
    color: bool | None,
) -> None:
    """Find the official flash-attn wheel for an environment, or judge a wheel before installing it.

    WHEEL is a path, an address (https://...) or a file name. Without one, the wheels for this
    environment are listed, newest first. A wheel at an address is read in place: nothing of it
    is written to disk, installed or run. Exit code 1 when no wheel fits or a given one does not.
    """
    from fa_forensics.wheels import WheelOptions
    from fa_forensics.wheels import wheels as run
    from fa_forensics.wheels.situation import Asked

    asked = Asked(python, torch, cuda, abi, platform, gpus)
    try:
        report = run(given, WheelOptions(asked, package, content, timeout))
    except ForensicsError as error:
        fail(error, form, "wheels")
    for wheel in report.wheels:
        if wheel.problem is not None:
            warn(wheel.problem, wheel.hint)
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_wheels import wheels_document

        print_result(dumps(wheels_document(report)))
    else:
        from fa_forensics.render.lang import speaker
        from fa_forensics.render.wheels import wheels_text

        say = speaker(language(lang))
        print_result(wheels_text(report, wants_color(color), verbose, everything, width(), say))
    sys.exit(_exit_code(report))


def _exit_code(report: WheelsReport) -> int:
    """The exit code of a run; the table in the README."""
    verdicts = {wheel.verdict for wheel in report.wheels}
    query = report.query
    if "does-not-fit" in verdicts or (query is not None and query.findings):
        return EXIT_FINDINGS
    if any(wheel.problem is not None for wheel in report.wheels):
        return EXIT_NOT_ANALYSED
    if "cannot-say" in verdicts or (query is not None and query.best is None):
        return EXIT_INCONCLUSIVE
    return EXIT_OK
