"""``fa-forensics explain``."""

from __future__ import annotations

import click

from fa_forensics.console import (
    COLOR,
    FORMAT,
    LANG,
    fail,
    language,
    print_result,
    wants_color,
    width,
)
from fa_forensics.errors import ForensicsError


@click.command()
@click.argument("codes", nargs=-1, metavar="[CODE...]")
@LANG
@FORMAT
@COLOR
def explain(codes: tuple[str, ...], lang: str | None, form: str, color: bool | None) -> None:
    """Explain what a finding's code means, how it is known and what to do about it.

    CODE is one of inspect, env, why and their like: FA201, or FA2 for all that begin so.
    Without one all codes are listed.
    """
    from fa_forensics.explained import explain_codes
    from fa_forensics.render.explain import explain_document, explain_text

    try:
        found = explain_codes(codes)
    except ForensicsError as error:
        fail(error, form, "explain")
    if form == "json":
        from fa_forensics.render.json import dumps

        print_result(dumps(explain_document(found)))
        return
    words = language(lang)
    print_result(explain_text(found, not codes, words, wants_color(color), width()))
