"""Each loader rule, resolved statically, is what the real loader does with the same file.

The oracles are a real dlopen in a child of this interpreter (its maps, its error) and the
loader's own log (LD_DEBUG=libs, bindings).
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import oracles
from support.damage import overwrite
from support.material import TINY_IDS, tiny_dir, tiny_file

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.image import EM_AARCH64, EM_X86_64, ElfImage
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.resolution import Resolution
from fixtures import tiny_build
from fixtures.tiny import FAILS, LOADS, TINIES

#: Files that are no ELF file for this machine: opening them raises, with a sentence.
UNREADABLE = {"cut-in-header", "cut-short", "empty", "text", "pe-dll", "mach-o"}
#: ELF files that dlopen refuses for what they are; the rules FA101 and FA104 judge them.
WRONG_KIND = {"big-endian", "elf-32", "aarch64", "relocatable"}

RESOLVED = tuple(name for name in TINY_IDS if name not in UNREADABLE | WRONG_KIND)


def interpreter() -> tuple[str, str]:
    """This interpreter's binary and the loader it asks for, by readelf."""
    path = os.path.realpath(sys.executable)
    text = oracles.output_of("readelf", "-lW", path)
    match = re.search(r"program interpreter: (.*)\]", text)
    assert match is not None
    return path, match[1]


@contextmanager
def process(case: str | None = None, **variables: str) -> Iterator[Linker]:
    path, loader = interpreter()
    machine = EM_AARCH64 if os.uname().machine == "aarch64" else EM_X86_64
    linker = Linker(path, loader, machine, None, (), variables)
    try:
        for first in TINIES[case].first if case else ():
            linker.process.dlopen(str(tiny_dir(str(case)) / first), "before")
        yield linker
    finally:
        linker.close()


def environment(name: str) -> dict[str, str]:
    directory = TINIES[name].library_path
    return {"LD_LIBRARY_PATH": str(tiny_dir(name) / directory)} if directory else {}


def resolved(name: str) -> Resolution:
    path = tiny_file(name)
    with process(name, **environment(name)) as linker:
        dynamic = DynamicObject.open(str(path))
        try:
            return linker.resolve(str(path), list(dynamic.symbols()))
        finally:
            dynamic.close()


def loaded(name: str, **more: str) -> oracles.Load:
    first = [tiny_dir(name) / part for part in TINIES[name].first]
    return oracles.really_load(tiny_file(name), first, **environment(name), **more)


@pytest.mark.parametrize("name", [n for n in RESOLVED if TINIES[n].outcome in (LOADS, FAILS)])
def test_the_first_complaint_and_the_mapped_files_are_the_loaders(name: str) -> None:
    ours, real = resolved(name), loaded(name)
    if real.error is None:
        assert ours.first_failure is None
        assert ours.missing == () == ours.missing_libraries
        mapped = {os.path.realpath(path) for path in real.mapped}
        ours_mapped = {os.path.realpath(library.path or "") for library in ours.libraries}
        assert ours_mapped <= mapped
        inside = str(tiny_dir(name).resolve()) + os.sep
        own = {path for path in mapped if path.startswith(inside)}
        scope = {os.path.realpath(path) for path in ours.scope}
        assert own == {path for path in scope if path.startswith(inside)}
    else:
        assert ours.first_failure is not None
        assert oracles.short_text(ours.first_failure) == oracles.short_text(real.error)


@pytest.mark.parametrize("name", [n for n in RESOLVED if TINIES[n].outcome not in (LOADS, FAILS)])
def test_what_dies_while_it_loads_resolves_without_a_complaint(name: str) -> None:
    assert resolved(name).first_failure is None


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_a_file_that_is_no_elf_file_is_refused_with_one_sentence(name: str) -> None:
    with process() as linker, pytest.raises(ForensicsError) as caught:
        linker.process.dlopen(str(tiny_file(name)), "test")
    assert str(tiny_file(name)) in caught.value.message
    assert "\n" not in caught.value.message


# --- what each symbol binds to ------------------------------------------------------------------


def real_bindings(name: str) -> dict[str, str]:
    """Symbol → file it was bound to for the tiny file itself, from LD_DEBUG=bindings."""
    text = loaded(name, LD_DEBUG="bindings").text
    file = re.escape(str(tiny_file(name)))
    rows = re.findall(rf"binding file {file} \[0\] to (\S+) \[0\]: normal symbol `([^']+)'", text)
    return {symbol: path for path, symbol in reversed(rows)}


@pytest.mark.parametrize("name", [n for n in RESOLVED if TINIES[n].outcome == LOADS])
def test_each_symbol_binds_to_the_file_that_the_loader_binds_it_to(name: str) -> None:
    if loaded(name).error is not None:
        pytest.skip("this system's loader refuses it, as the test above has it")
    theirs = real_bindings(name)
    ours = {b.symbol: b for b in resolved(name).bindings}
    for symbol, path in theirs.items():
        if symbol in ours:  # a name the file defines itself is no undefined symbol
            provider = ours[symbol].provider
            assert provider is not None, symbol
            assert os.path.realpath(provider) == os.path.realpath(path), symbol
    for symbol, binding in ours.items():
        if binding.provider is not None and binding.referenced:
            assert symbol in theirs
    if name == "first-provider":
        assert os.path.basename(theirs["dep_value"]) == "liba.so"


def test_a_weak_undefined_symbol_is_not_missing() -> None:
    binding = next(
        b for b in resolved("weak-undefined").bindings if b.symbol == "nobody_defines_this"
    )
    assert (binding.bind, binding.provider, binding.missing) == ("weak", None, False)


def test_missing_symbols_stand_in_the_loaders_order() -> None:
    missing = resolved("missing-symbol").missing
    assert [b.symbol for b in missing] == ["nobody_defines_this"]
    assert missing[0].table.startswith(".dynsym[")


def test_a_version_that_is_not_defined_names_both_files() -> None:
    (miss,) = resolved("missing-version").version_misses
    assert (miss.soname, miss.version) == ("libdep.so", "V_2")
    assert "V_1" in miss.provided and "V_2" not in miss.provided
    assert miss.provider == str(tiny_file("missing-version").parent / "libdep.so")


# --- where it looks -----------------------------------------------------------------------------

PROCESSORS = {"glibc-hwcaps", "tls", "haswell", "avx512_1", "xeon_phi", "x86_64", "aarch64"}


def really_tried(name: str, soname: str) -> list[str]:
    """Directories in which ld.so looked for a soname, in order, from LD_DEBUG=libs."""
    text = loaded(name, LD_DEBUG="libs").text
    start = text.rindex(f"find library={soname} [")
    block = text[start:].split("find library=")[1]
    paths = re.findall(rf"trying file=(\S+)/{re.escape(soname)}$", block, re.M)
    # Before 2.37 glibc also tries subdirectories for processors; ours leaves those out.
    return [p for p in paths if not PROCESSORS & set(Path(p).parts) and os.path.isdir(p)]


MISSES = [
    ("missing-soname", "libabsent.so.1"),
    ("missing-soname-below", "libabsent.so.1"),
    ("runpath-not-inherited", "libdep.so"),
    ("runpath-stops-rpath", "libdep.so"),
    ("not-loaded-yet", "libdep.so.7"),
]


@pytest.mark.parametrize(("name", "soname"), MISSES)
def test_a_miss_lists_the_places_that_the_loader_tried_in_its_order(name: str, soname: str) -> None:
    (library,) = resolved(name).missing_libraries
    assert library.soname == soname
    ours = [place.split(" ")[-1] for place in library.tried if place != "/etc/ld.so.cache"]
    assert [place for place in ours if os.path.isdir(place)] == really_tried(name, soname)
    assert "/etc/ld.so.cache" in library.tried
    assert library.needed_by.endswith(".so")


def test_a_miss_with_every_rule_in_play_lists_them_all_in_order(tmp_path: Path) -> None:
    """RPATH of the file, LD_LIBRARY_PATH, the cache, the default directories."""
    for name, rule in (("missing-soname", None), ("rpath-first", "RPATH"),
                       ("runpath-last", "RUNPATH")):  # fmt: skip
        path = tiny_file(name)
        with process(None, LD_LIBRARY_PATH=f"{tmp_path}:/nonexistent") as linker:
            copy = tmp_path / f"{name}.so"
            copy.write_bytes(path.read_bytes())
            dynamic = DynamicObject.open(str(copy))
            (miss,) = linker.resolve(str(copy), list(dynamic.symbols())).missing_libraries
            dynamic.close()
        rules = [place.split(" /")[0] for place in miss.tried]
        expected = ["LD_LIBRARY_PATH", "LD_LIBRARY_PATH", "/etc/ld.so.cache"]
        if rule == "RPATH":
            expected.insert(0, "RPATH")
        elif rule == "RUNPATH":
            expected.insert(2, "RUNPATH")
        assert rules[: len(expected)] == expected
        assert set(rules[len(expected) :]) == {"default directory"}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("rpath-first", "RPATH"),
        ("runpath-last", "LD_LIBRARY_PATH"),
        ("rpath-and-runpath", "RUNPATH"),
        ("library-path-only", "LD_LIBRARY_PATH"),
        ("origin-sibling", "RUNPATH"),
        ("already-loaded", "already loaded (before)"),
    ],
)
def test_each_library_says_how_it_was_found(name: str, how: str) -> None:
    rows = {library.soname: library for library in resolved(name).libraries}
    soname = "libdep.so.7" if name == "already-loaded" else "libdep.so"
    assert rows[soname].found_by == how
    assert rows["libc.so.6"].found_by == "already loaded (start)"


def test_a_needed_name_with_a_slash_is_taken_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (library,) = resolved("needed-with-slash").missing_libraries
    assert library.tried == ("nowhere/libdep.so",)
    (tmp_path / "nowhere").mkdir()
    dep = tiny_file("needed-with-slash").parent / "libdep.so"
    (tmp_path / "nowhere/libdep.so").write_bytes(dep.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert oracles.really_load(tiny_file("needed-with-slash")).error is None
    assert resolved("needed-with-slash").first_failure is None


def test_a_needed_path_with_origin_in_it_is_expanded(tmp_path: Path) -> None:
    dep, made = tmp_path / "libdep.so", tmp_path / "ext.so"
    sources = tiny_build.SOURCES
    gcc = ["gcc", "-shared", "-fPIC"]
    oracles.output_of(*gcc, "-Wl,-soname,$ORIGIN/libdep.so", "-o", dep, sources / "dep.c")
    oracles.output_of(*gcc, "-Wl,--no-as-needed", "-o", made, sources / "ext.c", dep)
    assert oracles.readelf_dynamic(made).needed[0] == "$ORIGIN/libdep.so"
    assert oracles.really_load(made).error is None
    with process() as linker:
        dynamic = DynamicObject.open(str(made))
        resolution = linker.resolve(str(made), list(dynamic.symbols()))
        dynamic.close()
    assert resolution.first_failure is None
    assert resolution.libraries[0].path == str(dep)


BROKEN = {
    "empty": b"",
    "short": b"text",
    "elf-magic-only": b"\x7fELF",
    "long text": b"version https://git-lfs.github.com/spec/v1\n" + b"x" * 100,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_dependency_that_is_no_library_stops_the_loader_with_the_same_text(
    kind: str, tmp_path: Path
) -> None:
    made = tmp_path / "ext.so"
    made.write_bytes(tiny_file("origin-sibling").read_bytes())
    (tmp_path / "libdep.so").write_bytes(BROKEN[kind])
    real = oracles.really_load(made)
    with process() as linker:
        dynamic = DynamicObject.open(str(made))
        resolution = linker.resolve(str(made), list(dynamic.symbols()))
        dynamic.close()
    assert real.error is not None and resolution.first_failure is not None
    assert oracles.short_text(resolution.first_failure) == oracles.short_text(real.error)


# --- damage of a single field, which no linker would write ----------------------------------------


def compared(made: Path) -> tuple[str | None, str | None]:
    """(predicted, real) first complaint about a file."""
    with process() as linker:
        dynamic = DynamicObject.open(str(made))
        resolution = linker.resolve(str(made), list(dynamic.symbols()))
        dynamic.close()
    return resolution.first_failure, oracles.really_load(made).error


def test_a_weak_version_need_is_passed_over_and_the_symbol_is_missed(tmp_path: Path) -> None:
    """VER_FLG_WEAK on the need: the version check passes, the look-up of the symbol fails."""
    made = tmp_path / "ext.so"
    shutil.copytree(tiny_file("missing-version").parent, tmp_path, dirs_exist_ok=True)
    text = oracles.output_of("readelf", "-VW", made)
    match = re.search(r"Version needs section.*?Offset: (0x\w+)", text, re.S)
    entry = re.search(r"(0x\w+):   Name: V_2  Flags: none", text)
    assert match is not None and entry is not None
    # vna_flags stands 4 bytes into the entry (Elf64_Vernaux).
    overwrite(made, int(match[1], 16) + int(entry[1], 16) + 4, struct.pack("<H", 2))
    assert ("libdep.so", "V_2", True) in oracles.readelf_verneed(made)
    ours, real = compared(made)
    assert real is not None and "undefined symbol: dep_value, version V_2" in real
    assert ours is not None and oracles.short_text(ours) == oracles.short_text(real)


@pytest.mark.parametrize("visibility", [1, 2, 3])  # internal, hidden, protected
def test_a_hidden_name_that_stands_in_the_table_serves_nobody(
    visibility: int, tmp_path: Path
) -> None:
    shutil.copytree(tiny_file("origin-sibling").parent, tmp_path, dirs_exist_ok=True)
    library = tmp_path / "libdep.so"
    with ElfImage(str(library)) as image:
        table = image.section(".dynsym")
        assert table is not None
    dynamic = DynamicObject.open(str(library))
    index = next(s.index for s in dynamic.symbols() if s.name == b"dep_value")
    dynamic.close()
    overwrite(library, table.offset + 24 * index + 5, bytes([visibility]))  # st_other
    ours, real = compared(tmp_path / "ext.so")
    assert (ours is None) == (real is None) == (visibility == 3)
    if ours is not None and real is not None:
        assert oracles.short_text(ours) == oracles.short_text(real)
