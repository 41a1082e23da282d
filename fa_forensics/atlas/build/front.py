"""The exports of a library from its first megabytes, before its dynamic section has arrived.

A member of a wheel can only be unpacked from its start. The tables of symbols lie there, but
``.dynamic``, which says where they are, lies behind hundreds of megabytes of GPU code. GNU ld
lays the tables out in one fixed order (``ld --verbose``: .gnu.hash .dynsym .dynstr
.gnu.version .gnu.version_d .gnu.version_r), and the hash table proves the find: it holds the
hash of every exported name. Whatever does not fit to the last bit, such as a file whose tables
a patcher has moved, is not read here.

Sources: gABI chapter 5; "Symbol Versioning" in the LSB core specification; the GNU hash layout
as in glibc's ``elf/dl-lookup.c``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from fa_forensics.facts.elf.dynamic import (
    MAX_SYMBOLS,
    SHN_ABS,
    SHN_UNDEF,
    STB_GLOBAL,
    gnu_hash,
)
from fa_forensics.facts.elf.hash_table import sysv_hash

#: Bindings and visibilities of what others can bind to: GLOBAL, WEAK, GNU_UNIQUE; DEFAULT,
#: PROTECTED (gABI chapter 4, "Symbol Table").
EXPORTED_BINDS, EXPORTED_VISIBILITIES = frozenset((1, 2, 10)), frozenset((0, 3))

#: How far behind the program headers the GNU hash table may start: there are only notes and,
#: in old files, the other hash table (8 bytes a symbol) between them.
SEARCH = 1 << 20

#: How many empty strings the table of names may have behind the last name of a symbol (linkers
#: leave none; a tool that shortens a run path in place leaves one for each byte saved).
MAX_EMPTY_NAMES = 4096

_SYM = struct.Struct("<IBBHQQ")
_VERDEF = struct.Struct("<HHHHIII")


class Export(NamedTuple):
    """One exported symbol. ``default`` is false for ``name@VER``, true for ``name@@VER``."""

    name: str
    version: str | None
    default: bool


def is_export(symbol: Export, bind: int, visibility: int, section: int) -> bool:
    """Whether a symbol is worth keeping: others can bind to it, and may not have it themselves.

    The linker makes an absolute symbol for each version; that is nothing to bind to. And weak
    C++ names (inline functions, template instantiations, their tables) are emitted wherever
    they are used (Itanium C++ ABI, 5.2 "Vague Linkage"), so no file lacks one: cuDNN 8 and
    cuSPARSELt export 220,000 of them.
    """
    marker = section == SHN_ABS and symbol.name == symbol.version
    vague = bind != STB_GLOBAL and symbol.name.startswith("_Z")
    return (
        section != SHN_UNDEF
        and bind in EXPORTED_BINDS
        and visibility in EXPORTED_VISIBILITIES
        and not (marker or vague)
    )


class Front(NamedTuple):
    """What the tables at the front of a library say. ``soname`` comes from its versions."""

    soname: str | None
    exports: tuple[Export, ...]
    strings: bytes


def read_front(data: bytes) -> Front | None:
    """The exports of a 64-bit little-endian library that starts with ``data``.

    None when the tables are not there, not whole, or do not agree with each other.
    """
    for first, hashes, end in _hash_tables(data):
        found = _read_tables(data, first, hashes, -(-end // 8) * 8)
        if found is not None:
            return found
    return None


def _hash_tables(data: bytes) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """(first symbol, hashes, end) of whatever has the structure of a GNU hash table."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
        return
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    start = -(-(start + size * count) // 8) * 8
    for at in range(start, min(start + SEARCH, len(data) - 16), 8):
        buckets, first, words, shift = struct.unpack_from("<IIII", data, at)
        if not (buckets and first and words) or words & (words - 1) or not 0 < shift < 64:
            continue
        bucket_at = at + 16 + words * 8
        chain_at = bucket_at + buckets * 4
        if max(buckets, words, first) > MAX_SYMBOLS or chain_at > len(data):
            continue
        used = [n for n in struct.unpack_from(f"<{buckets}I", data, bucket_at) if n]
        # Symbols are sorted by bucket, so the numbers of the buckets' first symbols rise.
        if not used or used[0] != first or any(a >= b for a, b in pairwise(used)):
            continue
        hashes = _chain(data, chain_at, used[-1] - first)
        if hashes is not None:
            yield first, hashes, chain_at + 4 * len(hashes)


def _chain(data: bytes, at: int, last: int) -> tuple[int, ...] | None:
    """All hashes of a table whose last chain starts at number ``last``; odd ones end a chain."""
    number = last
    while number < MAX_SYMBOLS and at + 4 * (number + 1) <= len(data):
        if data[at + 4 * number] & 1:
            return struct.unpack_from(f"<{number + 1}I", data, at)
        number += 1
    return None


def _read_tables(data: bytes, first: int, hashes: tuple[int, ...], at: int) -> Front | None:
    count = first + len(hashes)
    strings_at = at + count * _SYM.size
    if data[at : at + _SYM.size] != bytes(_SYM.size) or strings_at >= len(data):
        return None
    rows = list(_SYM.iter_unpack(data[at:strings_at]))
    last = strings_at + max(row[0] for row in rows)
    found: list[Front] = []
    for strings_end in _ends_of_strings(data, last):
        versions_at = strings_end + strings_end % 2
        versions_end = versions_at + 2 * count
        definitions_at = -(-versions_end // 8) * 8
        if len(data) < definitions_at + 64:
            break
        strings = data[strings_at:strings_end]
        if data[definitions_at : definitions_at + 2] != b"\1\0":
            continue
        if any(data[versions_end:definitions_at]):  # those would be the last symbols' versions
            continue
        definitions = _definitions(data, definitions_at, strings)
        if definitions is None:
            continue
        soname, names = definitions
        numbers = struct.unpack_from(f"<{count}H", data, versions_at)
        rest = zip(rows[first:], hashes, numbers[first:], strict=True)
        exports = _exports(rest, strings, names)
        if exports is not None and numbers[0] == 0:
            found.append(Front(soname, exports, strings))
    # Should two ends seem to fit, only the whole file can tell.
    return found[0] if len({front[:2] for front in found}) == 1 else None


def _ends_of_strings(data: bytes, at: int) -> Iterator[int]:
    """Where the table of names may end: behind a name, whose last zero byte version 0 follows."""
    for _ in range(MAX_EMPTY_NAMES):
        at = data.find(b"\0\0", at)
        if at < 0:
            return
        if data[at - 1]:
            yield at + 1
        at += 1


def _exports(
    rows: Iterable[tuple[tuple[int, ...], int, int]], strings: bytes, versions: dict[int, str]
) -> tuple[Export, ...] | None:
    """The exported ones of (symbol, hash, version number); None when they contradict."""
    found = []
    for (name_at, info, other, section, _value, _size), hashed, number in rows:
        name, number, hidden = _string(strings, name_at), number & 0x7FFF, bool(number & 0x8000)
        # The lowest bit of a hash is taken: it marks the end of a chain.
        if (gnu_hash(name) ^ hashed) > 1 or (number > 1 and number not in versions):
            return None
        export = Export(name.decode("utf-8", "backslashreplace"), versions.get(number), not hidden)
        if section and not number:  # the number of what is local: the table lies elsewhere
            return None
        if is_export(export, info >> 4, other & 3, section):
            found.append(export)
    return tuple(found)


def _definitions(data: bytes, at: int, strings: bytes) -> tuple[str | None, dict[int, str]] | None:
    """(soname, index → version) that a library defines; None when nothing of it lies at ``at``.

    A library without own versions has those that it needs of others there.
    """
    base, names = None, {}
    if not _is_definition(data, at, strings):
        file_at, aux = struct.unpack_from("<II", data, at + 4)
        return (None, {}) if aux == 16 and b".so" in _string(strings, file_at) else None
    while True:
        _one, flags, index, _aux_count, _hash, aux, following = _VERDEF.unpack_from(data, at)
        name = _string(strings, struct.unpack_from("<I", data, at + aux)[0]).decode(
            "utf-8", "backslashreplace"
        )
        if flags & 1:
            base = name
        else:
            names[index & 0x7FFF] = name
        at += following
        if not following or len(names) > 4096:
            return base, names
        if at + 64 > len(data) or not _is_definition(data, at, strings):
            return None


def _is_definition(data: bytes, at: int, strings: bytes) -> bool:
    """Whether a version definition lies here: it carries the hash of its own name."""
    one, _flags, index, aux_count, hashed, aux, _next = _VERDEF.unpack_from(data, at)
    if one != 1 or not index or not aux_count or at + aux + 8 > len(data):
        return False
    (name_at,) = struct.unpack_from("<I", data, at + aux)
    return bool(sysv_hash(_string(strings, name_at)) == hashed)


def _string(strings: bytes, at: int) -> bytes:
    end = strings.find(b"\0", at)
    return strings[at:end] if end >= 0 else b""
