"""Presence sets: which builds export a name, from which library and with which bind.

Hundreds of thousands of names share a few thousand such sets, so a name stores the number
of its set. The table (``torch.sets``), all numbers little-endian:

========  =====================================================================
bytes     meaning
========  =====================================================================
4         ``FAPS``
4         number of sets, S
4         number of names, N
2         bytes of a bit mask, M: bit *i* stands for build *i* of the index
2         bytes of a set's number, W: 2 or 4
4(S+1)    first row of each set, and the number of rows
(2+M)R    rows: number of the library, bind (0 global, 1 weak, 2 unique), bit mask
W N       the number of each name's set, by the name's number in the trie
========  =====================================================================
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from typing import NamedTuple

_HEAD = struct.Struct("<4sIIHH")
MAGIC = b"FAPS"
BINDS = ("global", "weak", "unique")


class Row(NamedTuple):
    """The builds (bit mask) in which one library exports a name with one bind."""

    library: int
    bind: int
    mask: int


class PresenceSets:
    """The sets of one table, decoded one at a time. The table's checksum was checked before."""

    def __init__(self, raw: memoryview) -> None:
        magic, self.sets, self.names, self._mask, self._width = _HEAD.unpack_from(raw)
        if magic != MAGIC:
            raise ValueError("not a table of presence sets")
        self._raw = raw
        self._rows = _HEAD.size + 4 * (self.sets + 1)
        rows = struct.unpack_from("<I", raw, self._rows - 4)[0]
        self._numbers = self._rows + rows * (2 + self._mask)
        if len(raw) != self._numbers + self.names * self._width:
            raise ValueError("the parts of the table do not fill it")
        self._number = struct.Struct("<H" if self._width == 2 else "<I").unpack_from
        self._unions: dict[int, int] = {}

    def number_of(self, name: int) -> int:
        """The set of the name with this number."""
        return int(self._number(self._raw, self._numbers + name * self._width)[0])

    def rows(self, number: int) -> tuple[Row, ...]:
        """The rows of a set, by library and bind."""
        first, last = struct.unpack_from("<II", self._raw, _HEAD.size + 4 * number)
        size = 2 + self._mask
        found = []
        for at in range(self._rows + first * size, self._rows + last * size, size):
            mask = int.from_bytes(self._raw[at + 2 : at + size], "little")
            found.append(Row(self._raw[at], self._raw[at + 1], mask))
        return tuple(found)

    def union(self, number: int) -> int:
        """The builds (bit mask) that export a name of this set from any library."""
        mask = self._unions.get(number)
        if mask is None:
            mask = 0
            for row in self.rows(number):
                mask |= row.mask
            self._unions[number] = mask
        return mask

    def numbers(self) -> array[int]:
        """The set of every name, by the name's number."""
        found = array("H" if self._width == 2 else "I")
        found.frombytes(self._raw[self._numbers :])
        if sys.byteorder == "big":
            found.byteswap()
        return found


def pack_sets(sets: Sequence[Sequence[Row]], numbers: Sequence[int], builds: int) -> bytes:
    """The table for these sets, and for the number of each name's set."""
    mask = (builds + 7) // 8
    kind = "H" if len(sets) <= 0xFFFF else "I"
    starts, rows = [0], bytearray()
    for entries in sets:
        for row in entries:
            rows += bytes((row.library, row.bind)) + row.mask.to_bytes(mask, "little")
        starts.append(starts[-1] + len(entries))
    return b"".join(
        (
            _HEAD.pack(MAGIC, len(sets), len(numbers), mask, 2 if kind == "H" else 4),
            struct.pack(f"<{len(starts)}I", *starts),
            rows,
            struct.pack(f"<{len(numbers)}{kind}", *numbers),
        )
    )
