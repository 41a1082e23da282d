"""An installed distribution's RECORD, and the files on disk held against it.

Format: packaging.python.org, "Recording installed projects": lines of path, hash and size in
bytes, the path relative to the directory that holds the metadata. A file without a hash
(RECORD itself, byte code) has no size either.
"""

from __future__ import annotations

import base64
import csv
import os
import stat
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import MAX_RECORD
from fa_forensics.records import dataclass

#: A file of which only the size and the time were looked at is read and hashed after all when
#: it was written so much later (seconds) than RECORD, which an installer writes last.
LATER_S = 2.0

_CHUNK = 1 << 20


class Entry(NamedTuple):
    """A line of RECORD: ``path`` as written, ``digest`` ("sha256=...") and ``size`` if given."""

    path: str
    digest: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """A RECORD: ``root`` is the directory its paths start from, ``mtime`` when it was written.

    Byte code is left out. ``problem`` is one sentence where lines were left aside.
    """

    root: str
    mtime: float
    entries: tuple[Entry, ...]
    problem: str | None = None

    def path_of(self, entry: Entry) -> str:
        """The absolute path of an entry."""
        return os.path.normpath(os.path.join(self.root, entry.path))


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """The files of a RECORD as they are on disk; paths are absolute.

    ``missing`` are not there, ``dead_links`` point to nothing, ``resized`` have another size
    (recorded, found) in bytes, ``altered`` another hash, ``unreadable`` come with the reason.
    ``sized`` counts the files whose size was compared, ``hashed`` those whose content was;
    ``not_hashed`` are the bytes that were not read.
    """

    missing: tuple[str, ...] = ()
    dead_links: tuple[str, ...] = ()
    resized: tuple[tuple[str, int, int], ...] = ()
    altered: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    sized: int = 0
    hashed: int = 0
    not_hashed: int = 0

    @property
    def whole(self) -> bool:
        """Whether everything that was looked at is as it was installed."""
        return not (
            self.missing or self.dead_links or self.resized or self.altered or self.unreadable
        )


def read_record(path: str) -> Record:
    """Read a RECORD file. Raises ``OSError`` when it cannot be read."""
    root = os.path.dirname(os.path.dirname(path))
    mtime = os.stat(path).st_mtime
    data = read_bounded(path, MAX_RECORD + 1)
    problem = None
    if len(data) > MAX_RECORD:
        problem = f"{path} is larger than {MAX_RECORD:,} bytes and was read in part"
        data = data[:MAX_RECORD].rpartition(b"\n")[0]
    entries: list[Entry] = []
    bad = 0
    for line in os.fsdecode(data).replace("\r\n", "\n").split("\n"):
        if not line or line.endswith(".pyc,,"):
            continue  # byte code comes and goes with any run
        entry = _entry(line)
        if entry is not None:
            entries.append(entry)
        elif line.strip():
            bad += 1
    if bad:
        are = "line of {} is no line" if bad == 1 else "lines of {} are no lines"
        problem = f"{bad} {are.format(path)} of a RECORD"
    return Record(root, mtime, tuple(entries), problem)


def _entry(line: str) -> Entry | None:
    """One line taken apart, None for one that is none."""
    fields = line.rsplit(",", 2)
    if '"' in line:
        try:
            fields = next(csv.reader([line]))
        except (csv.Error, StopIteration):
            return None
    if len(fields) != 3:
        return None
    path, digest, size = fields
    if not path or "\0" in path:
        return None
    if not size:
        return Entry(path, digest, None)
    return Entry(path, digest, int(size)) if _is_size(size) else None


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def top_names(entries: Iterable[Entry]) -> frozenset[str]:
    """The first parts of all paths inside the directory: packages, modules, metadata."""
    firsts = {entry.path.partition("/")[0] for entry in entries}
    return frozenset(first for first in firsts if first not in ("", ".", "..", "__pycache__"))


def check_files(
    record: Record, sources: bool = False, everything: bool = False, budget: int = 1 << 24
) -> RecordCheck:
    """Hold the files on disk against a RECORD.

    Existence and size of every file are compared. The content is read of files that were
    written after the RECORD and, with ``sources``, of Python sources, ``budget`` bytes at
    most; with ``everything`` that of all files.
    """

    def suspect(entry: Entry, mtime: float) -> bool:
        return (sources and entry.path.endswith(".py")) or mtime > record.mtime + LATER_S

    missing: list[str] = []
    dead: list[str] = []
    resized: list[tuple[str, int, int]] = []
    altered: list[str] = []
    unreadable: list[tuple[str, str]] = []
    sized = hashed = not_hashed = 0
    for entry in record.entries:
        if entry.size is None or entry.path.endswith(".pyc"):
            continue  # written at will, by any run
        path = f"{record.root}/{entry.path}" if entry.path[0] != "/" else entry.path
        try:
            status = os.stat(path)
        except FileNotFoundError:
            (dead if os.path.islink(path) else missing).append(record.path_of(entry))
            continue
        except (OSError, ValueError) as error:
            unreadable.append((record.path_of(entry), _reason(error)))
            continue
        sized += 1
        if not stat.S_ISREG(status.st_mode):
            unreadable.append((record.path_of(entry), "it is no regular file"))
        elif status.st_size != entry.size:
            resized.append((record.path_of(entry), entry.size, status.st_size))
        elif not everything and (entry.size > budget or not suspect(entry, status.st_mtime)):
            not_hashed += entry.size
        else:
            budget -= entry.size
            try:
                same = _same_content(path, entry)
            except OSError as error:
                unreadable.append((record.path_of(entry), _reason(error)))
                continue
            hashed += same is not None
            if same is False:
                altered.append(record.path_of(entry))
    return RecordCheck(
        tuple(missing), tuple(dead), tuple(resized), tuple(altered), tuple(unreadable),
        sized, hashed, not_hashed,
    )  # fmt: skip


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _same_content(path: str, entry: Entry) -> bool | None:
    """Whether a file has the recorded hash; None for a hash of a kind that is not known."""
    import hashlib

    kind, _, wanted = entry.digest.partition("=")
    if kind not in ("sha256", "sha384", "sha512") or not wanted:
        return None
    digest = hashlib.new(kind)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        left = (entry.size or 0) + 1  # a file that grows, or that never ends, is another one
        while left > 0 and (part := file.read(min(_CHUNK, left))):
            digest.update(part)
            left -= len(part)
    found = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    return found == wanted.rstrip("=")


def owners_of(records: Mapping[str, Record]) -> dict[str, list[str]]:
    """Top-level name → the keys of all records that have something of that name."""
    owners: dict[str, list[str]] = {}
    for key, record in records.items():
        for name in top_names(record.entries):
            owners.setdefault(name, []).append(key)
    return owners
