"""How ranks meet: over a store in memory, and in processes over a store on localhost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.machines import changed, env_report, facts_of_line

from fa_forensics.compare.documents import facts_of
from fa_forensics.compare.model import Facts
from fa_forensics.ranks import gather, run
from fa_forensics.ranks.meeting import Here, Meeting, process_is_gone
from fa_forensics.ranks.store import Launch, StoreLost
from fa_forensics.render.json import dumps
from fa_forensics.render.json_compare import ranks_document
from fa_forensics.render.ranks import ranks_text
from fa_forensics.report_compare import (
    ANSWERED,
    DIED,
    FAILED,
    NEVER_ANSWERED,
    RanksReport,
    RankState,
)

ME = Here("node0", 100, "machine 0")


class Memory:
    """A store in memory; ``lost`` makes every question fail, as when its keeper is gone."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.lost = False

    def set(self, key: str, value: bytes) -> None:
        self._there()
        self.rows[key] = value

    def get(self, key: str) -> bytes | None:
        self._there()
        return self.rows.get(key)

    def _there(self) -> None:
        if self.lost:
            raise StoreLost("the store of the job is gone")


class Clock:
    """Time that passes only by sleeping; ``at`` plans what happens when it does."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: list[tuple[float, Callable[[], object]]] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        due = [act for when, act in self.at if when <= self.now]
        self.at = [row for row in self.at if row[0] > self.now]
        for act in due:
            act()


def launch(rank: int, size: int = 4) -> Launch:
    return Launch(rank, size, "node0", 29500, True, "0")


def meeting(store: Memory, clock: Clock, rank: int = 0, **more: Any) -> Meeting:
    return Meeting(
        store, launch(rank), 60.0, clock=clock, sleep=clock.sleep,
        is_gone=more.get("is_gone", lambda pid: False), silent=more.get("silent", 20.0),
    )  # fmt: skip


def present(store: Memory, clock: Clock, rank: int, host: str | None = None) -> Meeting:
    other = meeting(store, clock, rank)
    other.check_in(Here(host or f"node{rank}", 100 + rank, f"machine {rank}"))
    return other


def facts(change: Callable[[dict[str, Any]], object] | None = None) -> Facts:
    return facts_of(env_report() if change is None else changed(change), "x", gather.PER_RANK)


def handed_in(other: Meeting, change: Callable[[dict[str, Any]], object] | None = None) -> None:
    packed = gather.pack(facts(change))
    other.hand_in(gather.digest(packed), packed)


def met(store: Memory, clock: Clock, **more: Any) -> dict[int, RankState]:
    """What rank 0 finds of all ranks."""
    own = meeting(store, clock, **more)
    own.check_in(ME)
    handed_in(own)
    states: dict[int, RankState] = {}
    own.gather({}, states)
    return states


def newer_driver(report: dict[str, Any]) -> None:
    facts_of_line(report, "driver")["version"] = "560.35.03"


def test_all_answer() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2, 3):
        clock.at.append((float(rank), lambda rank=rank: handed_in(present(store, clock, rank))))
    states = met(store, clock)
    assert [states[rank].state for rank in range(4)] == [ANSWERED] * 4
    assert [states[rank].host for rank in range(4)] == ["node0", "node1", "node2", "node3"]
    assert clock.now < 4


def test_a_rank_that_never_checks_in_is_named_after_the_time_out() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 3):
        handed_in(present(store, clock, rank))
    states = met(store, clock)
    assert states[2].state == NEVER_ANSWERED and states[2].host == ""
    assert "did not check in within 60 s" in states[2].detail
    assert states[2].finding is not None and states[2].finding.code == "FA860"
    assert 60 <= clock.now < 62


@pytest.mark.parametrize(
    ("present_ranks", "words"),
    [((1, 3), "rank 3 of the same node is on node3"), ((1,), "no rank of its node (2-3)")],
)
def test_the_node_of_a_rank_that_never_came_is_told(
    present_ranks: tuple[int, ...], words: str
) -> None:
    store, clock = Memory(), Clock()
    for rank in present_ranks:
        handed_in(present(store, clock, rank))
    own = meeting(store, clock)
    own.launch = launch(0)._replace(local_size=2)
    own.check_in(ME)
    states: dict[int, RankState] = {}
    own.gather({}, states)
    assert words in states[2].detail


def test_a_rank_that_checks_in_and_hangs_is_named_with_its_host_and_process() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2, 3):
        other = present(store, clock, rank)
        if rank != 2:
            handed_in(other)

    def beat() -> None:
        store.set("beat/2", str(clock.now).encode())
        clock.at.append((clock.now + 1, beat))

    beat()
    states = met(store, clock)
    assert (states[2].state, states[2].host) == (NEVER_ANSWERED, "node2")
    assert "process 102" in states[2].detail


def test_a_rank_whose_signs_of_life_stop_has_died() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2, 3):
        other = present(store, clock, rank)
        store.set(f"beat/{rank}", b"1")
        if rank != 3:
            handed_in(other)
    states = met(store, clock)
    assert (states[3].state, states[3].host) == (DIED, "node3")
    assert states[3].finding is not None and states[3].finding.code == "FA861"
    assert 20 <= clock.now < 22  # long before the time-out


def test_a_rank_of_this_machine_whose_process_is_gone_has_died_at_once() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2, 3):
        other = meeting(store, clock, rank)
        other.check_in(Here("node0", 100 + rank, "machine 0"))
        if rank != 1:
            handed_in(other)
    states = met(store, clock, is_gone=lambda pid: pid == 101)
    assert states[1].state == DIED and "process 101" in states[1].detail
    assert clock.now < 1


def test_a_rank_that_handed_in_its_facts_before_it_ended_has_answered() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2, 3):
        other = meeting(store, clock, rank)
        other.check_in(Here("node0", 100 + rank, "machine 0"))
        handed_in(other)
    states = met(store, clock, is_gone=lambda pid: True)
    assert {state.state for state in states.values()} == {ANSWERED}


def test_a_rank_that_failed_is_told_in_its_own_words() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2, 3):
        other = present(store, clock, rank)
        if rank == 1:
            other.give_up("no module\x1b named torch")
        else:
            handed_in(other)
    states = met(store, clock)
    assert states[1].state == FAILED and "no module" in states[1].detail
    assert "\x1b" not in ranks_text(preside(store, clock)[0], False, False, 100)


def preside(
    store: Memory, clock: Clock, fail_on_difference: bool = False
) -> tuple[RanksReport, int]:
    own = meeting(store, clock)
    own.check_in(ME)
    handed_in(own)
    shown: list[RanksReport] = []
    code = run._preside(own, fail_on_difference, shown.append)
    (report,) = shown
    return report, code


@pytest.mark.parametrize(("fail", "code"), [(False, 0), (True, 1)])
def test_one_rank_differs_and_all_hear_the_same_code(fail: bool, code: int) -> None:
    store, clock = Memory(), Clock()
    others = [present(store, clock, rank) for rank in (1, 2, 3)]
    for other in others:
        handed_in(other, newer_driver if other.launch.rank == 2 else None)
    report, own = preside(store, clock, fail)
    (difference,) = report.comparison.differences
    assert (difference.subject, difference.aspect) == ("driver", "version")
    assert [(one.value, one.reports) for one in difference.held] == [
        ("550.54.15", (0, 1, 3)), ("560.35.03", (2,))
    ]  # fmt: skip
    assert [other.await_verdict() for other in others] == [code] * 3 and own == code
    text = ranks_text(report, False, False, 100)
    assert "4 of 4 ranks answered, on 4 hosts" in text
    assert "ranks 0-1, 3 (node0, node1, node3): 550.54.15" in text
    assert "rank 2 (node2): 560.35.03" in text


def test_a_missing_rank_makes_the_code_three_with_or_without_differences() -> None:
    store, clock = Memory(), Clock()
    for rank in (1, 2):
        handed_in(present(store, clock, rank))
    report, code = preside(store, clock)
    assert code == 3 and [rank.rank for rank in report.absent] == [3]
    assert report.comparison.differences == () and report.answered == (0, 1, 2)
    assert "error[FA860]: rank 3 never answered" in ranks_text(report, False, False, 100)


def test_places_of_reports_are_not_mistaken_for_ranks() -> None:
    """Rank 1 is missing: the second report is that of rank 2."""
    store, clock = Memory(), Clock()
    handed_in(present(store, clock, 2), newer_driver)
    handed_in(present(store, clock, 3))
    report, _code = preside(store, clock)
    assert "rank 2 (node2): 560.35.03" in ranks_text(report, False, False, 100)


def test_when_the_launcher_ends_the_job_the_rank_that_died_is_told_from_those_it_ended() -> None:
    store, clock = Memory(), Clock()
    others = {rank: meeting(store, clock, rank) for rank in (1, 2, 3)}
    for rank, other in others.items():
        other.check_in(Here("node0", 100 + rank, "machine 0"))
    handed_in(others[1])
    run._leave(others[3], lambda report: None, "SIGTERM")
    own = meeting(store, clock, is_gone=lambda pid: True)
    own.check_in(ME)
    shown: list[RanksReport] = []
    run._leave(own, shown.append, "SIGTERM")
    states = {rank.rank: (rank.state, rank.detail) for rank in shown[0].ranks}
    assert states[1][0] == ANSWERED and states[2] == (DIED, "its process 102 has ended")
    assert states[3][0] == FAILED and "the launcher ended it (SIGTERM)" in states[3][1]
    assert states[0][0] == NEVER_ANSWERED and "before the launcher ended" in states[0][1]


def test_document_of_ranks_is_one_of_the_schema() -> None:
    import importlib
    import json

    import fa_forensics.render

    schema = Path(fa_forensics.render.__file__).parent / "schema-v1.json"
    store, clock = Memory(), Clock()
    handed_in(present(store, clock, 2), newer_driver)
    present(store, clock, 3).give_up("it failed")
    report, _code = preside(store, clock)
    document = json.loads(dumps(ranks_document(report)))
    jsonschema = importlib.import_module("jsonschema")
    jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(document)
    assert [row["state"] for row in document["ranks"]] == [
        "answered", "never-answered", "answered", "failed"
    ]  # fmt: skip


def test_which_gpu_the_launcher_gave_a_rank_is_no_difference() -> None:
    def gpu(number: str) -> Callable[[dict[str, Any]], None]:
        def change(report: dict[str, Any]) -> None:
            report["environment"]["variables"]["CUDA_VISIBLE_DEVICES"] = number

        return change

    assert facts(gpu("0")).facts == facts(gpu("1")).facts


def test_others_end_when_rank_0_is_lost() -> None:
    store, clock = Memory(), Clock()
    own = present(store, clock, 0)
    store.set("beat/0", b"1")
    other = present(store, clock, 1)
    with pytest.raises(StoreLost, match="rank 0 on node0 ended"):
        other.await_verdict()
    assert own.launch.rank == 0 and clock.now < 25


def test_others_end_when_rank_0_never_comes() -> None:
    store, clock = Memory(), Clock()
    other = present(store, clock, 1)
    with pytest.raises(StoreLost, match="rank 0 did not check in"):
        other.await_verdict()


def test_others_end_when_the_store_is_gone() -> None:
    store, clock = Memory(), Clock()
    other = present(store, clock, 1)
    store.lost = True
    with pytest.raises(StoreLost, match="gone"):
        other.await_verdict()


def test_a_process_that_ended_is_known_to_be_gone_before_it_is_collected() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    assert os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_is_gone(process.pid)
    process.wait()
    assert process_is_gone(process.pid) and not process_is_gone(os.getpid())


def test_without_a_launcher_the_command_says_how_to_start_it() -> None:
    environ = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [sys.executable, "-m", "fa_forensics.ranks"],
        capture_output=True, text=True, env={**environ, "PYTHONPATH": os.getcwd()}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert "torchrun" in done.stderr and "Traceback" not in done.stderr
