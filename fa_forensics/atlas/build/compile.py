"""Records of torch builds → the shipped tables ``torch.trie``, ``torch.sets``, ``torch.json``.

The tables depend on the set of builds alone, not on the order or the portions in which
their records came: the same builds give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import marisa_trie

from fa_forensics.atlas.builds import Build, release_key
from fa_forensics.atlas.presence import BINDS, Row, pack_sets
from fa_forensics.atlas.store import Atlas
from fa_forensics.atlas.tables import write_index, write_table
from fa_forensics.records import dataclass

#: Nested tries: more of them make the file smaller and look-ups slower. Measured on two
#: releases: 3 give 1.53 MB, 8 give 1.28 MB, 16 give 1.24 MB, at 7, 9 and 13 us a look-up.
NESTED_TRIES = 8

#: (library, bind, place of the build) of one exported name, while compiling.
_Fact = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was written: how many builds, names and sets, and the bytes of the three files."""

    builds: int
    names: int
    sets: int
    size: int


class _States:
    """The different sets of facts met so far; every name is in one of them.

    Adding a fact moves a name to another state; each such step is worked out once.
    """

    def __init__(self) -> None:
        self._facts: list[frozenset[_Fact]] = [frozenset()]
        self._number = {self._facts[0]: 0}
        self._steps: dict[tuple[int, _Fact], int] = {}
        self._joints: dict[tuple[int, int], int] = {}

    def with_fact(self, state: int, fact: _Fact) -> int:
        """The state of a name in ``state`` once ``fact`` holds for it, too."""
        step = state, fact
        number = self._steps.get(step)
        if number is None:
            number = self._steps[step] = self.number(self._facts[state] | {fact})
        return number

    def joined(self, one: int, other: int) -> int:
        """The state of a name for which the facts of both hold."""
        number = self._joints.get((one, other))
        if number is None:
            facts = self._facts[one] | self._facts[other]
            number = self._joints[one, other] = self.number(facts)
        return number

    def number(self, facts: frozenset[_Fact]) -> int:
        """The state for these facts."""
        found = self._number.get(facts)
        if found is None:
            found = self._number[facts] = len(self._facts)
            self._facts.append(facts)
        return found

    def facts(self, state: int) -> frozenset[_Fact]:
        """The facts of a state."""
        return self._facts[state]


def compile_torch(
    records: Iterable[Mapping[str, Any]], directory: str, previous: str | None = None
) -> Compiled:
    """Write the torch tables for these records into ``directory``.

    ``previous`` is a directory with tables to start
    from: their builds are kept, except those that a record replaces. The three files are
    replaced one by one, the index last; until then the old index refuses the new tables.

    Raises AtlasDamaged when the tables in ``previous`` are damaged.
    """
    builds: list[Build] = []
    states = _States()
    names: dict[bytes, int] = {}
    before = Atlas.open(previous) if previous is not None else None
    for record in records:
        # One after the other: sixty records at once would take 2 GB.
        _take_record(record, builds, states, names)
    if before is not None:
        replaced = {(build.release, build.machine) for build in builds}
        _take_previous(before, replaced, builds, states, names)
    return _write(builds, states, names, directory)


def _take_record(
    record: Mapping[str, Any], builds: list[Build], states: _States, names: dict[bytes, int]
) -> None:
    """Add one build and its exported names."""
    place = len(builds)
    builds.append(Build.from_json(record))
    for library, binds in record["libraries"].items():
        for bind, exported in binds.items():
            fact = library, BINDS.index(bind), place
            for text in exported:
                name = text.encode("utf-8", "surrogateescape")
                names[name] = states.with_fact(names.get(name, 0), fact)


def _take_previous(
    atlas: Atlas,
    replaced: set[tuple[str, str]],
    builds: list[Build],
    states: _States,
    names: dict[bytes, int],
) -> None:
    """Add the builds of existing tables, without those that are replaced."""
    places: dict[int, int] = {}
    for bit, build in enumerate(atlas.all_builds()):
        if (build.release, build.machine) not in replaced:
            places[bit] = len(builds)
            builds.append(build)
    known: dict[int, int] = {}
    for name, number in atlas.names_and_sets():
        state = known.get(number)
        if state is None:
            facts = frozenset(
                (library, bind, places[bit])
                for library, bind, mask in atlas.rows_of_set(number)
                for bit in places
                if mask >> bit & 1
            )
            state = known[number] = states.number(facts)
        if state:
            names[name] = states.joined(names.get(name, 0), state)


def _write(
    builds: list[Build], states: _States, names: dict[bytes, int], directory: str
) -> Compiled:
    """Number everything in a fixed order and write the files."""
    order = sorted(
        range(len(builds)), key=lambda i: (release_key(builds[i].release), builds[i].machine)
    )
    if len({(build.release, build.machine) for build in builds}) != len(builds):
        raise ValueError("two records of one release and machine")
    bit_of = {place: bit for bit, place in enumerate(order)}
    libraries = sorted({library for build in builds for library in build.libraries})
    library_number = {library: number for number, library in enumerate(libraries)}

    def rows(state: int) -> tuple[Row, ...]:
        masks: dict[tuple[int, int], int] = {}
        for library, bind, place in states.facts(state):
            key = library_number[library], bind
            masks[key] = masks.get(key, 0) | 1 << bit_of[place]
        return tuple(Row(*key, masks[key]) for key in sorted(masks))

    rows_of = {state: rows(state) for state in set(names.values())}
    sets = sorted(rows_of.values())
    set_number = {entries: number for number, entries in enumerate(sets)}
    trie = marisa_trie.BinaryTrie(sorted(names), num_tries=NESTED_TRIES)
    numbers = [0] * len(names)
    for name, state in names.items():
        numbers[trie[name]] = set_number[rows_of[state]]
    os.makedirs(directory, exist_ok=True)
    tables = {
        "torch.sets": write_table(directory, "torch.sets", pack_sets(sets, numbers, len(builds))),
        "torch.trie": write_table(directory, "torch.trie", trie.tobytes()),
    }
    index = {
        "libraries": libraries,
        "builds": [builds[place].as_json() for place in order],
        "tables": tables,
    }
    write_index(directory, "torch.json", index)
    size = sum(table["size"] for table in tables.values())
    size += os.path.getsize(os.path.join(directory, "torch.json"))
    return Compiled(len(builds), len(names), len(sets), size)
