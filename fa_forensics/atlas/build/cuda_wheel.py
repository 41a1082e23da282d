"""NVIDIA's CUDA wheels on the package index made into records: what their libraries export.

A record is the builder's intermediate, one xz-packed JSON file a wheel;
``compile_cuda.py`` makes the shipped table from it. Which wheels: ``data/cuda.wheels.json``.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fa_forensics.atlas.build.front import Export, is_export, read_front
from fa_forensics.atlas.build.index import (
    RemoteWheel,
    WheelFile,
    choose_wheel,
    list_wheels,
    open_wheel,
    version_key,
)
from fa_forensics.atlas.build.records import FORMAT, Record
from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject

MACHINE = "x86_64"
#: A member's first bytes are looked at when this much of it has been unpacked.
FRONTS = (1 << 20, 4 << 20)

_LIBRARY = re.compile(r"(?:^|/)([^/]+\.so(?:\.[0-9.]+)?)$")

#: Told how many bytes (unpacked) of the wheel were read since the last call.
Progress = Callable[[int], None]


def settings() -> dict[str, Any]:
    """The shipped list of distributions (``data/cuda.wheels.json``)."""
    path = os.path.join(os.path.dirname(__file__), "..", "data", "cuda.wheels.json")
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def published(distribution: str) -> dict[str, WheelFile]:
    """Version → wheel of every final release for Linux x86_64, oldest first.

    Release candidates and development builds count only when asked for by name. Raises
    NoSuchWheel, IndexFailure.
    """
    wheels = list_wheels(distribution, MACHINE)
    versions = sorted({wheel.version for wheel in wheels}, key=version_key)
    return {
        version: choose_wheel(wheels, version, MACHINE)
        for version in versions
        if not version_key(version).is_prerelease
    }


def newest_of_each_minor(versions: Iterable[str]) -> set[str]:
    """Of versions that share their first two numbers, the newest."""
    found: dict[tuple[int, ...], str] = {}
    for version in sorted(versions, key=version_key):
        found[version_key(version).release[:2]] = version
    return set(found.values())


def record_path(directory: str, distribution: str, version: str) -> str:
    """Where the record of a wheel is kept."""
    return os.path.join(directory, f"{distribution}-{version}.json.xz")


def read_wheel(
    file: WheelFile,
    never: Iterable[str] = (),
    limit: int | None = None,
    progress: Progress | None = None,
) -> Record:
    """The record of one wheel on the index.

    ``never``: starts of the names of members that are not read. ``limit``: members larger
    than this (bytes, packed) are read only where their tables lie at the front; where one was
    passed over for it, the record's ``complete`` is false. ``unread`` names both kinds.
    Raises IndexFailure; ForensicsError for a library that cannot be read.
    """
    libraries: dict[str, Any] = {}
    unread, complete = [], True
    with open_wheel(file) as wheel:
        for member in wheel.names():
            match = _LIBRARY.search(member)
            if match is None or not wheel.size(member):
                continue
            name = match[1]
            found = None
            if not name.startswith(tuple(never)):
                found = read_member(wheel, member, limit, progress)
                complete = complete and found is not None
            if found is None:
                unread.append(name)
                continue
            soname, how, exports = found
            libraries[soname or name] = {
                "file": name,
                "read": how,
                "exports": [[e.name, e.version, e.default] for e in sorted(exports, key=_order)],
            }
    return {
        "format": FORMAT,
        "distribution": file.project,
        "version": file.version,
        "wheel": file.filename,
        "date": file.date,
        "libraries": libraries,
        "unread": sorted(unread),
        "complete": complete,
    }


def _order(export: Export) -> tuple[str, str]:
    return export.name, export.version or ""


def read_member(
    wheel: RemoteWheel, member: str, limit: int | None = None, progress: Progress | None = None
) -> tuple[str | None, str, tuple[Export, ...]] | None:
    """(soname, how it was read, exports) of one library in a wheel.

    Reads on to the end only where the front does not do, and a member larger than ``limit``
    never; then None. Raises IndexFailure, NotAnElfFile, DamagedFile.
    """
    pieces = _counted(wheel.chunks(member), progress or (lambda _count: None))
    head, ended = bytearray(), False
    for wanted in FRONTS:
        while len(head) < wanted and not ended:
            piece = next(pieces, b"")
            head += piece
            ended = not piece
        front = read_front(bytes(head))
        name = member.rpartition("/")[2]
        # Without versions of its own a library names itself only behind its code; it must at
        # least know the name that it goes by in the wheel.
        if front and (front.soname or b"\0" + name.encode() + b"\0" in front.strings):
            return front.soname, "front", front.exports
        if ended:
            break
    if limit is not None and wheel.compressed_size(member) > limit:
        return None
    with tempfile.NamedTemporaryFile(prefix="atlas-") as whole:
        whole.write(head)
        for piece in pieces:
            whole.write(piece)
        whole.flush()
        soname, exports = read_file(whole.name)
        return soname, "whole", exports


def _counted(pieces: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    for piece in pieces:
        progress(len(piece))
        yield piece


def read_file(path: str) -> tuple[str | None, tuple[Export, ...]]:
    """(soname, exports) of a library on disk, as the loader sees it.

    Raises NotAnElfFile, DamagedFile, ForensicsError when its tables are damaged.
    """
    library = DynamicObject.open(path)
    try:
        exports = []
        for symbol in library.symbols():
            name = symbol.name.decode("utf-8", "backslashreplace")
            export = Export(name, symbol.version, not symbol.hidden)
            if is_export(export, symbol.bind, symbol.visibility, symbol.shndx):
                exports.append(export)
        if library.problems:
            raise ForensicsError(f"{path}: {library.problems[0]}")
        return library.soname, tuple(exports)
    finally:
        library.close()
