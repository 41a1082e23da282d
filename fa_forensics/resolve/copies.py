"""Every copy of the libraries that decide, and the one that the process of torch takes.

Looked for in all places that a loader, torch or a build may take them from: torch's own
directory, NVIDIA's wheels, libraries bundled with other wheels, LD_LIBRARY_PATH, the
loader's cache and default directories, a conda environment's and a CUDA toolkit's. Which
one is taken is what ``Process`` found for ``import torch``, by ld.so's own rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.build_id import build_id
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.library_version import (
    LibraryName,
    LibraryVersion,
    library_version,
    parse_name,
)
from fa_forensics.records import dataclass
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.process import LoadedObject

#: More names than this in one directory are not looked at; /usr/lib has a few thousand.
MAX_NAMES = 50_000
#: More copies than this are not opened; an environment has twenty.
MAX_COPIES = 1_000

TORCH, WHEEL, BUNDLED = "torch/lib", "NVIDIA's wheels", "bundled with a wheel"
LIBRARY_PATH, CACHE, DEFAULT = "LD_LIBRARY_PATH", "ld.so.cache", "default directory"
INTERPRETER, TOOLKIT, LOADED = "the interpreter's own lib", "CUDA toolkit", "loaded"


@dataclass(frozen=True, slots=True)
class Copy:
    """One file of a library. ``path`` is how it was reached first, ``real`` without links.

    ``places`` are the words of this module; ``found_by`` the loader's rule and ``needed_by``
    the file that asked for it, both None for a copy that ``import torch`` does not load.
    ``problem`` says why it could not be read.
    """

    path: str
    real: str
    name: LibraryName
    soname: str | None
    places: tuple[str, ...]
    version: LibraryVersion
    build_id: str | None
    size: int
    found_by: str | None = None
    needed_by: str | None = None
    problem: str | None = None

    @property
    def loaded(self) -> bool:
        """Whether ``import torch`` maps this file."""
        return self.found_by is not None


@dataclass(frozen=True, slots=True)
class Group:
    """All copies of one library in one major version: what can take each other's place.

    ``soname`` is what programs ask for. ``winner`` is the copy that ``import torch`` maps,
    else the one that a program without a search path of its own would get, else None.
    """

    soname: str
    copies: tuple[Copy, ...]
    winner: Copy | None

    @property
    def others(self) -> tuple[Copy, ...]:
        """The copies that are not taken, those bundled under a name of their own included."""
        return tuple(copy for copy in self.copies if copy is not self.winner)

    @property
    def rivals(self) -> tuple[Copy, ...]:
        """The copies that answer to the same name."""
        return tuple(copy for copy in self.others if copy.name.hash is None)


@dataclass(frozen=True, slots=True)
class Copies:
    """All groups, and what could not be looked at, in sentences."""

    groups: tuple[Group, ...]
    problems: tuple[str, ...]


def find_copies(environment: Environment, linker: Linker, toolkits: Sequence[str]) -> Copies:
    """All copies within reach of an environment. ``toolkits`` are roots of CUDA toolkits.

    The linker's process is that of ``import torch``; it stays open.
    """
    found: dict[tuple[int, int], list[tuple[str, str]]] = {}
    problems: list[str] = []
    loaded = {_identity(o.path): o for o in linker.process.objects}
    for one in linker.process.objects:
        if parse_name(os.path.basename(one.path)):
            _note(found, one.path, LOADED)
    for place, directory in _directories(environment, linker, toolkits):
        for path in _libraries_in(directory, linker, problems):
            _note(found, path, place)
    for path in linker.process.searcher.cached_paths():
        if parse_name(os.path.basename(path)) and os.path.exists(path):
            _note(found, path, CACHE)
    if len(found) > MAX_COPIES:
        problems.append(f"{len(found):,} copies are in reach, {MAX_COPIES:,} were looked at")
    copies = []
    for identity, rows in list(found.items())[:MAX_COPIES]:
        copies.append(_copy(rows, loaded.get(identity) if identity else None, environment))
    return Copies(tuple(_groups(copies, linker)), tuple(dict.fromkeys(problems)))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _note(found: dict[tuple[int, int], list[tuple[str, str]]], path: str, place: str) -> None:
    identity = _identity(path)
    if identity is not None:
        found.setdefault(identity, []).append((path, place))


def _directories(
    environment: Environment, linker: Linker, toolkits: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """(place, directory), each directory once, in the order in which they are reported."""
    rows: list[tuple[str, str]] = []
    if environment.torch is not None:
        rows.append((TORCH, environment.torch.lib_dir))
    for site in environment.site_dirs:
        nvidia = os.path.join(site, "nvidia")
        rows += [(WHEEL, os.path.join(nvidia, name, "lib")) for name in _names(nvidia)]
        rows += [(BUNDLED, os.path.join(site, n)) for n in _names(site) if n.endswith(".libs")]
    searcher = linker.process.searcher
    main = linker.process.main
    origin = main.origin if main is not None else ""
    rows += [(LIBRARY_PATH, searcher.expand(e, origin)) for e in searcher.library_path]
    rows += [
        (INTERPRETER, os.path.join(prefix, "lib"))
        for prefix in (environment.prefix, environment.base_prefix)
    ]
    rows += [(DEFAULT, directory) for directory in searcher.defaults]
    for root in toolkits:
        rows += [(TOOLKIT, os.path.join(root, name)) for name in ("lib64", "lib")]
        target = f"{environment.machine}-linux"
        rows.append((TOOLKIT, os.path.join(root, "targets", target, "lib")))
    seen: set[tuple[str, tuple[int, int]]] = set()
    for place, directory in rows:
        identity = _identity(directory)
        if identity is not None and (place, identity) not in seen:
            seen.add((place, identity))
            yield place, directory


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []  # it is optional: what must be there is sought by others


def _libraries_in(directory: str, linker: Linker, problems: list[str]) -> Iterator[str]:
    """Paths of a directory's libraries that this machine's loader would take up."""
    try:
        names = sorted(os.listdir(directory))
    except NotADirectoryError:
        return  # an element of a search path may be anything; the loader passes over it
    except OSError as error:
        problems.append(f"cannot list {directory}: {error.strerror}")
        return
    if len(names) > MAX_NAMES:
        problems.append(f"{directory} has {len(names):,} names, {MAX_NAMES:,} were looked at")
    for name in names[:MAX_NAMES]:
        path = os.path.join(directory, name)
        if parse_name(name) and os.path.isfile(path) and linker.process.searcher.fits(path):
            yield path


def _copy(
    rows: Sequence[tuple[str, str]], loaded: LoadedObject | None, environment: Environment
) -> Copy:
    # "libcudart.so" is there for linkers; programs ask for "libcudart.so.12".
    path = max((path for path, _ in rows), key=lambda p: _version_of(p).count(".") == 0)
    if loaded is not None:
        path = loaded.path
    real = os.path.realpath(path)
    name = parse_name(os.path.basename(path)) or parse_name(os.path.basename(real))
    assert name is not None  # only such files come here
    places = tuple(dict.fromkeys(place for _, place in rows if place != LOADED))
    how: tuple[str | None, str | None] = (None, None)
    if loaded is not None:
        how = loaded.found_by, loaded.loader.path if loaded.loader else None
    size = 0
    try:
        size = os.stat(path).st_size
        dynamic = loaded.dynamic if loaded is not None else DynamicObject.open(path)
    except (ForensicsError, OSError) as error:
        nothing = LibraryVersion(None, "it could not be read")
        problem = error.message if isinstance(error, ForensicsError) else str(error.strerror)
        return Copy(path, real, name, None, places, nothing, None, size, *how, problem)
    try:
        torch = environment.torch
        own = torch is not None and os.path.dirname(path) == torch.lib_dir
        version = library_version(
            path, dynamic, environment.site_dirs, torch.version if torch and own else None
        )
        soname, build = dynamic.soname, build_id(dynamic.image)
        return Copy(path, real, name, soname, places, version, build, size, *how)
    finally:
        if loaded is None:
            dynamic.close()


def _version_of(path: str) -> str:
    name = parse_name(os.path.basename(path))
    return name.version if name is not None and name.version else "."


def _groups(copies: Sequence[Copy], linker: Linker) -> Iterator[Group]:
    by_key: dict[tuple[str, str], list[Copy]] = {}
    for copy in copies:
        by_key.setdefault((copy.name.family.name, _major(copy)), []).append(copy)
    for (name, major), members in sorted(by_key.items()):
        plain = [copy for copy in members if copy.name.hash is None]
        sonames = [copy.soname for copy in plain if copy.soname]
        soname = sonames[0] if sonames else f"{name}.so" + (f".{major}" if major else "")
        members.sort(key=lambda copy: not copy.loaded)
        yield Group(soname, tuple(members), _winner(soname, members, linker))


def _major(copy: Copy) -> str:
    """The major version by the file name, else by the soname ("libcudart.so" has it there)."""
    if copy.name.major or copy.soname is None:
        return copy.name.major
    own = parse_name(copy.soname)
    return own.major if own is not None else ""


def _winner(soname: str, members: Sequence[Copy], linker: Linker) -> Copy | None:
    loaded = next((copy for copy in members if copy.loaded and copy.name.hash is None), None)
    if loaded is not None:
        return loaded
    opener = _opener(members[0], linker)
    names = [soname] if opener is None else [*_exact_names(members[0], opener), soname]
    paths = (linker.process.would_find(name, opener) for name in names)
    path = next((found for found in paths if found is not None), None)
    identity = None if path is None else _identity(path)
    return next((c for c in members if identity and _identity(c.path) == identity), None)


def _opener(copy: Copy, linker: Linker) -> LoadedObject | None:
    """The library that opens this one by name when it needs it, by its own search path."""
    family = copy.name.family.row.get("opened_by")
    return None if family is None else linker.process.find_loaded_prefix(f"{family}.so")


def _exact_names(copy: Copy, opener: LoadedObject) -> list[str]:
    """The names that cuDNN asks for first: with its own version in full, then without patch.

    Observed of cuDNN 9.1 with LD_DEBUG=libs: libcudnn_graph.so.9.1.0, .so.9.1, then .so.9.
    """
    version = library_version(opener.path, opener.dynamic, ()).version
    parts = (version or "").split(".")
    if len(parts) < 3:
        return []
    stem = f"{copy.name.family.name}.so."
    return [stem + ".".join(parts[:3]), stem + ".".join(parts[:2])]
