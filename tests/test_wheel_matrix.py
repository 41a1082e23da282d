"""The official flash-attn wheels: every row comes back from its own environment, and only these."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from fa_forensics.facts import wheel_matrix
from fa_forensics.facts.package import build_tags
from fa_forensics.facts.wheel import parse_file_name
from fa_forensics.facts.wheel_matrix import Wanted, build_of, builds, candidates, glibc_floor

DATA = Path(wheel_matrix.__file__).parent.parent / "data"
TABLE = json.loads((DATA / "flash_attn_wheels.json").read_text(encoding="utf-8"))
LIMITS = json.loads((DATA / "flash_attn_limits.json").read_text(encoding="utf-8"))

Key = tuple[str, str, str, str, str]


@cache
def by_environment() -> dict[Key, set[str]]:
    """(torch, Python, CUDA major, flavour, platform) → file names, read from the names alone."""
    found: dict[Key, set[str]] = defaultdict(set)
    for build in builds():
        name = build.file_name
        _, version, _, (python,), _, (platform,) = parse_file_name(name)
        tags = build_tags(version)
        assert tags.torch and tags.cuda and tags.cxx11_abi is not None
        flavour = "cxx11" if tags.cxx11_abi else "pre-cxx11"
        dotted = f"{python[2]}.{python[3:]}"
        found[tags.torch, dotted, tags.cuda.partition(".")[0], flavour, platform].add(name)
    return found


def test_every_row_comes_back_from_its_own_environment() -> None:
    for build in builds():
        cuda = ".".join(build.cuda_built.split(".")[:2])
        wanted = Wanted(build.torch, build.python, cuda, build.cxx11_abi, build.platform)
        of_release = [b for b in _candidates(wanted) if b.release == build.release]
        assert of_release[0] == build  # the very toolkit goes before others of its major version


@cache
def _candidates(wanted: Wanted) -> tuple[wheel_matrix.WheelBuild, ...]:
    return candidates(wanted)


def test_an_environment_gets_exactly_the_wheels_that_are_named_for_it() -> None:
    torches = [f"1.{n}" for n in (11, 12, 13)] + [f"2.{n}" for n in range(16)]
    pythons = [f"3.{n}" for n in range(6, 16)]
    cudas = ["10", "11", "12", "13"]
    flavours = ["cxx11", "pre-cxx11"]
    platforms = ["linux_x86_64", "linux_aarch64"]
    seen = 0
    for key in itertools.product(torches, pythons, cudas, flavours, platforms):
        found = {build.file_name for build in candidates(Wanted(*key))}
        assert found == by_environment().get(key, set()), key
        seen += len(found)
    assert seen == len(builds())  # no row belongs to an environment that was not tried


def test_a_part_that_is_left_open_takes_any() -> None:
    assert len(candidates(Wanted(None, None, None, None, None))) == len(builds())
    both = candidates(Wanted("2.6", "3.11", "12", None, "linux_x86_64"))
    assert {build.cxx11_abi for build in both} == {"cxx11", "pre-cxx11"}


def test_candidates_are_newest_first() -> None:
    found = candidates(Wanted("2.4", "3.11", "12.1", "pre-cxx11", "linux_x86_64"))
    assert [build.order for build in found] == sorted((b.order for b in found), reverse=True)
    assert found[0].release > "2.8"


def test_of_one_release_the_nearest_older_toolkit_goes_first() -> None:
    found = candidates(Wanted("2.0", "3.10", "11.7", "pre-cxx11", "linux_x86_64"))
    assert [b.cuda for b in found if b.release == "2.0.6"] == ["cu117", "cu116", "cu118"]


def test_a_file_name_finds_its_row() -> None:
    names = {build.file_name for build in builds()}
    assert len(names) == len(builds())
    for name in sorted(names)[::97]:
        build = build_of(name)
        assert build is not None and build.file_name == name
        assert build_of(name.replace("+", "%2B")) == build
    assert build_of("flash_attn-2.8.3-cp311-cp311-linux_x86_64.whl") is None


def test_the_address_is_that_of_the_releases_asset() -> None:
    build = build_of(
        "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    )
    assert build is not None
    assert build.url == (
        "https://github.com/Dao-AILab/flash-attention/releases/download/v2.7.4.post1/"
        "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    )


def test_a_wheel_that_was_built_on_a_nightly_is_known_as_one() -> None:
    nightly = {(b.release, b.torch) for b in builds() if b.nightly}
    assert ("2.7.3", "2.6") in nightly and ("2.7.4", "2.6") not in nightly
    assert all(re.search(r"\.dev\d{8}$", b.torch_built) for b in builds() if b.nightly)


def test_a_toolkit_that_no_torch_of_that_release_has_is_known() -> None:
    assert {(b.release, b.cuda) for b in builds() if b.unlikely} == {("2.4.3", "cu122")}


@pytest.mark.parametrize(
    ("release", "needs"),
    [("2.7.4.post1", None), ("2.8.0", "2.32"), ("2.8.3.post1", "2.32"), ("0.0.0", None)],
)
def test_glibc_floor_of_a_release(release: str, needs: str | None) -> None:
    assert glibc_floor(release) == needs


def test_the_table_is_whole() -> None:
    """Its invariants: dates in order of releases' lines, known Pythons, toolkits of their tags."""
    assert TABLE["source"] and re.fullmatch(r"\d{4}-\d\d-\d\d", TABLE["date"])
    used = {index for _, index in TABLE["releases"].values() if index is not None}
    assert used == set(range(len(TABLE["matrices"])))
    assert all(row["since"] in TABLE["releases"] for row in TABLE["glibc"])
    assert all(row["since"] in TABLE["releases"] for row in TABLE["mislabelled"])
    assert all(row["release"] in TABLE["releases"] and row["source"] for row in TABLE["never_made"])
    for build in builds():
        digits = build.cuda.removeprefix("cu")
        parts = build.cuda_built.split(".")
        assert digits in (parts[0], "".join(parts[:2])), build
        assert build.torch_built.startswith(build.torch + ".")
        assert re.fullmatch(r"3\.\d+", build.python)
        assert build.platform in ("linux_x86_64", "linux_aarch64")


def test_it_is_the_package_whose_limits_are_known() -> None:
    names = {name for row in LIMITS["rows"] for name in row["distributions"]}
    assert TABLE["package"] == wheel_matrix.PACKAGE
    assert TABLE["package"] in names
