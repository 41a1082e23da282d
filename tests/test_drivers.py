"""Drivers and CUDA versions: the release notes' tables."""

from __future__ import annotations

import pytest

from fa_forensics.facts.drivers import driver_needed, driver_table, last_driver, parse_cuda


@pytest.mark.parametrize(
    ("isa", "cuda"),
    # PTX ISA manual, table of release notes.
    [("7.0", "11.0"), ("7.8", "11.8"), ("8.4", "12.4"), ("8.5", "12.5"), ("9.0", "13.0")],
)
def test_a_ptx_isa_needs_the_cuda_version_that_brought_it(isa: str, cuda: str) -> None:
    assert driver_table().cuda_of_isa(isa) == parse_cuda(cuda)


def test_an_unknown_isa_is_not_guessed() -> None:
    assert driver_table().cuda_of_isa("99.9") is None
    assert driver_table().cuda_of_isa(None) is None


@pytest.mark.parametrize(
    ("cuda", "driver"),
    # CUDA Toolkit Release Notes, table CUDA Toolkit and Corresponding Driver Versions.
    [("10.2", "440.33"), ("11.8", "520.61.05"), ("12.4", "550.54.14"), ("13.0", "580.65.06")],
)
def test_a_driver_is_named_as_the_release_notes_do(cuda: str, driver: str) -> None:
    assert driver_table().driver_for(parse_cuda(cuda)) == driver
    assert f"({driver} or newer)" in driver_needed(parse_cuda(cuda))


def test_where_no_driver_is_known_none_is_named() -> None:
    assert driver_needed((12, 7)) == "a driver for CUDA 12.7"


def test_newer_cuda_never_has_an_older_driver() -> None:
    def key(driver: str) -> tuple[int, ...]:
        return tuple(int(part) for part in driver.split("."))

    table = driver_table()
    known = [(cuda, key(driver)) for cuda, driver in table.releases.items() if driver]
    assert known == sorted(known)
    assert [driver for _, driver in known] == sorted(driver for _, driver in known)
    assert set(table.isa.values()) <= set(table.releases)
    for major, floor in table.floors.items():
        assert key(table.releases[(major, 0)] or "") <= key(floor)


@pytest.mark.parametrize(
    ("gpu", "branch"),
    # NVIDIA's list of driver releases: 390 for GF1xx (Fermi), 470 for GKxxx (Kepler).
    [("GF108M [GeForce GT 540M]", "390"), ("GeForce GTX 580", "390"), ("GK210", "470"),
     ("Tesla K80", "470"), ("GeForce GTX 680", "470"), ("GeForce GTX 1080", None),
     ("RTX 4090", None), ("GeForce GTX 750 Ti", None), ("", None)],
)  # fmt: skip
def test_an_architecture_that_the_newest_driver_leaves_out_has_a_last_branch(
    gpu: str, branch: str | None
) -> None:
    last = last_driver(gpu)
    assert (last.branch if last else None) == branch
    if last is not None:  # the branch is one that the release notes give for that CUDA
        assert (driver_table().driver_for(last.cuda) or "").startswith(f"{last.branch}.")
