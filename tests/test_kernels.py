"""The kernel inventory of files written here: which names, for which architectures, how read."""

from __future__ import annotations

import struct
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from support import cubins
from support.cubins import Function, container, cubin, kernels, packed
from test_fatbin_containers import host

from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin import kernels as inventory
from fa_forensics.facts.fatbin import unpack
from fa_forensics.facts.fatbin.kernels import KernelInventory, read_kernels
from fa_forensics.facts.fatbin.reader import read_device_code

Read = Callable[..., KernelInventory]
HOW = [None, "lz4", "zstd"]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reader(*entries: bytes, relocatable: bytes = b"") -> KernelInventory:
        sections = {".nv_fatbin": container(*entries)} if entries else {}
        if relocatable:
            sections["__nv_relfatbin"] = container(relocatable)
        path = tmp_path / "file.so"
        path.write_bytes(host(sections))
        with ElfImage(str(path)) as image:
            return read_kernels(image, read_device_code(image))

    return reader


def listed(found: KernelInventory) -> dict[str, tuple[str, ...]]:
    return {kernel.name: kernel.archs for kernel in found.kernels}


FUNCTIONS = [
    *kernels("_Z1av", "_Z1bIiEvT_"),
    Function("_Z6helperv", kernel=False),
    Function("_Z8externalv", kernel=False, defined=False),
    Function("$__internal_0_$__cuda_sm20_div_s64", kernel=False, own_section=False),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("tables", ["front", "back"])
def test_kernels_are_the_entry_functions_of_the_symbol_table(
    read: Read, how: str | None, tables: str
) -> None:
    found = read(packed(2, 80, cubin(FUNCTIONS, tables=tables), how))
    assert listed(found) == {"_Z1av": ("sm_80",), "_Z1bIiEvT_": ("sm_80",)}
    assert (found.read, found.unread, found.problems) == (1, (), ())
    assert found.complete and not found.not_linked


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("gap", "dropped"), [(0, 0), (3, 1), (23, 0), (15, 40)])
def test_gaps_that_ptxas_leaves_in_its_tables_do_not_matter(
    read: Read, how: str | None, gap: int, dropped: int
) -> None:
    found = read(packed(2, 90, cubin(FUNCTIONS, gap=gap, dropped=dropped), how))
    assert list(listed(found)) == ["_Z1av", "_Z1bIiEvT_"]


def test_an_architecture_has_what_any_of_its_images_has(read: Read) -> None:
    found = read(
        packed(2, 80, cubin(kernels("_Z1av")), None),
        packed(2, 90, cubin(kernels("_Z1av", "_Z1bv")), "zstd", more=0x100000),
        packed(2, 80, cubin(kernels("_Z1cv")), "lz4"),
        packed(1, 80, b".visible .entry _Z1av(\n)\n{\n add;\n}\n", "lz4"),
    )
    assert listed(found) == {
        "_Z1av": ("sm_80", "compute_80", "sm_90a"),
        "_Z1bv": ("sm_90a",),
        "_Z1cv": ("sm_80",),
    }
    assert found.archs == ("sm_80", "compute_80", "sm_90a")
    assert found.read == 4


@pytest.mark.parametrize("how", HOW)
def test_kernels_with_hardly_any_code_are_marked(read: Read, how: str | None) -> None:
    found = read(
        packed(2, 80, cubin(kernels("_Z1av", size=256)), how),
        packed(2, 90, cubin(kernels("_Z1av", size=70_000)), how),
        packed(2, 90, cubin(kernels("_Z1av", size=256)), how),
    )
    assert found.kernels == (inventory.Kernel("_Z1av", ("sm_80", "sm_90"), ("sm_80",)),)


PTX = b"""//
.version 8.4
.target sm_80
// .entry _Z7comment
.func (.param .b32 r) _Z6helperv()
{
 ret;
}
.visible .entry _Z1av(
 .param .u64 _Z1av_param_0
)
.maxntid 128, 1, 1
{
 .reg .b32 %r<2>;
 mov.u32 %r1, %tid.x;
 ret;
}
\t.weak\t.entry
 _Z5emptyv(
 .param .u64 _Z5emptyv_param_0
)
{


 ret;

}
.entry $odd$name (
"""


@pytest.mark.parametrize("how", HOW)
def test_kernels_of_ptx_are_its_entry_directives(read: Read, how: str | None) -> None:
    found = read(packed(1, 80, PTX, how))
    assert listed(found) == {name: ("compute_80",) for name in ("$odd$name", "_Z1av", "_Z5emptyv")}
    assert [kernel.name for kernel in found.kernels if kernel.small] == ["_Z5emptyv"]


@pytest.mark.parametrize("how", HOW)
def test_entry_directives_across_chunks_are_found_once(
    read: Read, how: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (unpack, inventory):
        monkeypatch.setattr(module, "TEXT_STEP", 7)
    assert len(read(packed(1, 80, PTX * 3, how)).kernels) == 3


def test_without_the_lz4_package_the_answer_is_the_same(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = kernels(*(f"_ZN5flash{len(f'kernel_{n}')}kernel_{n}Ev" for n in range(900)))
    entries = [packed(2, 80, cubin(many, code=300), "lz4"), packed(1, 90, PTX * 2000, "lz4")]
    with_package = read(*entries)
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    assert read(*entries) == with_package
    assert len(with_package.kernels) == 903


def test_very_large_lz4_blocks_are_read_from_their_beginning(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MAX_WHOLE", 1000)
    monkeypatch.setattr(unpack, "MAX_TOTAL_SLOW", 1 << 18)
    found = read(
        packed(2, 80, cubin(FUNCTIONS, code=300_000), "lz4"),
        packed(1, 90, PTX * 2000, "lz4"),
        packed(2, 80, cubin(FUNCTIONS), "zstd"),
    )
    assert list(listed(found)) == ["_Z1av", "_Z1bIiEvT_"]
    assert found.unread == (("compute_90", 1),)
    assert "in very large blocks" in found.problems[0]


def test_without_zstandard_it_is_said_what_could_not_be_looked_into(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = cubin(kernels("_Z1av"))
    entries = [packed(2, 80, content, "zstd"), packed(2, 90, content, "zstd")]
    monkeypatch.setitem(sys.modules, "zstandard", None)
    found = read(*entries, packed(2, 75, content, None))
    assert listed(found) == {"_Z1av": ("sm_75",)}
    assert found.unread == (("sm_80", 1), ("sm_90", 1))
    assert found.problems == (f"{inventory.NO_ZSTANDARD} (2 x)",)


def test_only_the_beginning_of_a_compressed_cubin_is_decompressed(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    original = unpack.Budget.take

    def take(self: unpack.Budget, size: int, *, slow: bool = False) -> None:
        taken.append(size)
        original(self, size, slow=slow)

    monkeypatch.setattr(unpack.Budget, "take", take)
    found = read(packed(2, 80, cubin(FUNCTIONS, code=20_000_000), "zstd"))
    assert len(found.kernels) == 2
    assert sum(taken) == unpack.FIRST_STEP


def test_images_of_a_concatenated_entry_are_each_read(read: Read) -> None:
    parts = [
        (2, 80, cubin(kernels("_Z1av"), code=100_000)),
        (2, 90, cubin(kernels("_Z1bv"), code=100_000, tables="back")),
        (1, 90, PTX),
        (2, 100, cubin(kernels("_Z1cv"))),
    ]
    found = read(cubins.concatenated(parts))
    assert found.problems == ()
    assert listed(found) == {
        "$odd$name": ("compute_90",),
        "_Z1av": ("sm_80", "compute_90"),
        "_Z1bv": ("sm_90",),
        "_Z1cv": ("sm_100",),
        "_Z5emptyv": ("compute_90",),
    }


def test_relocatable_code_counts_only_where_there_is_nothing_else(read: Read) -> None:
    relocatable = packed(2, 80, cubin(kernels("_Z1rv"), kind=1), "lz4")
    linked = read(packed(2, 80, cubin(kernels("_Z1av")), None), relocatable=relocatable)
    assert listed(linked) == {"_Z1av": ("sm_80",)}
    assert not linked.not_linked
    alone = read(relocatable=relocatable)
    assert listed(alone) == {"_Z1rv": ("sm_80",)}
    assert alone.not_linked


def test_progress_reaches_all_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file.so"
    entries = [packed(2, sm, cubin(kernels("_Z1av")), how) for sm in (80, 90) for how in HOW]
    path.write_bytes(host({".nv_fatbin": container(*entries)}))
    steps: list[tuple[int, int]] = []
    with ElfImage(str(path)) as image:
        code = read_device_code(image)
        read_kernels(image, code, lambda done, total: steps.append((done, total)))
    total = sum(image.stored_bytes for image in code.images)
    assert [step[1] for step in steps] == [total] * 6
    assert [step[0] for step in steps] == sorted({step[0] for step in steps})
    assert steps[-1][0] == total


def test_file_without_gpu_code_has_no_kernels(read: Read) -> None:
    found = read()
    assert found == KernelInventory((), 0, (), False, ())


GOOD = packed(2, 90, cubin(kernels("_Z4goodv")), None)


def symbol_table(content: bytes) -> int:
    """Where the header of .symtab, the third, lies in a cubin from here."""
    return int(struct.unpack_from("<Q", content, 40)[0]) + 3 * 64


def changed(content: bytes, offset: int, value: int, form: str = "<Q") -> bytes:
    out = bytearray(content)
    struct.pack_into(form, out, offset, value)
    return bytes(out)


SMALL = cubin(kernels("_Z1av"), code=40)
TABLE = symbol_table(SMALL)
BAD_CUBINS = {
    "not ELF": b"\x7fELG" + SMALL[4:],
    "another machine": changed(SMALL, 18, 62, "<H"),
    "empty": b"",
    "cut in its header": SMALL[:40],
    "cut in its tables": SMALL[: len(SMALL) // 2],
    "no section headers": changed(SMALL, 60, 0, "<H"),
    "section headers beyond the end": changed(SMALL, 40, 1 << 60),
    "section headers of another size": changed(SMALL, 58, 40, "<H"),
    "no symbol table": changed(SMALL, TABLE + 4, 1, "<I"),
    "symbols beyond the end": changed(SMALL, TABLE + 24, 1 << 63),
    "symbol table too long": changed(SMALL, TABLE + 32, (1 << 64) - 1),
    "names in no section": changed(SMALL, TABLE + 40, 99, "<I"),
}


@pytest.mark.parametrize("how", [None, "zstd"])
@pytest.mark.parametrize("damage", BAD_CUBINS)
def test_damaged_cubin_is_reported_and_the_rest_is_listed(
    read: Read, damage: str, how: str | None
) -> None:
    content = BAD_CUBINS[damage]
    if how and damage not in ("not ELF", "another machine", "empty", "cut in its header"):
        # A compressed cubin is read from its beginning, where these are still whole.
        content = changed(content, 65, 0x58, "<B")
    found = read(packed(2, 80, content, how), GOOD)
    assert listed(found) == {"_Z4goodv": ("sm_90",)}
    assert found.unread == (("sm_80", 1),)
    assert not found.complete
    assert found.problems[0].startswith("entry at offset 0x")


def test_names_that_overlap_do_not_multiply(read: Read) -> None:
    """A symbol for each byte of a long name: 16,000 names of 8,000 bytes on average."""
    functions = kernels("x" * 16_000)
    content = bytearray(cubin(functions))
    table = symbol_table(bytes(content))
    offset = len(content)
    symbols = b"".join(struct.pack("<IBBHQQ", at, 0x12, 0x10, 5, 0, 9) for at in range(30, 16_000))
    struct.pack_into("<QQ", content, table + 24, offset, len(symbols))
    tracemalloc.start()
    found = read(packed(2, 80, bytes(content + symbols), None), GOOD)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.unread == (("sm_80", 1),)
    assert peak < 20_000_000


WRONG = {
    "LZ4 says more": packed(2, 80, SMALL, "lz4", says=len(SMALL) + 100),
    "LZ4 says less": packed(2, 80, SMALL, "lz4", says=len(SMALL) // 2),
    "LZ4 says 8 EiB": packed(2, 80, SMALL, "lz4", says=1 << 63),
    "LZ4 says nothing": packed(2, 80, SMALL, "lz4", says=0),
    "LZ4 of nothing": cubins.entry(2, 80, b"", flags=0x2011, uncompressed=99),
    "LZ4 that goes back too far": cubins.entry(
        2, 80, b"\x10A\xff\xff" * 9, flags=0x2011, uncompressed=99
    ),
    "zstd says less": packed(2, 80, SMALL, "zstd", says=len(SMALL) - 1),
    "zstd says more": packed(2, 80, SMALL, "zstd", says=len(SMALL) + 1),
    "zstd cut": cubins.entry(
        2, 80, packed(2, 80, SMALL, "zstd")[64:300], flags=0x8011, uncompressed=len(SMALL)
    ),
    "no zstd": cubins.entry(2, 80, SMALL, flags=0x8011, uncompressed=len(SMALL)),
    "unknown compression": cubins.entry(2, 80, SMALL, flags=0x4011, uncompressed=len(SMALL)),
    "unknown kind": packed(512, 80, SMALL, None),
    "Tile IR": packed(128, 80, SMALL, None),
}


#: Without the lz4 package a cubin is read from its beginning, where a wrong size does not show.
CASES = [
    (damage, package)
    for damage in WRONG
    for package in (True, False)
    if package or damage not in ("LZ4 says less", "LZ4 says more")
]


@pytest.mark.parametrize(("damage", "package"), CASES)
def test_wrong_sizes_and_broken_streams_are_reported_and_the_rest_is_listed(
    read: Read, damage: str, package: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not package:
        monkeypatch.setitem(sys.modules, "lz4.block", None)
    found = read(WRONG[damage], GOOD)
    assert listed(found) == {"_Z4goodv": ("sm_90",)}
    assert found.unread == (("sm_80", 1),)
    assert len(found.problems) == 1


def test_bombs_cost_little_memory_and_time(read: Read) -> None:
    """1 GiB of zeros as a cubin, 100 MB of text without an end, and an LZ4 block of zeros."""
    import zstandard

    packer = zstandard.ZstdCompressor(level=1)
    zeros = packer.compressobj()
    piece = bytes(1 << 24)
    head = cubin(kernels("_Z1av"), code=40)
    stored = b"".join([zeros.compress(head[:64]), *(zeros.compress(piece) for _ in range(64))])
    stored += zeros.flush()
    text = packer.compress(b".entry " + b"a" * 100_000_000)
    lz4 = b"\x1f\0\1\0" + b"\xff" * 200_000 + b"\0"
    started = time.perf_counter()
    tracemalloc.start()
    found = read(
        cubins.entry(2, 80, stored, flags=0x8011, uncompressed=(1 << 30) + 64),
        cubins.entry(1, 86, text, flags=0x8011, uncompressed=100_000_007),
        cubins.entry(2, 87, lz4, flags=0x2011, uncompressed=200_000 * 255),
        GOOD,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "_Z4goodv" in listed(found)
    assert found.unread == (("sm_80", 1), ("sm_87", 1))
    assert peak < 190_000_000
    assert time.perf_counter() - started < 20


def test_what_one_file_may_decompress_is_bounded(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MAX_TOTAL", 1 << 17)
    entries = [packed(2, 80, cubin(FUNCTIONS, code=200_000), "zstd") for _ in range(4)]
    found = read(*entries)
    assert found.read == 2
    assert found.unread == (("sm_80", 2),)
    assert "decompressed already" in found.problems[0]


def test_names_held_of_one_file_are_bounded(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "MAX_NAME_BYTES", 2000)
    names = [f"_Z{n}v" for n in range(1000, 1010)]
    found = read(packed(2, 80, cubin(kernels(*names)), None), GOOD)
    assert len(found.kernels) == 3
    assert found.unread == (("sm_80", 1), ("sm_90", 1))
