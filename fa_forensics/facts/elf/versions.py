"""Symbol versions of an ELF object: what it needs (verneed) and what it defines (verdef).

Source: Linux Standard Base core specification, "Symbol Versioning"; both are linked
lists, so every walk is bounded by the count the dynamic section states and by a limit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from fa_forensics.facts.elf.image import ElfImage

#: More versions than any real object has (libc.so.6 defines about 40).
MAX_VERSIONS = 4_096

_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")
_VERDEF = struct.Struct("<HHHHIII")
_VERDAUX = struct.Struct("<II")
VER_FLG_BASE, VER_FLG_WEAK = 1, 2


def read_verneed(
    image: ElfImage, offset: int | None, count: int, string: Callable[[int], str]
) -> dict[int, tuple[str, str, bool]]:
    """Version index → (file it is needed of, version name, weak)."""
    needs: dict[int, tuple[str, str, bool]] = {}
    at = offset
    seen = 0
    for _ in range(min(count, MAX_VERSIONS)):
        if at is None or at + _VERNEED.size > image.size:
            break
        _version, aux_count, file, aux, following = _VERNEED.unpack_from(image.data, at)
        name = string(file)
        aux_at = at + aux
        for _ in range(aux_count):
            seen += 1
            if seen > MAX_VERSIONS or aux_at + _VERNAUX.size > image.size:
                break
            _hash, flags, index, version, aux_next = _VERNAUX.unpack_from(image.data, aux_at)
            needs[index & 0x7FFF] = (name, string(version), bool(flags & VER_FLG_WEAK))
            if not aux_next:
                break
            aux_at += aux_next
        if not following or seen > MAX_VERSIONS:
            break
        at += following
    return needs


def read_verdef(
    image: ElfImage, offset: int | None, count: int, string: Callable[[int], str]
) -> dict[int, str]:
    """Version index → version name; the base definition (the soname) is included."""
    defined: dict[int, str] = {}
    at = offset
    for _ in range(min(count, MAX_VERSIONS)):
        if at is None or at + _VERDEF.size > image.size:
            break
        _version, _flags, index, aux_count, _hash, aux, following = _VERDEF.unpack_from(
            image.data, at
        )
        if aux_count and at + aux + _VERDAUX.size <= image.size:
            defined[index & 0x7FFF] = string(_VERDAUX.unpack_from(image.data, at + aux)[0])
        if not following:
            break
        at += following
    return defined
