"""GPU code for AMD GPUs and for SYCL is named for what it is.

The writer of the bundles here follows "Clang Offload Bundler" of the Clang documentation. The
test marked ``real`` decompresses whole bundles of real libraries by the zstd package itself.
"""

from __future__ import annotations

import os
import re
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from test_fatbin_containers import host
from test_fatbin_real import real_files

from fa_forensics.facts import hip
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.hip import OtherCode, describe, read_other_code

Read = Callable[..., tuple[OtherCode, ...]]
PAGE = 4096


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reader(sections: dict[str, bytes], *, headers: bool = True) -> tuple[OtherCode, ...]:
        path = tmp_path / "file.so"
        path.write_bytes(host(sections, headers=headers))
        with ElfImage(str(path)) as image:
            return read_other_code(image)

    return reader


def bundle(*targets: str, code: int = 100, count: int | None = None) -> bytes:
    """An uncompressed bundle: the list of targets, then their code."""
    names = [target.encode() for target in ("host-x86_64-unknown-linux--", *targets)]
    length = 32 + sum(24 + len(name) for name in names)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names) if count is None else count)
    body = b""
    for number, name in enumerate(names):
        size = code if number else 0
        head += struct.pack("<QQQ", length + len(body), size, len(name)) + name
        body += bytes([number]) * size
    return head + body


def compressed(content: bytes, version: int, method: int, *, total: int | None = None) -> bytes:
    if method == 1:
        import zstandard

        data = zstandard.ZstdCompressor().compress(content)
    else:
        data = zlib.compress(content)
    sizes = {1: "<IQ", 2: "<IIQ", 3: "<QQQ"}[version]
    whole = 8 + struct.calcsize(sizes) + len(data) if total is None else total
    fields = (len(content), 0) if version == 1 else (whole, len(content), 0)
    return b"CCOB" + struct.pack("<HH", version, method) + struct.pack(sizes, *fields) + data


def pages(*bundles: bytes) -> bytes:
    return b"".join(one + bytes(-len(one) % PAGE) for one in bundles)


GFX942, GFX90A = "hipv4-amdgcn-amd-amdhsa--gfx942", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"
GFX1100 = "hipv4-amdgcn-amd-amdhsa--gfx1100"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_targets_of_compressed_bundles(read: Read, version: int, method: int) -> None:
    one = compressed(bundle(GFX942, GFX1100, code=90_000), version, method)
    other = compressed(bundle(GFX90A), version, method)
    (code,) = read({".hip_fatbin": pages(one, other)})
    assert code.vendor == "AMD ROCm"
    assert code.targets == ("gfx90a:xnack-", "gfx942", "gfx1100")
    assert code.problems == ()
    if version > 1:
        assert code.bytes == len(one) + len(other)


def test_targets_of_plain_bundles(read: Read) -> None:
    one, other = bundle(GFX942, code=9000), bundle(GFX1100)
    (code,) = read({".hip_fatbin": pages(one, other)})
    assert code.targets == ("gfx942", "gfx1100")
    assert code.bytes == len(one) + len(other)
    assert describe(code) == (
        "0.0 MB of GPU code for AMD GPUs by ROCm (gfx942, gfx1100), which NVIDIA GPUs cannot run"
    )


def test_bundles_are_found_without_section_headers(read: Read) -> None:
    content = pages(compressed(bundle(GFX942), 3, 1), bundle(GFX1100))
    # The section starts at offset 128; hipcc aligns it to a page.
    padding = bytes(PAGE - 128)
    (code,) = read({".data": padding, ".hip_fatbin": content}, headers=False)
    assert code.targets == ("gfx942", "gfx1100")


def test_sycl_sections(read: Read) -> None:
    sections = {f"__CLANG_OFFLOAD_BUNDLE__sycl-{name}": bytes(500) for name in ("spir64_gen",)}
    sections["__CLANG_OFFLOAD_BUNDLE__sycl-spir64"] = bytes(200)
    (code,) = read(sections)
    assert code == OtherCode("SYCL", ("spir64", "spir64_gen"), 700, ())
    assert "SYCL (spir64, spir64_gen), which CUDA cannot load" in describe(code)


def test_cuda_file_has_no_other_code(read: Read) -> None:
    assert read({".nv_fatbin": bytes(100)}) == ()
    assert read({".nv_fatbin": bytes(9000)}, headers=False) == ()


GOOD = bundle(GFX1100)
BAD = {
    "unknown version": compressed(GOOD, 2, 1).replace(b"CCOB\2", b"CCOB\11"),
    "unknown method": compressed(GOOD, 2, 1).replace(b"CCOB\2\0\1", b"CCOB\2\0\7"),
    "no zstd": compressed(GOOD, 2, 1)[:24] + b"no zstd data" * 3,
    "no zlib": compressed(GOOD, 2, 0)[:24] + b"no zlib data" * 3,
    "not a bundle inside": compressed(b"something else" * 9, 3, 1),
    "size beyond the end": compressed(GOOD, 3, 1, total=1 << 62),
    "size of nothing": compressed(GOOD, 2, 1, total=0),
    "absurd count": bundle(GFX942, count=1 << 60),
    "list cut short": bundle(GFX942)[:70],
    "absurd length of a name": GOOD[:48] + struct.pack("<Q", 1 << 63) + GOOD[56:],
    "neither": b"\x7fELF and more" * 10,
}


@pytest.mark.parametrize("damage", BAD)
def test_damaged_bundle_is_reported(read: Read, damage: str) -> None:
    (code,) = read({".hip_fatbin": pages(BAD[damage])})
    assert len(code.problems) >= 1
    assert all("offset 0x" in problem for problem in code.problems)
    assert code.bytes <= PAGE


@pytest.mark.parametrize("damage", sorted(set(BAD) - {"size beyond the end"}))
def test_what_follows_a_damaged_bundle_is_read(read: Read, damage: str) -> None:
    (code,) = read({".hip_fatbin": pages(BAD[damage], compressed(bundle(GFX90A), 3, 1))})
    assert "gfx90a:xnack-" in code.targets


def test_section_cut_short_is_told(tmp_path: Path) -> None:
    content = bytearray(host({".hip_fatbin": pages(compressed(bundle(GFX942), 3, 1))}))
    table = struct.unpack_from("<Q", content, 40)[0]
    struct.pack_into("<Q", content, table + 64 + 32, 1 << 40)
    path = tmp_path / "file.so"
    path.write_bytes(content)
    with ElfImage(str(path)) as image:
        (code,) = read_other_code(image)
    assert code.targets == ("gfx942",)
    assert code.problems[0] == "section .hip_fatbin is cut short"


def test_bombs_are_bounded(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = bytes(50_000_000)
    bombs = [
        compressed(bundle(GFX942, count=4000) + zeros, 3, 1),
        compressed(bundle(GFX942, count=4000) + zeros, 3, 0),
    ]
    tracemalloc.start()
    (code,) = read({".hip_fatbin": pages(*bombs)})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "gfx942" in code.targets
    assert peak < 20_000_000
    monkeypatch.setattr(hip, "MAX_DECOMPRESSED", 1000)
    (code,) = read({".hip_fatbin": pages(*bombs)})
    assert all("decompressed already" in problem for problem in code.problems)
    assert code.problems


@pytest.mark.real
def test_targets_of_real_libraries_are_those_in_their_whole_bundles() -> None:
    import zstandard

    files = [path for path in real_files() if "rocm" in os.path.basename(path)]
    if not files:
        pytest.skip("FA_FORENSICS_REAL_DIR has no library for ROCm")
    for path in files:
        with ElfImage(path) as image:
            (code,) = read_other_code(image)
            section = image.section(".hip_fatbin")
            assert section is not None
            content = image.read(section.offset, section.size)
        wanted: set[str] = set()
        # Each zstd frame of the section, whole; the magic of RFC 8878.
        for found in re.finditer(rb"CCOB[\s\S]{16,28}?(?=\x28\xb5\x2f\xfd)", content):
            whole = zstandard.ZstdDecompressor().decompressobj().decompress(content[found.end() :])
            wanted.update(
                name.decode() for name in re.findall(rb"amdhsa--(gfx\w+)", whole[:100_000])
            )
        assert set(code.targets) == wanted
        assert code.problems == ()
