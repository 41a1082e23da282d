"""Segments and stacks: what is said of a file is what the loader of this machine does with it."""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.inspecting import validator
from support.material import require, tiny_file

from fa_forensics.facts.elf.alignment import misaligned, page_limit
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.refusal import NOT_PAGE_ALIGNED
from fa_forensics.facts.system_releases import number, refuses_executable_stack
from fa_forensics.pipeline import Options, inspect
from fa_forensics.render.json import dumps, inspect_document

PT_LOAD, PT_GNU_STACK, PT_NULL = 1, 0x6474E551, 0
#: The fields of a program header: type, flags, offset, address, physical, sizes, alignment.
Header = list[int]
GLIBC = platform.libc_ver()[1]

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or os.sysconf("SC_PAGE_SIZE") != 4096,
    reason="the loads below are those of glibc with pages of 4 KiB",
)


def changed(path: Path, result: Path, change: Callable[[Header], None]) -> Path:
    """A copy of a file with its program headers changed."""
    data = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    for at in range(table, table + 56 * count, 56):
        header = list(struct.unpack_from("<IIQQQQQQ", data, at))
        change(header)
        struct.pack_into("<IIQQQQQQ", data, at, *header)
    result.write_bytes(data)
    return result


def shifted(header: Header) -> None:
    if header[0] == PT_LOAD and header[2]:
        header[2] -= 16


def aligned(size: int) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        if header[0] == PT_LOAD:
            header[7] = size

    return change


def stack(flags: int | None) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        if header[0] == PT_GNU_STACK and flags is None:
            header[0] = PT_NULL
        elif header[0] == PT_GNU_STACK:
            header[1] = flags

    return change


def inspected(path: Path, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    options = Options(python=sys.executable, confirm=False)
    report = inspect([str(path)], options, variables or {})
    document = json.loads(dumps(inspect_document(report)))
    validator().validate(document)
    (target,) = document["targets"]
    return dict(target)


def finding(target: dict[str, Any], code: str) -> dict[str, Any] | None:
    return next((f for f in target["findings"] if f["code"] == code), None)


def test_a_file_with_a_moved_segment_is_refused_in_the_loaders_own_words(tmp_path: Path) -> None:
    file = changed(tiny_file("weak-undefined"), tmp_path / "m.so", shifted)
    target = inspected(file)
    load = oracles.really_load(file)
    assert load.error is not None and "aligned" in load.error
    found = finding(target, "FA108")
    assert found is not None and found["severity"] == "error"
    assert finding(target, "FA104") is None, "one finding says it"
    assert target["verdict"] == "fails"
    if number(GLIBC) >= (2, 35):
        assert target["elf"]["first_failure"] == f"{file}: {NOT_PAGE_ALIGNED}"
        assert load.error == f"{file}: {NOT_PAGE_ALIGNED}"


@pytest.mark.parametrize("size", [0, 1, 0x1000, 0x10000, 0x200000])
def test_a_segment_that_does_not_keep_to_its_own_alignment_fails_where_glibc_is_old(
    tmp_path: Path, size: int
) -> None:
    file = changed(tiny_file("weak-undefined"), tmp_path / "m.so", aligned(size))
    target, load = inspected(file), oracles.really_load(file)
    found = finding(target, "FA108")
    refused = found is not None and found["severity"] == "error"
    assert refused == (load.error is not None)
    if number(GLIBC) >= (2, 35):
        assert (found is not None) == (size > 0x1000)
        assert found is None or "glibc before 2.35" in found["title"]


@pytest.mark.parametrize("flags", [6, 7, None])
def test_an_executable_stack_is_an_error_exactly_where_this_glibc_refuses_it(
    tmp_path: Path, flags: int | None
) -> None:
    file = changed(tiny_file("weak-undefined"), tmp_path / "m.so", stack(flags))
    target, load = inspected(file), oracles.really_load(file)
    found = finding(target, "FA105")
    asks = flags == 7 or (flags is None and platform.machine() == "x86_64")
    assert (found is not None) == asks
    refused = found is not None and found["severity"] == "error"
    assert refused == (load.error is not None)
    assert (target["elf"]["first_failure"] is not None) == refused


def test_the_loader_of_glibc_2_41_is_predicted_to_refuse_an_executable_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fa_forensics.resolve.link.glibc_of", lambda process: "2.41")
    file = changed(tiny_file("weak-undefined"), tmp_path / "m.so", stack(7))
    failure = inspected(file)["elf"]["first_failure"]
    assert failure == (
        f"{file}: cannot enable executable stack as shared object requires: Invalid argument"
    )


@pytest.mark.parametrize(
    ("glibc", "tunables", "refused"),
    [("2.40", "", False), ("2.41", "", True), ("2.44", "", True),
     ("2.41", "glibc.rtld.execstack=2", True), ("2.42", "glibc.rtld.execstack=2", False),
     ("2.42", "glibc.malloc.check=1:glibc.rtld.execstack=2", False),
     ("2.42", "glibc.rtld.execstack=1", True), ("", "", False)],
)  # fmt: skip
def test_which_glibc_refuses_an_executable_stack(glibc: str, tunables: str, refused: bool) -> None:
    assert refuses_executable_stack(glibc, tunables) == refused


@pytest.mark.parametrize("size", [16, 512, 1024, 1600, 2048, 4096])
@pytest.mark.parametrize("tunable", [None, 4096])
def test_static_tls_fails_where_the_loader_has_no_room_for_it(
    tmp_path: Path, size: int, tunable: int | None
) -> None:
    source = f'__thread char a[{size}] __attribute__((tls_model("initial-exec")));'
    file = tmp_path / "m.so"
    command = [require("gcc"), "-shared", "-fPIC", "-o", str(file), "-x", "c", "-"]
    subprocess.run(command, input=source + " char *f(void) { return a; }", text=True, check=True)
    variables = {"GLIBC_TUNABLES": f"glibc.rtld.optional_static_tls={tunable}"} if tunable else {}
    target, load = inspected(file, variables), oracles.really_load(file, **variables)
    found = finding(target, "FA107")
    assert (found is not None and found["severity"] == "error") == (load.error is not None)
    assert target["elf"]["first_failure"] == load.error
    assert (target["verdict"] == "fails") == (load.error is not None)


@pytest.mark.parametrize(
    ("segments", "limit", "off"),
    [((), 65536, 0), (((0, 0, 0x1000), (0x2E68, 0x3E68, 0x1000)), 4096, 0),
     (((0, 0, 0x10000), (0x1E68, 0x11E68, 0x10000)), 65536, 0),
     (((0, 0, 0x200000), (0x2E68, 0x3E68, 0x200000)), 4096, 1),
     (((0, 8, 0x1000),), 8, 1), (((0, 1, 0),), 1, 0), (((5, 5, 3),), 65536, 0)],
)  # fmt: skip
def test_pages_that_segments_can_lie_on(
    segments: tuple[tuple[int, int, int], ...], limit: int, off: int
) -> None:
    assert page_limit(segments) == limit
    assert len(misaligned(segments)) == off


def test_the_segments_of_this_python_are_in_order() -> None:
    with DynamicObject.open(os.path.realpath(sys.executable)).image as image:
        loads = tuple((s.offset, s.address, s.align) for s in image.segments if s.type == PT_LOAD)
    assert loads and page_limit(loads) >= os.sysconf("SC_PAGE_SIZE") and not misaligned(loads)
