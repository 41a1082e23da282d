"""What the commands share: options, where results and warnings go, how a run ends in an error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import NoReturn

import click

from fa_forensics.errors import EXIT_NOT_ANALYSED, ForensicsError

FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, JSON (schema version 1) for programs.",
)
PYTHON = click.option(
    "--python",
    metavar="PATH",
    help="The environment to judge in: its python, or its directory. "
    "[default: VIRTUAL_ENV, CONDA_PREFIX, the environment the file lies in, this Python]",
)
LANG = click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    help="The language of summaries and remedies; codes and JSON stay the same. "
    "[default: the locale's]",
)
COLOR = click.option(
    "--color/--no-color", default=None, help="Force colours on or off. [default: on a terminal]"
)


def fail(error: ForensicsError, form: str, command: str) -> NoReturn:
    """One sentence on stderr, a legal document on stdout where JSON was asked for."""
    if form == "json":
        from fa_forensics.render.json import dumps, error_document

        print_result(dumps(error_document(error.message, error.hint, error.exit_code, command)))
    warn(error.message, error.hint)
    sys.exit(error.exit_code)


def warn(message: str, hint: str | None) -> None:
    """One sentence on standard error, and what to do about it."""
    from fa_forensics.render.style import escape

    click.echo(f"fa-forensics: {escape(message)}", err=True)
    if hint:
        click.echo(f"  help: {escape(hint)}", err=True)


def progress_bar() -> Callable[[str, int, int], None] | None:
    """A bar on standard error while kernels are listed; None where that is no terminal.

    It appears after half a second, so that a quick file shows none, and takes itself away.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    import time

    from fa_forensics.render.style import escape

    name, start, drawn = "", 0.0, False

    def show(file: str, done: int, total: int) -> None:
        nonlocal name, start, drawn
        if file != name:
            name, start = file, time.monotonic()
        if done >= total and drawn:
            sys.stderr.write("\r\x1b[K")
            drawn = False
        elif done < total and time.monotonic() - start > 0.5:
            filled = 30 * done // total
            bar = f"{'#' * filled}{'.' * (30 - filled)}] {100 * done // total:3}%"
            sys.stderr.write(f"\r[{bar} kernels of {escape(name)[:40]}\x1b[K")
            drawn = True
        sys.stderr.flush()

    return show


def print_result(text: str) -> None:
    """Write a result to standard output."""
    # File and symbol names can hold anything, and a terminal's encoding may not.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
        text = _in_its_letters(text, sys.stdout.encoding)
    if sys.stdout is None:
        _cannot_write("there is no standard output")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()  # the reader (head, less) went away: nobody is left to tell
    except OSError as error:
        _cannot_write(error.strerror or str(error))


def _in_its_letters(text: str, encoding: str) -> str:
    """Our own dashes and dots as plain ones, where the output's encoding has no other."""
    try:
        "\u2013\u2026".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.replace("\u2013", "-").replace("\u2026", "...")
    return text


def discard_output() -> None:
    """Let what is still buffered go nowhere, so that leaving does not fail once more."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _cannot_write(reason: str) -> NoReturn:
    discard_output()
    if sys.stderr is not None:
        sys.stderr.write(f"fa-forensics: the result cannot be written: {reason}\n")
    sys.exit(EXIT_NOT_ANALYSED)


def wants_color(color: bool | None) -> bool:
    """Whether to use colour: as asked for, else on a terminal."""
    if color is not None:
        return color
    return sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


def language(asked: str | None) -> str:
    """The language to write in: as asked for, else the locale's."""
    from fa_forensics.render.lang import language as chosen

    return chosen(asked, os.environ)


def width() -> int:
    """The columns to lay text out in: the window's, within reason."""
    import shutil

    return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120)
