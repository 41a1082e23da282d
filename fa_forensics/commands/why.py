"""``fa-forensics why``."""

from __future__ import annotations

import sys

import click

from fa_forensics.console import (
    COLOR,
    FORMAT,
    LANG,
    PYTHON,
    fail,
    language,
    print_result,
    wants_color,
    warn,
    width,
)
from fa_forensics.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_NOT_ANALYSED,
    EXIT_OK,
    ForensicsError,
    UsageError,
)

#: The code of what is recognised as an error of the run, and of no file: an answer all the same.
RUN_TIME = "FA897"


class _Why(click.Command):
    """Refuses both of two flags that exclude each other, of which click takes the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it. Raises click's own ``UsageError``, which ends with exit code 2."""
        options = args[: args.index("--")] if "--" in args else args
        if "--here" in options and "--elsewhere" in options:
            raise click.UsageError("--here and --elsewhere exclude each other: give one", ctx)
        return super().parse_args(ctx, args)


@click.command(cls=_Why)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@PYTHON
@click.option(
    "--torch",
    metavar="RELEASE",
    help="Answer as if this torch release were there (2.9.1), without any environment.",
)
@click.option(
    "--here/--elsewhere",
    "here",
    default=None,
    help="Whether the text is of this environment, or of another machine and judged by the "
    "versions that it names. [default: guessed from the text, and said]",
)
@FORMAT
@LANG
@COLOR
def why(
    texts: tuple[str, ...],
    python: str | None,
    torch: str | None,
    here: bool | None,
    form: str,
    lang: str | None,
    color: bool | None,
) -> None:
    """Explain what you saw: a traceback, a log, a symbol; whose it is, what to do.

    TEXT is an error or a log in quotes, the path of a file that holds it, or one or more
    symbols as the loader printed them, mangled or not. Without TEXT, or with "-", standard
    input is read. Exit code 4 where nothing in the text is recognised.
    """
    from fa_forensics.why import explain

    where = None if here is None else "here" if here else "elsewhere"
    try:
        if torch is not None and here:
            raise UsageError(
                "--torch and --here exclude each other: the first answers without any environment",
                "leave out --here, or name the environment with --python",
            )
        report = explain(_given(texts), python, torch=torch, where=where)
    except ForensicsError as error:
        fail(error, form, "why")
    if report.problem is not None:
        warn(report.problem, "point at the environment that has torch: --python PATH")
    if form == "json":
        from fa_forensics.render.json import dumps, why_document

        print_result(dumps(why_document(report)))
    else:
        from fa_forensics.render.lang import speaker
        from fa_forensics.render.why import why_text

        say = speaker(language(lang))
        print_result(why_text(report, wants_color(color), width(), say))
    if all(one.kind == "unrecognised" and one.code != RUN_TIME for one in report.answers):
        sys.exit(EXIT_INCONCLUSIVE)
    sys.exit(EXIT_OK if report.problem is None else EXIT_NOT_ANALYSED)


def _given(texts: tuple[str, ...]) -> tuple[str, ...]:
    """What is to be explained: the arguments, the file that one names, or standard input.

    Raises ``UsageError`` where there is nothing to read.
    """
    if texts in ((), ("-",)):
        if sys.stdin is None or (not texts and sys.stdin.isatty()):
            raise UsageError(
                "there is no text to explain",
                "paste it in quotes, name a file that holds it, or send it to standard input: "
                "fa-forensics why < log.txt",
            )
        from fa_forensics.why.given import MOST

        return (sys.stdin.buffer.read(MOST).decode("utf-8", "replace"),)
    if len(texts) == 1:
        from fa_forensics.why.given import names_file, names_missing_file, text_of

        if names_file(texts[0]):
            return (text_of(texts[0]),)
        if names_missing_file(texts[0]):
            raise UsageError(
                f"no such file: {texts[0]}",
                "name a file that is there, or paste the text itself in quotes",
            )
    return texts
