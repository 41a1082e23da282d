"""The shared objects that this very process has mapped, each with its build-id."""

from __future__ import annotations

import os
from typing import NamedTuple

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.build_id import build_id
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.image import ElfImage

_MAPS = "/proc/self/maps"
#: Lines of the list that are read: a process with all CUDA libraries has some thousands.
_MOST_LINES = 200_000


class LoadedFile(NamedTuple):
    """A mapped shared object.

    ``name`` is its soname, or its file name where it has none; ``problem`` says why it could
    not be read, if so.
    """

    path: str
    name: str
    build_id: str | None
    problem: str | None


def loaded_files() -> tuple[LoadedFile, ...]:
    """Every file that this process maps and may run code of, by path.

    Raises ``OSError`` where the system does not list what is mapped (no /proc).
    """
    paths: dict[str, None] = {}
    with open(_MAPS, encoding="utf-8", errors="surrogateescape") as maps:
        for number, line in enumerate(maps):
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                paths[fields[5]] = None
            if number > _MOST_LINES:
                break
    return tuple(_read(path) for path in sorted(paths))


def _read(path: str) -> LoadedFile:
    name = os.path.basename(path)
    if path.endswith(" (deleted)") and not os.path.lexists(path):
        name = name.removesuffix(" (deleted)")
        return LoadedFile(path, name, None, "it was deleted or replaced after it was loaded")
    try:
        with ElfImage(path) as image:
            return LoadedFile(path, DynamicObject(image).soname or name, build_id(image), None)
    except ForensicsError as error:
        return LoadedFile(path, name, None, error.message)
