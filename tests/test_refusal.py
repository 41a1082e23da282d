"""What the loader refuses by a file's headers is predicted in its own words."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support.material import require

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.refusal import loader_refusal

#: (offset in the ELF header, bytes): one damaged or unusual field each.
PATCHES = {
    "identversion": (6, b"\x02"),
    "osabi": (7, b"\x09"),
    "abiversion": (8, b"\x01"),
    "padding": (10, b"\x01"),
    "version": (20, struct.pack("<I", 7)),
    "phentsize": (54, struct.pack("<H", 64)),
    "core": (16, struct.pack("<H", 4)),
}
FLAGS = {
    "library": ("-shared",),
    "noopen": ("-shared", "-Wl,-z,nodlopen"),
    "program": ("-pie",),
    "fixed program": ("-no-pie",),
    "object": ("-c",),
}


def build(directory: Path, *flags: str) -> Path:
    require("gcc")
    path = directory / "case.so"
    source = "int answer(void) { return 42; } int main(void) { return 0; }"
    subprocess.run(
        ["gcc", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(path), *flags],
        input=source,
        text=True,
        check=True,
    )
    return path


def real_text(path: Path) -> str | None:
    """The text of a real dlopen in a process of its own, without the path; None if it loads."""
    code = (
        "import ctypes, os, sys\n"
        "try: ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)\n"
        "except OSError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    text = done.stdout.strip()
    return text.removeprefix(f"{path}: ") or None


def predicted(path: Path) -> str | None:
    dynamic = DynamicObject.open(str(path))
    try:
        return loader_refusal(dynamic)
    finally:
        dynamic.close()


@pytest.mark.parametrize("kind", FLAGS)
def test_kinds_of_files_are_refused_in_the_loaders_words(kind: str, tmp_path: Path) -> None:
    path = build(tmp_path, *FLAGS[kind])
    assert predicted(path) == real_text(path)


@pytest.mark.parametrize("field", PATCHES)
def test_header_fields_are_refused_in_the_loaders_words(field: str, tmp_path: Path) -> None:
    path = build(tmp_path, "-shared")
    offset, value = PATCHES[field]
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.pwrite(descriptor, value, offset)
    finally:
        os.close(descriptor)
    assert predicted(path) is not None
    assert predicted(path) == real_text(path)
