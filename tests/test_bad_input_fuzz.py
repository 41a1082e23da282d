"""Random and deliberate damage to the tables of real files: bounded, explained, never a crash."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.damage import overwrite, sparse_copy
from support.inspecting import ROOT, invoke, validator
from support.material import HUGE, husk_file, stub, tiny_file
from support.mutate import mutate, regions

from fa_forensics.cli import exit_code
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.pipeline import Options, inspect
from fa_forensics.render.json import dumps, inspect_document
from fa_forensics.render.terminal import inspect_text

SEEDS_A_TEST = 60


@cache
def sources() -> tuple[Path, ...]:
    """Real files with GPU code and without, tiny ones with each kind of table."""
    husks = (
        "torchaudio-2.4.1:torchaudio/lib/_torchaudio.so",
        "torchaudio-2.4.1:torchaudio/lib/libctc_prefix_decoder.so",
        "bitsandbytes-0.43.0:bitsandbytes/libbitsandbytes_cuda121.so",
    )
    tiny = ("hash-sysv", "glibc-too-new", "gnu-unique", "tls-symbol", "old-version-bound")
    return (*(husk_file(i) for i in husks), *(tiny_file(name) for name in tiny))


@pytest.mark.parametrize("start", range(0, 600, SEEDS_A_TEST))
def test_random_damage_is_reported_and_never_crashes(start: int, tmp_path: Path) -> None:
    python = str(stub("2.4.0+cu121").python)
    path = tmp_path / "_C.abi3.so"
    for seed in range(start, start + SEEDS_A_TEST):
        source = sources()[seed % len(sources())]
        sparse_copy(source, path)
        damage = mutate(path, regions(source), seed)
        started = time.process_time()
        report = inspect([str(path)], Options(python=python, confirm=False), {})
        document = json.loads(dumps(inspect_document(report)))
        shown = inspect_text(report, False, True, 100)
        where = f"seed {seed} on {source.name}: {damage}"
        assert time.process_time() - started < 5, where
        assert validator().is_valid(document), where
        assert exit_code(report, "error") in (0, 1, 3, 4), where
        assert not set("\x1b\r\0") & set(shown), where
        assert document["targets"][0]["verdict"] in ("loads", "links", "fails", "inconclusive"), (
            where
        )


@pytest.mark.parametrize("seed", range(1000, 1020))
def test_random_damage_through_the_command_line(seed: int, tmp_path: Path) -> None:
    source = sources()[seed % len(sources())]
    path = sparse_copy(source, tmp_path / "_C.abi3.so")
    mutate(path, regions(source), seed)
    result = invoke("inspect", "--python", stub("2.4.0+cu121").python, path)
    assert result.code in (0, 1, 3, 4)
    assert len(result.stderr.splitlines()) <= 2


# --- structures made to cost time or memory -----------------------------------------------------

CHILD = """
import json, sys, time
from fa_forensics.pipeline import Options, inspect
start = time.process_time()
report = inspect([sys.argv[1]], Options(python=sys.argv[2], confirm=False), {})
elf = report.targets[0].elf or {}
rows = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "seconds": time.process_time() - start,
    "peak_kb": int(rows["VmHWM"].split()[0]),
    "problems": elf.get("problems"), "undefined": len(report.targets[0].undefined),
}))
"""


def _section(path: Path, name: str) -> tuple[int, int, int]:
    """(offset of the header, offset, size) of a section."""
    with ElfImage(str(path)) as image:
        (shoff,) = struct.unpack_from("<Q", image.data, 40)
        names = [section.name for section in image.sections]
        section = image.sections[names.index(name)]
        return shoff + 64 * names.index(name), section.offset, section.size


def _dynamic_entry(path: Path, tag: int) -> int:
    """File offset of the value of a dynamic entry."""
    _, offset, size = _section(path, ".dynamic")
    raw = path.read_bytes()[offset : offset + size] if path.stat().st_size < 1 << 20 else b""
    if not raw:
        with path.open("rb") as file:
            file.seek(offset)
            raw = file.read(size)
    for at in range(0, size, 16):
        if struct.unpack_from("<q", raw, at)[0] == tag:
            return offset + at + 8
    raise LookupError(tag)


def _no_sections(path: Path) -> None:
    overwrite(path, 40, bytes(8))
    overwrite(path, 58, bytes(6))


def _huge_symbol_section(path: Path) -> None:
    header, _, _ = _section(path, ".dynsym")
    overwrite(path, header + 32, struct.pack("<Q", 1 << 40))


def _huge_string_table(path: Path) -> None:
    overwrite(path, _dynamic_entry(path, 10), struct.pack("<Q", 1 << 40))  # DT_STRSZ


def _huge_relocations(path: Path) -> None:
    overwrite(path, _dynamic_entry(path, 8), struct.pack("<Q", 1 << 40))  # DT_RELASZ
    _no_sections(path)


def _gnu_hash_chain_into_the_payload(path: Path) -> None:
    _, offset, _ = _section(path, ".gnu.hash")
    overwrite(path, offset, struct.pack("<IIII", 1, 1, 1, 0))
    overwrite(path, offset + 24, struct.pack("<I", 0x100000))  # a bucket that starts far away
    _no_sections(path)


def _gnu_hash_with_millions_of_buckets(path: Path) -> None:
    _, offset, _ = _section(path, ".gnu.hash")
    overwrite(path, offset, struct.pack("<I", 60_000_000))
    _no_sections(path)


def _symbol_table_in_the_payload(path: Path) -> None:
    with ElfImage(str(path)) as image:
        load = max((s for s in image.segments if s.type == 1), key=lambda s: s.file_size)
    overwrite(path, _dynamic_entry(path, 6), struct.pack("<Q", load.address))  # DT_SYMTAB
    _no_sections(path)


def _string_table_without_an_end(path: Path) -> None:
    _, offset, size = _section(path, ".dynstr")
    overwrite(path, offset, b"a" * size)


def _versions_that_loop(path: Path) -> None:
    _, offset, _ = _section(path, ".gnu.version_r")
    overwrite(path, _dynamic_entry(path, 0x6FFFFFFF), struct.pack("<Q", 1 << 30))  # VERNEEDNUM
    # Each entry says that 65,535 versions follow and that the next entry is itself.
    overwrite(path, offset, struct.pack("<HHIII", 1, 0xFFFF, 1, 16, 1))
    overwrite(path, offset + 16, struct.pack("<IHHII", 0, 0, 2, 1, 1))


def _sections_without_number(path: Path) -> None:
    overwrite(path, 60, struct.pack("<H", 0))  # e_shnum 0: the number is in the first header
    (shoff,) = struct.unpack("<Q", _read(path, 40, 8))
    overwrite(path, shoff + 32, struct.pack("<Q", 1 << 60))


def _read(path: Path, offset: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)


BOMBS = (
    _huge_symbol_section,
    _huge_string_table,
    _huge_relocations,
    _gnu_hash_chain_into_the_payload,
    _gnu_hash_with_millions_of_buckets,
    _symbol_table_in_the_payload,
    _string_table_without_an_end,
    _versions_that_loop,
    _sections_without_number,
)


@pytest.mark.parametrize("bomb", BOMBS, ids=[bomb.__name__.strip("_") for bomb in BOMBS])
def test_a_table_that_claims_the_whole_huge_file_costs_no_more_than_a_healthy_one(
    bomb: Callable[[Path], None], tmp_path: Path
) -> None:
    path = sparse_copy(husk_file(HUGE), tmp_path / "_C.so")
    bomb(path)
    python = str(stub("2.4.0+cu121").python)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), python],
        capture_output=True, text=True, cwd=ROOT, timeout=60, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cost = json.loads(done.stdout)
    assert cost["seconds"] < 5, cost
    assert cost["peak_kb"] < 120_000, cost


def test_a_hostile_symbol_name_does_not_stop_the_inspection(tmp_path: Path) -> None:
    """A name of 235 bytes that demangles to hundreds of megabytes, in a real symbol table."""
    levels = "".join(f"S_I{_back(i)}{_back(i)}E" for i in range(1, 24))
    bomb = f"_Z1f1AIiiE{levels}"
    source, path = tmp_path / "a.c", tmp_path / "ext.so"
    source.write_text(f'void u(void) __asm__("{bomb}"); void f(void) {{ u(); }}\n')
    done = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", path, source], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"cannot compile: {done.stderr}")
    started = time.monotonic()
    result = invoke("inspect", "--python", stub("2.4.0+cu121").python, "--format", "json", path)
    assert time.monotonic() - started < 15
    assert result.code == 1
    assert result.document["targets"][0]["missing"] == [bomb]


def _back(number: int) -> str:
    """The back reference to the (number+1)-th substitution candidate of a mangled name."""
    if number == 0:
        return "S_"
    digits, text, number = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", "", number - 1
    while True:
        text, number = digits[number % 36] + text, number // 36
        if not number:
            return f"S{text}_"
