"""GPU code for other vendors than NVIDIA: AMD's HIP bundles and SYCL's sections.

A file with such code has no CUDA images, and an empty list would read as "no GPU code".
Layouts: "Clang Offload Bundler" of the Clang documentation (bundled and compressed code
objects, versions 1 to 3); the section names are those of hipcc and of Intel's icpx, as seen in
the wheels of bitsandbytes 0.49.1 and 0.50.2.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.errors import DamagedFile
from fa_forensics.facts.elf.image import PT_LOAD, SHT_NOBITS
from fa_forensics.facts.fatbin.decompress import CHUNK, zstd_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa_forensics.facts.elf.image import ElfImage

HIP_SECTION = ".hip_fatbin"
SYCL_PREFIX = "__CLANG_OFFLOAD_BUNDLE__sycl-"
AMD, SYCL = "AMD ROCm", "SYCL"

_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_ZLIB, _ZSTD = 0, 1
#: Compressed header by version: what follows magic, version and method, and its size in all.
_HEADERS = {1: (struct.Struct("<IQ"), 20), 2: (struct.Struct("<IIQ"), 24)}
_HEADERS[3] = (struct.Struct("<QQQ"), 32)
#: hipcc puts each bundle on a page of its own.
_ALIGN = 4096

#: Bounds for damaged or hostile files; libraries of torch for ROCm have some hundred bundles.
MAX_BUNDLES = 100_000
MAX_ENTRIES = 4_096
MAX_ID = 4_096
MAX_PROBLEMS = 20
#: Bytes of a bundle that are decompressed: its list of entries takes less than 10 KB.
MAX_LIST = 1 << 20
MAX_DECOMPRESSED = 256 << 20


class OtherCode(NamedTuple):
    """GPU code of one vendor in a file.

    vendor: ``AMD ROCm`` or ``SYCL``. targets: ``gfx90a``, ``gfx942`` (with ``:xnack-`` and the
    like where the code demands it), or SYCL's ``spir64`` and ``spir64_gen``; sorted. bytes:
    what it takes in the file. problems: one sentence for each thing that could not be read.
    """

    vendor: str
    targets: tuple[str, ...]
    bytes: int
    problems: tuple[str, ...]


def read_other_code(image: ElfImage) -> tuple[OtherCode, ...]:
    """The code for AMD GPUs and for SYCL devices in an opened file; empty where there is none."""
    return tuple(code for code in (_read_hip(image), _read_sycl(image)) if code is not None)


def describe(code: OtherCode) -> str:
    """One sentence for people."""
    size = f"{code.bytes / 1e6:,.1f} MB"
    if code.vendor == SYCL:
        what = ", ".join(code.targets)
        return f"{size} of GPU code for SYCL ({what}), which CUDA cannot load"
    what = ", ".join(code.targets) or "targets unknown"
    return f"{size} of GPU code for AMD GPUs by ROCm ({what}), which NVIDIA GPUs cannot run"


def _read_sycl(image: ElfImage) -> OtherCode | None:
    sections = [
        section
        for section in image.sections
        if section.name.startswith(SYCL_PREFIX) and section.type != SHT_NOBITS
    ]
    if not sections:
        return None
    targets = {section.name[len(SYCL_PREFIX) :] for section in sections}
    size = sum(min(section.size, image.size) for section in sections)
    return OtherCode(SYCL, tuple(sorted(targets)), size, ())


def _read_hip(image: ElfImage) -> OtherCode | None:
    search = _Bundles(image)
    sections = [s for s in image.sections if s.name == HIP_SECTION and s.type != SHT_NOBITS]
    for section in sections[:64]:
        end = min(section.offset + section.size, image.size)
        if end - section.offset < section.size:
            search.problem(f"section {HIP_SECTION} is cut short")
        search.walk(section.offset, end)
    if image.section_problem is not None and image.supported:
        for segment in image.segments:
            if segment.type == PT_LOAD:
                search.scan(segment.offset, min(segment.offset + segment.file_size, image.size))
    if not sections and not search.size:
        return None
    targets = sorted(search.targets, key=_target_key)
    return OtherCode(AMD, tuple(targets), search.size, tuple(search.problems))


def _target_key(target: str) -> tuple[int, str]:
    """gfx908, gfx90a, gfx942, gfx1030: the last two digits are minor and stepping."""
    name = target.partition(":")[0].removeprefix("gfx")
    major = name[:-2]
    return (int(major) if major.isdecimal() else 0, target)


class _Bundles:
    """Walks bundles, and collects what they are for."""

    def __init__(self, image: ElfImage) -> None:
        self.image = image
        self.targets: set[str] = set()
        self.size = 0
        self.count = 0
        self.problems: list[str] = []
        self.left = MAX_DECOMPRESSED

    def problem(self, text: str) -> None:
        """Note a problem, the first twenty of them."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)

    def walk(self, start: int, end: int) -> None:
        """The bundles of a section, each on a page of its own."""
        at = start
        while at + 32 <= end:
            size = self.bundle(at, end)
            if size is None:
                following = self._next_magic(at + 4, start, end)
                if any(self.image.read(at, min(following, end) - at)[:_ALIGN]):
                    self.problem(f"the bytes at offset {at:#x} are no bundle of AMD GPU code")
                at = following
                continue
            at = start + (at + size - start + _ALIGN - 1) // _ALIGN * _ALIGN

    def scan(self, start: int, end: int) -> None:
        """The bundles of a segment, when nothing says where they are."""
        at = self._next_magic(start, start - start % _ALIGN, end)
        while at + 32 <= end:
            size = self.bundle(at, end) or 4
            at = self._next_magic(at + size, start - start % _ALIGN, end)

    def _next_magic(self, at: int, base: int, end: int) -> int:
        """The next page at or after ``at`` that starts with a magic, else ``end``."""
        at = base + (at - base + _ALIGN - 1) // _ALIGN * _ALIGN
        while at < end:
            if self.image.read(at, 4) in (_COMPRESSED, _BUNDLE[:4]):
                return at
            at += _ALIGN
        return end

    def bundle(self, at: int, end: int) -> int | None:
        """Read one bundle; returns its size in the file, None when there is none at ``at``."""
        head = self.image.read(at, 32)
        if head[:4] != _COMPRESSED and head[: len(_BUNDLE)] != _BUNDLE:
            return None
        self.count += 1
        if self.count > MAX_BUNDLES:
            self.problem(f"more than {MAX_BUNDLES:,} bundles: the rest is not read")
            return end - at
        size = 0
        try:
            if head[:4] == _COMPRESSED:
                size, start, method = self.header(at, end, head)
                self.entries(self.unpack(start, min(at + size, end), method))
            else:
                size = self.entries(self.image.read(at, min(end - at, CHUNK)))
        except (DamagedFile, ImportError) as error:
            said = error.message if isinstance(error, DamagedFile) else "zstandard is missing"
            self.problem(f"the bundle of AMD GPU code at offset {at:#x} cannot be read: {said}")
        if at + size > end:
            self.problem(f"the bundle of AMD GPU code at offset {at:#x} is cut short")
            size = end - at
        self.size += size
        return max(size, len(_COMPRESSED))

    def header(self, at: int, end: int, head: bytes) -> tuple[int, int, int]:
        """A compressed bundle's size in the file, where its data start, and its method."""
        version, method = struct.unpack_from("<HH", head, 4)
        if version not in _HEADERS:
            raise DamagedFile(f"its version {version} is unknown")
        fields, length = _HEADERS[version]
        size = fields.unpack_from(head.ljust(32, b"\0"), 8)[0]
        if version == 1:  # does not say its size
            size = self._next_magic(at + 4, at, end) - at
        return max(size, length), at + length, method

    def unpack(self, start: int, end: int, method: int) -> bytes:
        """The first bytes of what is compressed in [start, end): as many as the list takes."""
        text = b""
        for piece in self.pieces(start, end, method):
            text += piece
            self.left -= len(piece)
            if self.left < 0:
                raise DamagedFile("too much of this file was decompressed already")
            if _list_size(text) <= len(text) or len(text) >= MAX_LIST:
                break
        return text

    def pieces(self, start: int, end: int, method: int) -> Iterator[bytes]:
        """What the bytes in [start, end) decompress to, in pieces."""
        position = start

        def read(size: int) -> bytes:
            nonlocal position
            block = self.image.read(position, min(size, CHUNK, end - position))
            position += len(block)
            return block

        if method == _ZSTD:
            yield from zstd_chunks(read, MAX_LIST)
        elif method == _ZLIB:
            import zlib

            unpacker = zlib.decompressobj()
            try:
                while (block := unpacker.unconsumed_tail or read(CHUNK)) and not unpacker.eof:
                    yield unpacker.decompress(block, CHUNK)
            except zlib.error as error:
                raise DamagedFile(f"the zlib data cannot be read: {error}") from error
        else:
            raise DamagedFile(f"its compression method {method} is unknown")

    def entries(self, text: bytes) -> int:
        """Note the targets in a bundle's list of entries; returns the bundle's size."""
        if text[: len(_BUNDLE)] != _BUNDLE or len(text) < 32:
            raise DamagedFile("it does not start like a bundle")
        count: int = struct.unpack_from("<Q", text, 24)[0]
        at, size = 32, 32
        for _ in range(min(count, MAX_ENTRIES)):
            if at + 24 > len(text):
                raise DamagedFile("its list of targets is cut short")
            offset, length, id_length = struct.unpack_from("<QQQ", text, at)
            name = text[at + 24 : at + 24 + id_length]
            if not 0 < id_length <= MAX_ID or len(name) < id_length:
                raise DamagedFile("its list of targets is damaged")
            self.target(name.decode("utf-8", "replace"))
            at += 24 + id_length
            size = max(size, at, offset + length)
        if count > MAX_ENTRIES:
            raise DamagedFile(f"it lists {count:,} targets")
        return size

    def target(self, name: str) -> None:
        """Note the target of ``hipv4-amdgcn-amd-amdhsa--gfx942``; the host is none."""
        kind, _, rest = name.partition("-")
        if kind != "host" and rest:
            self.targets.add(rest.rpartition("--")[2] or rest)


def _list_size(text: bytes) -> int:
    """Bytes that a bundle's list of entries takes, or needs to go on, given its beginning."""
    if len(text) < 32:
        return 32
    at = 32
    for _ in range(min(struct.unpack_from("<Q", text, 24)[0], MAX_ENTRIES)):
        if at + 24 > len(text):
            return at + 24
        at += 24 + min(struct.unpack_from("<Q", text, at + 16)[0], MAX_ID)
    return at
