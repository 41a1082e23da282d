"""What this process has loaded, against the kernel's own list."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest
from support.machines import env_report
from trees import shared_object

from fa_forensics.compare.documents import facts_of
from fa_forensics.compare.model import Facts
from fa_forensics.compare.places import Places
from fa_forensics.facts.elf.build_id import build_id
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.loaded import loaded_files
from fa_forensics.ranks import gather


def facts() -> Facts:
    return facts_of(env_report(), "x", gather.PER_RANK)


def test_loaded_files_are_those_of_the_kernels_own_list() -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    wanted = {row.split(maxsplit=5)[5] for row in maps if " r-xp " in row and "/" in row}
    found = {file.path: file for file in loaded_files()}
    assert set(found) == wanted
    (libc,) = [file for file in found.values() if file.name == "libc.so.6"]
    with ElfImage(libc.path) as image:
        assert libc.build_id == build_id(image) is not None


def test_loaded_files_become_facts_without_pythons_own_modules() -> None:
    there = facts()
    gather.put_loaded(there, loaded_files(), Places(None))
    names = {subject for group, subject, aspect in there.facts if aspect == "loaded build-id"}
    assert "libc.so.6" in names
    own = {file.name for file in loaded_files() if "/lib-dynload/" in file.path}
    assert own and not own & names


def test_that_the_system_lists_nothing_is_told() -> None:
    there = facts()
    gather.put_loaded(there, OSError(2, "No such file or directory"), Places(None))
    fact = there.facts["libraries", "loaded files", ""]
    assert fact.problem == "what this process has loaded is not listed: No such file or directory"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_file_that_was_replaced_after_it_was_loaded_is_told(tmp_path: Path) -> None:
    library = tmp_path / "libgone.so"
    library.write_bytes(shared_object(("gone",)))
    ctypes.CDLL(str(library))
    library.unlink()
    (file,) = [file for file in loaded_files() if file.name == "libgone.so"]
    assert file.problem == "it was deleted or replaced after it was loaded"
    assert file.build_id is None
