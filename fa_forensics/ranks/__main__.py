"""``torchrun ... -m fa_forensics.ranks``: what differs between the ranks of a job, told once."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from fa_forensics.errors import EXIT_NOT_ANALYSED, ForensicsError, UsageError
from fa_forensics.ranks.run import Ended, host_name, run_rank
from fa_forensics.ranks.store import end_now, launch_of
from fa_forensics.report_compare import RanksReport

TIMEOUT = 300.0


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one rank and end the process with the exit code that all ranks share."""
    options = _parser().parse_args(arguments)
    end_now(_take_part(options))


def _take_part(options: argparse.Namespace) -> int:
    """The exit code of this rank; what went wrong is told on standard error."""
    rank = os.environ.get("RANK", "?")
    try:
        launch = launch_of(os.environ)
        rank = str(launch.rank)
        return run_rank(
            launch,
            options.timeout,
            options.fail_on_difference,
            lambda report: show(report, options.format, options.verbose),
            os.environ,
        )
    except Ended as ended:
        _warn(f"rank {rank} on {host_name()}: ended by {ended}")
        return 128 + ended.number
    except ForensicsError as error:
        _warn(f"rank {rank} on {host_name()}: {error.message}", error.hint)
        return error.exit_code if isinstance(error, UsageError) else EXIT_NOT_ANALYSED


def show(report: RanksReport, form: str, verbose: bool) -> None:
    """Write the report to standard output."""
    from fa_forensics.console import print_result, wants_color, width

    if form == "json":
        from fa_forensics.render.json import dumps
        from fa_forensics.render.json_compare import ranks_document

        print_result(dumps(ranks_document(report)))
    else:
        from fa_forensics.render.ranks import ranks_text

        print_result(ranks_text(report, wants_color(None), verbose, width()))


def _warn(message: str, hint: str | None = None) -> None:
    from fa_forensics.console import warn

    warn(message, hint)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fa_forensics.ranks",
        description="Say what differs between the ranks of a job, once, on rank 0.",
        epilog="Start it at the head of a job script, as the job itself is started: "
        "torchrun --nnodes 2 --nproc-per-node 8 ... -m fa_forensics.ranks --fail-on-difference. "
        "Exit codes, the same on all ranks: 0; 1 differences, if asked; 2 wrong usage; 3 a rank "
        "never answered, or died.",
    )
    parser.add_argument(
        "--fail-on-difference",
        action="store_true",
        help="exit with 1 on every rank when the ranks differ",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=TIMEOUT,
        metavar="S",
        help=f"seconds to wait for the ranks (default: {TIMEOUT:g})",
    )
    parser.add_argument("--format", choices=["text", "json"], default="text", help="default: text")
    parser.add_argument("-v", "--verbose", action="store_true", help="list everything")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 86_400:
        raise argparse.ArgumentTypeError("not between 1 and 86400 seconds")
    return value


if __name__ == "__main__":
    main()
