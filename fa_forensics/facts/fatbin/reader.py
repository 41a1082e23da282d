"""List the GPU code of a file: host ELF, relocatable object, bare .fatbin or .cubin.

The containers lie in the sections ``.nv_fatbin`` and ``__nv_relfatbin``. When the section
headers are gone or wrong, the loaded segments are searched for containers instead, which
finds the same list. Only headers are read, a 900 MB library costs some tens of milliseconds.
"""

from __future__ import annotations

import mmap
import os

from fa_forensics.errors import NotAnElfFile, UnreadableFile
from fa_forensics.facts.elf.image import ET_REL, PT_LOAD, SHT_NOBITS, ElfImage, Section
from fa_forensics.facts.fatbin.container import (
    CONTAINER_HEADER,
    ENTRY_HEADER,
    KNOWN_KINDS,
    MAX_ENTRY_HEADER,
    SIGNATURE,
    ContainerWalk,
)
from fa_forensics.facts.fatbin.images import DeviceCode, Image

#: Executable containers, and those that still have to be device-linked (in this order, which
#: is cuobjdump's with -all).
FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
EM_CUDA = 190

#: Bounds of the search for containers in a hostile file.
MAX_REJECTED = 10_000
MAX_FATBIN_SECTIONS = 64

_COMPAT_ARCH_SPECIFIC = b"\x02\x09\x01\x00"  # .nv.compat: format 2, attribute 9, value 1


def read_file(path: str) -> DeviceCode:
    """The GPU code of any file that can carry some, bare .fatbin files included.

    Raises ``UnreadableFile``, ``NotAnElfFile`` or ``DamagedFile``.
    """
    try:
        with ElfImage(path) as image:
            return read_device_code(image)
    except NotAnElfFile:
        code = _read_bare_container(path)
        if code is None:
            raise
        return code


def read_device_code(image: ElfImage) -> DeviceCode:
    """The GPU code of an opened ELF file: a host library, an object file or a cubin."""
    if not image.supported:
        order = "64-bit little-endian"
        return DeviceCode((), 0, "none", (f"not a {order} ELF file: GPU code not looked for",))
    if image.machine == EM_CUDA:
        return DeviceCode((_bare_cubin(image),), 0, "whole-file", ())
    damage = _section_damage(image)
    walk = ContainerWalk(image.data)
    if damage is None:
        _walk_sections(image, walk)
        if not walk.damaged:
            return _result(walk, "sections")
    search = ContainerWalk(image.data)
    _scan(image, search)
    if damage is None and len(search.images) <= len(walk.images):
        return _result(walk, "sections")
    if search.images:
        reason = damage or "the section headers lead to only a part of it"
        search.problem(f"{reason}: GPU code was found by searching for it")
    return _result(search, "scan")


def _result(walk: ContainerWalk, found_by: str) -> DeviceCode:
    how = found_by if walk.containers else "none"
    return DeviceCode(tuple(walk.images), walk.containers, how, walk.problems)


def _section_damage(image: ElfImage) -> str | None:
    """Why the section headers cannot be used to find code, or None."""
    if image.section_problem is not None:
        return image.section_problem
    names = {section.name for section in image.sections}
    # The table of section names is itself named; if not, e_shstrndx points elsewhere.
    if names.isdisjoint((".shstrtab", ".strtab")):
        return "the section names are wrong"
    return None


def _walk_sections(image: ElfImage, walk: ContainerWalk) -> None:
    """Walk the fatbin sections that have bytes in this file."""
    wanted = [
        section
        for name in FATBIN_SECTIONS
        for section in image.sections
        if section.name == name and section.type != SHT_NOBITS and section.size
    ]
    if len(wanted) > MAX_FATBIN_SECTIONS:
        walk.problem(f"{len(wanted):,} fatbin sections, only {MAX_FATBIN_SECTIONS} are read")
    done: list[tuple[int, int]] = []
    for section in wanted[:MAX_FATBIN_SECTIONS]:
        start, end = _extent(image, walk, section)
        if any(start < other_end and other < end for other, other_end in done):
            walk.problem(f"section {section.name} at offset {start:#x} overlaps another one")
            continue
        done.append((start, end))
        walk.region(start, end, section.name)


def _extent(image: ElfImage, walk: ContainerWalk, section: Section) -> tuple[int, int]:
    start: int = min(section.offset, image.size)
    end: int = min(section.offset + section.size, image.size)
    if end - start < section.size:
        walk.damage(
            f"section {section.name} is cut short: {section.size:,} bytes in its header, "
            f"{end - start:,} in the file"
        )
    return start, end


def _scan(image: ElfImage, walk: ContainerWalk) -> None:
    """Search the loaded segments (the whole file where there are none) for containers."""
    for start, end in _loaded_ranges(image):
        _advise(image.data, start, end, sequential=True)
        try:
            _scan_range(walk, start, end)
        finally:
            _advise(image.data, start, end, sequential=False)


def _scan_range(walk: ContainerWalk, start: int, end: int) -> None:
    walk.section = None
    position, rejected = start, 0
    while not walk.full:
        position = walk.data.find(SIGNATURE, position, end)
        if position < 0 or position + CONTAINER_HEADER.size > end:
            return
        if _plausible(walk.data, position, end):
            position = walk.container(position, end)
            continue
        position += len(SIGNATURE)
        rejected += 1
        if rejected >= MAX_REJECTED:
            walk.problem(
                f"search given up at offset {position:#x} after {rejected:,} false containers"
            )
            return


def _plausible(data: mmap.mmap | bytes, offset: int, end: int) -> bool:
    """Whether a signature really starts a container: its first entry must make sense."""
    size = CONTAINER_HEADER.unpack_from(data, offset)[3]
    entry = offset + CONTAINER_HEADER.size
    if size < ENTRY_HEADER.size or entry + ENTRY_HEADER.size > end:
        return False
    header = ENTRY_HEADER.unpack_from(data, entry)
    kind, header_size, payload_size = header[0], header[2], header[3]
    return (
        kind in KNOWN_KINDS
        and ENTRY_HEADER.size <= header_size <= MAX_ENTRY_HEADER
        and header_size % 8 == 0
        and header_size + payload_size <= size
    )


def _loaded_ranges(image: ElfImage) -> list[tuple[int, int]]:
    """File ranges of the PT_LOAD segments, merged, so that no byte is searched twice."""
    ranges = sorted(
        (segment.offset, min(image.size, segment.offset + segment.file_size))
        for segment in image.segments
        if segment.type == PT_LOAD and segment.offset < image.size and segment.file_size
    )
    merged: list[tuple[int, int]] = []
    for start, end in ranges or [(0, image.size)]:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _advise(data: mmap.mmap | bytes, start: int, end: int, *, sequential: bool) -> None:
    """Ask for read-ahead during a search: cold, it is several times faster."""
    if isinstance(data, mmap.mmap) and end > start:
        start -= start % mmap.PAGESIZE
        advice = mmap.MADV_SEQUENTIAL if sequential else mmap.MADV_RANDOM
        data.madvise(advice, start, end - start)


def _read_bare_container(path: str) -> DeviceCode | None:
    """The images of a file that is itself a row of containers; None when it is not one."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != SIGNATURE[:4]:
                return None
            size = os.fstat(file.fileno()).st_size
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                data.madvise(mmap.MADV_RANDOM)
                walk = ContainerWalk(data)
                walk.region(0, size, None)
                return _result(walk, "whole-file")
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"cannot read {path}: {error}") from error


def _bare_cubin(image: ElfImage) -> Image:
    """A cubin by itself: its architecture stands in its own ELF header.

    ABI 7 keeps the SM number in bits 0-7 of e_flags and "a" in bit 0x800. ABI 8 keeps it in
    bits 8-15, and "a" in bit 0x8 (CUDA 12.8, 12.9) or in ``.nv.compat`` (since 13.0). A
    family-specific cubin (sm_100f) cannot be told from a plain one.
    """
    if image.abi_version >= 8:
        sm = image.flags >> 8 & 0xFF
        compat = image.section(".nv.compat")
        record = image.read(compat.offset, min(compat.size, 4096)) if compat else b""
        specific = bool(image.flags & 0x8) or _COMPAT_ARCH_SPECIFIC in record
    else:
        sm = image.flags & 0xFF
        specific = bool(image.flags & 0x800)
    arch = f"sm_{sm}{'a' if specific else ''}"
    return Image(
        "cubin", arch, image.size, image.size, None, None, None, None, None, 0, 0, 0, image.size,
        None, image.type == ET_REL, arch, image.abi_version, 0,
    )  # fmt: skip
