"""The fatbinary container: walk its entries, from their headers alone.

A container is a 16-byte header followed by entries; an entry is a header of 64 bytes or more
followed by its payload. Nothing is decompressed. Damage is reported and stepped over: what
lies after it is found again by the container's end, or else by the next container's magic.

Source of the layout: objects built with nvcc 11.8 to 13.5 and changed field by field under
``cuobjdump -all``; NVIDIA publishes no description. ``fatbinary_section.h`` of the toolkit
names the container's magic only through its wrapper.
"""

from __future__ import annotations

import mmap
import struct
from typing import NamedTuple

from fa_forensics.facts.fatbin.images import KIND_NAMES, Image

#: Magic, format version 1 and header size 16: the first eight bytes of every container.
SIGNATURE = b"\x50\xed\x55\xba\x01\x00\x10\x00"
MAGIC = 0xBA55ED50
CONTAINER_HEADER = struct.Struct("<IHHQ")  # magic, version, header size, bytes after it
#: kind, version, header size, payload size, compressed size, offset of the option block,
#: code version (minor, major), SM number, identifier offset and length, flags, reserved,
#: uncompressed size
ENTRY_HEADER = struct.Struct("<HHIQIIHHIIIQQQ")

KIND_PTX, KIND_CUBIN, KIND_LTO_IR, KIND_UNKNOWN_ELF = 1, 2, 8, 16
KIND_RELOCATABLE_PTX, KIND_TILE_IR, KIND_CONCATENATED = 64, 128, 256
#: Number 16 is unnamed in cuobjdump ("<unknown kind>") but listed there as an ELF image.
KNOWN_KINDS = frozenset(KIND_NAMES) | {KIND_UNKNOWN_ELF, KIND_CONCATENATED}

FLAG_LZ4, FLAG_ZSTD = 0x2000, 0x8000
FLAG_OTHER_COMPRESSION = 0x1000 | 0x4000  # cuobjdump calls these "compressed", no more known
FLAG_ARCH_SPECIFIC, FLAG_FAMILY_SPECIFIC = 0x100000, 0x200000
#: 64-bit, debug, host linux/mac/windows, compression, encrypted LTO-IR, a, f, .nv.compat copy
KNOWN_FLAGS = 0x1 | 0x2 | 0x70 | 0xF000 | 0x10000 | 0x300000 | 0x1000000

#: Bounds for damaged or hostile files. Real ones stay far below: torch's libtorch_cuda has
#: about 3,000 images, entry headers have some hundred bytes.
MAX_IMAGES = 100_000
MAX_CONTAINERS = 100_000
MAX_PROBLEMS = 100
MAX_ENTRY_HEADER = 1 << 20
MAX_TEXT = 4_096
#: Zero bytes between containers up to this many are taken for alignment.
MAX_PADDING = 4_096

_PREFIXES = {KIND_PTX: "compute_", KIND_RELOCATABLE_PTX: "compute_", KIND_LTO_IR: "lto_"}
_ELF_MAGIC = b"\x7fELF"
_ET_REL = 1


class _Payload(NamedTuple):
    """Where an image's bytes lie; ``blob_offset`` is inside the decompressed payload."""

    offset: int
    size: int
    stored: int
    uncompressed: int | None
    compression: str | None
    blob_offset: int | None


class ContainerWalk:
    """Collects the images of one file over one or several regions of it.

    ``data`` is the whole file; offsets in images and problems are file offsets.
    """

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self.data = data
        self.images: list[Image] = []
        self.containers = 0
        self.section: str | None = None
        self.full = False
        self.damaged = False
        self._problems: list[str] = []
        self._more_problems = 0
        self._names: dict[tuple[int, int, int], tuple[str, str, str | None]] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each problem, the first hundred of them and how many more."""
        if not self._more_problems:
            return tuple(self._problems)
        return (*self._problems, f"and {self._more_problems:,} more problems of this sort")

    def problem(self, text: str) -> None:
        """Note a problem; beyond a hundred they are only counted."""
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(text)
        else:
            self._more_problems += 1

    def damage(self, text: str) -> None:
        """Note a problem that may have hidden further images."""
        self.damaged = True
        self.problem(text)

    def region(self, start: int, end: int, section: str | None) -> None:
        """Walk the containers that lie back to back in ``[start, end)``."""
        self.section = section
        position = start
        while position + CONTAINER_HEADER.size <= end and not self.full:
            if int.from_bytes(self.data[position : position + 4], "little") != MAGIC:
                following = self.data.find(SIGNATURE, position, end)
                self._check_gap(position, following if following >= 0 else end)
                if following < 0:
                    return
                position = following
            position = self.container(position, end)
        if position < end and not self.full:
            self._check_gap(position, end)

    def container(self, offset: int, end: int) -> int:
        """Walk one container; returns where the next one is to be expected."""
        fields: tuple[int, int, int, int] = CONTAINER_HEADER.unpack_from(self.data, offset)
        _magic, version, header_size, size = fields
        index = self.containers
        self.containers += 1
        if self.containers >= MAX_CONTAINERS:
            self._stop(f"more than {MAX_CONTAINERS:,} containers")
        if version != 1 or header_size != CONTAINER_HEADER.size:
            self.damage(
                f"container {index} at offset {offset:#x} has format version {version} with a "
                f"header of {header_size} bytes, only version 1 with 16 bytes is known"
            )
            if header_size < CONTAINER_HEADER.size:
                return offset + CONTAINER_HEADER.size
        limit = offset + header_size + size
        whole = limit <= end
        if not whole:
            self.damage(
                f"container {index} at offset {offset:#x} is cut short: its header says {size:,} "
                f"bytes, {max(0, end - offset - header_size):,} are there"
            )
        position = offset + header_size
        reached, intact = self._entries(index, position, min(limit, end))
        if whole and (intact or self._container_at(limit, end)):
            return limit
        return max(reached, offset + CONTAINER_HEADER.size)

    def _container_at(self, offset: int, end: int) -> bool:
        return offset == end or self.data[offset : offset + len(SIGNATURE)] == SIGNATURE

    def _entries(self, index: int, position: int, limit: int) -> tuple[int, bool]:
        """Walk entries up to ``limit``; returns the end reached, and whether all was sane."""
        data = self.data
        while position + ENTRY_HEADER.size <= limit:
            header = ENTRY_HEADER.unpack_from(data, position)
            header_size, payload_size = header[2], header[3]
            end = position + header_size + payload_size
            if header_size < 64 or header_size % 8 or header_size > MAX_ENTRY_HEADER or end > limit:
                return self._damaged_entry(index, position, header, limit), False
            self._entry(index, position, header, payload_size)
            if self.full:
                return end, True
            position = end
        if position < limit and any(data[position:limit]):
            self.damage(
                f"container {index} ends with {limit - position} bytes at offset "
                f"{position:#x} that are no entry"
            )
        return limit, True

    def _damaged_entry(self, index: int, position: int, header: tuple[int, ...], limit: int) -> int:
        """Say what is wrong with an entry; list it all the same when only its end is lost."""
        header_size, payload_size = header[2], header[3]
        if header[0] | header[1] << 16 == MAGIC:
            self.damage(
                f"container {index} ends at offset {position:#x}, before the size in its header"
            )
            return position
        if header_size < 64 or header_size % 8 or header_size > MAX_ENTRY_HEADER:
            self.damage(
                f"entry at offset {position:#x} in container {index} is damaged: "
                f"its header size is {header_size:,} bytes"
            )
            return position + 8
        there = limit - position - header_size
        self.damage(
            f"entry at offset {position:#x} in container {index} is cut short: its header says "
            f"{payload_size:,} bytes, {max(0, there):,} are there"
        )
        if there >= 0 and header[0] in KNOWN_KINDS:
            self._entry(index, position, header, there)
        # Containers are 8-aligned; one may start anywhere behind a wrong size.
        return position + ENTRY_HEADER.size

    def _entry(self, index: int, position: int, header: tuple[int, ...], stored: int) -> None:
        """Add the image, or images, of one entry with ``stored`` bytes of payload there."""
        payload_offset = position + header[2]
        if header[0] == KIND_CONCATENATED:
            self._concatenated(index, position, header, stored)
            return
        compression = _compression(header[11])
        uncompressed = (header[13] or None) if compression else stored
        size = _exact_size(header, stored)
        payload = _Payload(payload_offset, size, stored, uncompressed, compression, None)
        self._add(index, position, payload_offset, header, payload)

    def _concatenated(
        self, index: int, position: int, header: tuple[int, ...], stored: int
    ) -> None:
        """An entry whose payload is one compressed blob of several images.

        Its header holds a count, the table's size, and for each image a sub-header like an
        entry's, with the image's offset in the blob in place of the header size.
        """
        data, end = self.data, position + header[2]
        table = position + header[5]
        if header[5] < ENTRY_HEADER.size or table + 8 > end:
            self.problem(
                f"entry at offset {position:#x} in container {index} holds several images but "
                "its table of them is missing"
            )
            return
        count, table_size = struct.unpack_from("<II", data, table)
        table_end = min(end, table + table_size)
        subs: list[tuple[int, tuple[int, ...]]] = []
        at = table + 8
        while len(subs) < count and at + ENTRY_HEADER.size <= table_end:
            sub = ENTRY_HEADER.unpack_from(data, at)
            subs.append((at, sub))
            at += _sub_header_size(data, at, sub, table_end)
        if len(subs) < count:
            self.problem(
                f"entry at offset {position:#x} in container {index} says it holds {count:,} "
                f"images, its table has room for {len(subs):,}"
            )
        compression = _compression(header[11])
        size = _exact_size(header, stored)
        total = sum(sub[3] for _at, sub in subs) or 1
        for at, sub in subs:
            share = stored * sub[3] // total
            payload = _Payload(end, size, share, sub[3], compression, sub[2])
            self._add(index, at, table_end, sub, payload)

    def _add(
        self, index: int, position: int, end: int, header: tuple[int, ...], payload: _Payload
    ) -> None:
        """Add the image of the header at ``position``, whose texts lie before ``end``."""
        kind, sm, flags = header[0], header[8], header[11]
        kind_name, arch, listed_as = self._name(kind, sm, flags)
        if kind not in KIND_NAMES or flags & ~KNOWN_FLAGS or not 10 <= sm <= 999:
            self._unusual(index, position, kind, sm, flags)
        self.images.append(
            Image(
                kind_name,
                arch,
                payload.stored,
                payload.uncompressed,
                payload.compression,
                f"{header[7]}.{header[6]}" if kind in (KIND_PTX, KIND_RELOCATABLE_PTX) else None,
                self._text(position, end, header[9], header[10]) if header[9] else None,
                self._options(position, end, header) if header[5] else None,
                self.section,
                index,
                position,
                payload.offset,
                payload.size,
                payload.blob_offset,
                self._relocatable(kind, payload),
                listed_as,
                header[6] if kind == KIND_CUBIN and header[7] == 1 else None,
                flags,
            )
        )
        if len(self.images) >= MAX_IMAGES and not self.full:
            self._stop(f"more than {MAX_IMAGES:,} images")

    def _name(self, kind: int, sm: int, flags: int) -> tuple[str, str, str | None]:
        """Kind, architecture, and the architecture in cuobjdump's name of the image."""
        key = (kind, sm, flags & (FLAG_ARCH_SPECIFIC | FLAG_FAMILY_SPECIFIC))
        found = self._names.get(key)
        if found is None:
            suffix = "a" if flags & FLAG_ARCH_SPECIFIC else ""
            family = "f" if flags & FLAG_FAMILY_SPECIFIC and not suffix else ""
            listed_as = None
            if kind in (KIND_CUBIN, KIND_UNKNOWN_ELF):
                # cuobjdump names a cubin by the cubin's own ELF flags, which know no "f".
                listed_as = f"sm_{sm}{suffix}"
            elif kind in (KIND_PTX, KIND_RELOCATABLE_PTX):
                listed_as = f"sm_{sm}{suffix}{family}"
            arch = f"{_PREFIXES.get(kind, 'sm_')}{sm}{suffix}{family}"
            found = (KIND_NAMES.get(kind, f"unknown-{kind}"), arch, listed_as)
            self._names[key] = found
        return found

    def _unusual(self, index: int, position: int, kind: int, sm: int, flags: int) -> None:
        doubts = []
        if kind not in KIND_NAMES:
            doubts.append(f"the unknown kind {kind}")
        if flags & ~KNOWN_FLAGS:
            doubts.append(f"the unknown flag bits {flags & ~KNOWN_FLAGS:#x}")
        if not 10 <= sm <= 999:
            doubts.append(f"the impossible SM number {sm:,}")
        self.problem(
            f"entry at offset {position:#x} in container {index} has {' and '.join(doubts)}"
        )

    def _text(self, position: int, end: int, offset: int, length: int) -> str | None:
        start = position + offset
        raw = self.data[start : min(end, start + min(length, MAX_TEXT))] if start < end else b""
        return bytes(raw).decode("utf-8", "replace").rstrip("\0") or None

    def _options(self, position: int, end: int, header: tuple[int, ...]) -> str | None:
        """Compiler options of a text or IR entry. A cubin's block is binary, and left out."""
        block = position + header[5]
        if header[0] not in (KIND_PTX, KIND_RELOCATABLE_PTX, KIND_LTO_IR, KIND_TILE_IR):
            return None
        if block + 8 > end:
            return None
        offset, length = struct.unpack_from("<II", self.data, block)
        return self._text(position, end, offset, length)

    def _relocatable(self, kind: int, payload: _Payload) -> bool | None:
        if kind == KIND_RELOCATABLE_PTX:
            return True
        if kind == KIND_CUBIN and payload.compression is None:
            head = self.data[payload.offset : payload.offset + 18]
            if head[:4] == _ELF_MAGIC and len(head) == 18:
                return int.from_bytes(head[16:18], "little") == _ET_REL
        if kind in (KIND_CUBIN, KIND_PTX) and self.section is not None:
            return self.section != ".nv_fatbin"
        return None

    def _check_gap(self, start: int, end: int) -> None:
        """Note bytes that belong to no container, unless they are padding."""
        if end - start <= MAX_PADDING and not any(self.data[start:end]):
            return
        self.damage(f"{end - start:,} bytes at offset {start:#x} belong to no readable container")

    def _stop(self, reason: str) -> None:
        self.full = True
        self.problem(f"{reason}: the rest is not listed")


def _compression(flags: int) -> str | None:
    if flags & FLAG_LZ4:
        return "lz4"
    if flags & FLAG_ZSTD:
        return "zstd"
    return "unknown" if flags & FLAG_OTHER_COMPRESSION else None


def _exact_size(header: tuple[int, ...], stored: int) -> int:
    """Bytes of a payload without its padding, which the header tells of compressed ones."""
    return min(header[4], stored) or stored


def _sub_header_size(data: mmap.mmap | bytes, at: int, sub: tuple[int, ...], table_end: int) -> int:
    """Size of a sub-header of a concatenated entry; it is stored nowhere."""
    size = ENTRY_HEADER.size
    if sub[9]:
        size = max(size, _align8(sub[9] + sub[10] + 1))
    if sub[5] and at + sub[5] + 8 <= table_end:
        offset, length = struct.unpack_from("<II", data, at + sub[5])
        size = max(size, _align8(offset + length + 1))
    return size


def _align8(value: int) -> int:
    return (value + 7) & ~7
