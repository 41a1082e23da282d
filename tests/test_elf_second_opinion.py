"""Two independent ELF readers see the same tables: pyelftools and lief."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.material import DYNAMIC_FILES, file_of

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, read_facts

#: One of each kind: these readers build an object a symbol, so all files would take minutes.
FILES = tuple(
    identity for identity in DYNAMIC_FILES
    if identity.startswith("tiny|") or "awq_ext" in identity or "_C.abi3" in identity
    or "torchaudio-2.4.1:" in identity or "bitsandbytes" in identity
)  # fmt: skip


def facts(path: Path) -> ElfFacts:
    dynamic = DynamicObject.open(str(path))
    try:
        return read_facts(dynamic)
    finally:
        dynamic.close()


@pytest.mark.parametrize("identity", FILES)
def test_pyelftools_reads_the_same_symbols_and_dynamic_section(identity: str) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    path = file_of(identity)
    elf = facts(path)
    with path.open("rb") as stream:
        other: Any = elffile.ELFFile(stream)
        segment = next(s for s in other.iter_segments() if s["p_type"] == "PT_DYNAMIC")
        tags = list(segment.iter_tags())
        assert elf.needed == tuple(t.needed for t in tags if t.entry.d_tag == "DT_NEEDED")
        assert [t.soname for t in tags if t.entry.d_tag == "DT_SONAME"] == [
            name for name in [elf.soname] if name is not None
        ]
        rows = [
            (s.name, s["st_info"]["bind"], s["st_info"]["type"], s["st_shndx"], s["st_value"])
            for s in segment.iter_symbols()
        ][1:]
    assert len(rows) == len(elf.symbols) > 0
    binds = {"STB_LOCAL": 0, "STB_GLOBAL": 1, "STB_WEAK": 2, "STB_LOOS": 10}
    for ours, (name, bind, _kind, section, value) in zip(elf.symbols, rows, strict=True):
        assert (ours.name.decode(), ours.bind, ours.value) == (name, binds[bind], value)
        assert (ours.shndx == 0) == (section == "SHN_UNDEF")


@pytest.mark.parametrize("identity", FILES)
def test_lief_reads_the_same_symbols_versions_and_build_id(identity: str) -> None:
    lief: Any = pytest.importorskip("lief")
    path = file_of(identity)
    elf = facts(path)
    other = lief.ELF.parse(str(path))
    assert elf.needed == tuple(str(name) for name in other.libraries)
    rows = [(str(s.name), s.value, s.shndx) for s in other.dynamic_symbols][1:]
    assert [(s.name.decode(), s.value, s.shndx) for s in elf.symbols] == rows
    versions = {
        (str(need.name), str(aux.name))
        for need in other.symbols_version_requirement
        for aux in need.get_auxiliary_symbols()
    }
    assert {(file, version) for file, version, _ in elf.versions_needed} == versions
    ids = [n.description for n in other.notes if "BUILD_ID" in str(n.type)]
    assert elf.build_id == (bytes(ids[0]).hex() if ids else None)
