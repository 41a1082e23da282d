"""What the system's libraries define here: glibc, libstdc++, libgcc, as this environment has them.

Asked where a file was resolved (the libraries that it would get) and where it could not be, for
want of a torch: the interpreter's own process has a glibc in any case.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject, gnu_hash
from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.floors import Floors, versions_by_library
from fa_forensics.facts.system_releases import FAMILIES, GLIBC, GLIBCXX, newest, version_number
from fa_forensics.records import dataclass
from fa_forensics.resolve.environment_process import open_linker
from fa_forensics.resolve.opened import Opened
from fa_forensics.resolve.resolution import Resolution, VersionMiss

LIBC, LIBSTDCXX = "libc.so.6", "libstdc++.so.6"


@dataclass(frozen=True, slots=True)
class SystemLibrary:
    """A library of the system, as the loader would take it here, and all versions it defines."""

    soname: str
    path: str
    versions: tuple[str, ...]

    def newest(self, family: str) -> str | None:
        """``GLIBCXX`` → ``GLIBCXX_3.4.30``."""
        return newest(self.versions, family)


@dataclass(frozen=True, slots=True)
class SystemHere:
    """The system's libraries that one file meets here.

    ``unmet`` are versions that its glibc lacks, looked up where the file itself could not be
    resolved. ``unversioned`` is the newest GLIBCXX version under which the libstdc++ here exports
    names that the file takes without saying a version, and that nothing else in its scope has;
    None where that is none newer than the versions it asks for, or could not be looked up.
    ``page_size`` is this machine's, in bytes.
    """

    libraries: tuple[SystemLibrary, ...]
    unmet: tuple[VersionMiss, ...] = ()
    unversioned: str | None = None
    page_size: int | None = None

    def newest(self, family: str) -> tuple[str, str] | None:
        """(newest version of a family here, path of the library that defines it), or None."""
        found = [(v, lib.path) for lib in self.libraries if (v := lib.newest(family)) is not None]
        return max(found, key=lambda row: version_number(row[0]), default=None)

    @property
    def glibc(self) -> str | None:
        """The glibc of the process, "2.36", by the newest version that libc.so.6 defines."""
        libc = next((lib for lib in self.libraries if lib.soname == LIBC), None)
        version = libc.newest(GLIBC) if libc is not None else None
        return None if version is None else version.partition("_")[2]


def system_here(
    elf: ElfFacts,
    floors: Floors,
    environment: Environment,
    resolution: Resolution | None,
    opened: Opened,
) -> SystemHere | None:
    """What the system has for a file, or None where this environment cannot say.

    The libraries are read in ``opened``, which stays open.

    It cannot for a file of another machine, and where its loader's rules are not known.
    """
    if elf.machine != environment.machine or environment.libc != "glibc":
        return None
    needs = versions_by_library(elf)
    wanted = dict.fromkeys([LIBC, *needs, *([LIBSTDCXX] if floors.unversioned else [])])
    try:
        if resolution is None:
            paths = _without_torch(environment, list(wanted))
        else:
            paths = _as_resolved(resolution, list(wanted))
    except ForensicsError:
        return None  # why the loader cannot be modelled is said where the file was resolved
    libraries = tuple(library for path in paths.items() if (library := _read(*path, opened)))
    unmet = () if resolution is not None else _unmet(elf, needs, libraries)
    return SystemHere(
        libraries,
        unmet,
        _unversioned(floors, resolution, paths.get(LIBSTDCXX), opened),
        os.sysconf("SC_PAGE_SIZE") if os.uname().machine == environment.machine else None,
    )


def _as_resolved(resolution: Resolution, wanted: Sequence[str]) -> dict[str, str]:
    """soname → path, of the libraries in a file's scope."""
    found: dict[str, str] = {}
    for library in resolution.libraries:
        if library.soname in wanted and library.path is not None:
            found[library.soname] = library.path
    for soname in wanted:
        path = next((p for p in resolution.scope if p.rpartition("/")[2] == soname), None)
        if soname not in found and path is not None:
            found[soname] = path
    return found


def _without_torch(environment: Environment, wanted: Sequence[str]) -> dict[str, str]:
    """The same in the interpreter's own process; of libstdc++, what it has loaded itself."""
    linker = open_linker(environment, with_torch=False)
    try:
        loaded = {soname: linker.process.find_loaded(soname) for soname in wanted}
        return {soname: found.path for soname, found in loaded.items() if found is not None}
    finally:
        linker.close()


def _read(soname: str, path: str, opened: Opened) -> SystemLibrary | None:
    dynamic = opened.get(path)
    if dynamic is None:
        return None
    families = tuple(f"{family}_" for family in FAMILIES)
    versions = [v for v in dynamic.verdef.values() if v.startswith(families)]
    return SystemLibrary(soname, path, tuple(versions))


def _unmet(
    elf: ElfFacts, needs: dict[str, tuple[str, ...]], libraries: Sequence[SystemLibrary]
) -> tuple[VersionMiss, ...]:
    """Versions that libraries of glibc lack which are in the process whatever torch is there."""
    by_name = {library.soname: library for library in libraries}
    return tuple(
        VersionMiss(elf.path, soname, version, library.path, library.versions)
        for soname, versions in needs.items()
        if (library := by_name.get(soname)) is not None and library.newest(GLIBC) is not None
        for version in versions
        if version not in library.versions
    )


def _unversioned(
    floors: Floors, resolution: Resolution | None, path: str | None, opened: Opened
) -> str | None:
    """The newest version of the unversioned names that only this libstdc++ has for the file.

    Names of versions that the file asks for anyway raise no floor, and are not looked at.
    """
    if not floors.unversioned or resolution is None or path is None:
        return None
    wanted = frozenset(floors.unversioned)
    bound = [b for b in resolution.bindings if b.provider == path and b.symbol in wanted]
    asked = floors.of(GLIBCXX)
    least = version_number(asked) if asked is not None else ()
    exported = _exported(opened.get(path), [b.symbol for b in bound if b.version is None])
    newer = {
        name: version
        for name, version in exported.items()
        if version is not None and version_number(version) > least
    }
    # torch's libraries export many such names too: an older libstdc++ is then no matter.
    for other in resolution.scope:
        if not newer:
            return None
        if other != path:
            for name in _exported(opened.get(other), list(newer)):
                del newer[name]
    return newest(newer.values(), GLIBCXX)


def _exported(library: DynamicObject | None, names: Sequence[str]) -> dict[str, str | None]:
    """Those of the names that a library exports, each with its version."""
    if library is None:
        return {}
    found: dict[str, str | None] = {}
    for name in names:
        raw = name.encode("utf-8", "surrogateescape")
        definition = library.lookup(raw, gnu_hash(raw))
        if definition is not None:
            found[name] = definition.version
    return found
