"""Random damage to an ELF file: reproducible from a seed, aimed at what describes the file."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from support.damage import overwrite

from fa_forensics.facts.elf.image import ElfImage

#: Numbers that break size and offset arithmetic: ends of ranges, signs, alignment.
EXTREMES = (
    0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
    0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF,
    0xFFFFFFFFFFFFFFF8,
)  # fmt: skip

#: Tables that the reader follows, in the names of their sections.
TABLES = (
    ".dynamic", ".dynsym", ".dynstr", ".gnu.hash", ".hash", ".gnu.version", ".gnu.version_r",
    ".gnu.version_d", ".note.gnu.build-id", ".comment", ".shstrtab", ".rela.dyn", ".rela.plt",
    ".nvFatBinSegment", ".nv_fatbin", "__nv_relfatbin",
)  # fmt: skip


def regions(path: Path) -> list[tuple[int, int]]:
    """(offset, size) of the headers and tables of a whole ELF file."""
    with ElfImage(str(path)) as image:
        found = [(0, 64)]
        (phoff, shoff) = struct.unpack_from("<QQ", image.data, 32)
        (phnum,) = struct.unpack_from("<H", image.data, 56)
        found += [(phoff, phnum * 56), (shoff, len(image.sections) * 64)]
        found += [
            (section.offset, min(section.size, 4096))
            for section in image.sections
            if section.name in TABLES and section.size
        ]
    return found


def mutate(path: Path, places: list[tuple[int, int]], seed: int) -> str:
    """Damage a file in place, 1 to 12 times; returns what was done, for the failure message."""
    chance = random.Random(seed)
    done = []
    for _ in range(chance.choice((1, 1, 2, 4, 12))):
        offset, size = chance.choice(places)
        kind = chance.choice(("byte", "half", "word", "long", "long", "swap", "zeros"))
        at = offset + chance.randrange(max(1, size))
        if kind == "byte":
            data = bytes([chance.randrange(256)])
        elif kind in ("half", "word", "long"):
            width = {"half": 2, "word": 4, "long": 8}[kind]
            at -= (at - offset) % width
            data = (chance.choice(EXTREMES) & (1 << 8 * width) - 1).to_bytes(width, "little")
        elif kind == "swap":
            data = chance.randbytes(chance.randrange(1, 64))
        else:
            data = bytes(chance.randrange(1, 200))
        overwrite(path, at, data)
        done.append(f"{kind}@{at}={data[:8].hex()}")
    return " ".join(done)
