"""One target resolved in one environment, its missing symbols explained by their neighbours."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.files import absolute
from fa_forensics.facts.owner import is_cuda_library, is_torch, libraries_of, owner_of_library
from fa_forensics.records import dataclass
from fa_forensics.report import Skipped
from fa_forensics.resolve.bind import find_provider
from fa_forensics.resolve.environment_process import (
    foreign_loader,
    open_linker,
    torch_names,
)
from fa_forensics.resolve.explain import Missing, Sibling
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.nearest import NameIndex, Near
from fa_forensics.resolve.opened import Opened
from fa_forensics.resolve.resolution import Binding, Resolution

if TYPE_CHECKING:
    from fa_forensics.resolve.stand_in import StandIn

#: Neighbours are looked for in this many missing symbols, in the loader's order: each
#: costs 5 to 10 ms, and a file of another release can miss hundreds.
MAX_EXPLAINED = 12


@dataclass(frozen=True, slots=True)
class Linked:
    """The resolution of one target, or why there is none.

    ``siblings`` are libraries of its own directory that the loader does not find by
    itself. With ``as_package`` the resolution has them loaded first; without it,
    ``left_with_siblings`` counts what would still be missing then (None: not looked).
    """

    resolution: Resolution | None
    missing: tuple[Missing, ...]
    siblings: tuple[Sibling, ...]
    skipped: tuple[Skipped, ...]
    uses_torch: bool
    as_package: bool = False
    left_with_siblings: int | None = None


class Linkers:
    """The processes of one environment, kept from file to file: torch is imported once.

    ``opened`` are libraries that were read besides. Close it after use.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._open: dict[bool, Linker] = {}
        self._names: dict[str, NameIndex] = {}
        self.opened = Opened()

    def get(self, with_torch: bool) -> Linker:
        """A process in which nothing but torch was opened. Raises as ``open_linker``."""
        if with_torch not in self._open:
            self._open[with_torch] = open_linker(self.environment, with_torch)
        self._open[with_torch].rewind()
        return self._open[with_torch]

    def names(self, linker: Linker, torch_dir: str) -> NameIndex:
        """The names of torch's libraries in the process with torch."""
        if torch_dir not in self._names:
            self._names[torch_dir] = torch_names(linker, torch_dir)
        return self._names[torch_dir]

    def close(self) -> None:
        """Unmap every file."""
        for linker in self._open.values():
            linker.close()
        self._open, self._names = {}, {}
        self.opened.close()


def link_target(
    path: str,
    elf: ElfFacts,
    environment: Environment,
    owners: Mapping[int, tuple[str, str]],
    as_package: bool,
    stand_in: StandIn | None = None,
    linkers: Linkers | None = None,
) -> Linked:
    """Resolve a file in an environment.

    ``linkers`` are processes of this environment to use again; without them one is made.

    ``owners`` maps a symbol's index to (demangled, owner). With ``as_package`` the file is
    loaded as its package does it: libraries of its own directory that it cannot find are
    opened first; with ``stand_in`` as if that torch were the installed one. Nothing is
    raised: what keeps the file from being resolved becomes a ``Skipped``.
    """
    uses_torch = any(is_torch(owner) for _, owner in owners.values()) or any(
        is_torch(owner_of_library(soname) or "") for soname in elf.needed
    )
    reason = _cannot_resolve(elf, environment, uses_torch and stand_in is None)
    if stand_in is not None and (elf.machine != environment.machine or foreign_loader(environment)):
        return _by_table(path, elf, environment, owners, stand_in, uses_torch)
    if reason is not None:
        return Linked(None, (), (), (Skipped("link", reason),), uses_torch)
    try:
        first = _link_once(path, elf, environment, owners, uses_torch, (), stand_in, linkers)
        if not first.siblings:
            return first
    except ForensicsError as error:
        return Linked(None, (), (), (Skipped("link", error.message),), uses_torch)
    try:
        preload = [sibling.path for sibling in first.siblings]
        second = _link_once(path, elf, environment, owners, uses_torch, preload, stand_in, linkers)
    except ForensicsError:
        return first  # a damaged neighbour changes nothing about this file
    if as_package:
        return replace(second, siblings=first.siblings, as_package=True)
    assert second.resolution is not None
    left = len(second.resolution.missing_libraries) + len(second.missing)
    return replace(first, left_with_siblings=left)


def _link_once(
    path: str,
    elf: ElfFacts,
    environment: Environment,
    owners: Mapping[int, tuple[str, str]],
    uses_torch: bool,
    preload: Sequence[str],
    stand_in: StandIn | None,
    linkers: Linkers | None,
) -> Linked:
    with_torch = loads_after_torch(elf, uses_torch)
    torch = environment.torch if with_torch else None
    kept = linkers if stand_in is None else None
    linker = kept.get(with_torch) if kept else open_linker(environment, with_torch, stand_in)
    try:
        resolution = linker.resolve(path, elf.symbols, preload)
        missing = _explain(linker, resolution, owners, torch.path if torch else None, kept)
        siblings = _siblings(path, resolution)
        skipped = [Skipped("link", problem) for problem in linker.process.searcher.problems]
        return Linked(resolution, missing, siblings, tuple(skipped), uses_torch)
    finally:
        if kept is None:
            linker.close()


def loads_after_torch(elf: ElfFacts, uses_torch: bool) -> bool:
    """Whether a program imports torch before it loads the file.

    It does where the file uses torch, and where it needs CUDA libraries, which come with
    torch (bitsandbytes). For any other file, torch would only be in the way.
    """
    return uses_torch or any(is_cuda_library(soname) for soname in elf.needed)


def _cannot_resolve(elf: ElfFacts, environment: Environment, uses_torch: bool) -> str | None:
    if elf.machine != environment.machine:
        return (
            f"the file is for {elf.machine}, the Python at {environment.python} is for "
            f"{environment.machine}: nothing of it can be looked up here"
        )
    foreign = foreign_loader(environment)
    if foreign is not None:
        return foreign
    unreadable = _cannot_read(elf)
    if unreadable is not None:
        return unreadable
    if uses_torch and environment.torch is None:
        return environment.torch_problem or f"no torch is installed in {environment.prefix}"
    return None


def _cannot_read(elf: ElfFacts) -> str | None:
    if elf.type != "shared object" or not elf.has_dynamic:
        return "the file has no dynamic section that a loader could read"
    if elf.cut_short:
        return "the file is cut short, so its tables cannot be trusted"
    return None


def _by_table(
    path: str,
    elf: ElfFacts,
    environment: Environment,
    owners: Mapping[int, tuple[str, str]],
    stand_in: StandIn,
    uses_torch: bool,
) -> Linked:
    """Torch's and CUDA's part alone: this environment's interpreter cannot take the file."""
    from fa_forensics.resolve.stand_in import resolve_by_table

    reason = _cannot_read(elf)
    if reason is not None:
        return Linked(None, (), (), (Skipped("link", reason),), uses_torch)
    try:
        resolution = resolve_by_table(path, elf, owners, stand_in)
    except ForensicsError as error:
        return Linked(None, (), (), (Skipped("link", error.message),), uses_torch)
    absent = {library.soname for library in resolution.missing_libraries}
    rows: list[Missing] = []
    for binding in resolution.missing:
        demangled, owner = owners[binding.index]
        library = _absent_library(binding, owner, absent)
        row = Missing(binding, demangled, owner, library)
        if library is None and is_torch(owner) and len(rows) < MAX_EXPLAINED:
            near = tuple(Near(*entry) for entry in stand_in.nearest(binding.symbol))
            row = Missing(binding, demangled, owner, None, near, nearest_sought=True)
        rows.append(row)
    foreign = foreign_loader(environment) or f"the Python here is for {environment.machine}"
    skip = Skipped(
        "link",
        f"only torch's and CUDA's part was judged, nothing of the system: {foreign}",
    )
    return Linked(resolution, tuple(rows), (), (skip,), uses_torch)


def _explain(
    linker: Linker,
    resolution: Resolution,
    owners: Mapping[int, tuple[str, str]],
    torch_dir: str | None,
    linkers: Linkers | None,
) -> tuple[Missing, ...]:
    stand_in = linker.stand_in
    absent = {library.soname for library in resolution.missing_libraries}
    too_old = {(miss.soname, miss.version) for miss in resolution.version_misses}
    index: NameIndex | None = None
    explained = 0
    rows = []
    for binding in resolution.missing:
        demangled, owner = owners[binding.index]
        library = _absent_library(binding, owner, absent)
        if (binding.version_file, binding.version) in too_old:
            library = binding.version_file
        row = Missing(binding, demangled, owner, library)
        if library is None:
            found = _exported_elsewhere(linker, binding)
            if found is None and stand_in is not None:
                found = stand_in.exported_unlinked(binding.symbol)
            row = replace(row, exported_by=found)
        if row.exported_by is not None:
            rows.append(row)
            continue
        if library is None and is_torch(owner) and torch_dir and explained < MAX_EXPLAINED:
            index = index or (linkers.names(linker, torch_dir) if linkers
                              else torch_names(linker, torch_dir))  # fmt: skip
            near = index.nearest(binding.symbol, libraries_of(owner))
            row = Missing(binding, demangled, owner, None, near, nearest_sought=True)
            explained += 1
        elif library is None and is_torch(owner) and stand_in and explained < MAX_EXPLAINED:
            near = tuple(Near(*entry) for entry in stand_in.nearest(binding.symbol))
            row = Missing(binding, demangled, owner, None, near, nearest_sought=True)
            explained += 1
        rows.append(row)
    return tuple(rows)


def _exported_elsewhere(linker: Linker, binding: Binding) -> str | None:
    """A loaded library, outside the file's scope, that exports a missing symbol."""
    name = binding.symbol.encode("utf-8", "surrogateescape")
    provider = find_provider(name, binding.version, linker.process.objects)
    return None if provider is None else provider.path


def _absent_library(binding: Binding, owner: str, absent: set[str]) -> str | None:
    """The soname of a missing library that would provide a symbol, or None."""
    if binding.version_file in absent:
        return binding.version_file
    for library in libraries_of(owner):
        for soname in sorted(absent):
            if soname == library or soname.startswith(library + "."):
                return soname
    if owner == "extension":
        # Its own names can come from any library of its package that was not found.
        own = sorted(soname for soname in absent if owner_of_library(soname) is None)
        return own[0] if own else None
    return None


def _siblings(path: str, resolution: Resolution) -> tuple[Sibling, ...]:
    """Missing libraries that lie in the file's own directory."""
    directory = os.path.dirname(absolute(path))
    found = []
    for library in resolution.missing_libraries:
        if "/" in library.soname:
            continue  # such a name is looked up from the current directory alone
        candidate = os.path.join(directory, library.soname)
        if os.path.isfile(candidate):
            found.append(Sibling(library.soname, candidate))
    return tuple(found)
