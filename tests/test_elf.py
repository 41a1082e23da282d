"""ELF facts of every husk, tiny file and system library are what nm and readelf say."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import oracles
from support.material import DYNAMIC_FILES, HUSK_IDS, file_of, husk_file, tiny_file

from fa_forensics.facts.elf.dynamic import SHN_ABS, DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, bind_name, module_of, read_facts, visibility_name

#: machine_name's words → readelf's.
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}

#: nm finds nothing where section headers are gone; test_elf_sections.py compares this file.
HEADERLESS = "tiny|no-section-headers"

every_file = pytest.mark.parametrize("identity", DYNAMIC_FILES)
with_sections = pytest.mark.parametrize(
    "identity", [identity for identity in DYNAMIC_FILES if identity != HEADERLESS]
)


def facts(path: Path) -> ElfFacts:
    dynamic = DynamicObject.open(str(path))
    try:
        return read_facts(dynamic)
    finally:
        dynamic.close()


def text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


@with_sections
def test_undefined_symbols_are_those_of_nm(identity: str) -> None:
    path = file_of(identity)
    ours = sorted((s.bind == 2, text(s.name), s.version or "") for s in facts(path).undefined)
    theirs = sorted(
        (letter in "wv", name, version)
        for letter, (name, version, _how) in oracles.nm_rows(path, "-u")
    )
    assert ours == theirs


@with_sections
def test_defined_symbols_and_their_binding_are_those_of_nm(identity: str) -> None:
    path = file_of(identity)
    elf = facts(path)
    versions = _version_definitions(path)
    ours = sorted(
        # nm prints the absolute symbol that stands for a version itself without that version.
        (text(s.name), "", "")
        if text(s.name) in versions and s.shndx == SHN_ABS
        else (text(s.name), s.version or "", _how(s.version, s.hidden))
        for s in elf.defined
    )
    rows = oracles.nm_rows(path, "--defined-only")
    assert ours == sorted(name for _letter, name in rows)
    binds = {(s.name, s.version or ""): bind_name(s) for s in elf.defined}
    for letter, (name, version, _) in rows:
        # Of an indirect function nm's letter says the type, i, and not the binding.
        allowed = {"weak": "WVi", "unique": "u", "global": "TDBRAi"}
        bind = binds.get((name.encode(), version))
        assert bind is None or letter in allowed[bind], name


def _how(version: str | None, hidden: bool) -> str:
    return "" if version is None else "@" if hidden else "@@"


def _version_definitions(path: Path) -> set[str]:
    dynamic = DynamicObject.open(str(path))
    try:
        return set(dynamic.verdef.values())
    finally:
        dynamic.close()


@every_file
def test_all_else_is_what_readelf_prints(identity: str) -> None:
    path = file_of(identity)
    elf, theirs = facts(path), oracles.readelf_dynamic(path)
    assert (elf.soname, elf.needed, elf.rpath, elf.runpath) == (
        theirs.soname, theirs.needed, theirs.rpath, theirs.runpath,
    )  # fmt: skip
    assert elf.build_id == oracles.readelf_build_id(path)
    assert elf.compilers == oracles.readelf_comment(path)
    assert (elf.tls_size, elf.executable_stack) == oracles.readelf_segments(path)
    if identity != HEADERLESS:
        assert set(elf.versions_needed) == oracles.readelf_verneed(path)
    elf_class, machine, kind = oracles.readelf_header(path)
    assert f"ELF{elf.elf_class}" == elf_class
    assert MACHINES[elf.machine] == machine
    assert elf.type == "shared object" and kind.startswith("DYN")
    assert elf.has_section_headers == (identity != HEADERLESS)
    assert elf.problems == ()


def test_the_oracles_saw_something() -> None:
    """Guards the comparisons above against two empty lists being equal."""
    huge = husk_file("xformers-0.0.34:xformers/flash_attn_3/_C.so")
    assert len(oracles.nm_rows(huge, "-u")) > 150
    assert oracles.readelf_build_id(huge)
    rows = [oracles.readelf_verneed(husk_file(i)) for i in HUSK_IDS]
    assert all(rows)
    assert oracles.readelf_segments(tiny_file("static-tls"))[0] == 16
    assert oracles.readelf_segments(tiny_file("exec-stack"))[1] is True
    assert oracles.readelf_segments(tiny_file("whole"))[1] is False
    assert any(
        letter == "u" for letter, _ in oracles.nm_rows(tiny_file("gnu-unique"), "--defined-only")
    )


def test_static_tls_is_seen_where_readelf_sees_the_flag() -> None:
    for name in ("static-tls", "tls-symbol", "whole"):
        path = tiny_file(name)
        flags = "STATIC_TLS" in oracles.output_of("readelf", "-dW", path)
        assert facts(path).static_tls == flags == (name == "static-tls")


def test_visibility_of_a_hidden_and_a_protected_name() -> None:
    protected = tiny_file("protected-symbol").parent / "libdep.so"
    found = {s.name: visibility_name(s) for s in facts(protected).defined}
    assert found[b"dep_value"] == "protected"
    assert found[b"dep_calls_itself"] == "default"


def test_init_functions_of_the_husks_are_listed() -> None:
    for identity in HUSK_IDS:
        path = husk_file(identity)
        defined = [name for _, (name, _, _) in oracles.nm_rows(path, "--defined-only")]
        expected = [name[7:] for name in defined if name.startswith("PyInit_")]
        assert sorted(facts(path).init_modules) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "module", "tag"),
    [
        ("awq_ext.cpython-311-x86_64-linux-gnu.so", "awq_ext", "cp311"),
        ("_C.abi3.so", "_C", "abi3"),
        ("_C.abi3t.so", "_C", "abi3t"),
        ("_C.so", "_C", None),
        ("x.pypy310-pp73-x86_64-linux-gnu.so", "x", "pp310"),
        ("x.cpython-313t-x86_64-linux-gnu.so", "x", "cp313t"),
        ("libfoo.so.1", None, None),
    ],
)
def test_module_name_and_tag_come_from_the_file_name(
    name: str, module: str | None, tag: str | None
) -> None:
    assert module_of("/a/b/" + name) == (module, tag)
