"""Where files stand among torch's releases: what they link with, what they were built on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import interval_text
from fa_forensics.errors import AtlasDamaged
from fa_forensics.facts.owner import is_torch
from fa_forensics.reading import FileFacts
from fa_forensics.report import ReleaseFacts, Skipped
from fa_forensics.resolve.neighbours import Neighbours

if TYPE_CHECKING:
    from fa_forensics.atlas.built import Built
    from fa_forensics.atlas.store import Atlas
    from fa_forensics.atlas.window import Window


class ReleaseTable:
    """The table of torch releases, opened when it is first asked; damage is told once.

    ``problem`` is one sentence when the table cannot be read; everything else still works.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._atlas: Atlas | None = None
        self.problem: str | None = None

    def atlas(self) -> Atlas | None:
        """The table, or None where it cannot be read."""
        if self._atlas is None and self.problem is None:
            from fa_forensics.atlas.store import Atlas

            try:
                self._atlas = Atlas.open(self._directory)
            except AtlasDamaged as error:
                self.problem = error.message
        return self._atlas

    def skipped(self, machine: str) -> tuple[Skipped, ...]:
        """Why nothing is said of releases to files of a machine; empty where it is."""
        atlas = self.atlas()
        if atlas is None:
            return (Skipped("atlas", self.problem or "the table of releases cannot be read"),)
        if not atlas.releases(machine):
            return (Skipped("atlas", f"no torch release for {machine} is in the table"),)
        return ()

    def lives(
        self, symbols: Iterable[str], machine: str
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """(symbol → the releases that export it, symbol → the same in words)."""
        atlas = self.atlas()
        if atlas is None:
            return {}, {}
        known = atlas.releases(machine)
        found = {symbol: atlas.releases_of(symbol, machine) for symbol in symbols}
        return found, {symbol: interval_text(rows, known) for symbol, rows in found.items()}


def place_files(files: Sequence[FileFacts], table: ReleaseTable) -> list[ReleaseFacts | None]:
    """The place of each file of one package, judged together; None where nothing can be said.

    That is so for a file that uses nothing of torch, and where the table has no answer.
    """
    rows: list[tuple[Window, Built] | None] = [_place_one(file, table) for file in files]
    placed = [row for row in rows if row is not None]
    if not placed:
        return [None] * len(files)
    from fa_forensics.atlas.built import judged_together

    together = iter(judged_together([built for _, built in placed]))
    shared = _shared([window for window, _ in placed])
    out: list[ReleaseFacts | None] = []
    for file, row in zip(files, rows, strict=True):
        if row is None:
            out.append(None)
            continue
        atlas = table.atlas()
        assert atlas is not None  # a row could be made
        known = atlas.releases(file.elf.machine)
        facts = _release_facts(file, row[0], next(together), known)
        out.append(
            replace(
                facts,
                together=len(placed),
                package_links=shared,
                package_text=interval_text(shared, known),
            )
        )
    return out


def _place_one(file: FileFacts, table: ReleaseTable) -> tuple[Window, Built] | None:
    owners = [owner for _, owner in file.owners.values()]
    machine = file.elf.machine
    if not any(is_torch(owner) for owner in owners) or table.skipped(machine):
        return None
    from fa_forensics.atlas.built import built_on
    from fa_forensics.atlas.window import TorchSymbol, links_with

    atlas = table.atlas()
    assert atlas is not None  # nothing was skipped
    symbols = [
        TorchSymbol(symbol.name.decode("utf-8", "surrogateescape"), file.owners[symbol.index][1])
        for symbol in file.elf.undefined
        if symbol.bind != STB_WEAK and is_torch(file.owners[symbol.index][1])
    ]
    with Neighbours(file.target.path, file.elf) as neighbours:
        window = links_with(symbols, machine, atlas, neighbours)
    toolkits = [toolkit.release for toolkit in file.toolkits.toolkits]
    name = file.target.member or file.target.path
    return window, built_on(window, atlas, file.traces, toolkits, name)


#: STB_WEAK: a weak reference may stay without a provider.
STB_WEAK = 2


def _release_facts(
    file: FileFacts, window: Window, built: Built, known: Sequence[str]
) -> ReleaseFacts:
    return ReleaseFacts(
        machine=file.elf.machine,
        known=tuple(known),
        links_with=window.releases,
        links_text=interval_text(window.releases, known),
        missing=grouped(window.missing, known),
        nowhere=window.nowhere,
        symbols=window.symbols,
        built_on=built.releases,
        built_text=interval_text(built.releases, known),
        best=built.best,
        evidence=built.evidence,
        confidence=built.confidence,
        problem=built.problem,
        stable_floor=window.releases[0] if file.stable_abi and window.releases else None,
    )


def grouped(
    missing: Mapping[str, tuple[str, ...]], known: Sequence[str]
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Consecutive releases that lack the same names, as (releases, names), oldest first."""
    groups: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    last = -2
    for at, release in enumerate(known):
        names = missing.get(release, ())
        if not names:
            continue
        if groups and last == at - 1 and groups[-1][1] == names:
            groups[-1] = ((*groups[-1][0], release), names)
        else:
            groups.append(((release,), names))
        last = at
    return tuple(groups)


def _shared(windows: Sequence[Window]) -> tuple[str, ...]:
    """The releases with which all files of a package link."""
    first, *rest = windows
    return tuple(r for r in first.releases if all(r in w.releases for w in rest))
