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
    defined = [f for f in functions if f.defined]
    with_section = [f for f in defined if f.own_section]
    heads = ["", ".shstrtab", ".strtab", ".symtab", ".symtab_shndx", ".nv.info"]
    texts = [f".text.{f.name}" for f in with_section]
    section_names = _strings([*heads[1:], *([""] * dropped), *texts])
    symbol_names = _strings([".shstrtab", ".strtab", ".symtab", *(f.name for f in functions)])
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 3, 0, 1, 0, 0)
    index = {f.name: len(heads) - 1 + at for at, f in enumerate(with_section)}
    for f in functions:
        where = index.get(f.name, len(heads) - 1) if f.defined else 0
        at = symbol_names.index(b"\0" + f.name.encode() + b"\0") + 1
        symbols += struct.pack("<IBBHQQ", at, 0x12, 0x10 if f.kernel else 0, where, 0, f.size)
    body = bytearray(64)
    offsets: dict[str, int] = {}

    def put(name: str, content: bytes, align: int = 1) -> None:
        body.extend(bytes(-len(body) % align))
        offsets[name] = len(body)
        body.extend(content)

    pieces = [(text, bytes(range(1, 256)) * (code // 255 + 1)) for text in texts]
    if tables == "back":
        for text, content in pieces:
            put(text, content[:code], 128)
    put(".shstrtab", section_names)
    put(".strtab", symbol_names)
    body.extend(bytes(gap))
    put(".symtab", symbols, 8)
    put(".nv.info", b"\4\x2f\x08\0" * 4, 4)
    if tables == "front":
        for text, content in pieces:
            put(text, content[:code], 128)
    body.extend(bytes(-len(body) % 8))
    table = len(body)
    rows = [bytes(64)]
    sizes = {".shstrtab": len(section_names), ".strtab": len(symbol_names)}
    sizes[".symtab"], sizes[".nv.info"] = len(symbols), 16
    types = {".shstrtab": 3, ".strtab": 3, ".symtab": 2, ".nv.info": 0x70000000}
    for name in [".shstrtab", ".strtab", ".symtab", ".nv.info", *texts]:
        at = section_names.index(b"\0" + name.encode() + b"\0") + 1
        link = 2 if name == ".symtab" else 0
        rows.append(
            struct.pack(
                "<IIQQQQIIQQ", at, types.get(name, 1), 0, 0, offsets[name], sizes.get(name, code),
                link, 0, 1, 24 if name == ".symtab" else 0,
            )
        )  # fmt: skip
    ident = b"\x7fELF\x02\x01\x01" + bytes([0x33 if abi == 7 else 0x41, abi]) + bytes(7)
    head = struct.pack(
        "<HHIQQQIHHHHHH", kind, 190, 121 if abi == 7 else 1, 0, 0, table, 0, 64, 56, 0, 64,
        len(rows), 1,
    )  # fmt: skip
    body[:64] = ident + head
    return bytes(body + b"".join(rows))


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
