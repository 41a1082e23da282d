"""Records of NVIDIA's wheels → the shipped tables ``cuda.trie`` and ``cuda.json``.

The tables depend on the set of wheels alone, not on the order or the portions in which their
records came: the same wheels give the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import marisa_trie

from fa_forensics.atlas.build.cuda_wheel import MACHINE, settings
from fa_forensics.atlas.libraries import INDEX, SET_NUMBER, TRIE, CudaLibraries
from fa_forensics.atlas.tables import write_index, write_table

#: Nested tries: more of them make the file smaller and look-ups slower. Measured on 99,000
#: names: 3 give 0.83 MB, 8 give 0.60 MB, 16 give 0.58 MB.
NESTED_TRIES = 8

#: (distribution, version)
WheelKey = tuple[str, str]
#: One library of one wheel: (soname, wheel).
Place = tuple[str, WheelKey]

_PARTS = re.compile(r"(\d+)|(rc|a|b|dev)|([a-z]+)")


class Compiled(NamedTuple):
    """What was written: how many wheels, names and sets, and the bytes of both files."""

    wheels: int
    names: int
    sets: int
    size: int


def version_order(version: str) -> tuple[int, ...]:
    """A sort key: 2.25.1 before 2.25.1.post1 before 2.26.2, and 13.4.46rc1 before 13.4.46."""
    parts = [
        int(number) if number else -1 if before else 0
        for number, before, _after in _PARTS.findall(version)
    ]
    return (*parts, 0)


def compile_cuda(records: Iterable[Mapping[str, Any]], data: str, keep: bool) -> Compiled:
    """Write the tables into ``data`` from records and, with ``keep``, from the tables there.

    A record replaces what the tables have of the same wheel, unless it is the less complete
    one. Raises AtlasDamaged when the tables to keep are damaged.
    """
    there = keep and os.path.exists(os.path.join(data, INDEX))
    tables = CudaLibraries.open(data) if there else None
    known = tables.wheels() if tables else ()
    complete = {(wheel.distribution, wheel.version) for wheel in known if wheel.complete}
    wheels: dict[WheelKey, dict[str, Any]] = {}
    places: dict[str, set[Place]] = {}
    sonames: dict[WheelKey, set[str]] = {}
    for record in records:
        key = record["distribution"], record["version"]
        if key in complete and not record["complete"]:
            continue
        wheels[key] = _wheel_entry(record)
        sonames[key] = set(record["libraries"])
        for soname, library in record["libraries"].items():
            for name, version, default in library["exports"]:
                places.setdefault(_spelled(name, version, default), set()).add((soname, key))
    if tables:
        _take_previous(tables, wheels, places, sonames)
    return _write(wheels, places, sonames, data)


def _spelled(name: str, version: str | None, default: bool) -> str:
    return name if version is None else f"{name}{'@@' if default else '@'}{version}"


def _wheel_entry(record: Mapping[str, Any]) -> dict[str, Any]:
    entry = {key: record[key] for key in ("distribution", "version", "date", "wheel")}
    if record["unread"]:
        entry["unread"] = sorted(record["unread"])
    if not record["complete"]:
        entry["complete"] = False
    return entry


def _take_previous(
    tables: CudaLibraries,
    wheels: dict[WheelKey, dict[str, Any]],
    places: dict[str, set[Place]],
    sonames: dict[WheelKey, set[str]],
) -> None:
    """Add the wheels of existing tables that no record replaces."""
    replaced = set(wheels)
    for wheel in tables.wheels():
        key = wheel.distribution, wheel.version
        if key not in replaced:
            wheels[key] = _wheel_entry(wheel._asdict())
            sonames[key] = set()
    for soname in tables.sonames():
        for release in tables.releases(soname):
            key = release.distribution, release.version
            if key not in replaced:
                sonames[key].add(soname)
    for name, releases in tables.names():
        for release in releases:
            key = release.distribution, release.version
            if key not in replaced:
                places.setdefault(name, set()).add((release.soname, key))


def _write(
    wheels: Mapping[WheelKey, Mapping[str, Any]],
    places: Mapping[str, set[Place]],
    sonames: Mapping[WheelKey, set[str]],
    data: str,
) -> Compiled:
    """Number everything in a fixed order and write the files."""
    lines = {row["name"]: row["line"] for row in settings()["distributions"]}
    order = sorted(wheels, key=lambda key: (key[0], version_order(key[1])))
    number_of = {key: number for number, key in enumerate(order)}
    libraries: dict[str, str] = {}
    row_of: dict[Place, int] = {}
    for soname in sorted({soname for found in sonames.values() for soname in found}):
        of = [key for key in order if soname in sonames[key]]
        of.sort(key=lambda key: (version_order(key[1]), lines[key[0]]))
        libraries[soname] = " ".join(str(number_of[key]) for key in of)
        for key in of:
            row_of[soname, key] = len(row_of)
    rows = {name: _runs(sorted(row_of[place] for place in of)) for name, of in places.items()}
    sets = sorted(set(rows.values()))
    set_number = {text: number for number, text in enumerate(sets)}
    numbered = sorted((name, (set_number[text],)) for name, text in rows.items())
    trie = marisa_trie.RecordTrie(SET_NUMBER, numbered, num_tries=NESTED_TRIES)
    os.makedirs(data, exist_ok=True)
    table = write_table(data, TRIE, trie.tobytes())
    index = {
        "source": f"nvidia-* wheels on the package index, Linux {MACHINE}",
        "date": max((str(entry["date"]) for entry in wheels.values()), default=""),
        "distributions": {name: lines[name] for name in sorted({key[0] for key in order})},
        "wheels": [dict(wheels[key]) for key in order],
        "libraries": libraries,
        "sets": sets,
        "tables": {TRIE: table},
    }
    write_index(data, INDEX, index)
    size = table["size"] + os.path.getsize(os.path.join(data, INDEX))
    return Compiled(len(order), len(rows), len(sets), size)


def _runs(rows: Sequence[int]) -> str:
    """Sorted numbers as text: ``3-7 9``."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
