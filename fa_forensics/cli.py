"""The command line: arguments, streams and exit codes. Nothing is decided here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fa_forensics import __version__
from fa_forensics.commands.atlas import atlas
from fa_forensics.commands.compare import compare
from fa_forensics.commands.env import env
from fa_forensics.commands.explain import explain
from fa_forensics.commands.upgrade import upgrade
from fa_forensics.commands.wheels import wheels
from fa_forensics.commands.why import why
from fa_forensics.console import (
    COLOR,
    LANG,
    PYTHON,
    discard_output,
    fail,
    language,
    print_result,
    progress_bar,
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
    from fa_forensics.report import Report


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="fa-forensics")
def main() -> None:
    """Say why a CUDA extension of torch does not load, read from the file itself.

    Exit codes: 0 nothing found, 1 findings, 2 wrong usage, 3 could not be analysed,
    4 inconclusive.
    """


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@PYTHON
@click.option(
    "--torch",
    "torches",
    multiple=True,
    metavar="RELEASE",
    help="Judge against this torch, which need not be installed: 2.9.1, 2.9, 2.9.1+cxx11abi, "
    "2.9.1-cxx11abi, 2.6.0+cu118, 2.6.0+cpu. May be given several times.",
)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GPU",
    help='Judge for this GPU: "RTX 4090", sm_89, 8.9, Ampere, or all (a table, no verdict). May be '
    "given several times. [default: this machine's, else a look at all]",
)
@click.option("--kernels", is_flag=True, help="List the kernels in the GPU code, by architecture.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Text for people, JSON (schema version 1) for programs, Markdown to paste.",
)
@click.option(
    "--confirm/--no-confirm",
    default=None,
    help="Really load the file in a child process (runs its code), or never do. "
    "[default: only for files inside the environment]",
)
@click.option(
    "--cuobjdump", is_flag=True, help="Ask NVIDIA's cuobjdump for its list too, and compare."
)
@click.option("--cuobjdump-path", metavar="PATH", help="The cuobjdump to ask. [default: find one]")
@click.option(
    "--timeout",
    type=click.FloatRange(0.01, 86_400),
    default=60.0,
    show_default=True,
    help="Seconds for a child process.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    default="error",
    show_default=True,
    help="The weakest finding that makes the exit code 1.",
)
@click.option("-v", "--verbose", is_flag=True, help="List everything.")
@LANG
@COLOR
def inspect(
    targets: tuple[str, ...],
    python: str | None,
    torches: tuple[str, ...],
    gpus: tuple[str, ...],
    kernels: bool,
    form: str,
    confirm: bool | None,
    cuobjdump: bool,
    cuobjdump_path: str | None,
    timeout: float,
    fail_on: str,
    verbose: bool,
    lang: str | None,
    color: bool | None,
) -> None:
    """Inspect extension files: what they need, who provides it, what GPUs they serve.

    TARGET is a .so file, a directory, a wheel, or the name of an installed package.
    """
    from fa_forensics.pipeline import Options
    from fa_forensics.pipeline import inspect as run

    if timeout != timeout:
        raise click.BadParameter("nan is no number of seconds", param_hint="--timeout")
    witness = cuobjdump_path or ("" if cuobjdump else None)
    progress = progress_bar() if kernels else None
    options = Options(
        python, confirm, witness, timeout, torches, gpu=gpus, kernels=kernels, progress=progress
    )
    try:
        report = run(targets, options)
    except ForensicsError as error:
        fail(error, form, "inspect")
    hints: set[str] = set()
    for target in report.targets:
        if target.problem is not None:
            warn(target.problem, None if target.hint in hints else target.hint)
            hints.add(target.hint or "")
    table = any(word.strip().lower() == "all" for word in gpus)
    print_result(_shown(report, form, color, verbose, table, language(lang)))
    sys.exit(exit_code(report, fail_on))


def _shown(
    report: Report, form: str, color: bool | None, verbose: bool, table: bool, lang: str
) -> str:
    """The report in the format that was asked for."""
    if form == "json":
        from fa_forensics.render.json import dumps, inspect_document

        return dumps(inspect_document(report))
    if form == "markdown":
        from fa_forensics.render.markdown import inspect_markdown

        return inspect_markdown(report, verbose)
    from fa_forensics.render.lang import speaker
    from fa_forensics.render.terminal import inspect_text

    say = speaker(lang)
    return inspect_text(report, wants_color(color), verbose, width(), table, say)


main.add_command(upgrade)
main.add_command(compare)
main.add_command(env)
main.add_command(explain)
main.add_command(atlas)
main.add_command(why)
main.add_command(wheels)


def exit_code(report: Report, fail_on: str) -> int:
    """The exit code of an inspection; the table in the README.

    A finding at or above ``fail_on`` in a file that could be analysed wins over a file
    that could not be; that wins over an inconclusive one.
    """
    levels = {"error": 1, "warning": 2, "note": 3, "never": 0}
    limit = levels[fail_on]
    whole = [target for target in report.targets if target.problem is None]
    if any(levels[f.severity] <= limit for target in whole for f in target.findings):
        return EXIT_FINDINGS
    if len(whole) < len(report.targets):
        return EXIT_NOT_ANALYSED
    if any(target.verdict == "inconclusive" for target in whole):
        return EXIT_INCONCLUSIVE
    return EXIT_OK


def entry() -> None:
    """Run the command line as a program: its exit code, its signals, its last words."""
    import gc
    import signal

    # Facts are plain values without cycles: at Python's own threshold (700 objects) a twelfth of
    # a run over many files goes into looking for cycles that are not there.
    gc.set_threshold(100_000)
    # As an exception, so that children are ended and temporary files removed on the way out.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        code = main.main(prog_name="fa-forensics", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        discard_output()
        sys.exit(EXIT_OK)
    except OSError as error:
        discard_output()
        if sys.stderr is not None:
            sys.stderr.write(f"fa-forensics: cannot go on: {error.strerror or error}\n")
        sys.exit(EXIT_NOT_ANALYSED)
    sys.exit(code if isinstance(code, int) else EXIT_OK)


if __name__ == "__main__":
    entry()
