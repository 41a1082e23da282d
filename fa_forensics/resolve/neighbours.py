"""The libraries that a file brings with it: needed ones in its own folder or on its own path."""

from __future__ import annotations

import os
import re
from types import TracebackType

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject, gnu_hash
from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.files import absolute
from fa_forensics.facts.owner import owner_of_library

#: How many libraries are opened for one file; the largest wheel seen brings 30.
MAX_LIBRARIES = 64

_ORIGIN = re.compile(r"\$(?:\{ORIGIN\}|ORIGIN\b)")


class Neighbours:
    """A container of the names that such libraries define. Close it after use.

    Found as a package loads them: in the file's folder, and where RPATH and RUNPATH lead
    from $ORIGIN. Libraries that other projects own (torch, CUDA, the system's) are none.
    What cannot be read defines nothing.
    """

    def __init__(self, path: str, elf: ElfFacts) -> None:
        self._objects: list[DynamicObject] = []
        seen = {os.path.realpath(path)}
        pending = [(absolute(path), elf.needed, (*elf.rpath, *elf.runpath))]
        while pending and len(self._objects) < MAX_LIBRARIES:
            where, needed, search = pending.pop(0)
            for soname in needed:
                found = _find(where, soname, search)
                real = os.path.realpath(found) if found else ""
                if not found or real in seen:
                    continue
                seen.add(real)
                try:
                    opened = DynamicObject.open(found)
                except ForensicsError:
                    continue  # it defines nothing; the loader's part says what is wrong with it
                self._objects.append(opened)
                pending.append((found, opened.needed, (*opened.rpath, *opened.runpath)))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not self._objects:
            return False
        raw = name.encode("utf-8", "surrogateescape")
        hashed = gnu_hash(raw)
        return any(o.lookup(raw, hashed, None) is not None for o in self._objects)

    def __enter__(self) -> Neighbours:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for opened in self._objects:
            opened.close()


def _find(where: str, soname: str, search: tuple[str, ...]) -> str | None:
    """A needed library beside a file, or on that file's own search path."""
    if "/" in soname or owner_of_library(soname) is not None:
        return None
    folder = os.path.dirname(where)
    for entry in (folder, *search):
        if entry == folder or _ORIGIN.search(entry):
            candidate = os.path.join(_ORIGIN.sub(lambda _: folder, entry), soname)
            if os.path.isfile(candidate):
                return candidate
    return None
