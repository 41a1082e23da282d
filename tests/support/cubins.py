"""An independent writer of cubins, of PTX, and of fatbin entries that hold them compressed.

It knows the ELF fields by their byte offsets and shares no code with the readers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

FLAG_64BIT, FLAG_LZ4, FLAG_ZSTD = 0x11, 0x2000, 0x8000


class Function(NamedTuple):
    """A function symbol: a kernel carries STO_CUDA_ENTRY (0x10) in st_other."""

    name: str
    kernel: bool = True
    size: int = 4096
    defined: bool = True
    own_section: bool = True


def kernels(*names: str, size: int = 4096) -> list[Function]:
    return [Function(name, size=size) for name in names]


def cubin(
    functions: Sequence[Function],
    *,
    code: int = 256,
    tables: str = "front",
    gap: int = 0,
    dropped: int = 0,
    kind: int = 2,
    abi: int = 7,
) -> bytes:
    """A cubin with a ``.text`` section for each function.

    tables: "front" as ptxas writes it (names, symbols, code) or "back" (code first). ``gap``
    zero bytes lie before .symtab, ``dropped`` empty names among those of the sections.
    """
    with_section = [f for f in functions if f.defined and f.own_section]
    texts = [f".text.{f.name}" for f in with_section]
    section_names = _strings([*_HEADS, *([""] * dropped), *texts])
    symbol_names = _strings([*_HEADS[:3], *(f.name for f in functions)])
    symbols = _symbols(functions, symbol_names)
    pieces = [(text, (bytes(range(1, 256)) * (code // 255 + 1))[:code], 128) for text in texts]
    fixed = [
        (".shstrtab", section_names, 1),
        (".strtab", symbol_names + bytes(gap), 1),
        (".symtab", symbols, 8),
        (".nv.info", b"\4\x2f\x08\0" * 4, 4),
    ]
    body = bytearray(64)
    places: dict[str, tuple[int, int]] = {}
    for name, content, align in [*fixed, *pieces] if tables == "front" else [*pieces, *fixed]:
        body.extend(bytes(-len(body) % align))
        places[name] = (len(body), len(content) - (gap if name == ".strtab" else 0))
        body.extend(content)
    body.extend(bytes(-len(body) % 8))
    table = len(body)
    rows = [bytes(64)]
    for name in [*(name for name, _content, _align in fixed), *texts]:
        at = section_names.index(b"\0" + name.encode() + b"\0") + 1
        link, size = (2, 24) if name == ".symtab" else (0, 0)
        fields = (at, _TYPES.get(name, 1), 0, 0, *places[name], link, 0, 1, size)
        rows.append(struct.pack("<IIQQQQIIQQ", *fields))
    ident = b"\x7fELF\x02\x01\x01" + bytes([0x33 if abi == 7 else 0x41, abi]) + bytes(7)
    version = 121 if abi == 7 else 1
    tail = (kind, 190, version, 0, 0, table, 0, 64, 56, 0, 64, len(rows), 1)
    body[:64] = ident + struct.pack("<HHIQQQIHHHHHH", *tail)
    return bytes(body + b"".join(rows))


_HEADS = (".shstrtab", ".strtab", ".symtab", ".symtab_shndx", ".nv.info")
_TYPES = {".shstrtab": 3, ".strtab": 3, ".symtab": 2, ".nv.info": 0x70000000}
_FIXED = 5  # sections before those of code: the empty one, and four of _HEADS


def _symbols(functions: Sequence[Function], names: bytes) -> bytes:
    """The symbol table: an empty symbol, one for a section, one for each function."""
    out = bytes(24) + struct.pack("<IBBHQQ", 1, 3, 0, 1, 0, 0)
    section = _FIXED
    for f in functions:
        where = 0 if not f.defined else section if f.own_section else _FIXED
        section += f.defined and f.own_section
        at = names.index(b"\0" + f.name.encode() + b"\0") + 1
        out += struct.pack("<IBBHQQ", at, 0x12, 0x10 if f.kernel else 0, where, 0, f.size)
    return out


def _strings(names: Sequence[str]) -> bytes:
    return b"\0" + b"".join(name.encode() + b"\0" for name in names)


def entry(
    kind: int,
    sm: int,
    stored: bytes,
    *,
    flags: int = FLAG_64BIT,
    uncompressed: int = 0,
    version: tuple[int, int] = (1, 7),
) -> bytes:
    """A fatbin entry around bytes that are stored as they are given."""
    padded = stored + bytes(-len(stored) % 8)
    header = bytearray(64)
    struct.pack_into("<HHIQ", header, 0, kind, 0x0101, 64, len(padded))
    packed = flags & (FLAG_LZ4 | FLAG_ZSTD)
    struct.pack_into("<I", header, 0x10, len(stored) if packed else 0)
    struct.pack_into("<HHI", header, 0x18, version[1], version[0], sm)
    struct.pack_into("<Q", header, 0x28, flags)
    struct.pack_into("<Q", header, 0x38, uncompressed if packed else 0)
    return bytes(header) + padded


def packed(
    kind: int, sm: int, content: bytes, how: str | None, *, says: int | None = None, more: int = 0
) -> bytes:
    """An entry whose payload is compressed; ``says`` is a size that is not true."""
    size = len(content) if says is None else says
    version = (8, 4) if kind == 1 else (1, 7)
    if how is None:
        return entry(kind, sm, content, version=version, flags=FLAG_64BIT | more)
    if how == "lz4":
        import lz4.block

        stored = lz4.block.compress(content, store_size=False)
        flags = FLAG_64BIT | FLAG_LZ4 | more
    else:
        import zstandard

        stored = zstandard.ZstdCompressor().compress(content)
        flags = FLAG_64BIT | FLAG_ZSTD | more
    return entry(kind, sm, stored, flags=flags, uncompressed=size, version=version)


def concatenated(parts: Sequence[tuple[int, int, bytes]]) -> bytes:
    """One entry of kind 256 (``nvcc --concat``) around (kind, SM, content) images."""
    import zstandard

    blob, subs = b"", b""
    for kind, sm, content in parts:
        sub = bytearray(entry(kind, sm, b"", version=(8, 4) if kind == 1 else (1, 8)))
        struct.pack_into("<IQ", sub, 4, len(blob), len(content))
        subs += sub
        blob += content + bytes(-len(content) % 8)
    table = struct.pack("<II", len(parts), 8 + len(subs)) + subs
    stored = zstandard.ZstdCompressor().compress(blob)
    outer = bytearray(entry(256, 0, stored, flags=0x8011, uncompressed=len(blob), version=(0, 1)))
    outer[64:64] = table
    struct.pack_into("<I", outer, 4, 64 + len(table))
    struct.pack_into("<I", outer, 0x14, 64)
    return bytes(outer)


def container(*entries: bytes) -> bytes:
    """One fatbin container."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
