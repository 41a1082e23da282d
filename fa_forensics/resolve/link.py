"""Resolve one file in one environment: the process, its libraries, its symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fa_forensics.facts.elf.dynamic import DynamicObject, Symbol
from fa_forensics.facts.elf.image import EM_X86_64, PT_TLS
from fa_forensics.facts.elf.refusal import loader_refusal
from fa_forensics.facts.files import absolute
from fa_forensics.facts.system_releases import (
    GLIBC,
    asks_for_executable_stack,
    newest,
    refuses_executable_stack,
    static_tls_room,
    static_tls_slack,
)
from fa_forensics.resolve.bind import bind_symbols, check_versions, dependency_misses
from fa_forensics.resolve.names_lacking import torch_shortfalls
from fa_forensics.resolve.process import ALREADY_LOADED, LoadedObject, Miss, Process
from fa_forensics.resolve.resolution import (
    Binding,
    DependencyMiss,
    Library,
    Resolution,
    VersionMiss,
)
from fa_forensics.resolve.search import Searcher, split_path
from fa_forensics.resolve.torch_import import load_torch

if TYPE_CHECKING:
    from fa_forensics.resolve.stand_in import StandIn

STAGE = "dlopen"
PACKAGE_STAGE = "its package"
#: glibc 2.41 ``elf/dl-load.c``, with EINVAL.
EXECUTABLE_STACK = "cannot enable executable stack as shared object requires: Invalid argument"
STATIC_TLS = "cannot allocate memory in static TLS block"


class Linker:
    """The process of one environment, ready to open files in. Close it after use.

    With ``stand_in`` that torch takes the place of the installed one: ``torch_dir`` is then
    None and ``hidden`` holds the directories of what was installed with torch.

    Raises ``ForensicsError`` on construction when the interpreter cannot be read.
    """

    def __init__(
        self,
        interpreter: str,
        loader: str | None,
        machine: int,
        torch_dir: str | None,
        site_dirs: Sequence[str],
        variables: Mapping[str, str],
        stand_in: StandIn | None = None,
        hidden: Sequence[str] = (),
    ) -> None:
        searcher = Searcher(machine, loader, split_path(variables.get("LD_LIBRARY_PATH", "")))
        searcher.hidden = tuple(hidden)
        self.process = Process(searcher, stand_in)
        self.stand_in = stand_in
        self.problems: list[str] = []
        self._machine = "x86_64" if machine == EM_X86_64 else "aarch64"
        self._tunables = variables.get("GLIBC_TUNABLES", "")
        preload = variables.get("LD_PRELOAD", "").replace(":", " ").split()
        self.process.start(interpreter, preload)
        if torch_dir is not None:
            self.problems += load_torch(
                self.process, torch_dir, site_dirs, bool(variables.get("TORCH_USE_RTLD_GLOBAL"))
            )
        self.torch_objects = tuple(self.process.objects)
        self.shortfalls = torch_shortfalls(
            self.process.objects, self.torch_objects, self.process.global_scope
        )
        self._start = self.process.mark()

    def rewind(self) -> None:
        """Forget every file that was opened since the start, so that the next one is alone."""
        self.process.rewind(self._start)

    def close(self) -> None:
        """Unmap every file of the process."""
        self.process.close()

    def resolve(
        self, path: str, symbols: Sequence[Symbol], preload: Sequence[str] = ()
    ) -> Resolution:
        """Open a file in this process as dlopen would and bind its undefined symbols.

        ``preload`` is opened first, as a package does with its own libraries. Raises
        ``ForensicsError`` when the file itself cannot be read.
        """
        for library in preload:
            self.process.dlopen(library, PACKAGE_STAGE)
        local = self.process.dlopen(path, STAGE)
        target = local[0]
        if target.stage != STAGE:
            local = target.scope  # import torch has mapped and bound it already
        scope = self.process.scope_for(local)
        libraries = _libraries(local, self.stand_in)
        bindings = bind_symbols(target.dynamic, symbols, scope)
        elsewhere = None
        if self.stand_in is not None:
            bindings, elsewhere = self._bind_elsewhere(bindings, scope)
        fresh = [loaded for loaded in local if loaded.stage == STAGE]
        versions = [miss for loaded in fresh for miss in check_versions(loaded, local)]
        dependencies = dependency_misses([o for o in fresh if o is not target], scope, elsewhere)
        return Resolution(
            libraries=libraries,
            bindings=bindings,
            version_misses=tuple(versions),
            dependency_misses=tuple(dependencies),
            scope=tuple(loaded.path for loaded in scope),
            loaded_with_torch=tuple(loaded.path for loaded in self.torch_objects),
            torch_misses=(
                *(
                    _library(miss.soname, loaded, miss)
                    for loaded in self.torch_objects
                    for miss in loaded.missing
                ),
                *self.shortfalls,
            ),
            problems=tuple(self.problems),
            first_failure=self._refused_by_headers(target)
            or _first_failure(target, libraries, versions, dependencies, bindings)
            or self._no_room_for_tls(target),
        )

    def _refused_by_headers(self, target: LoadedObject) -> str | None:
        """The loader's text for a file that it does not even map."""
        refusal = loader_refusal(target.dynamic)
        if refusal is None and asks_for_executable_stack(
            target.dynamic.image.executable_stack, self._machine
        ):
            glibc = glibc_of(self.process)
            if glibc is not None and refuses_executable_stack(glibc, self._tunables):
                refusal = EXECUTABLE_STACK
        return None if refusal is None else f"{absolute(target.path)}: {refusal}"

    def _no_room_for_tls(self, target: LoadedObject) -> str | None:
        """The text for a file with more static thread-local data than there can be room for."""
        tls = next((s for s in target.dynamic.image.segments if s.type == PT_TLS), None)
        room = static_tls_room(self._tunables) + static_tls_slack()
        if tls is None or not target.dynamic.static_tls or tls.memory_size <= room:
            return None
        return f"{absolute(target.path)}: {STATIC_TLS}"

    def _bind_elsewhere(
        self, bindings: tuple[Binding, ...], scope: Sequence[LoadedObject]
    ) -> tuple[tuple[Binding, ...], Callable[[str, str | None, str | None], str | None]]:
        """The bindings with those of the stand-in, and a look-up in what it has loaded."""
        from fa_forensics.resolve.stand_in import bind_elsewhere

        stand_in = self.stand_in
        assert stand_in is not None
        loaded = stand_in.loaded_with({soname for o in scope for soname in o.borrowed})

        def exporter(name: str, version: str | None, file: str | None) -> str | None:
            return stand_in.exporter(name, version, file, loaded)

        return bind_elsewhere(bindings, stand_in, loaded), exporter

    def dynamic_of(self, path: str) -> DynamicObject | None:
        """The opened object of a path in this process, or None."""
        return next((o.dynamic for o in self.process.objects if o.path == path), None)


def glibc_of(process: Process) -> str | None:
    """The glibc of a process, "2.36", by the newest version that its libc.so.6 defines."""
    libc = process.find_loaded("libc.so.6")
    version = newest(libc.dynamic.verdef.values(), GLIBC) if libc is not None else None
    return None if version is None else version.partition("_")[2]


def _library(soname: str, loaded: LoadedObject, miss: Miss) -> Library:
    return Library(soname, loaded.path, None, "not found", miss.tried, miss.problem, miss.refusal)


def _libraries(local: Sequence[LoadedObject], stand_in: StandIn | None) -> tuple[Library, ...]:
    """Every edge of the closure once per soname, in breadth-first order."""
    rows: dict[str, Library] = {}
    for loaded in local:
        misses = {miss.soname: miss for miss in loaded.missing}
        for soname in loaded.dynamic.needed:
            if soname in rows:
                continue
            if soname in loaded.borrowed and stand_in is not None:
                how = f"comes with {stand_in.name}"
                rows[soname] = Library(soname, loaded.path, loaded.borrowed[soname], how)
                continue
            if soname in misses:
                rows[soname] = _library(soname, loaded, misses[soname])
                continue
            found = next((o for o in loaded.needed if soname in o.names), None)
            if found is not None:
                known = found.stage != STAGE
                how = f"{ALREADY_LOADED} ({found.stage})" if known else found.found_by
                rows[soname] = Library(soname, loaded.path, found.path, how)
    return tuple(rows.values())


def _first_failure(
    target: LoadedObject,
    libraries: Sequence[Library],
    versions: Sequence[VersionMiss],
    dependencies: Sequence[DependencyMiss],
    bindings: Sequence[Binding],
) -> str | None:
    """The text that ld.so would give: it stops at the first of these, in this order."""
    for library in libraries:
        if library.path is None:
            if library.refusal is not None:
                return library.refusal
            return f"{library.soname}: cannot open shared object file: No such file or directory"
    for miss in versions:
        return f"{miss.provider}: version `{miss.version}' not found (required by {miss.needed_by})"
    for dependency in dependencies:
        version = f", version {dependency.version}" if dependency.version else ""
        return f"{dependency.path}: undefined symbol: {dependency.symbol}{version}"
    missing = sorted((b for b in bindings if b.missing), key=lambda b: b.order)
    for binding in missing:
        version = f", version {binding.version}" if binding.version else ""
        return f"{absolute(target.path)}: undefined symbol: {binding.symbol}{version}"
    return None
