"""The container walk on files written here, field by field, by an independent writer.

The writer knows each field by its byte offset and shares no code with the reader; what a test
expects is what it wrote. Damage is what happens to real files (cut, overwritten) and what a
hostile one would hold (looping and overflowing sizes).
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fa_forensics.errors import DamagedFile, NotAnElfFile, UnreadableFile
from fa_forensics.facts.fatbin import container
from fa_forensics.facts.fatbin.images import DeviceCode, Image, summary
from fa_forensics.facts.fatbin.reader import read_file

CUBIN_HEAD = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7) + struct.pack("<HHI", 2, 190, 121)
FLAG_64BIT = 0x11
Reader = Callable[[bytes], DeviceCode]


def entry(
    kind: int,
    sm: int,
    payload: bytes = bytes(64),
    *,
    flags: int = FLAG_64BIT,
    version: tuple[int, int] = (1, 7),
    identifier: bytes = b"",
    options: bytes = b"",
    uncompressed: int = 0,
    **overwrite: int,
) -> bytes:
    """One entry. ``overwrite`` sets header_size or payload_size to something untrue."""
    extra = bytearray()
    identifier_at = 64 if identifier else 0
    if identifier:
        extra += identifier + b"\0" * (8 - len(identifier) % 8)
    options_at = 64 + len(extra) if options else 0
    if options:
        extra += struct.pack("<II", options_at + 8, len(options))
        extra += options + b"\0" * (8 - len(options) % 8)
    payload += bytes(-len(payload) % 8)
    header = bytearray(64)
    struct.pack_into("<HH", header, 0x00, kind, 0x0101)
    struct.pack_into("<I", header, 0x04, overwrite.get("header_size", 64 + len(extra)))
    struct.pack_into("<Q", header, 0x08, overwrite.get("payload_size", len(payload)))
    struct.pack_into("<I", header, 0x14, options_at)
    struct.pack_into("<HH", header, 0x18, version[1], version[0])
    struct.pack_into("<I", header, 0x1C, sm)
    struct.pack_into("<II", header, 0x20, identifier_at, len(identifier))
    struct.pack_into("<Q", header, 0x28, flags)
    struct.pack_into("<Q", header, 0x38, uncompressed)
    return bytes(header + extra) + payload


def wrap(*entries: bytes, size: int | None = None) -> bytes:
    """One container around entries; ``size`` when its header shall say something untrue."""
    body = b"".join(entries)
    header = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body) if size is None else size)
    return header + body


def host(sections: dict[str, bytes], *, headers: bool = True, kind: int = 3) -> bytes:
    """A host ELF file with these sections, all inside one PT_LOAD segment."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    body, table = bytearray(b"\0" * 128), [bytes(64)]
    for name, content in [*sections.items(), (".shstrtab", names)]:
        body += bytes(-len(body) % 8)
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        fields = (at, 3 if name == ".shstrtab" else 1, 2, 0, len(body), len(content), 0, 0, 8, 0)
        table.append(struct.pack("<IIQQQQIIQQ", *fields))
        body += content
    body += bytes(-len(body) % 8)
    shoff = len(body)
    body[64:120] = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, shoff, shoff, 4096)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    count = len(table)
    tail = (shoff, 0, 64, 56, 1, 64, count, count - 1)
    if not headers:
        tail = (0, 0, 64, 56, 1, 0, 0, 0)
    body[:64] = ident + struct.pack("<HHIQQQIHHHHHH", kind, 62, 1, 0, 64, *tail)
    return bytes(body + b"".join(table) if headers else body)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def reader(content: bytes) -> DeviceCode:
        path = tmp_path / "file.bin"
        path.write_bytes(content)
        return read_file(str(path))

    return reader


def names(code: DeviceCode) -> list[tuple[str, str]]:
    return [(image.kind, image.arch) for image in code.images]


CUBIN_80 = entry(2, 80, CUBIN_HEAD)
CUBIN_90A = entry(2, 90, CUBIN_HEAD, flags=FLAG_64BIT | 0x100000)
PTX_90 = entry(1, 90, b"ptx text", version=(8, 4), flags=0x2011, uncompressed=99)
PLAIN = wrap(CUBIN_80, CUBIN_90A) + wrap(PTX_90)


@pytest.mark.parametrize(
    ("kind", "flags", "sm", "expected"),
    [
        (1, 0x11, 90, ("ptx", "compute_90", "sm_90")),
        (1, 0x108011, 90, ("ptx", "compute_90a", "sm_90a")),
        (1, 0x208011, 100, ("ptx", "compute_100f", "sm_100f")),
        (2, 0x11, 75, ("cubin", "sm_75", "sm_75")),
        (2, 0x1100011, 100, ("cubin", "sm_100a", "sm_100a")),
        (2, 0x1200011, 103, ("cubin", "sm_103f", "sm_103")),
        (4, 0x11, 20, ("old-cubin", "sm_20", None)),
        (8, 0x118011, 90, ("lto-ir", "lto_90a", None)),
        (8, 0x2011, 90, ("lto-ir", "lto_90", None)),
        (32, 0x11, 80, ("index", "sm_80", None)),
        (64, 0x11, 90, ("relocatable-ptx", "compute_90", "sm_90")),
        (128, 0x11, 80, ("tile-ir", "sm_80", None)),
    ],
)
def test_kind_and_flags_name_the_architecture(
    read: Reader, kind: int, flags: int, sm: int, expected: tuple[str, str, str | None]
) -> None:
    code = read(host({".nv_fatbin": wrap(entry(kind, sm, flags=flags))}))
    image = code.images[0]
    assert (image.kind, image.arch, image.cuobjdump_name_arch) == expected
    assert code.problems == ()


@pytest.mark.parametrize(
    ("flags", "compression"),
    [(0x11, None), (0x2011, "lz4"), (0x8011, "zstd"), (0x1011, "unknown"), (0x4011, "unknown")],
)
def test_compression_is_read_from_the_flags(
    read: Reader, flags: int, compression: str | None
) -> None:
    image = read(wrap(entry(2, 80, bytes(96), flags=flags, uncompressed=4000))).images[0]
    assert image.compression == compression
    assert image.stored_bytes == 96
    assert image.uncompressed_bytes == (4000 if compression else 96)


def test_ptx_isa_identifier_and_options_are_read(read: Reader) -> None:
    ptx = entry(1, 90, version=(8, 7), identifier=b"kernels.cu", options=b"-O3 -lineinfo")
    image = read(wrap(ptx)).images[0]
    assert (image.isa, image.identifier, image.options) == ("8.7", "kernels.cu", "-O3 -lineinfo")
    assert image.abi is None


def test_executable_and_relocatable_sections_are_both_listed_in_that_order(read: Reader) -> None:
    relocatable = entry(2, 75, b"\x7fELF" + bytes(12) + b"\x01\0" + bytes(46))
    code = read(host({"__nv_relfatbin": wrap(relocatable, PTX_90), ".nv_fatbin": wrap(CUBIN_80)}))
    assert names(code) == [("cubin", "sm_80"), ("cubin", "sm_75"), ("ptx", "compute_90")]
    assert [image.section for image in code.images] == [".nv_fatbin", *["__nv_relfatbin"] * 2]
    assert [image.relocatable for image in code.images] == [False, True, True]
    assert [image.container for image in code.images] == [0, 1, 1]
    assert (code.containers, code.found_by, code.problems) == (2, "sections", ())


def test_sections_without_bytes_are_ignored(read: Reader) -> None:
    content = bytearray(host({".nv_fatbin": PLAIN}))
    shoff = struct.unpack_from("<Q", content, 40)[0]
    struct.pack_into("<I", content, shoff + 64 + 4, 8)  # SHT_NOBITS, as in a debug-only file
    assert read(bytes(content)) == DeviceCode((), 0, "none", ())


def test_file_without_gpu_code_has_an_empty_list(read: Reader) -> None:
    assert read(host({".text": bytes(64)})) == DeviceCode((), 0, "none", ())
    assert read(host({".text": bytes(64)}, headers=False)) == DeviceCode((), 0, "none", ())


def test_concatenated_entry_lists_each_of_its_images(read: Reader) -> None:
    subs = b""
    for sm, flags, size, blob_offset, identifier in (
        (80, 0x11, 3000, 100, b""), (90, 0x100011, 1000, 3100, b"b.cu"),
        (100, 0x200011, 4000, 4100, b""),
    ):  # fmt: skip
        sub = bytearray(entry(2, sm, b"", flags=flags, identifier=identifier, version=(1, 8)))
        struct.pack_into("<IQ", sub, 4, blob_offset, size)
        subs += sub
    table = struct.pack("<II", 3, 8 + len(subs)) + subs
    outer = bytearray(entry(256, 0, bytes(1600), flags=0x8011, version=(0, 1), uncompressed=8100))
    outer[64:64] = table
    struct.pack_into("<I", outer, 4, 64 + len(table))
    struct.pack_into("<I", outer, 0x14, 64)
    code = read(wrap(bytes(outer), CUBIN_80))
    assert names(code) == [("cubin", a) for a in ("sm_80", "sm_90a", "sm_100f", "sm_80")]
    assert [image.blob_offset for image in code.images] == [100, 3100, 4100, None]
    assert [image.uncompressed_bytes for image in code.images[:3]] == [3000, 1000, 4000]
    assert [image.stored_bytes for image in code.images[:3]] == [600, 200, 800]
    assert code.images[1].identifier == "b.cu"
    assert {image.compression for image in code.images[:3]} == {"zstd"}
    assert code.problems == ()


def test_bare_containers_and_bare_cubins_are_whole_files(read: Reader) -> None:
    code = read(PLAIN)
    assert names(code) == [("cubin", "sm_80"), ("cubin", "sm_90a"), ("ptx", "compute_90")]
    assert (code.found_by, code.containers) == ("whole-file", 2)
    cubin = bytearray(host({".text": bytes(8)}, kind=2))
    struct.pack_into("<H", cubin, 18, 190)
    cubin[7:9] = b"\x33\x07"
    struct.pack_into("<I", cubin, 48, 0x005A0D5A)  # sm_90a as ptxas 12 writes it
    code = read(bytes(cubin))
    assert names(code) == [("cubin", "sm_90a")]
    assert (code.found_by, code.images[0].stored_bytes) == ("whole-file", len(cubin))


@pytest.mark.parametrize(
    ("abi", "flags", "sections", "arch"),
    [
        (7, 0x00500550, {}, "sm_80"),
        (7, 0x005A0D5A, {}, "sm_90a"),
        (8, 0x06006402, {}, "sm_100"),
        (8, 0x0600640A, {}, "sm_100a"),
        (8, 0x06005A04, {".nv.compat": bytes(4)}, "sm_90"),
        (8, 0x06005A04, {".nv.compat": bytes(4) + b"\x02\x09\x01\x00"}, "sm_90a"),
    ],
)
def test_bare_cubin_tells_its_architecture(
    read: Reader, abi: int, flags: int, sections: dict[str, bytes], arch: str
) -> None:
    cubin = bytearray(host({".text": bytes(8), **sections}))
    struct.pack_into("<H", cubin, 18, 190)
    cubin[8] = abi
    struct.pack_into("<I", cubin, 48, flags)
    assert names(read(bytes(cubin))) == [("cubin", arch)]


def test_summary_counts_in_natural_order_of_architectures(read: Reader) -> None:
    entries = [entry(2, sm, bytes(8)) for sm in (100, 90, 86, 100)]
    entries += [entry(2, 90, bytes(8), flags=0x100011), entry(1, 90, bytes(16))]
    assert summary(read(wrap(*entries)).images) == (
        ("cubin", "sm_86", 1, 8),
        ("cubin", "sm_90", 1, 8),
        ("ptx", "compute_90", 1, 16),
        ("cubin", "sm_90a", 1, 8),
        ("cubin", "sm_100", 2, 16),
    )


@pytest.mark.parametrize("what", ["removed", "beyond the end", "names elsewhere", "wrong place"])
def test_damaged_section_headers_leave_the_list_the_same(read: Reader, what: str) -> None:
    whole = host({".text": bytes(40), ".nv_fatbin": PLAIN, ".data": bytes(99)})
    content = bytearray(whole)
    shoff = struct.unpack_from("<Q", content, 40)[0]
    if what == "removed":
        content[40:48] = bytes(8)
        content[58:64] = bytes(6)
    elif what == "beyond the end":
        struct.pack_into("<Q", content, 40, 1 << 60)
    elif what == "names elsewhere":
        struct.pack_into("<H", content, 62, 1)
    else:
        struct.pack_into("<Q", content, shoff + 2 * 64 + 24, 64)
    code = read(bytes(content))
    assert code.found_by == "scan"
    assert names(code) == names(read(whole))
    assert any("found by searching" in problem for problem in code.problems)


def test_container_cut_short_is_reported_and_listed_as_far_as_it_goes(read: Reader) -> None:
    code = read(PLAIN[: 16 + len(CUBIN_80) + 72])
    assert names(code) == [("cubin", "sm_80"), ("cubin", "sm_90a")]
    assert code.images[1].stored_bytes == 8
    assert any("container 0 at offset 0x0 is cut short" in text for text in code.problems)
    assert any("entry at offset" in text and "cut short" in text for text in code.problems)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (entry(2, 86, header_size=0), "header size is 0 bytes"),
        (entry(2, 86, header_size=8), "header size is 8 bytes"),
        (entry(2, 86, header_size=68), "header size is 68 bytes"),
        (entry(2, 86, header_size=0xFFFFFFF8), "header size is 4,294,967,288 bytes"),
        (entry(2, 86, payload_size=(1 << 64) - 64), "cut short"),
        (entry(2, 86, payload_size=(1 << 64) - 128), "cut short"),
    ],
)
def test_damaged_entry_is_reported_and_the_next_container_still_listed(
    read: Reader, broken: bytes, says: str
) -> None:
    code = read(host({".nv_fatbin": wrap(CUBIN_80, broken) + wrap(PTX_90)}))
    assert names(code)[0] == ("cubin", "sm_80")
    assert names(code)[-1] == ("ptx", "compute_90")
    assert [text for text in code.problems if says in text]


@pytest.mark.parametrize("size", [0, 8, (1 << 64) - 1, (1 << 64) - 16, 1 << 40])
def test_container_with_a_wrong_size_does_not_hide_the_next_one(read: Reader, size: int) -> None:
    code = read(host({".nv_fatbin": wrap(CUBIN_80, size=size) + wrap(PTX_90)}))
    assert ("ptx", "compute_90") in names(code)
    assert code.problems
    assert all(image.stored_bytes < 1000 for image in code.images)


def test_unknown_kind_and_flags_are_listed_and_reported(read: Reader) -> None:
    code = read(wrap(entry(512, 80), entry(2, 80, flags=0x11 | 1 << 40), entry(2, 0), CUBIN_90A))
    assert names(code)[0] == ("unknown-512", "sm_80")
    assert names(code)[3] == ("cubin", "sm_90a")
    assert len(code.problems) == 3
    assert "unknown kind 512" in code.problems[0]
    assert "unknown flag bits 0x10000000000" in code.problems[1]
    assert "impossible SM number 0" in code.problems[2]


def test_garbage_between_containers_is_reported_and_padding_is_not(read: Reader) -> None:
    padded = read(host({".nv_fatbin": wrap(CUBIN_80) + bytes(64) + wrap(PTX_90) + bytes(8)}))
    assert (len(padded.images), padded.problems) == (2, ())
    dirty = read(host({".nv_fatbin": wrap(CUBIN_80) + b"garbage!" * 2 + wrap(PTX_90)}))
    assert len(dirty.images) == 2
    assert "16 bytes at offset" in dirty.problems[0]


def test_concatenated_entry_with_an_absurd_count_is_bounded(read: Reader) -> None:
    outer = bytearray(entry(256, 0, bytes(64), flags=0x8011))
    outer[64:64] = struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF) + bytes(56)
    struct.pack_into("<I", outer, 4, 128)
    struct.pack_into("<I", outer, 0x14, 64)
    code = read(wrap(bytes(outer), CUBIN_80))
    assert names(code) == [("cubin", "sm_80")]
    assert "4,294,967,295 images" in code.problems[0]


def test_number_of_images_containers_and_problems_is_bounded(
    read: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MAX_IMAGES", 500)
    monkeypatch.setattr(container, "MAX_CONTAINERS", 500)
    code = read(wrap(*[entry(999, 80, b"")] * 2000))
    assert len(code.images) == 500
    assert len(code.problems) == container.MAX_PROBLEMS + 1
    assert code.problems[-1] == "and 401 more problems of this sort"
    code = read(wrap() * 2000)
    assert code.containers == 500
    assert "more than 500 containers" in code.problems[-1]


def test_false_signatures_do_not_slow_the_search(read: Reader) -> None:
    started = time.perf_counter()
    code = read(host({".text": container.SIGNATURE * 500_000}, headers=False))
    assert time.perf_counter() - started < 2.0
    assert code.images == ()
    assert "search given up" in code.problems[0]


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        read_file(str(tmp_path / "missing.so"))
    text = tmp_path / "text"
    text.write_text("not an ELF file at all")
    with pytest.raises(NotAnElfFile, match="is not an ELF file"):
        read_file(str(text))
    stub = tmp_path / "stub"
    stub.write_bytes(b"\x7fELF\x02\x01\x01")
    with pytest.raises(DamagedFile, match="ends inside its ELF header"):
        read_file(str(stub))


def test_random_damage_never_raises_and_never_hangs(tmp_path: Path) -> None:
    """3,000 corruptions of a host file, a headerless one and bare containers."""
    randomness = random.Random(20_261_130)
    rich = wrap(CUBIN_80, CUBIN_90A, entry(1, 90, identifier=b"a.cu", options=b"-O3"))
    rich += wrap(PTX_90, entry(8, 90, flags=0x118011))
    bases = (host({".nv_fatbin": rich, ".text": bytes(64)}), host({"x": rich}, headers=False), rich)
    path = tmp_path / "damaged"
    interesting = (0, 1, 7, 8, 63, 64, 0x7F, 0x80, 0xFF)
    slowest = 0.0
    for number in range(3000):
        content = bytearray(bases[number % 3])
        for _ in range(randomness.randint(1, 6)):
            at = randomness.randrange(len(content))
            run = randomness.choice((1, 1, 2, 4, 8))
            value = randomness.choice((*interesting, randomness.randrange(256)))
            content[at : at + run] = bytes([value]) * len(content[at : at + run])
        if number % 5 == 0:
            del content[randomness.randrange(1, len(content)) :]
        path.write_bytes(content)
        started = time.perf_counter()
        try:
            code = read_file(str(path))
        except (NotAnElfFile, DamagedFile):
            continue
        slowest = max(slowest, time.perf_counter() - started)
        assert all(isinstance(image, Image) for image in code.images)
        assert len(code.images) <= len(content) // 16
        assert all(0 <= image.stored_bytes <= len(content) for image in code.images)
    assert slowest < 2.0
