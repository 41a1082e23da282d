"""Which torch releases export every torch name that a file needs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.atlas.store import Atlas


class TorchSymbol(NamedTuple):
    """A strong undefined name whose owner is torch, whichever library has it."""

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Window:
    """The releases that a file links with, and what the others lack.

    ``releases`` export every one of ``names``, oldest first. ``missing`` has, for each other
    release, the names that it lacks and some release exports; ``nowhere`` those that none
    does, for which no release of the table is complete. ``symbols`` counts the names that
    were given; those in ``provided_by_siblings`` come from the file's own package.
    """

    machine: str
    releases: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]
    symbols: int
    provided_by_siblings: tuple[str, ...]
    nowhere: tuple[str, ...]
    names: tuple[str, ...] = ()


def links_with(
    symbols: Sequence[TorchSymbol], machine: str, atlas: Atlas, sibling_exports: Container[str]
) -> Window:
    """The window of one file, from its strong undefined torch names.

    Weak undefined names do not count: the loader does without them. ``sibling_exports`` are
    the names that libraries of its own package define, which the loader takes from there.
    """
    own: list[str] = []
    names: list[str] = []
    for name in dict.fromkeys(symbol.name for symbol in symbols):
        (own if name in sibling_exports else names).append(name)
    releases, lacking = atlas.exporting_all(names, machine)
    nowhere: tuple[str, ...] = ()
    if not releases:
        nowhere = tuple(name for name in names if not atlas.releases_of(name, machine))
    missing = {
        release: known
        for release, absent in lacking.items()
        if (known := tuple(name for name in absent if name not in nowhere))
    }
    return Window(machine, releases, missing, len(symbols), tuple(own), nowhere, tuple(names))
