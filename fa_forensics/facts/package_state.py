"""The state of one installed CUDA extension package: its metadata, files and copies, gathered."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fa_forensics.facts.conda import CondaPackage
from fa_forensics.facts.installed import Installed
from fa_forensics.facts.module_copies import Copy
from fa_forensics.facts.record import Record, RecordCheck
from fa_forensics.records import dataclass

#: Bound on the entries of a package's own directories that are compared with its RECORD.
MAX_FILES = 20_000


@dataclass(frozen=True, slots=True)
class PackageState:
    """One project and all that was found of it.

    ``name`` is as its metadata writes it. ``installed`` are its metadata directories in
    sys.path order: the first is what pip and importlib.metadata answer with. ``copies`` maps
    each of its importable names to the copies on sys.path, the winner first. ``extensions``
    are its files that use torch or CUDA, ``expects_extension`` whether a build of it always
    has some. ``leftovers`` are files in its directories that no RECORD lists; ``tags_misfit``
    says why its wheel's tags are not for this interpreter; ``source_gone`` is the source
    tree of an editable install that is not there.
    """

    name: str
    installed: tuple[Installed, ...]
    copies: tuple[tuple[Copy, ...], ...]
    extensions: tuple[str, ...]
    check: RecordCheck | None
    leftovers: tuple[str, ...] = ()
    expects_extension: bool = False
    tags_misfit: str | None = None
    conda: CondaPackage | None = None
    source_gone: str | None = None
    in_current_directory: str | None = None
    python: str = "python"

    @property
    def version(self) -> str:
        """The version that pip shows, "" where it is not known."""
        return self.installed[0].version if self.installed else ""

    @property
    def winner(self) -> Copy | None:
        """The copy that importing the package takes."""
        return next((copies[0] for copies in self.copies if copies), None)


@dataclass(frozen=True, slots=True)
class Stray:
    """A package or module that uses torch or CUDA and belongs to no distribution.

    ``origin`` says what put a directory on sys.path that is none of installed packages: then
    nothing is wrong with it. ``importable`` is false for a module of another Python.
    """

    path: str
    site: str
    extensions: tuple[str, ...] = ()
    origin: str = ""
    importable: bool = True


def listed_paths(records: Sequence[Record]) -> Mapping[str, set[str]]:
    """Top-level name → the normal paths, relative to the directory, that the RECORDs list."""
    listed: dict[str, set[str]] = {}
    for record in records:
        for entry in record.entries:
            path = entry.path
            if path.endswith((".py", ".so")):
                path = os.path.normpath(path) if "./" in path or "//" in path else path
                listed.setdefault(path.partition("/")[0], set()).add(path)
    return listed


def extra_files(tops: Sequence[str], site: str, listed: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Sources and shared objects in a package's directories that no RECORD lists.

    ``tops`` are the directories' names in ``site``, ``listed`` what ``listed_paths`` gave for
    it. Byte code is left aside.
    """
    known = {path for top in tops for path in listed.get(top, ())}
    start = len(site) + 1
    found: list[str] = []
    pending = [os.path.join(site, top) for top in sorted(tops)]
    count = 0
    while pending and count < MAX_FILES:
        directory = pending.pop()
        try:
            with os.scandir(directory) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue  # that it cannot be read is told of the files in it
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    pending.append(entry.path)
            elif entry.name.endswith((".py", ".so")) and entry.path[start:] not in known:
                found.append(entry.path)
    return tuple(sorted(found))
