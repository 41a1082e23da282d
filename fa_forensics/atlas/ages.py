"""All of torch's releases since 1.0.0: the shipped tables, and before them the early ones.

The early releases (1.0.0 to 1.11.0, x86_64) only tell when a name lived. Nobody inspects a
file against them any more, so they have tables of their own and the main ones stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest

from fa_forensics.atlas.builds import Build, nearest_releases
from fa_forensics.atlas.store import Atlas, Export
from fa_forensics.atlas.tables import SHIPPED

#: Where the tables of the early releases lie.
EARLY = os.path.join(SHIPPED, "early")


class Ages(Atlas):
    """The early tables and the main ones, read as one atlas."""

    def __init__(self, early: Atlas, atlas: Atlas) -> None:
        self._early, self._late = early, atlas

    @classmethod
    def of(cls, atlas: Atlas, directory: str = EARLY) -> Ages:
        """The main tables with the early ones before them. Raises AtlasDamaged."""
        return cls(Atlas.open(directory), atlas)

    def builds(self, machine: str = "x86_64") -> tuple[Build, ...]:
        """The builds for a machine, oldest release first."""
        return (*self._early.builds(machine), *self._late.builds(machine))

    def machines(self) -> tuple[str, ...]:
        """The machines that builds are known for, sorted."""
        return self._late.machines()

    def releases(self, machine: str = "x86_64") -> tuple[str, ...]:
        """The releases known for a machine, oldest first."""
        return (*self._early.releases(machine), *self._late.releases(machine))

    def build(self, release: str, machine: str = "x86_64") -> Build | None:
        """One build, or ``None`` if the release is not known for that machine."""
        return self._late.build(release, machine) or self._early.build(release, machine)

    def nearest_releases(self, text: str) -> tuple[str, ...]:
        """Known releases to offer for a text that names none."""
        return nearest_releases(text, self.releases())

    def exports(self, name: str, machine: str = "x86_64") -> tuple[Export, ...]:
        """Every release and library that exports a name, oldest release first."""
        return (*self._early.exports(name, machine), *self._late.exports(name, machine))

    def releases_of(self, name: str, machine: str = "x86_64") -> tuple[str, ...]:
        """The releases that export a name from any of their libraries, oldest first."""
        return (*self._early.releases_of(name, machine), *self._late.releases_of(name, machine))

    def exporting_all(
        self, names: Iterable[str], machine: str = "x86_64"
    ) -> tuple[tuple[str, ...], Mapping[str, tuple[str, ...]]]:
        """The releases that export all names; for each of the others, the names it lacks."""
        wanted = tuple(names)
        early, lacking_early = self._early.exporting_all(wanted, machine)
        late, lacking_late = self._late.exporting_all(wanted, machine)
        return (*early, *late), {**lacking_early, **lacking_late}

    def search(self, prefix: bytes, machine: str) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """(name, releases) of every name that starts so, from both tables in turn."""
        both = zip_longest(self._from_late(prefix, machine), self._early_alone(prefix, machine))
        return (found for found in chain.from_iterable(both) if found is not None)

    def _from_late(self, prefix: bytes, machine: str) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        for name, releases in self._late.search(prefix, machine):
            text = name.decode("utf-8", "surrogateescape")
            yield name, (*self._early.releases_of(text, machine), *releases)

    def _early_alone(self, prefix: bytes, machine: str) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        for name, releases in self._early.search(prefix, machine):
            if not self._late.releases_of(name.decode("utf-8", "surrogateescape"), machine):
                yield name, releases
