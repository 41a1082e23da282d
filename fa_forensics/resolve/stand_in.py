"""A torch that is not here takes the place of the installed one when a file is resolved."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from fa_forensics.facts.elf.dynamic import BIND_NAMES, DynamicObject, Symbol
from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.owner import is_cuda, is_cuda_library, is_torch
from fa_forensics.resolve.neighbours import Neighbours
from fa_forensics.resolve.resolution import Binding, Library, Resolution


class StandIn(Protocol):
    """What resolving needs to know of a torch whose files are not here.

    Places are texts such as ``torch==2.9.1+cu128/lib/libc10.so``: no paths of this machine.
    """

    @property
    def name(self) -> str:
        """What messages call it: ``torch 2.9.1+cu128``."""

    @property
    def system_libraries(self) -> tuple[str, ...]:
        """The sonames of the system's libraries that torch's own need."""

    def owns(self, soname: str) -> bool:
        """Whether a soname is one of torch's own, in whatever build."""

    def brings(self, soname: str) -> str | None:
        """The place of a library that is loaded with this torch, or None."""

    def loaded_with(self, sonames: Iterable[str]) -> frozenset[str]:
        """The brought libraries among these and all that they load of torch."""

    def exporter(
        self, symbol: str, version: str | None, version_file: str | None, loaded: frozenset[str]
    ) -> str | None:
        """The place of the library, of those in ``loaded``, that exports a symbol."""

    def exported_unlinked(self, symbol: str) -> str | None:
        """The place of any torch library that exports a symbol."""

    def nearest(self, symbol: str) -> Sequence[tuple[str, str, str, str]]:
        """(symbol, demangled, place, relation) of names that stand in a missing one's place."""


def bind_elsewhere(
    bindings: Sequence[Binding], stand_in: StandIn, loaded: frozenset[str]
) -> tuple[Binding, ...]:
    """Bindings without a provider here, bound to what the stand-in's libraries export."""
    bound = []
    for row in bindings:
        if row.provider is None:
            place = stand_in.exporter(row.symbol, row.version, row.version_file, loaded)
            if place is not None:
                row = replace(row, provider=place, provider_soname=place.rpartition("/")[2])
        bound.append(row)
    return tuple(bound)


def resolve_by_table(
    path: str, elf: ElfFacts, owners: Mapping[int, tuple[str, str]], stand_in: StandIn
) -> Resolution:
    """A file resolved against a stand-in alone, where no environment can take part.

    Only torch's and CUDA's own libraries and names are judged; all others are left out of
    the result, as nothing can be said of them. Names that a library beside the file
    defines count as found. Raises ``ForensicsError`` when the file cannot be read again.
    """
    with Neighbours(path, elf) as neighbours:
        return _resolve(path, elf, owners, stand_in, neighbours)


def _resolve(
    path: str,
    elf: ElfFacts,
    owners: Mapping[int, tuple[str, str]],
    stand_in: StandIn,
    neighbours: Container[str],
) -> Resolution:
    loaded = stand_in.loaded_with(elf.needed)
    libraries = tuple(
        _library(soname, elf.path, stand_in)
        for soname in elf.needed
        if stand_in.owns(soname) or is_cuda_library(soname)
    )
    order = _order_of(path)
    rows = [
        _binding(symbol, order.get(symbol.index, -1))
        for symbol in elf.undefined
        if is_torch(owners[symbol.index][1]) or is_cuda(owners[symbol.index][1])
    ]
    bindings = bind_elsewhere(rows, stand_in, loaded)
    bindings = tuple(b for b in bindings if b.provider or b.symbol not in neighbours)
    return Resolution(
        libraries=libraries,
        bindings=bindings,
        version_misses=(),
        dependency_misses=(),
        scope=(),
        loaded_with_torch=(),
        torch_misses=(),
        problems=(),
        first_failure=_first_failure(elf.path, libraries, bindings),
    )


def _library(soname: str, needed_by: str, stand_in: StandIn) -> Library:
    place = stand_in.brings(soname)
    if place is None:
        return Library(soname, needed_by, None, "not found", (f"what {stand_in.name} brings",))
    return Library(soname, needed_by, place, f"comes with {stand_in.name}")


def _order_of(path: str) -> dict[int, int]:
    """Index of each symbol that a relocation uses → its place in the loader's work."""
    order: dict[int, int] = {}
    dynamic = DynamicObject.open(path)
    try:
        for place, (index, _kind) in enumerate(dynamic.symbol_relocations()):
            order.setdefault(index, place)
    finally:
        dynamic.close()
    return order


def _binding(symbol: Symbol, order: int) -> Binding:
    return Binding(
        index=symbol.index,
        symbol=symbol.name.decode("utf-8", "backslashreplace"),
        version=symbol.version,
        version_file=symbol.version_file,
        bind=BIND_NAMES.get(symbol.bind, f"bind {symbol.bind}"),
        order=order,
        provider=None,
        provider_soname=None,
        table=f".dynsym[{symbol.index}]",
    )


def _first_failure(
    path: str, libraries: Sequence[Library], bindings: Sequence[Binding]
) -> str | None:
    for library in libraries:
        if library.path is None:
            return f"{library.soname}: cannot open shared object file: No such file or directory"
    missing = sorted((b for b in bindings if b.missing), key=lambda b: b.order)
    if not missing:
        return None
    version = f", version {missing[0].version}" if missing[0].version else ""
    return f"{path}: undefined symbol: {missing[0].symbol}{version}"
