"""The hash tables of dynamic symbols: DT_GNU_HASH, else DT_HASH.

Sources: gABI chapter 5, "Hash Table"; the GNU layout as in glibc's ``elf/dl-lookup.c`` and
``elf/dl-setup_hash.c``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fa_forensics.facts.elf.image import ElfImage

#: More than any real library has: libtorch_cpu has 2^17 buckets and chains of 10 symbols.
MAX_BUCKETS = 1 << 22
MAX_CHAIN = 100_000

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


def gnu_hash(name: bytes) -> int:
    """The GNU hash of a symbol name (Bernstein's, 32 bits), as in glibc's dl-lookup.c."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def sysv_hash(name: bytes) -> int:
    """The System V hash of a name (gABI chapter 5, "Hash Table")."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


class HashTable:
    """The table that the loader would use: the GNU one where it is whole, else the old one.

    ``gnu`` and ``sysv`` are file offsets or None. Damage goes into the image's problems.
    """

    def __init__(self, image: ElfImage, gnu: int | None, sysv: int | None) -> None:
        self.image = image
        self._gnu: tuple[int, int, int, int, int, int, int] | None = None
        self._sysv: tuple[int, int, int] | None = None
        if gnu is not None and len(image.read(gnu, 16)) == 16:
            buckets, first, words, shift = struct.unpack_from("<IIII", image.data, gnu)
            bucket_at = gnu + 16 + words * 8
            chain_at = bucket_at + buckets * 4
            if 0 < buckets <= MAX_BUCKETS and words and chain_at <= image.size:
                self._gnu = (buckets, first, words, shift, gnu + 16, bucket_at, chain_at)
                return
            image.problems.append("the GNU hash table is damaged")
        if sysv is not None and len(image.read(sysv, 8)) == 8:
            buckets, chains = struct.unpack_from("<II", image.data, sysv)
            if buckets and sysv + 8 + (buckets + chains) * 4 <= image.size:
                self._sysv = (buckets, chains, sysv + 8)
            else:
                image.problems.append("the hash table is damaged")

    def count(self) -> int:
        """The number of symbols that the table implies; 0 without one.

        The GNU table knows no number: its last chain ends with the last symbol. Where
        nothing is exported it says only where the exported ones would start.
        """
        if self._sysv is not None:
            return self._sysv[1]
        if self._gnu is None:
            return 0
        buckets, first, _words, _shift, _bloom, bucket_at, chain_at = self._gnu
        last = max(memoryview(self.image.read(bucket_at, buckets * 4)).cast("I"))
        if last < first:
            return first
        at = chain_at + (last - first) * 4
        stop = min(self.image.size - 4, at + 4 * MAX_CHAIN)
        while at <= stop and not _U32.unpack_from(self.image.data, at)[0] & 1:
            at += 4
        return int((at - chain_at) // 4 + first + 1)

    @property
    def first_hashed(self) -> int | None:
        """Index of the first symbol in the GNU table; those before it are not exported."""
        return None if self._gnu is None else self._gnu[1]

    def candidates(self, name: bytes, hashed: int) -> Iterator[int]:
        """Indices of the symbols whose hash matches the name's; ``hashed`` is its gnu_hash."""
        if self._gnu is not None:
            yield from self._gnu_candidates(hashed)
        elif self._sysv is not None:
            data = self.image.data
            buckets, chains, at = self._sysv
            (index,) = _U32.unpack_from(data, at + 4 * (sysv_hash(name) % buckets))
            for _ in range(MAX_CHAIN):
                if not 0 < index < chains:
                    return
                yield index
                (index,) = _U32.unpack_from(data, at + 4 * (buckets + index))

    def _gnu_candidates(self, hashed: int) -> Iterator[int]:
        assert self._gnu is not None
        data, size = self.image.data, self.image.size
        buckets, first, words, shift, bloom, bucket_at, chain_at = self._gnu
        (word,) = _U64.unpack_from(data, bloom + 8 * ((hashed >> 6) % words))
        if not (word >> (hashed & 63)) & (word >> ((hashed >> shift) & 63)) & 1:
            return
        (index,) = _U32.unpack_from(data, bucket_at + 4 * (hashed % buckets))
        if index < first:
            return
        for _ in range(MAX_CHAIN):
            at = chain_at + 4 * (index - first)
            if at + 4 > size:
                return
            (value,) = _U32.unpack_from(data, at)
            if (value ^ hashed) | 1 == 1:
                yield index
            if value & 1:
                return
            index += 1
