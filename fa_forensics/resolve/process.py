"""A process as ld.so would build it: objects in load order, scopes, one dlopen after another.

Nothing is executed. ``Process`` opens the files that the loader would map and keeps them
open (mapped, not read) until ``close``.

Rules: glibc 2.36, ``elf/dl-load.c`` (search order, recognising loaded objects),
``elf/dl-deps.c`` (breadth-first dependencies), ``elf/dl-open.c`` (scopes).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fa_forensics.errors import DamagedFile, ForensicsError, OutOfResources, UnreadableFile
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.refusal import loader_refusal
from fa_forensics.facts.files import absolute
from fa_forensics.records import dataclass
from fa_forensics.resolve.search import Searcher

if TYPE_CHECKING:
    from fa_forensics.resolve.stand_in import StandIn

#: How a library was found; these words appear in reports.
ALREADY_LOADED = "already loaded"
BY_PATH = "by its path"
RPATH, LD_LIBRARY_PATH, RUNPATH = "RPATH", "LD_LIBRARY_PATH", "RUNPATH"
CACHE, DEFAULT = "ld.so.cache", "default directory"


class LoadedObject:
    """One object of the process: its file, the names it answers to, what it needs."""

    __slots__ = (
        "borrowed",
        "dynamic",
        "found_by",
        "loader",
        "missing",
        "names",
        "needed",
        "origin",
        "path",
        "scope",
        "searched",
        "stage",
    )

    def __init__(
        self,
        path: str,
        dynamic: DynamicObject,
        loader: LoadedObject | None,
        found_by: str,
        stage: str,
    ) -> None:
        self.path = _tidy(path)
        self.dynamic = dynamic
        self.names = {path}
        if dynamic.soname:
            self.names.add(dynamic.soname)
        self.origin = os.path.dirname(path)
        self.loader = loader
        self.found_by = found_by
        self.needed: list[LoadedObject] = []
        self.missing: list[Miss] = []
        #: soname → place of needed libraries that a stand-in brings; no files of this machine.
        self.borrowed: dict[str, str] = {}
        self.stage = stage
        self.searched = False
        #: The local scope of the dlopen that mapped it; symbols are bound there for good.
        self.scope: list[LoadedObject] = []


def _tidy(path: str) -> str:
    """A path without ``..``, as people want to read it, if it still names the same file."""
    if ".." not in path:
        return path
    shorter = os.path.normpath(path)
    try:
        return shorter if os.path.samefile(shorter, path) else path
    except OSError:  # a link on the way makes the textual shortening wrong
        return path


class Miss:
    """A needed library that the loader would not find, with the places it would try."""

    __slots__ = ("needed_by", "problem", "refusal", "soname", "tried")

    def __init__(
        self,
        soname: str,
        needed_by: str,
        tried: Sequence[str],
        problem: str | None = None,
        refusal: str | None = None,
    ) -> None:
        self.soname = soname
        self.needed_by = needed_by
        self.tried = tuple(tried)
        self.problem = problem
        self.refusal = refusal


#: Bytes of a 64-bit ELF header; the loader calls a shorter file "too short".
_HEADER_SIZE = 64


def _refusal(path: str) -> str:
    """What ld.so says of a file that it cannot use (glibc ``elf/dl-load.c``, open_verify)."""
    if os.path.isdir(path):
        return f"{path}: cannot read file data: Is a directory"
    try:
        short = os.path.getsize(path) < _HEADER_SIZE
    except OSError as error:
        return f"{path}: cannot open shared object file: {error.strerror}"
    return f"{path}: {'file too short' if short else 'invalid ELF header'}"


class Scope(list[LoadedObject]):
    """Objects in look-up order, without repeats. The first ``shared`` are the global scope.

    ``known`` remembers what those have, for all scopes of the process: every file that is
    opened in it asks them first.
    """

    __slots__ = ("known", "shared")

    def __init__(
        self,
        objects: Iterable[LoadedObject],
        shared: int,
        known: dict[tuple[bytes, str | None], LoadedObject | None],
    ) -> None:
        super().__init__(objects)
        self.shared = shared
        self.known = known


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of a process to go back to: how many objects, and what hangs on each."""

    objects: int
    global_scope: tuple[LoadedObject, ...]
    identities: Mapping[tuple[int, int], LoadedObject]
    names: tuple[frozenset[str], ...]


class Process:
    """The objects that one process would have loaded so far, and their scopes."""

    def __init__(self, searcher: Searcher, stand_in: StandIn | None = None) -> None:
        self.searcher = searcher
        self.stand_in = stand_in
        self.objects: list[LoadedObject] = []
        self.global_scope: list[LoadedObject] = []
        self.main: LoadedObject | None = None
        self._by_identity: dict[tuple[int, int], LoadedObject] = {}
        self._known: dict[tuple[bytes, str | None], LoadedObject | None] = {}
        self._known_scope: tuple[LoadedObject, ...] = ()

    def mark(self) -> Mark:
        """The state now, for ``rewind``."""
        return Mark(
            len(self.objects),
            tuple(self.global_scope),
            dict(self._by_identity),
            tuple(frozenset(loaded.names) for loaded in self.objects),
        )

    def rewind(self, mark: Mark) -> None:
        """Unmap what was loaded since ``mark``, as if it had never been.

        What was there then has been searched, so that its own needs have not changed since.
        """
        for loaded in self.objects[mark.objects :]:
            loaded.dynamic.close()
        del self.objects[mark.objects :]
        self.global_scope = list(mark.global_scope)
        self._by_identity = dict(mark.identities)
        for loaded, names in zip(self.objects, mark.names, strict=True):
            loaded.names = set(names)

    def close(self) -> None:
        """Unmap every file."""
        for loaded in self.objects:
            loaded.dynamic.close()

    def start(self, executable: str, preload: Sequence[str] = ()) -> None:
        """Map the main program, LD_PRELOAD and all that they need into the global scope.

        Raises ``ForensicsError`` when the program itself cannot be read.
        """
        self.main = self._map(executable, None, BY_PATH, "start")
        roots = [self.main]
        for name in preload:
            found = self._load_needed(name, self.main, "start")
            if isinstance(found, LoadedObject):
                roots.append(found)
        self.global_scope = self._load_dependencies(roots, "start")

    def dlopen(self, path: str, stage: str, global_scope: bool = False) -> list[LoadedObject]:
        """What ``dlopen(path)`` would map: the object first, then its needs, breadth first.

        Raises ``ForensicsError`` when the file itself cannot be read.
        """
        opened = self._map(absolute(path), self.main, BY_PATH, stage)
        scope = self._load_dependencies([opened], stage)
        for loaded in scope:
            loaded.scope = loaded.scope or scope
        if global_scope:
            self.global_scope += [o for o in scope if o not in self.global_scope]
        return scope

    def scope_for(self, local: Sequence[LoadedObject]) -> Scope:
        """The order in which symbols of a dlopened object are looked up, without repeats."""
        shared = tuple(dict.fromkeys(self.global_scope))
        if shared != self._known_scope:
            self._known, self._known_scope = {}, shared
        return Scope(dict.fromkeys([*shared, *local]), len(shared), self._known)

    def find_loaded(self, name: str) -> LoadedObject | None:
        """The object already loaded under a name: the path it came from, or its soname."""
        return next((loaded for loaded in self.objects if name in loaded.names), None)

    def find_loaded_prefix(self, prefix: str) -> LoadedObject | None:
        """The first object one of whose names starts with ``prefix`` (``libcudart.so``)."""
        return next(
            (
                loaded
                for loaded in self.objects
                if any(os.path.basename(name).startswith(prefix) for name in loaded.names)
            ),
            None,
        )

    def would_find(self, name: str, loader: LoadedObject | None = None) -> str | None:
        """The file that a dlopen by name would take, without mapping it; None for none.

        ``loader`` is the object that calls dlopen, the main program where it is not given.
        """
        known = self.find_loaded(name)
        if known is not None:
            return known.path
        caller = loader or self.main
        if caller is None:
            return None
        return next((path for _, path in self._candidates(name, caller, [])), None)

    def retry_missing(self) -> None:
        """Forget all misses, so that the next dlopen searches for those libraries again."""
        for loaded in self.objects:
            if loaded.missing:
                loaded.missing = []
                loaded.needed = []
                loaded.searched = False

    def _load_dependencies(self, roots: Sequence[LoadedObject], stage: str) -> list[LoadedObject]:
        order = list(roots)
        for loaded in order:  # grows while it is walked: breadth first
            if not loaded.searched:
                loaded.searched = True
                for soname in loaded.dynamic.needed:
                    place = self.stand_in.brings(soname) if self.stand_in else None
                    if place is not None:
                        loaded.borrowed[soname] = place
                        self._load_for_stand_in(soname, loaded)
                        continue
                    found = self._load_needed(soname, loaded, stage)
                    if isinstance(found, Miss):
                        loaded.missing.append(found)
                    else:
                        loaded.needed.append(found)
            order.extend(o for o in loaded.needed if o not in order)
        return order

    def _load_for_stand_in(self, soname: str, needing: LoadedObject) -> None:
        """Map what a stand-in's library needs of this system: libstdc++, libm."""
        if self.stand_in is None or self.main is None or not self.stand_in.owns(soname):
            return
        for name in self.stand_in.system_libraries:
            found = self._load_needed(name, self.main, f"with {self.stand_in.name}")
            if isinstance(found, LoadedObject) and found not in needing.needed:
                needing.needed.append(found)

    def _load_needed(self, name: str, loader: LoadedObject, stage: str) -> LoadedObject | Miss:
        known = self.find_loaded(name)
        if known is not None:
            return known
        if self.stand_in is not None and self.stand_in.owns(name):
            return Miss(name, loader.path, (f"what {self.stand_in.name} brings",))
        tried: list[str] = []
        for found_by, path in self._candidates(name, loader, tried):
            try:
                loaded = self._map(path, loader, found_by, stage)
            except OutOfResources:
                raise  # ours, not the library's fault
            except ForensicsError as error:
                return Miss(name, loader.path, tried, error.message, _refusal(path))
            text = loader_refusal(loaded.dynamic)
            if text is not None and loaded is not self.main:
                return Miss(name, loader.path, tried, f"{path}: {text}", f"{path}: {text}")
            loaded.names.add(name)
            return loaded
        return Miss(name, loader.path, tried)

    def _candidates(
        self, name: str, loader: LoadedObject, tried: list[str]
    ) -> Iterator[tuple[str, str]]:
        """(how, path) of the first file ld.so would take; ``tried`` fills with the rest."""
        if "/" in name:
            path = self.searcher.expand(name, loader.origin)
            tried.append(path)
            if os.path.exists(path):
                yield BY_PATH, path
            return
        for found_by, element, origin in self._search_path(loader):
            directory = self.searcher.expand(element, origin)
            tried.append(f"{found_by} {directory}")
            found = self.searcher.in_directory(directory, name)
            if found is not None:
                yield found_by, found
                return
        tried.append("/etc/ld.so.cache")
        cached = self.searcher.in_cache(name)
        if cached is not None and not (
            loader.dynamic.nodeflib and os.path.dirname(cached) in self.searcher.defaults
        ):
            yield CACHE, cached
            return
        for directory in () if loader.dynamic.nodeflib else self.searcher.defaults:
            tried.append(f"{DEFAULT} {directory}")
            found = self.searcher.in_directory(directory, name)
            if found is not None:
                yield DEFAULT, found
                return

    def _search_path(self, loader: LoadedObject) -> Iterator[tuple[str, str, str]]:
        """(rule, element, origin) in ld.so's order, up to and including RUNPATH.

        RPATH counts for the object that needs the library and for all that loaded it,
        the program last, each only if it has no RUNPATH itself; a RUNPATH in the needing
        object switches all RPATHs off. RUNPATH is not inherited and comes after
        LD_LIBRARY_PATH.
        """
        if not loader.dynamic.runpath:
            chain: list[LoadedObject] = []
            step: LoadedObject | None = loader
            while step is not None and step not in chain:
                chain.append(step)
                step = step.loader
            if self.main is not None and self.main not in chain:
                chain.append(self.main)
            for owner in chain:
                if not owner.dynamic.runpath:
                    for element in owner.dynamic.rpath:
                        yield RPATH, element, owner.origin
        main_origin = self.main.origin if self.main else loader.origin
        for element in self.searcher.library_path:
            yield LD_LIBRARY_PATH, element, main_origin
        for element in loader.dynamic.runpath:
            yield RUNPATH, element, loader.origin

    def _map(
        self, path: str, loader: LoadedObject | None, found_by: str, stage: str
    ) -> LoadedObject:
        try:
            status = os.stat(path)
        except OSError as error:
            raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
        identity = (status.st_dev, status.st_ino)
        known = self._by_identity.get(identity)
        if known is not None:
            known.names.add(path)
            return known
        dynamic = DynamicObject.open(path)
        if dynamic.image.loaded_size() > dynamic.image.size:
            lacking = dynamic.image.loaded_size() - dynamic.image.size
            dynamic.close()
            raise DamagedFile(f"{path} is cut short: its last {lacking:,} bytes are missing")
        loaded = LoadedObject(path, dynamic, loader, found_by, stage)
        self._by_identity[identity] = loaded
        self.objects.append(loaded)
        return loaded
