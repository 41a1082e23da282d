"""The tables of glibc, GCC, distributions and manylinux policies agree with one another."""

from __future__ import annotations

import itertools
import json
import platform
import re
from pathlib import Path

import pytest
from support.material import system_library

import fa_forensics
from fa_forensics.facts import system_releases as releases
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.manylinux import beyond, policies, satisfied

DATA = Path(fa_forensics.__file__).parent / "data"
GCC = json.loads((DATA / "gcc_releases.json").read_text())
GLIBC = json.loads((DATA / "glibc_releases.json").read_text())


def number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


@pytest.mark.parametrize("name", ["glibc_releases", "gcc_releases", "distributions", "manylinux"])
def test_each_table_says_what_it_is_where_it_is_from_and_when(name: str) -> None:
    table = json.loads((DATA / f"{name}.json").read_text())
    assert table["about"] and table["source"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", table["date"])


@pytest.mark.parametrize("family", ["GLIBCXX", "CXXABI"])
def test_newer_versions_of_libstdcxx_come_with_newer_compilers(family: str) -> None:
    rows = [(number(version), number(gcc)) for version, gcc in GCC[family].items()]
    assert rows == sorted(rows) and len({version for version, _ in rows}) == len(rows)
    assert all(one[1] <= two[1] for one, two in itertools.pairwise(rows))


def test_releases_of_glibc_are_in_order_and_markers_name_one_of_them() -> None:
    assert GLIBC["releases"] == sorted(set(GLIBC["releases"]), key=number)
    assert set(GLIBC["markers"].values()) <= set(GLIBC["releases"])


def test_a_distribution_has_versions_that_the_other_tables_know() -> None:
    for row in releases.distributions():
        assert row.glibc in GLIBC["releases"], row.name
        for family in ("GLIBCXX", "CXXABI", "GCC"):
            assert row.newest[family] in GCC[family], (row.name, family)


def test_a_later_release_of_a_distribution_lacks_nothing_of_an_earlier_one() -> None:
    seen: dict[str, releases.SystemRelease] = {}
    for row in releases.distributions():
        before = seen.get(row.family)
        if before is not None:
            assert number(before.release) < number(row.release)
            assert number(before.glibc) <= number(row.glibc), row.name
            for family, newest in row.newest.items():
                assert number(before.newest[family]) <= number(newest), (row.name, family)
        seen[row.family] = row


def test_a_policy_allows_nothing_that_a_distribution_of_its_glibc_lacks() -> None:
    for policy in policies():
        for row in releases.distributions():
            if number(row.glibc) < policy.glibc or "x86_64" not in policy.versions:
                continue
            for family, newest in row.newest.items():
                allowed = policy.versions["x86_64"][family]
                top = max(number(v) for v in allowed if re.fullmatch(r"[\d.]+", v))
                assert top <= number(newest), (policy.name, row.name, family)


def test_policies_only_grow_and_their_versions_are_known() -> None:
    ordered = policies()
    assert [p.glibc for p in ordered] == sorted(p.glibc for p in ordered)
    for one, two in itertools.pairwise(ordered):
        assert one.libraries <= two.libraries
        for machine, families in one.versions.items():
            for family, versions in families.items():
                assert versions <= two.versions[machine][family]
    for family in ("GLIBCXX", "CXXABI"):
        plain = {v for v in ordered[-1].versions["x86_64"][family] if v[0].isdigit()}
        assert plain <= set(GCC[family]), family


def test_the_tables_say_of_this_system_what_its_libraries_define() -> None:
    """Where the tests run on a distribution of the table; its updates may bring more."""
    try:
        info = platform.freedesktop_os_release()
    except OSError:
        pytest.skip("no os-release here")
    name = f"{info.get('NAME', '').split()[0]} {info.get('VERSION_ID', '')}"
    row = next((r for r in releases.distributions() if r.name == name), None)
    if row is None or platform.machine() != "x86_64":
        pytest.skip(f"{name} on {platform.machine()} is not in the table")
    assert number(platform.libc_ver()[1]) == number(row.glibc)
    found = DynamicObject.open(str(system_library("libstdc++.so.6")))
    for family in ("GLIBCXX", "CXXABI"):
        newest = releases.newest(found.verdef.values(), family)
        assert newest == f"{family}_{row.newest[family]}"
    found.close()


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("GLIBC_2.38", "glibc 2.38 (Ubuntu 24.04, Debian 13, RHEL 10)"),
        ("GLIBC_ABI_DT_RELR", "glibc 2.36 (Ubuntu 24.04, Debian 12, RHEL 10)"),
        ("GLIBC_2.23", "glibc 2.23 (Ubuntu 16.04, Debian 9, RHEL 8)"),
        ("GLIBCXX_3.4.29", "the libstdc++ of GCC 11.1 (Ubuntu 22.04, Debian 12, RHEL 9, "
                           "Amazon Linux 2023)"),
        ("GCC_16.0", "the libgcc of GCC 16.1 (Fedora 44)"),
        ("GLIBC_2.99", "glibc 2.99, newer than any that is known here"),
        ("GLIBCXX_3.4.99", None), ("CXXABI_TM_1", None), ("GLIBC_PRIVATE", None),
        ("ZLIB_1.2.9", None), ("GLIBC_" + "9" * 5000, None), ("", None),
    ],
)  # fmt: skip
def test_what_brings_a_version_is_said_in_words(version: str, words: str | None) -> None:
    assert releases.brings(version) == words


def test_the_newest_version_is_by_number_not_by_letters() -> None:
    names = ["GLIBC_2.2.5", "GLIBC_2.36", "GLIBC_ABI_DT_RELR", "GLIBC_2.4", "GLIBC_PRIVATE"]
    assert releases.newest(names, "GLIBC") == "GLIBC_2.36"
    assert releases.newest(names, "GLIBCXX") is None
    assert releases.newest(["GLIBC_PRIVATE"], "GLIBC") is None


def test_the_oldest_systems_have_every_version() -> None:
    assert "RHEL 8" in releases.oldest_systems(["GLIBC_2.17", "GLIBCXX_3.4.25"])
    assert "RHEL 9" in releases.oldest_systems(["GLIBC_2.17", "GLIBCXX_3.4.26"])
    assert releases.oldest_systems(["GLIBC_2.99"]) == ()
    assert releases.oldest_systems([]) == ()


NEEDS = [("libc.so.6", "GLIBC_2.17"), ("libstdc++.so.6", "GLIBCXX_3.4.25")]


def test_a_file_satisfies_the_oldest_policy_that_allows_its_versions() -> None:
    found = satisfied("x86_64", ["libc.so.6", "libc10.so", "ld-linux-x86-64.so.2"], NEEDS, [])
    assert found.tag == "manylinux_2_31_x86_64"
    assert found.libraries_outside == ("libc10.so",)
    first = satisfied("x86_64", ["libc.so.6"], NEEDS[:1], [])
    assert (first.tag, first.aliases) == ("manylinux_2_17_x86_64", ("manylinux2014_x86_64",))


def test_a_version_of_no_policy_leaves_plain_linux() -> None:
    assert satisfied("x86_64", [], [("libc.so.6", "GLIBC_2.99")], []).tag == "linux_x86_64"
    assert satisfied("x86_64", [], [("libc.so.6", "GLIBC_PRIVATE")], []).tag == "linux_x86_64"
    assert satisfied("sparc", ["libc.so.6"], NEEDS, []).tag == "linux_sparc"


def test_names_that_a_policy_bars_are_named() -> None:
    found = satisfied("x86_64", ["libz.so.1"], [], ["inflate_fast", "inflate"])
    assert found.names_forbidden == ("inflate_fast",)
    assert satisfied("x86_64", [], [], ["inflate_fast"]).names_forbidden == ()


def test_versions_of_the_loader_itself_do_not_count() -> None:
    needs = [("ld-linux-x86-64.so.2", "GLIBC_2.99")]
    assert satisfied("x86_64", [], needs, []).tag == "manylinux_2_5_x86_64"


@pytest.mark.parametrize(
    ("glibc", "over"),
    [((2, 5), ("GLIBC_2.17", "GLIBCXX_3.4.25")), ((2, 17), ("GLIBCXX_3.4.25",)),
     ((2, 30), ("GLIBCXX_3.4.25",)), ((2, 31), ()), ((2, 4), ())],
)  # fmt: skip
def test_what_goes_beyond_a_promise(glibc: tuple[int, int], over: tuple[str, ...]) -> None:
    assert beyond("x86_64", glibc, NEEDS) == over


def test_what_a_library_of_the_wheel_itself_must_have_is_no_need_of_the_system() -> None:
    needs = [("libstdc++-1a2b3c4d.so.6", "GLIBCXX_3.4.33"), ("libc.so.6", "GLIBC_2.17")]
    assert beyond("x86_64", (2, 17), needs) == ()


@pytest.mark.parametrize(
    ("text", "glibc"),
    [
        ("CentOS Linux release 7.9.2009 (Core) (x86_64)", "2.17"),
        ("Ubuntu 20.04.6 LTS (x86_64)", "2.31"), ("Ubuntu 16.04.7 LTS", "2.23"),
        ("Debian GNU/Linux 10 (buster)", "2.28"), ("Red Hat Enterprise Linux 8.6 (Ootpa)", "2.28"),
        ("AlmaLinux 9.3 (Shamrock Pampas Cat)", "2.34"), ("Amazon Linux 2023.3", "2.34"),
    ],
)  # fmt: skip
def test_the_glibc_of_a_system_that_a_report_names(text: str, glibc: str) -> None:
    found = releases.system_named(text)
    assert found is not None and found[1] == glibc


@pytest.mark.parametrize(
    "text", ["", "Windows 11", "macOS 14.1", "Ubuntu", "Arch Linux", "Ubuntu 1"]
)
def test_a_system_that_is_not_on_record_has_no_glibc(text: str) -> None:
    assert releases.system_named(text) is None
