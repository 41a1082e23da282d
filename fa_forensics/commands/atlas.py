"""``fa-forensics atlas``: the table of torch releases, asked by hand."""

from __future__ import annotations

import click

from fa_forensics.console import COLOR, FORMAT, PYTHON, fail, print_result, wants_color, width
from fa_forensics.errors import ForensicsError


@click.group()
def atlas() -> None:
    """Ask the table of what every torch release exports."""


@atlas.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option("--namespace", metavar="NAME", help="Only names in a namespace or class: c10::cuda.")
@click.option(
    "--library",
    "libraries",
    multiple=True,
    metavar="NAME",
    help="Only what this library exports: libc10.so. May be given several times.",
)
@click.option(
    "--used-by",
    multiple=True,
    metavar="TARGET",
    help="Only the names that this file, wheel or installed package needs of torch. "
    "May be given several times.",
)
@click.option("--machine", metavar="NAME", default="x86_64", show_default=True)
@PYTHON
@FORMAT
@click.option("-v", "--verbose", is_flag=True, help="List everything.")
@COLOR
def diff(
    old: str,
    new: str,
    namespace: str | None,
    libraries: tuple[str, ...],
    used_by: tuple[str, ...],
    machine: str,
    python: str | None,
    form: str,
    verbose: bool,
    color: bool | None,
) -> None:
    """Say what torch B removed, added and re-signed of what torch A exports.

    A and B are releases: 2.8.0, or 2.8 for the newest of that minor release.
    """
    from fa_forensics.released import compare_releases

    try:
        found = compare_releases(old, new, machine, namespace, libraries, used_by, python)
    except ForensicsError as error:
        fail(error, form, "atlas diff")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_releases import diff_document

        print_result(dumps(diff_document(found)))
    else:
        from fa_forensics.render.diff import diff_text

        print_result(diff_text(found, wants_color(color), verbose, width()))


@atlas.command()
@click.option("--machine", metavar="NAME", help="Only this machine's. [default: all]")
@FORMAT
def releases(machine: str | None, form: str) -> None:
    """List the torch releases that are known, with what each was built for."""
    from fa_forensics.released import releases as run

    try:
        report = run(machine)
    except ForensicsError as error:
        fail(error, form, "atlas releases")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_releases import releases_document

        print_result(dumps(releases_document(report)))
    else:
        from fa_forensics.render.diff import releases_text

        print_result(releases_text(report, width()))
