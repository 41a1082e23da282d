"""What ranks are made of: facts that travel, launchers that are understood, runs of numbers."""

from __future__ import annotations

import pytest
from support.machines import env_report

from fa_forensics.compare.documents import facts_of
from fa_forensics.compare.model import Facts
from fa_forensics.errors import UnreadableReport, UsageError
from fa_forensics.ranks import gather
from fa_forensics.ranks.store import launch_of
from fa_forensics.render.ranks import intervals


def facts() -> Facts:
    return facts_of(env_report(), "x", gather.PER_RANK)


def test_facts_survive_the_journey_and_equal_facts_are_equal_bytes() -> None:
    packed = gather.pack(facts())
    assert packed == gather.pack(facts())
    there = gather.unpack(packed, "rank 1 (node1)")
    assert there.facts == facts().facts and there.speaks_of == facts().speaks_of
    assert there.report.name == "rank 1 (node1)" and there.report.kind == "rank"


@pytest.mark.parametrize("packed", [b"", b"x", b"\x78\x9c", gather.zlib.compress(b"[1]" * 9)])
def test_facts_that_cannot_be_read_are_told(packed: bytes) -> None:
    with pytest.raises(UnreadableReport, match="rank 1"):
        gather.unpack(packed, "rank 1")


def test_facts_that_unpack_to_gigabytes_are_refused() -> None:
    bomb = gather.zlib.compress(b" " * (gather.MAX_UNPACKED + 1))
    with pytest.raises(UnreadableReport, match="more than 64 MiB"):
        gather.unpack(bomb, "rank 1")


BASE = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    "names", [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("PMI_RANK", "PMI_SIZE")]
)
def test_the_launcher_is_understood(names: tuple[str, str]) -> None:
    found = launch_of({names[0]: "3", names[1]: "8", **BASE})
    assert (found.rank, found.world_size, found.host, found.port) == (3, 8, "node0", 29500)
    assert not found.launcher_keeps


@pytest.mark.parametrize(
    "environ",
    [
        {}, {"RANK": "0"}, {"RANK": "0", "WORLD_SIZE": "2"},
        {"RANK": "2", "WORLD_SIZE": "2", **BASE}, {"RANK": "-1", "WORLD_SIZE": "2", **BASE},
        {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "99999"},
        {"RANK": "x" * 9999, "WORLD_SIZE": "2", **BASE},
    ],
)  # fmt: skip
def test_a_launch_that_makes_no_sense_is_one_sentence(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        launch_of(environ)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], []), ([3], ["3"]), ([0, 1, 2, 5], ["0-2", "5"]), ([9, 8, 8, 1], ["1", "8-9"])],
)
def test_ranks_are_told_in_runs(numbers: list[int], text: list[str]) -> None:
    assert intervals(numbers) == text
