"""Toolkits are read from the cubins themselves, compressed or not; decompression is bounded."""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fa_forensics.errors import DamagedFile
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.decompress import lz4_prefix, zstd_chunks
from fa_forensics.facts.fatbin.provenance import Toolkit, Toolkits, read_ptx_releases, read_toolkits
from fa_forensics.facts.fatbin.reader import read_device_code

TOOL_LINE = b"Cuda compilation tools, release 13.0, V13.0.88\0Build cuda_13.0.r13.0\0-arch sm_90a\0"
Read = Callable[[bytes], Toolkits]


def cubin(abi: int, version: int, note: bytes = b"", padding: int = 0) -> bytes:
    """A cubin: an ELF header for machine 190, and one note section if given."""
    names = b"\0.note.nv.tkinfo\0.shstrtab\0"
    note_at = 64 + padding
    names_at = note_at + len(note)
    table_at = names_at + len(names)
    ident = b"\x7fELF\x02\x01\x01\x41" + bytes([abi]) + bytes(7)
    fields = (2, 190, version, 0, 0, table_at, 0x06005A04, 64, 0, 0, 64, 3, 2)
    table = bytes(64)
    for name, offset, size in ((1, note_at, len(note)), (17, names_at, len(names))):
        table += struct.pack("<IIQQQQIIQQ", name, 7, 0, 0, offset, size, 0, 0, 1, 0)
    header = ident + struct.pack("<HHIQQQIHHHHHH", *fields)
    return header + bytes(padding) + note + names + table


def fatbin(payload: bytes, flags: int, code: tuple[int, int], kind: int = 2) -> bytes:
    """A container with one sm_90a image."""
    exact = len(payload) if flags & 0xF000 else 0
    payload += bytes(-len(payload) % 8)
    sizes = (64, len(payload), exact, 0)
    header = struct.pack("<HHIQII", kind, 0x101, *sizes)
    header += struct.pack("<HHIIIQQQ", code[1], code[0], 90, 0, 0, flags, 0, 0)
    body = header + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reader(container: bytes) -> Toolkits:
        # No section headers: the container is found by searching, which needs the least ELF.
        elf = b"\x7fELF\x02\x01\x01" + bytes(9)
        elf += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 0, 0, 64, 56, 0, 0, 0, 0)
        path = tmp_path / "host.so"
        path.write_bytes(elf + container)
        with ElfImage(str(path)) as image:
            return read_toolkits(image, read_device_code(image))

    return reader


def lz4_compress(data: bytes) -> bytes:
    block = pytest.importorskip("lz4.block")
    compressed: bytes = block.compress(data, store_size=False)
    return compressed


def zstd_compress(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    compressed: bytes = zstandard.ZstdCompressor().compress(data)
    return compressed


FLAGS: dict[Callable[[bytes], bytes] | None, int] = {
    None: 0x100011,
    lz4_compress: 0x102011,
    zstd_compress: 0x108011,
}


@pytest.mark.parametrize("compress", list(FLAGS))
def test_abi_7_cubin_names_its_toolkit_in_e_version(
    read: Read, compress: Callable[[bytes], bytes] | None
) -> None:
    flags = FLAGS[compress]
    payload = cubin(7, 124, padding=5000)
    found = read(fatbin(compress(payload) if compress else payload, flags, (1, 7)))
    assert found.toolkits == (Toolkit("12.4", None, "cubin e_version", ("sm_90a",)),)
    assert found.problems == ()


@pytest.mark.parametrize("padding", [0, 200_000, 3_000_000])
@pytest.mark.parametrize("compress", list(FLAGS))
def test_abi_8_cubin_names_its_toolkit_in_a_note(
    read: Read, compress: Callable[[bytes], bytes] | None, padding: int
) -> None:
    flags = FLAGS[compress]
    payload = cubin(8, 1, b"\0\0\0\0ptxas\0" + TOOL_LINE, padding)
    found = read(fatbin(compress(payload) if compress else payload, flags, (1, 8)))
    assert found.toolkits == (Toolkit("13.0", "ptxas", "tkinfo", ("sm_90a",)),)
    assert found.problems == ()


def test_ptx_names_the_releases_that_write_its_isa(read: Read) -> None:
    found = read(fatbin(b"text", 0x100011, (8, 5), kind=1))
    assert found.toolkits == (Toolkit("12.5 or 12.6", None, "PTX ISA", ("compute_90a",)),)
    found = read(fatbin(b"text", 0x100011, (99, 1), kind=1))
    assert found == Toolkits((), ("PTX ISA 99.1 is in no known CUDA release (compute_90a)",))


@pytest.mark.parametrize(
    ("payload", "flags", "says"),
    [
        (bytes(64), 0x100011, "does not start like a cubin"),
        (b"\x7fELF" + bytes(60), 0x100011, "ELF for machine 0"),
        (cubin(7, 7), 0x100011, "e_version 7 is no CUDA release"),
        (cubin(8, 1, b"no tool here"), 0x100011, "no toolkit note in what was read"),
        (cubin(8, 1)[:64], 0x100011, "section headers are damaged"),
        (b"\xf0\x41" + bytes(80), 0x102011, "does not start like a cubin"),
        (b"\x10A\xff\xff" + bytes(80), 0x102011, "before its start"),
        (b"not a zstd frame" * 8, 0x108011, "zstd data cannot be read"),
        (bytes(80), 0x101011, "compressed in an unknown way"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_cubin_that_tells_nothing_is_a_problem_with_its_reason(
    read: Read, payload: bytes, flags: int, says: str
) -> None:
    found = read(fatbin(payload, flags, (1, 8)))
    assert found.toolkits == ()
    assert len(found.problems) == 1
    assert says in found.problems[0]
    assert found.problems[0].endswith("(sm_90a)")


def test_missing_zstandard_is_said(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = zstd_compress(cubin(7, 124))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    found = read(fatbin(payload, 0x108011, (1, 8)))
    assert found.toolkits == ()
    assert "the zstandard package is missing" in found.problems[0]


def test_lz4_prefix_equals_the_lz4_library() -> None:
    block = pytest.importorskip("lz4.block")
    randomness = random.Random(7)
    for number in range(300):
        words = [randomness.randbytes(randomness.randint(1, 40)) for _ in range(8)]
        data = b"".join(randomness.choices(words, k=randomness.randint(1, 400)))
        data += bytes(randomness.randint(0, 3000))
        compressed = block.compress(data, store_size=False)
        assert lz4_prefix(compressed, len(data) + 100) == data
        limit = randomness.randint(1, len(data))
        assert lz4_prefix(compressed, limit) == data[:limit], number


def test_lz4_prefix_of_anything_is_bounded() -> None:
    randomness = random.Random(8)
    started = time.perf_counter()
    refused = 0
    for _ in range(2000):
        try:
            out = lz4_prefix(randomness.randbytes(randomness.randint(0, 300)), 4096)
        except DamagedFile:
            refused += 1
            continue
        assert len(out) <= 4096
    assert lz4_prefix(b"\x1fA\x01\x00" + b"\xff" * 100_000, 4096) == b"A" * 4096
    assert refused
    assert time.perf_counter() - started < 2.0


def test_zstd_bomb_is_bounded() -> None:
    zstandard = pytest.importorskip("zstandard")
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 28))
    assert len(bomb) < 1 << 16
    position = 0

    def source(size: int) -> bytes:
        nonlocal position
        position += size
        return bytes(bomb[position - size : position])

    started = time.perf_counter()
    sizes = [len(chunk) for chunk in zstd_chunks(source, 1 << 20)]
    assert sum(sizes) == 1 << 20
    assert max(sizes) <= 1 << 16
    assert time.perf_counter() - started < 5.0


def test_ptx_table_rises_without_a_gap_in_either_column() -> None:
    def number(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split("."))

    table = read_ptx_releases()
    releases = [release for row in table.values() for release in row]
    assert [number(isa) for isa in table] == sorted(number(isa) for isa in table)
    assert [number(release) for release in releases] == sorted(map(number, releases))
    assert len(set(releases)) == len(releases)
    for major in ("11", "12", "13"):
        minors = [number(release)[1] for release in releases if release.startswith(f"{major}.")]
        assert minors == list(range(len(minors)))
