"""A file without section headers gives the same facts, read through PT_DYNAMIC alone."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from support import oracles
from support.damage import without_section_headers
from support.material import DYNAMIC_FILES, file_of, tiny_file

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, read_facts


def read(path: Path) -> tuple[ElfFacts, dict[int, str]]:
    dynamic = DynamicObject.open(str(path))
    try:
        return read_facts(dynamic), dict(dynamic.verdef)
    finally:
        dynamic.close()


@pytest.mark.parametrize("identity", DYNAMIC_FILES)
def test_facts_are_the_same_without_section_headers(identity: str, tmp_path: Path) -> None:
    whole, whole_versions = read(file_of(identity))
    path = without_section_headers(file_of(identity), tmp_path / Path(whole.path).name)
    headless, headless_versions = read(path)
    assert not headless.has_section_headers
    # .comment has no program header: the compilers are known from sections alone.
    # The end of the section header table is no longer part of the expected size.
    same = dataclasses.replace(
        whole,
        path=headless.path,
        compilers=(),
        has_section_headers=False,
        expected_size=headless.expected_size,
    )
    assert headless == same
    assert headless_versions == whole_versions
    assert 0 < headless.expected_size <= whole.expected_size <= whole.size


def test_symbols_of_a_headless_file_are_those_that_readelf_finds_through_its_segments() -> None:
    path = tiny_file("no-section-headers")
    listing = oracles.output_of("readelf", "-DsW", path)
    names = set(re.findall(r" DEFAULT +\w+ (\w+)", listing))
    facts, _ = read(path)
    assert {s.name.decode() for s in facts.symbols} == names
    assert len(facts.symbols) > 3


def test_headless_files_with_either_hash_table_count_their_symbols(tmp_path: Path) -> None:
    for name, table in (("hash-sysv", "(HASH)"), ("hash-gnu", "(GNU_HASH)")):
        dynamic = oracles.output_of("readelf", "-dW", tiny_file(name))
        assert dynamic.count("HASH)") == 1 and table in dynamic
        whole, _ = read(tiny_file(name))
        headless, _ = read(without_section_headers(tiny_file(name), tmp_path / f"{name}.so"))
        assert headless.symbols == whole.symbols != ()
