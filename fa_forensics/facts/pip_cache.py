"""Hashes of installed wheels, from the archives that pip keeps in its cache.

pip (23.3 and later) keeps each answer of an index as a file ``http-v2/…/NAME.body``: a wheel as it
was downloaded. Wheels that it built itself lie under ``wheels/``, as files with their own names.
Which wheel an archive is, its metadata says. Layout: pip's documentation, "Caching".
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import headers, normalized
from fa_forensics.facts.wheel import Archive
from fa_forensics.records import dataclass

#: Files of the cache that are looked at.
MAX_FILES = 20_000

#: (normalized name, version)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CachedWheels:
    """What the cache holds of the distributions that were asked for.

    ``downloaded`` maps to the archives and their tags; ``built`` are those that pip compiled
    here from source. ``problem`` is why nothing could be looked up, one sentence.
    """

    downloaded: Mapping[Key, tuple[tuple[str, frozenset[str]], ...]]
    built: frozenset[Key]
    problem: str | None = None

    def archive_of(self, key: Key, tags: Iterable[str]) -> str | None:
        """The one archive of a distribution with the installed one's tags, or None."""
        wanted = frozenset(tags)
        found = [path for path, has in self.downloaded.get(key, ()) if not wanted or has & wanted]
        return found[0] if len(found) == 1 else None


def cache_directory(environ: Mapping[str, str]) -> str:
    """Where pip keeps its cache (PIP_CACHE_DIR, XDG_CACHE_HOME)."""
    given = environ.get("PIP_CACHE_DIR")
    if given:
        return given
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "pip")


def read_cache(directory: str, wanted: frozenset[Key]) -> CachedWheels:
    """Look through pip's cache for wheels of these distributions."""
    store = os.path.join(directory, "http-v2")
    built = _built(os.path.join(directory, "wheels"), wanted)
    if not os.path.isdir(store):
        old = os.path.isdir(os.path.join(directory, "http"))
        reason = "it was written by a pip before 23.3" if old else "there is none"
        return CachedWheels({}, built, f"pip's cache in {directory} was not used: {reason}")
    found: dict[Key, list[tuple[str, frozenset[str]]]] = {}
    count = 0
    for folder, _folders, names in os.walk(store):
        for name in sorted(names):
            if not name.endswith(".body"):
                continue
            count += 1
            if count > MAX_FILES:
                return CachedWheels(_frozen(found), built, f"{directory} holds too many files")
            path = os.path.join(folder, name)
            row = _wheel_at(path)
            if row is not None and row[0] in wanted:
                found.setdefault(row[0], []).append((path, row[1]))
    return CachedWheels(_frozen(found), built)


def sha256_of(path: str) -> str:
    """The hash of a whole file, "sha256:...". Raises ``OSError``."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _wheel_at(path: str) -> tuple[Key, frozenset[str]] | None:
    """Which wheel a file of the cache is, and its tags; None for anything else."""
    try:
        if not os.path.isfile(path) or read_bounded(path, 4) != b"PK\x03\x04":
            return None
        with Archive(path) as archive:
            files = archive.info_files()
            if "WHEEL" not in files or "METADATA" not in files:
                return None
            metadata = headers(archive.text(files["METADATA"]))
            tags = headers(archive.text(files["WHEEL"]), whole=True).get("tag", ())
    except (OSError, ForensicsError):
        return None  # a page of the index, a download that was cut: no wheel
    name, version = metadata.get("name", ("",))[0], metadata.get("version", ("",))[0]
    return (normalized(name), version), frozenset(tags)


def _built(directory: str, wanted: frozenset[Key]) -> frozenset[Key]:
    found = set()
    for _folder, _folders, names in os.walk(directory):
        for name in names:
            parts = re.fullmatch(r"([^-]+)-([^-]+)-[^/]*\.whl", name)
            if parts and (normalized(parts[1]), parts[2]) in wanted:
                found.add((normalized(parts[1]), parts[2]))
    return frozenset(found)


def _frozen(
    found: Mapping[Key, list[tuple[str, frozenset[str]]]],
) -> dict[Key, tuple[tuple[str, frozenset[str]], ...]]:
    return {key: tuple(rows) for key, rows in found.items()}
