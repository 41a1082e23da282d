"""The atlas of torch releases answers what nm says of each; damage is refused before it is read."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.tiny_atlas import RELEASES, exported, record, record_of, records

from fa_forensics.atlas.build.compile import compile_torch
from fa_forensics.atlas.build.records import load_record
from fa_forensics.atlas.store import Atlas, Export
from fa_forensics.errors import AtlasDamaged, ForensicsError
from fa_forensics.facts.mangled import OTHER_FLAVOUR, OTHER_PARAMETERS, SAME_NAME

FILES = ("torch.json", "torch.sets", "torch.trie")
X86 = ("1.9.0", "1.10.0", "2.0.0", "2.1.0")
OLD, NEW = ("1.9.0", "1.10.0"), ("2.0.0", "2.1.0")
ERROR_OLD = "_ZN3c105ErrorC1EiSs"
ERROR_NEW = "_ZN3c105ErrorC1EiNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("atlas")
    compile_torch(records(), str(directory))
    return directory


@pytest.fixture(scope="module")
def atlas(tables: Path) -> Atlas:
    return Atlas.open(str(tables))


def all_names() -> list[str]:
    return sorted({name for r, m, _ in RELEASES for name, _, _ in exported(r, m)})


# --- exact queries ----------------------------------------------------------------------------


@pytest.mark.parametrize("release, machine", [(r, m) for r, m, _ in RELEASES])
def test_exports_of_every_name_are_what_nm_says(atlas: Atlas, release: str, machine: str) -> None:
    found = {
        (name, export.library, export.bind)
        for name in all_names()
        for export in atlas.exports(name, machine)
        if export.release == release
    }
    assert len(found) > 30
    assert found == exported(release, machine)


def test_a_name_of_two_libraries_is_told_with_each_of_them(atlas: Atlas) -> None:
    assert atlas.exports("_ZN3c105movedB5cxx11Ev") == (
        Export("2.0.0", "libc10.so", "global"),
        Export("2.0.0", "libc10_cuda.so", "global"),
        Export("2.1.0", "libc10_cuda.so", "global"),
    )


def test_releases_of_a_name_are_those_where_nm_lists_it(atlas: Atlas) -> None:
    for name in all_names():
        listed = tuple(r for r in X86 if name in {row[0] for row in exported(r, "x86_64")})
        assert atlas.releases_of(name) == listed


def test_releases_come_oldest_first_and_apart_by_machine(atlas: Atlas) -> None:
    assert atlas.releases() == X86
    assert atlas.releases("aarch64") == ("1.10.0",)
    assert atlas.machines() == ("aarch64", "x86_64")
    assert atlas.releases("riscv64") == ()


def test_a_build_keeps_every_fact_of_its_record(atlas: Atlas) -> None:
    build = atlas.build("2.0.0")
    assert build is not None
    given = record("2.0.0", "x86_64")
    for field in ("release", "machine", "version", "cuda", "flavour", "date", "wheel", "pybind11"):
        assert getattr(build, field) == given[field]
    assert build.gcc == given["gcc"] and dict(build.requires) == given["requires"]
    assert build.pythons == ("3.8", "3.10", "3.11")
    assert build.needed == ("libc.so.6", "libcudart.so.12")
    assert build.libraries == ("libc10.so", "libc10_cuda.so")
    assert build.cuda_major == 12
    assert atlas.build("2.0.1") is None and atlas.build("2.0.0", "aarch64") is None


def test_exporting_all_is_the_intersection_and_says_what_each_release_lacks(atlas: Atlas) -> None:
    wanted = ["_ZN3c104cuda9SetDeviceEab", "_ZN3c103logEPKc", "nowhere", "_ZN3c103logEPKc"]
    complete, lacking = atlas.exporting_all(wanted[:2])
    assert complete == NEW
    assert lacking == {release: ("_ZN3c104cuda9SetDeviceEab",) for release in OLD}
    complete, lacking = atlas.exporting_all(iter(wanted))
    assert complete == ()
    assert lacking["1.9.0"] == ("_ZN3c104cuda9SetDeviceEab", "nowhere")
    assert lacking["2.1.0"] == ("nowhere",)
    assert atlas.exporting_all([]) == (X86, {})


def test_a_prefix_finds_all_names_that_start_so(atlas: Atlas) -> None:
    prefix = "_ZN3c104cuda"
    expected = [
        (name, atlas.releases_of(name))
        for name in all_names()
        if name.startswith(prefix) and atlas.releases_of(name)
    ]
    assert len(expected) == 5
    assert atlas.starting_with(prefix) == expected
    assert len(atlas.starting_with(prefix, limit=2)) == 2
    assert atlas.starting_with("_ZN9nobody") == []


@pytest.mark.parametrize("name", ["", "\0", "\udc80\udcff", "\ud800", "_Z", "x" * 100_000, "ü"])
def test_odd_names_are_exported_by_nobody(atlas: Atlas, name: str) -> None:
    assert atlas.exports(name) == () and atlas.releases_of(name) == ()
    assert atlas.overloads(name) == ()
    assert atlas.twin(name) is None


def test_names_that_are_no_text_survive_as_bytes(tmp_path: Path) -> None:
    name = b"_ZN3c10\xff\xfe".decode("utf-8", "surrogateescape")
    libraries = {"libc10.so": {"global": [name], "weak": [], "unique": []}}
    compile_torch([record_of("2.0.0", "x86_64", libraries)], str(tmp_path))
    atlas = Atlas.open(str(tmp_path))
    assert atlas.releases_of(name) == ("2.0.0",)
    assert atlas.starting_with("_ZN3c10") == [(name, ("2.0.0",))]


# --- overloads and twins ----------------------------------------------------------------------


def test_overloads_of_a_vanished_function_are_the_others_with_their_releases(atlas: Atlas) -> None:
    found = atlas.overloads("_ZN3c104cuda9SetDeviceEl")
    assert [(n.symbol, n.releases, n.relation) for n in found] == [
        ("_ZN3c104cuda9SetDeviceEi", ("1.9.0",), OTHER_PARAMETERS),
        ("_ZN3c104cuda9SetDeviceEa", ("1.10.0",), OTHER_PARAMETERS),
        ("_ZN3c104cuda9SetDeviceEab", NEW, OTHER_PARAMETERS),
    ]


@pytest.mark.parametrize(
    "text, symbols",
    [
        ("c10::cuda::SetDevice", {"_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEa",
                                  "_ZN3c104cuda9SetDeviceEab"}),
        ("c10::operator<<", {"_ZN3c10lsERSoRKNS_5ErrorE"}),
        ("c10::Error::operator+=", {"_ZN3c105ErrorpLERKS0_"}),
        ("c10::Error::Error", {ERROR_OLD, ERROR_NEW}),
        ("c10::Error::~Error", {"_ZN3c105ErrorD0Ev"}),
        ("c10::Error::code", {"_ZN3c105Error4codeEv", "_ZNK3c105Error4codeEv"}),
        ("c10::data", {"_ZN3c104dataIfEEPT_S1_", "_ZN3c104dataIiEEPT_S1_"}),
        ("c10::data<float>", {"_ZN3c104dataIfEEPT_S1_"}),
        ("c10::name", {"_ZN3c104nameEv", "_ZN3c104nameB5cxx11Ev"}),
        ("c10::List<int>::push", {
            "_ZN3c104ListIiE4pushERKSsi",
            "_ZN3c104ListIiE4pushERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi"}),
        ("vtable for c10::Error", {"_ZTVN3c105ErrorE"}),
        ("aoti_torch_version", {"aoti_torch_version"}),
        ("c10::Error", set()),
        ("c10::cuda", set()),
        ("c10::nothing", set()),
    ],
)  # fmt: skip
def test_a_readable_name_finds_its_functions(atlas: Atlas, text: str, symbols: set[str]) -> None:
    found = atlas.overloads(text)
    assert {named.symbol for named in found} == symbols
    assert {named.relation for named in found} <= {SAME_NAME}
    assert [named.demangled for named in found] == [
        text for named in found for text in oracles.cxxfilt([named.symbol])
    ]


def test_a_readable_name_with_parameters_says_which_overload_was_meant(atlas: Atlas) -> None:
    found = atlas.overloads("c10::cuda::SetDevice(signed  char,bool)")
    assert {n.symbol[-2:]: n.relation for n in found} == {
        "ab": SAME_NAME, "Ea": OTHER_PARAMETERS, "Ei": OTHER_PARAMETERS,
    }  # fmt: skip
    found = atlas.overloads("c10::log(std::__cxx11::string const&)")
    assert [n.relation for n in found] == [SAME_NAME, OTHER_FLAVOUR, OTHER_PARAMETERS]


def test_constness_is_another_signature_of_the_same_function(atlas: Atlas) -> None:
    found = atlas.overloads("_ZN3c105Error4codeEv")
    assert [(n.demangled, n.releases, n.relation) for n in found] == [
        ("c10::Error::code()", ("1.9.0",), SAME_NAME),
        ("c10::Error::code() const", ("1.10.0", *NEW), OTHER_PARAMETERS),
    ]


@pytest.mark.parametrize("form", ["C1", "C2"])
def test_both_forms_of_a_constructor_are_one_answer(atlas: Atlas, form: str) -> None:
    asked = ERROR_OLD.replace("C1", form)
    found = atlas.overloads(asked)
    assert [(n.symbol, n.releases, n.relation) for n in found] == [
        (asked, OLD, SAME_NAME),
        (ERROR_NEW, NEW, OTHER_FLAVOUR),
    ]


def by_address(release: str, machine: str) -> list[str]:
    """Global functions in the order of the source, which is that of their addresses."""
    from support.tiny_atlas import LIBRARIES, library

    names: list[str] = []
    for name in LIBRARIES:
        lines = oracles.output_of("nm", "-D", "--defined-only", library(release, machine, name))
        rows = [line.split() for line in lines.splitlines()]
        names += [row[2] for row in sorted(rows) if row[1] == "T"]
    return names


def test_twins_are_what_the_compiler_makes_of_the_same_source(atlas: Atlas) -> None:
    # The same release compiled twice: the n-th function of one is the n-th of the other.
    pairs = list(zip(by_address("1.10.0", "x86_64"), by_address("1.10.0", "aarch64"), strict=True))
    assert len({pair for pair in pairs if pair[0] != pair[1]}) == 5
    for old, new in pairs:
        for one, other, machine in ((new, old, "x86_64"), (old, new, "aarch64")):
            twin = atlas.twin(one, machine)
            if one == other:
                assert twin is None
                continue
            assert twin is not None
            # Either form of a constructor stands for both.
            assert twin.symbol.replace("C1", "C2") == other.replace("C1", "C2")
            assert twin.relation == OTHER_FLAVOUR and "1.10.0" in twin.releases


def test_many_names_under_one_start_cost_bounded_time(tmp_path: Path) -> None:
    names = [f"_ZN3c104ListILi{n}EE4pushEv" for n in range(20_000)]
    libraries = {"libc10.so": {"global": names, "weak": [], "unique": []}}
    compile_torch([record_of("2.0.0", "x86_64", libraries)], str(tmp_path))
    atlas = Atlas.open(str(tmp_path))
    started = time.perf_counter()
    found = atlas.overloads(names[-1].replace("Ev", "Ei"))
    assert time.perf_counter() - started < 1.0
    assert all(n.relation == OTHER_PARAMETERS for n in found)


def test_hostile_names_do_not_hang_the_search(atlas: Atlas) -> None:
    started = time.perf_counter()
    for text in (
        "_ZN" + "9" * 5_000 + "a",
        "_Z" + "1a" * 5_000,
        "a::" * 5_000,
        "<" * 5_000 + "::a",
    ):
        assert atlas.overloads(text) == ()
    assert time.perf_counter() - started < 2.0


# --- two releases -----------------------------------------------------------------------------


def test_removed_and_added_are_the_differences_of_what_nm_lists(atlas: Atlas) -> None:
    old = {name for name, _, _ in exported("1.9.0", "x86_64")}
    new = {name for name, _, _ in exported("2.0.0", "x86_64")}
    assert atlas.removed_added("1.9.0", "2.0.0") == (sorted(old - new), sorted(new - old))
    assert atlas.removed_added("2.0.0", "2.0.0") == ([], [])
    with pytest.raises(KeyError):
        atlas.removed_added("1.9.0", "9.9.9")


def test_removed_and_added_can_be_narrowed_to_a_library_and_a_start(atlas: Atlas) -> None:
    cuda = [
        {name for name, library, _ in exported(r, "x86_64") if library == "libc10_cuda.so"}
        for r in ("1.9.0", "2.0.0")
    ]
    narrow = atlas.removed_added("1.9.0", "2.0.0", libraries=["libc10_cuda.so"])
    assert narrow == (sorted(cuda[0] - cuda[1]), sorted(cuda[1] - cuda[0]))
    removed, added = atlas.removed_added("1.9.0", "2.0.0", prefixes=[b"_ZN3c104cuda9SetDevice"])
    assert (removed, added) == (["_ZN3c104cuda9SetDeviceEi"], ["_ZN3c104cuda9SetDeviceEab"])


# --- the compiler of tables -------------------------------------------------------------------


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_tables_do_not_depend_on_the_order_or_portions_of_records(
    tables: Path, tmp_path: Path
) -> None:
    compile_torch(records()[::-1], str(tmp_path / "backwards"))
    portions = tmp_path / "portions"
    compile_torch(records()[2:4], str(portions))
    for one in (4, 0, 1):
        compile_torch([records()[one]], str(portions), previous=str(portions))
    assert sorted(contents(tables)) == sorted(FILES)
    assert contents(tmp_path / "backwards") == contents(tables)
    assert contents(portions) == contents(tables)


def test_a_record_replaces_the_build_it_had_before(tables: Path, tmp_path: Path) -> None:
    stale = records()
    libraries = {"libgone.so": {"global": ["only_here"], "weak": ["_ZN3c103logEPKc"], "unique": []}}
    stale[1] = record_of("1.10.0", "x86_64", libraries, cuda=None)
    compile_torch(stale, str(tmp_path))
    assert Atlas.open(str(tmp_path)).releases_of("only_here") == ("1.10.0",)
    compile_torch([records()[1]], str(tmp_path), previous=str(tmp_path))
    assert contents(tmp_path) == contents(tables)


def test_more_builds_than_a_machine_word_has_bits_stay_apart(tmp_path: Path) -> None:
    made = [
        record_of(f"2.{n}.0", "x86_64", {"libc10.so": {
            "global": [f"only_{n}", "all"], "weak": ["even"] * (n % 2 == 0), "unique": []}})
        for n in range(150)
    ]  # fmt: skip
    compile_torch(made, str(tmp_path))
    atlas = Atlas.open(str(tmp_path))
    assert atlas.releases_of("all") == tuple(f"2.{n}.0" for n in range(150))
    assert atlas.releases_of("even") == tuple(f"2.{n}.0" for n in range(0, 150, 2))
    assert all(atlas.releases_of(f"only_{n}") == (f"2.{n}.0",) for n in range(150))


def test_two_records_of_one_build_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two records"):
        compile_torch([records()[0], records()[0]], str(tmp_path))


def test_a_record_of_another_format_is_refused(tmp_path: Path) -> None:
    import lzma

    path = tmp_path / "record.json.xz"
    path.write_bytes(lzma.compress(json.dumps({"format": 2}).encode()))
    with pytest.raises(ForensicsError, match="another format"):
        load_record(str(path))


# --- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_every_damaged_byte_is_refused_in_one_sentence(
    tables: Path, tmp_path: Path, file: str
) -> None:
    copy = shutil.copytree(tables, tmp_path / "copy")
    original = (copy / file).read_bytes()
    for at in {*range(0, len(original), len(original) // 150), *range(64), len(original) - 1}:
        for bit in (0x01, 0x20):
            damaged = bytearray(original)
            damaged[at] ^= bit
            (copy / file).write_bytes(damaged)
            with pytest.raises(AtlasDamaged, match=f"{file}: this table .* is damaged"):
                Atlas.open(str(copy))
    (copy / file).write_bytes(original)
    assert Atlas.open(str(copy)).releases() == X86


@pytest.mark.parametrize("file", FILES)
def test_cut_grown_and_missing_tables_are_refused(tables: Path, tmp_path: Path, file: str) -> None:
    copy = shutil.copytree(tables, tmp_path / "copy")
    original = (copy / file).read_bytes()
    for content in (b"", original[:1], original[: len(original) // 2], original[:-1],
                    original + b"\0", b"\0" * len(original)):  # fmt: skip
        (copy / file).write_bytes(content)
        with pytest.raises(AtlasDamaged, match="is damaged"):
            Atlas.open(str(copy))
    (copy / file).unlink()
    with pytest.raises(AtlasDamaged, match="cannot be read .No such file or directory.") as caught:
        Atlas.open(str(copy))
    assert caught.value.hint and "\n" not in caught.value.message
    (copy / file).mkdir()
    with pytest.raises(AtlasDamaged, match="cannot be read .Is a directory."):
        Atlas.open(str(copy))


def test_tables_of_another_format_are_named_as_such(tables: Path, tmp_path: Path) -> None:
    from fa_forensics.atlas.tables import write_index

    copy = shutil.copytree(tables, tmp_path / "copy")
    index: dict[str, Any] = json.loads((copy / "torch.json").read_text())
    write_index(str(copy), "torch.json", {**index, "format": 2})
    with pytest.raises(AtlasDamaged, match="has format 2, and this program reads 1"):
        Atlas.open(str(copy))
