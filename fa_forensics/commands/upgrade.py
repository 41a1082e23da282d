"""``fa-forensics upgrade``."""

from __future__ import annotations

import sys

import click

from fa_forensics.console import COLOR, FORMAT, PYTHON, fail, print_result, wants_color, width
from fa_forensics.errors import EXIT_FINDINGS, EXIT_INCONCLUSIVE, EXIT_OK, ForensicsError


@click.command()
@click.argument("release", metavar="RELEASE")
@PYTHON
@FORMAT
@click.option("-v", "--verbose", is_flag=True, help="List every package and every file.")
@COLOR
def upgrade(release: str, python: str | None, form: str, verbose: bool, color: bool | None) -> None:
    """Say which installed CUDA extensions would stop loading under another torch.

    RELEASE is as for inspect --torch: 2.9.1, 2.9, 2.9.1+cxx11abi, 2.6.0+cu118. Nothing is
    installed, loaded or started. Exit code 1 when something would stop loading, 4 when
    nothing does but a file could not be judged.
    """
    from fa_forensics.upgrade import upgrade as run

    try:
        report = run(release, python)
    except ForensicsError as error:
        fail(error, form, "upgrade")
    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_releases import upgrade_document

        print_result(dumps(upgrade_document(report)))
    else:
        from fa_forensics.render.upgrade import upgrade_text

        print_result(upgrade_text(report, wants_color(color), verbose, width()))
    if any(package.breaks for package in report.packages):
        sys.exit(EXIT_FINDINGS)
    unsure = any(file.unsure for package in report.packages for file in package.files)
    sys.exit(EXIT_INCONCLUSIVE if unsure or report.unread else EXIT_OK)
