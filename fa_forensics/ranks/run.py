"""One rank's run, from the check-in to the exit code that all ranks share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import NoReturn

from fa_forensics.compare.model import Facts
from fa_forensics.compare.run import compare_read
from fa_forensics.errors import (
    EXIT_FINDINGS,
    EXIT_NOT_ANALYSED,
    EXIT_OK,
    ForensicsError,
    UnreadableReport,
)
from fa_forensics.ranks.gather import MAX_PACKED, digest, facts_of_this_rank, pack, unpack
from fa_forensics.ranks.meeting import Beat, Meeting, absent, this_process
from fa_forensics.ranks.store import Launch, StoreLost, connect
from fa_forensics.report_compare import FAILED, RanksReport, RankState


class Ended(BaseException):
    """The launcher has told this process to end. No handler of errors is meant to keep it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def _end(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once is enough: what is known is being told
    raise Ended(number)


def run_rank(
    launch: Launch,
    timeout: float,
    fail_on_difference: bool,
    show: Callable[[RanksReport], None],
    environ: Mapping[str, str],
    gather: Callable[[Mapping[str, str]], Facts] = facts_of_this_rank,
) -> int:
    """Take part in the meeting; the exit code. Rank 0 calls ``show`` once.

    Raises ``StoreLost`` where the ranks cannot meet, ``Ended`` where a signal ends the run.
    """
    signal.signal(signal.SIGTERM, _end)
    meeting = Meeting(connect(launch, timeout), launch, timeout)
    # The signs of life have a connection of their own: the other may be waiting.
    beat = Beat(connect(replace_keeper(launch), timeout), launch.rank)
    meeting.check_in(this_process())
    beat.start()
    try:
        _hand_in(meeting, environ, gather)
        if launch.rank:
            return meeting.await_verdict()
        return _preside(meeting, fail_on_difference, show)
    except Ended as ended:
        # torchrun ends all ranks as soon as one has left with a code that is not 0.
        verdict = meeting.verdict()
        if verdict is None:
            _leave(meeting, show, str(ended))
            raise
        return verdict
    finally:
        beat.end()


def replace_keeper(launch: Launch) -> Launch:
    """The same launch for a second client, which never keeps the store."""
    return launch._replace(launcher_keeps=True)


def _hand_in(
    meeting: Meeting, environ: Mapping[str, str], gather: Callable[[Mapping[str, str]], Facts]
) -> None:
    """Hand in the facts, or the reason why there are none."""
    try:
        packed = pack(gather(environ))
    except ForensicsError as error:
        meeting.give_up(error.message)
    except Exception as error:  # told by name on rank 0, whatever it is
        meeting.give_up(f"{type(error).__name__}: {error}")
    else:
        if len(packed) > MAX_PACKED:
            meeting.give_up(f"its facts are larger than {MAX_PACKED >> 20} MiB")
        else:
            meeting.hand_in(digest(packed), packed)


def _preside(
    meeting: Meeting, fail_on_difference: bool, show: Callable[[RanksReport], None]
) -> int:
    """Rank 0: gather, compare, tell once, let all end with the same code."""
    answered: dict[int, str] = {}
    states: dict[int, RankState] = {}
    meeting.gather(answered, states)
    report = _report(meeting, answered, states)
    show(report)
    code = _exit_code(report, fail_on_difference)
    meeting.announce(code)
    if not meeting.launch.launcher_keeps:
        meeting.await_farewells(list(answered))
    return code


def _leave(meeting: Meeting, show: Callable[[RanksReport], None], signal_name: str) -> None:
    """The launcher ends the job: rank 0 tells what is known, the others why they go.

    A rank that was ended is so told apart from the one that died, for which all are ended.
    """
    if meeting.launch.rank:
        meeting.give_up(f"the launcher ended it ({signal_name}), with nothing handed in")
        return
    answered: dict[int, str] = {}
    states: dict[int, RankState] = {}
    meeting.look_around(answered, states, "before the launcher ended the job")
    show(_report(meeting, answered, states))


def _report(
    meeting: Meeting, answered: dict[int, str], states: dict[int, RankState]
) -> RanksReport:
    """Compare what was handed in; equal facts are unpacked once."""
    unpacked: dict[str, Facts | UnreadableReport] = {}
    read: list[Facts] = []
    ranks: list[int] = []
    for rank in sorted(answered):
        name = f"rank {rank} ({meeting.host(rank)})"
        found = unpacked.get(answered[rank])
        if found is None:
            found = unpacked[answered[rank]] = _fetch(meeting, answered[rank], name)
        if isinstance(found, UnreadableReport):
            states[rank] = absent(rank, meeting.host(rank), FAILED, found.message)
            continue
        report = replace(found.report, name=name)
        read.append(Facts(report, found.facts, found.speaks_of, found.problems))
        ranks.append(rank)
    return RanksReport(
        world_size=meeting.launch.world_size,
        ranks=tuple(states[rank] for rank in sorted(states)),
        answered=tuple(ranks),
        comparison=compare_read(read),
    )


def _fetch(meeting: Meeting, name: str, rank: str) -> Facts | UnreadableReport:
    body = meeting.body(name)
    if body is None:
        return UnreadableReport(f"the facts of {rank} are not in the store")
    try:
        return unpack(body, rank)
    except UnreadableReport as error:
        return error


def _exit_code(report: RanksReport, fail_on_difference: bool) -> int:
    if report.absent:
        return EXIT_NOT_ANALYSED
    return EXIT_FINDINGS if fail_on_difference and report.comparison.differences else EXIT_OK


def host_name() -> str:
    """The name of this host, for messages."""
    return os.uname().nodename


__all__ = ["Ended", "StoreLost", "host_name", "run_rank"]
