"""The build-id of an ELF file (NT_GNU_BUILD_ID): what the linker wrote to tell builds apart."""

from __future__ import annotations

import struct

from fa_forensics.facts.elf.image import PT_NOTE, ElfImage

NT_GNU_BUILD_ID = 3
_NOTE = struct.Struct("<III")
_MAX_NOTES = 65_536


def build_id(image: ElfImage) -> str | None:
    """The build-id as hexadecimal digits, or None where the file has none."""
    spans = [(s.offset, s.file_size) for s in image.segments if s.type == PT_NOTE]
    section = image.section(".note.gnu.build-id")
    if section is not None:
        spans.append((section.offset, section.size))
    for offset, size in spans:
        raw = image.read(offset, min(size, _MAX_NOTES))
        at = 0
        while at + _NOTE.size <= len(raw):
            name_size, value_size, kind = _NOTE.unpack_from(raw, at)
            name_at = at + _NOTE.size
            value_at = name_at + (name_size + 3 & ~3)
            if kind == NT_GNU_BUILD_ID and raw[name_at : name_at + name_size] == b"GNU\0":
                return raw[value_at : value_at + value_size].hex() or None
            at = value_at + (value_size + 3 & ~3)
    return None
