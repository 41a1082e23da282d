"""Work shared out to copies of this process is done, whatever happens to one of them."""

from __future__ import annotations

import os
import time

import pytest

from fa_forensics import forked
from fa_forensics.artefacts import _shares
from fa_forensics.forked import map_forked


def test_the_parts_are_done_elsewhere_and_come_back_in_order() -> None:
    results = map_forked(lambda part: (part * 2, os.getpid()), [1, 2, 3])
    assert [value for value, _ in results] == [2, 4, 6]
    assert results[0][1] == os.getpid() and len({pid for _, pid in results}) == 3


def test_a_result_larger_than_a_pipe_holds_comes_back_whole() -> None:
    assert map_forked(lambda part: part * 3_000_000, ["a", "b"])[1] == "b" * 3_000_000


def test_a_copy_that_dies_has_its_part_done_here() -> None:
    parent = os.getpid()

    def work(part: int) -> int:
        if part == 2 and os.getpid() != parent:
            os._exit(9)
        return part

    assert map_forked(work, [1, 2, 3]) == [1, 2, 3]


def test_an_error_in_a_copy_is_raised_here() -> None:
    def work(part: int) -> int:
        if part == 2:
            raise ValueError("no two")
        return part

    with pytest.raises(ValueError, match="no two"):
        map_forked(work, [1, 2])


def test_an_error_here_ends_the_copies() -> None:
    def work(part: int) -> int:
        if part == 1:
            raise KeyboardInterrupt
        time.sleep(30)
        return part

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        map_forked(work, [1, 2])
    assert time.monotonic() - start < 10


def test_without_a_further_process_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise OSError("no more processes")

    monkeypatch.setattr(forked.os, "fork", refused)
    assert map_forked(lambda part: part, [1, 2, 3]) == [1, 2, 3]


@pytest.mark.parametrize("sizes", [[], [1], [9, 3, 11, 2, 1, 1], [6, 6], [40, 1, 1]])
@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_every_group_is_in_one_share(sizes: list[int], jobs: int) -> None:
    shares = _shares(sizes, jobs)
    assert sorted(n for share in shares for n in share) == list(range(len(sizes)))
    assert len(shares) <= jobs
