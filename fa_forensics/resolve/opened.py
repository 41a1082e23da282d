"""Libraries that many files of one run are held against, opened once and kept."""

from __future__ import annotations

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject


class Opened:
    """Shared objects by path, mapped until ``close``."""

    def __init__(self) -> None:
        self._objects: dict[str, DynamicObject | None] = {}

    def get(self, path: str) -> DynamicObject | None:
        """The object of a path, None where it cannot be read as one."""
        if path not in self._objects:
            try:
                self._objects[path] = DynamicObject.open(path)
            except ForensicsError:
                self._objects[path] = None
        return self._objects[path]

    def close(self) -> None:
        """Unmap every file."""
        for found in self._objects.values():
            if found is not None:
                found.close()
        self._objects = {}
