"""MAX_JOBS from the memory and the cores of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa_forensics.facts import build_machine
from fa_forensics.facts.build_machine import BuildMachine, jobs, read_build_machine

GIB = 1 << 30


@pytest.mark.parametrize(
    ("cores", "free", "expected"),
    # flash-attn's setup.py: half the cores, and one job for 9 GB; the smaller, at least one.
    [(64, 512 * GIB, 32), (64, 96 * GIB, 10), (64, 9 * GIB, 1), (2, 512 * GIB, 1), (1, GIB, 1)],
)
def test_the_smaller_of_memory_and_cores_decides(cores: int, free: int, expected: int) -> None:
    assert jobs(BuildMachine(cores, free)) == expected


def test_what_is_not_known_is_not_guessed() -> None:
    assert jobs(BuildMachine(None, GIB)) is None
    assert jobs(BuildMachine(8, None)) is None


def test_memory_is_read_as_the_kernel_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:   20971520 kB\n")
    (tmp_path / "max").write_text("10737418240\n")
    monkeypatch.setattr(build_machine, "_MEMINFO", str(tmp_path / "meminfo"))
    monkeypatch.setattr(build_machine, "_CGROUP_LIMIT", str(tmp_path / "absent"))
    assert read_build_machine().free_bytes == 20 * GIB
    monkeypatch.setattr(build_machine, "_CGROUP_LIMIT", str(tmp_path / "max"))
    assert read_build_machine().free_bytes == 10 * GIB, "a container's limit counts"
    (tmp_path / "max").write_text("max\n")
    assert read_build_machine().free_bytes == 20 * GIB


def test_without_those_files_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_machine, "_MEMINFO", str(tmp_path / "absent"))
    monkeypatch.setattr(build_machine, "_CGROUP_LIMIT", str(tmp_path))
    assert read_build_machine().free_bytes is None
