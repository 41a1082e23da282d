"""Caches of things that were built on this machine: torch's JIT extensions, pip's own wheels.

Sources: ``_get_build_directory`` and ``FileBaton`` of ``torch/utils`` (2.4.0 and 2.14.1: the
directory's name carries Python and CUDA, never torch's version; a build waits as long as the
file ``lock`` is there); pip's ``_internal/cache.py`` (wheels it built lie below ``wheels``,
those it fetched do not).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.package import normalized
from fa_forensics.records import dataclass

#: Bounds on what is looked at in a cache, and on the depth of pip's (four directories).
MAX_BUILDS = 200
MAX_WHEELS = 1_000
_PIP_DEPTH = 4


@dataclass(frozen=True, slots=True)
class JitBuild:
    """One directory of torch's JIT cache: ``library`` is the built file, None if there is none.

    ``lock`` is the path of a lock file in it, ``lock_age_s`` its age in seconds.
    """

    name: str
    directory: str
    library: str | None
    lock: str | None
    lock_age_s: float | None


@dataclass(frozen=True, slots=True)
class JitCache:
    """torch's cache as this environment uses it.

    ``directory`` need not exist. ``others`` are directories beside it, for another Python
    or CUDA. ``problem`` is one sentence where it could not be listed.
    """

    directory: str
    builds: tuple[JitBuild, ...]
    others: tuple[str, ...]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CachedWheel:
    """A wheel that pip built here and keeps: it installs it again instead of building anew."""

    path: str
    name: str
    version: str
    size: int
    mtime: float


def read_jit_cache(environment: Environment, environ: Mapping[str, str], now: float) -> JitCache:
    """The JIT cache of an environment's torch; ``now`` is the time in seconds since the epoch."""
    given = environ.get("TORCH_EXTENSIONS_DIR")
    root = given or os.path.join(_cache_home(environ), "torch_extensions")
    directory = root if given else os.path.join(root, _folder(environment, root))
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return JitCache(directory, (), () if given else _others(root, directory))
    except OSError as error:
        return JitCache(directory, (), (), f"{directory} cannot be listed: {error.strerror}")
    found = [_build(os.path.join(directory, name), now) for name in names[:MAX_BUILDS]]
    problem = None
    if len(names) > MAX_BUILDS:
        problem = f"{directory} holds {len(names):,} builds, only {MAX_BUILDS} were looked at"
    others = () if given else _others(root, directory)
    return JitCache(directory, tuple(build for build in found if build), others, problem)


def _folder(environment: Environment, root: str) -> str:
    """The name that torch gives the directory: ``py311_cu121``, ``py311_cpu``."""
    torch = environment.torch
    # A free-threaded build's "t" is in the name of every torch that runs on one.
    python = f"py{environment.version_short.replace('.', '')}{environment.abiflags}"
    if torch is not None and torch.hip:
        # Older ROCm releases called it "cpu".
        name = f"{python}_rocm{torch.hip.replace('.', '')}"
        return name if os.path.isdir(os.path.join(root, name)) else f"{python}_cpu"
    if torch is not None and torch.cuda:
        return f"{python}_cu{torch.cuda.replace('.', '')}"
    return f"{python}_cpu"


def _others(root: str, own: str) -> tuple[str, ...]:
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return ()
    paths = (os.path.join(root, name) for name in names if re.match(r"py\d+t?_", name))
    return tuple(path for path in paths if path != own)


def _build(directory: str, now: float) -> JitBuild | None:
    name = os.path.basename(directory)
    if not os.path.isdir(directory):
        return None
    lock, age = os.path.join(directory, "lock"), None
    try:
        age = max(0.0, now - os.stat(lock).st_mtime)
    except OSError:
        lock = ""
    # torch numbers the versions of an extension that was built again: name_v1.so.
    try:
        entries = sorted(os.listdir(directory))
    except OSError:
        entries = []
    built = [entry for entry in entries if re.fullmatch(re.escape(name) + r"(?:_v\d+)?\.so", entry)]
    library = max((os.path.join(directory, e) for e in built), key=_mtime, default=None)
    return JitBuild(name, directory, library, lock or None, age)


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def pip_wheels(environ: Mapping[str, str], names: set[str]) -> list[CachedWheel]:
    """The wheels of the given projects (normalized names) that pip built and keeps, sorted."""
    root = environ.get("PIP_CACHE_DIR") or os.path.join(_cache_home(environ), "pip")
    found = []
    for path in _wheels_below(os.path.join(root, "wheels")):
        parts = os.path.basename(path).removesuffix(".whl").split("-")
        if len(parts) < 5 or normalized(parts[0]) not in names:
            continue
        try:
            status = os.stat(path)
        except OSError:
            continue  # a link to nothing: pip would not take it either
        if stat.S_ISREG(status.st_mode):
            found.append(CachedWheel(path, parts[0], parts[1], status.st_size, status.st_mtime))
    return sorted(found, key=lambda wheel: wheel.path)


def _wheels_below(root: str) -> Iterator[str]:
    pending, count = [(root, 0)], 0
    while pending and count < MAX_WHEELS:
        directory, depth = pending.pop()
        try:
            with os.scandir(directory) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue  # no cache, or not ours to read: pip could not use it either
        for entry in entries:
            if depth < _PIP_DEPTH and entry.is_dir(follow_symlinks=False):
                pending.append((entry.path, depth + 1))
            elif entry.name.endswith(".whl"):
                count += 1
                yield entry.path


def _cache_home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or os.path.expanduser("~")
    return environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
