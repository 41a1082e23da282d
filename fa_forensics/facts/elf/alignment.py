"""How the segments of a file lie in pages: for which sizes of a page the loader takes it."""

from __future__ import annotations

from collections.abc import Sequence

#: The largest page of a machine that torch runs on: aarch64 kernels have 4, 16 or 64 KiB.
LARGEST_PAGE = 65_536

#: (offset, address, alignment) of one PT_LOAD, in bytes.
Load = tuple[int, int, int]


def page_limit(segments: Sequence[Load]) -> int:
    """The largest size of a page, up to ``LARGEST_PAGE``, on which all segments can be mapped.

    A segment can be where its offset and its address leave the same rest by that size.
    """
    limit = LARGEST_PAGE
    for offset, address, _align in segments:
        while limit > 1 and (address - offset) % limit:
            limit //= 2
    return limit


def misaligned(segments: Sequence[Load]) -> tuple[Load, ...]:
    """The segments whose offset and address do not agree by their own alignment."""
    return tuple(s for s in segments if s[2] > 1 and (s[1] - s[0]) % s[2])
