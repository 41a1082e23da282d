"""The exports of a library from its first bytes: what nm says of the whole, or nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.cuda_wheels import (
    COMMON,
    GNU_HASH,
    compiled,
    gnu_hash_library,
    library,
    nm_exports,
)
from support.material import require

from fa_forensics.atlas.build.cuda_wheel import read_file
from fa_forensics.atlas.build.front import Export, read_front

NAMES = tuple(f"cudaFunction{n}" for n in range(90))
ONE_VERSION = {"libone.so.12": NAMES}
#: name@VERSION beside name@@VERSION, as in libraries that keep an old behaviour.
TWO_VERSIONS = """
int first(void) { return 0; }
int second(void) { return 0; }
int old(void) { return 1; }
int new(void) { return 2; }
__asm__(".symver old,both@V_1");
__asm__(".symver new,both@@V_2");
"""
SCRIPT = "V_1 { global: first; both; imports; local: *; }; V_2 { global: second; both; } V_1;"


def two_versions() -> Path:
    return compiled(COMMON + TWO_VERSIONS, SCRIPT, ("-Wl,-soname,libtwo.so.1", GNU_HASH))


LIBRARIES = {
    "one version": lambda: gnu_hash_library("libone.so.12", ONE_VERSION),
    "no version": lambda: gnu_hash_library("libnone.so.2", {"": NAMES}),
    "two versions": two_versions,
    "code apart": lambda: gnu_hash_library(
        "libone.so.12", ONE_VERSION, "", "-Wl,-z,separate-code", "-Wl,-z,relro"
    ),
    "a run path": lambda: gnu_hash_library("libone.so.12", ONE_VERSION, "", "-Wl,-rpath,$ORIGIN"),
    "a thread's and a weak one": lambda: gnu_hash_library(
        "libmore.so",
        {"": ("plain",)},
        "__thread int each; __attribute__((weak)) int weak(void) { return 1; }\n"
        '__attribute__((visibility("protected"))) int kept(void) { return 2; }\n',
    ),
}
libraries = pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)


def found_in(data: bytes) -> set[tuple[str, str | None, bool]] | None:
    front = read_front(data)
    return None if front is None else set(map(tuple, front.exports))


@libraries
def test_the_front_says_what_nm_says(make) -> None:
    path = make()
    assert found_in(path.read_bytes()) == nm_exports(path)


@libraries
def test_the_whole_file_says_what_nm_says(make) -> None:
    path = make()
    assert set(map(tuple, read_file(str(path))[1])) == nm_exports(path)


def test_hidden_and_local_names_are_no_exports() -> None:
    names = {name for name, _, _ in found_in(LIBRARIES["no version"]().read_bytes())}
    assert {"imports", *NAMES} <= names
    assert names & {"hidden_function", "local_function", "abs"} == set()


def test_an_old_version_of_a_name_is_told_from_its_default() -> None:
    front = read_front(two_versions().read_bytes())
    both = {export for export in front.exports if export.name == "both"}
    assert both == {Export("both", "V_1", False), Export("both", "V_2", True)}


def test_weak_names_of_c_are_exports_and_those_of_cxx_are_not() -> None:
    source = """
    __attribute__((weak)) int ncclWeak(void) { return 1; }
    __attribute__((weak)) int _ZN4fake6inlineEv(void) { return 2; }
    int _ZN4fake6strongEv(void) { return 3; }
    """
    path = gnu_hash_library("libweak.so.1", {"": ("plain",)}, source)
    for exports in (read_front(path.read_bytes()).exports, read_file(str(path))[1]):
        names = {export.name for export in exports}
        assert {"ncclWeak", "_ZN4fake6strongEv"} <= names
        assert "_ZN4fake6inlineEv" not in names


def test_the_soname_is_that_of_the_version_script_else_a_string_of_the_file() -> None:
    assert read_front(LIBRARIES["one version"]().read_bytes()).soname == "libone.so.12"
    plain = read_front(LIBRARIES["no version"]().read_bytes())
    assert plain.soname is None and b"\0libnone.so.2\0" in plain.strings


@libraries
def test_a_part_of_a_file_says_the_same_or_nothing(make) -> None:
    path = make()
    whole, expected = path.read_bytes(), nm_exports(path)
    tables = [found_in(whole[:size]) for size in range(0, min(len(whole), 9_000), 29)]
    assert {frozenset(t) for t in tables if t is not None} <= {frozenset(expected)}
    assert expected in tables and tables[0] is None


def test_zeros_among_the_names_do_no_harm() -> None:
    # A tool that shortens a name in place leaves them.
    path = LIBRARIES["a run path"]()
    whole = path.read_bytes()
    data = whole.replace(b"libc.so.6\0", b"\0" * 10, 1)
    assert data != whole and found_in(data) == nm_exports(path)


@pytest.mark.parametrize("kept", range(8))
def test_zeros_at_the_end_of_the_names_never_shift_the_versions(kept: int) -> None:
    # Where the names end shows where the versions start. A shortened run path hides it.
    path = LIBRARIES["a run path"]()
    whole = path.read_bytes()
    data = whole.replace(b"$ORIGIN\0", b"$ORIGIN"[:kept].ljust(8, b"\0"), 1)
    assert b"$ORIGIN" in whole and found_in(data) in (None, nm_exports(path))


def test_a_name_that_does_not_fit_its_hash_is_not_believed() -> None:
    data = LIBRARIES["one version"]().read_bytes()
    assert read_front(data.replace(b"cudaFunction17\0", b"cudaFunction71\0", 1)) is None


def test_tables_that_a_patcher_moved_are_not_found() -> None:
    # patchelf overwrites the old string table with X.
    data = LIBRARIES["one version"]().read_bytes()
    start = data.index(b"cudaFunction0")
    end = data.index(b"libone.so.12\0", start)
    assert read_front(data[:start] + b"X" * (end - start) + data[end:]) is None


def test_the_old_hash_table_alone_is_left_to_the_whole_file() -> None:
    path = library("libold.so.1", {"V": ("f",)}, "", "-Wl,--hash-style=sysv")
    assert read_front(path.read_bytes()) is None
    assert set(map(tuple, read_file(str(path))[1])) == nm_exports(path)


@pytest.mark.parametrize("seed", range(8))
def test_damage_gives_the_same_exports_or_none_and_no_error(seed: int) -> None:
    path = LIBRARIES["two versions"]()
    whole, dice = path.read_bytes()[:4096], random.Random(seed)
    # A damaged version is no version, and then the linker's symbol for it is a name like others.
    names = {name for name, _, _ in nm_exports(path)} | {"V_1", "V_2"}
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 1, 4, 40))):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 0xFF, dice.randrange(256)))
        found = read_front(bytes(data))
        assert found is None or {export.name for export in found.exports} <= names


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 4090, b"PK" * 99])
def test_what_is_no_library_has_no_tables(data: bytes) -> None:
    assert read_front(data) is None


def test_a_linker_with_another_order_is_left_to_the_whole_file() -> None:
    require("ld.gold")
    path = gnu_hash_library("libone.so.12", ONE_VERSION, "", "-fuse-ld=gold")
    assert found_in(path.read_bytes()) in (None, nm_exports(path))
    assert set(map(tuple, read_file(str(path))[1])) == nm_exports(path)
