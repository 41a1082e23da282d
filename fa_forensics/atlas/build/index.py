"""The package index: the wheels of a project, and single members of a wheel by HTTP range.

The address of the index is pip's own setting (``PIP_INDEX_URL``), else the default of
pypi-simple. A member of a 900 MB wheel costs its own compressed size: nothing else is fetched.

Needs the extra ``real`` (pypi-simple, remotezip).
"""

from __future__ import annotations

import os
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fa_forensics.errors import ForensicsError
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    import requests

#: Tries of one request, and of one broken transfer without a byte of progress.
TRIES = 6
#: Seconds before the second try; doubled for each further one.
FIRST_PAUSE = 1.0
#: Seconds to wait for a connection, and for the next bytes of an answer.
TIMEOUT = (15, 60)
#: Bytes read, and handed out, at a time.
CHUNK = 1 << 20
#: Answers of a server that may be different a moment later.
PASSING = (429, 500, 502, 503, 504)

_MACHINE = re.compile(r"(?:manylinux\w*|linux)_(x86_64|aarch64)$")


class IndexFailure(ForensicsError):
    """The package index, or a file on it, could not be read; the message says which and why."""


class NoSuchWheel(ForensicsError):
    """The index answers, and does not have what was asked for."""


@dataclass(frozen=True, slots=True)
class WheelFile:
    """One wheel on the index. ``size`` is in bytes, ``date`` the day of the upload (UTC)."""

    project: str
    filename: str
    version: str
    build: tuple[int, str] | tuple[()]
    interpreters: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]
    url: str
    size: int | None
    date: str | None
    yanked: bool

    @property
    def machines(self) -> tuple[str, ...]:
        """The Linux machines it is for (x86_64, aarch64); empty for other systems."""
        found = {match[1] for match in map(_MACHINE.search, self.platforms) if match}
        return tuple(sorted(found))


def version_key(text: str) -> Any:
    """A sort key for version texts, as pip orders them. Raises ValueError for other texts."""
    from packaging.version import Version

    return Version(text)


def list_wheels(project: str, machine: str | None = None) -> tuple[WheelFile, ...]:
    """All wheels of a project for a Linux machine (or for any system), oldest version first.

    Raises NoSuchWheel when the index does not know the project, IndexFailure when it cannot
    be read.
    """
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    found = []
    for package in _project_page(project).packages:
        if package.package_type != "wheel":
            continue
        try:
            _, version, build, tags = parse_wheel_filename(package.filename)
        except InvalidWheelFilename:
            continue  # pip passes over such names too
        uploaded = package.upload_time
        wheel = WheelFile(
            project,
            package.filename,
            str(version),
            build,
            tuple(sorted({tag.interpreter for tag in tags})),
            tuple(sorted({tag.abi for tag in tags})),
            tuple(sorted({tag.platform for tag in tags})),
            package.url,
            package.size,
            None if uploaded is None else uploaded.date().isoformat(),
            bool(package.is_yanked),
        )
        if machine is None or machine in wheel.machines:
            found.append((version, build, wheel.filename, wheel))
    return tuple(row[-1] for row in sorted(found))


def choose_wheel(
    wheels: Iterable[WheelFile],
    version: str,
    machine: str = "x86_64",
    interpreters: Iterable[str] = ("cp311", "py3"),
) -> WheelFile:
    """The wheel of a version for a machine and the first of these interpreters, else the newest.

    Of several builds of one version the highest build tag is taken, as pip does; a withdrawn
    ("yanked") wheel only where there is no other; a free-threaded one likewise. Raises
    NoSuchWheel.
    """
    wanted = version_key(version)  # "13.0.3" and "13.0.3.0" are the same
    fitting = [w for w in wheels if version_key(w.version) == wanted and machine in w.machines]
    if not fitting:
        raise NoSuchWheel(f"the index has no wheel of version {version} for Linux {machine}")
    order = list(interpreters)

    def rank(wheel: WheelFile) -> tuple[Any, ...]:
        places = [order.index(tag) for tag in wheel.interpreters if tag in order]
        minors = [int(tag[3:]) for tag in wheel.interpreters if re.fullmatch(r"cp3\d+", tag)]
        threaded = any(re.fullmatch(r"cp\d+t", abi) for abi in wheel.abis)
        place = -min(places, default=len(order))
        return (
            not wheel.yanked, not threaded, place, max(minors, default=0), wheel.build,
            wheel.filename,
        )  # fmt: skip

    return max(fitting, key=rank)


class RemoteWheel:
    """An open wheel on the index; its members are fetched as they are read."""

    def __init__(
        self, file: WheelFile, archive: zipfile.ZipFile, session: requests.Session
    ) -> None:
        self.file = file
        self._archive = archive
        self._session = session

    def names(self) -> tuple[str, ...]:
        """All members, in the archive's order."""
        return tuple(self._archive.namelist())

    def size(self, member: str) -> int:
        """The unpacked size of a member in bytes."""
        return self._archive.getinfo(member).file_size

    def compressed_size(self, member: str) -> int:
        """What a member costs to fetch, in bytes."""
        return self._archive.getinfo(member).compress_size

    def chunks(self, member: str, size: int = CHUNK) -> Iterator[bytes]:
        """The unpacked bytes of a member, piece by piece; stop early and the rest stays there.

        The checksum is compared when the end is reached. Raises IndexFailure.
        """
        with _failures_of(self.file.filename), self._archive.open(member) as stream:
            while piece := stream.read(size):
                yield piece

    def read(self, member: str) -> bytes:
        """A whole member. Raises IndexFailure."""
        return b"".join(self.chunks(member))

    def neighbours(self, members: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """(member, unpacked bytes) of members that lie close together, in few requests.

        For thousands of small files, where a request for each would take minutes. Their
        checksums are compared. Raises IndexFailure.
        """
        with _failures_of(self.file.filename):
            for first, last, infos in _runs(self._archive, set(members)):
                wanted = {"Range": f"bytes={first}-{last - 1}"}
                answer = self._session.get(self.file.url, headers=wanted, timeout=TIMEOUT)
                answer.raise_for_status()
                for info in infos:
                    yield info.filename, _unpacked(info, answer.content, info.header_offset - first)

    def save(self, member: str, path: str, progress: Callable[[int], None] | None = None) -> None:
        """Write a whole member to a file; ``progress`` is told the bytes of each piece."""
        with open(path, "wb") as out:
            for piece in self.chunks(member):
                out.write(piece)
                if progress is not None:
                    progress(len(piece))


def _runs(
    archive: zipfile.ZipFile, wanted: Collection[str]
) -> Iterator[tuple[int, int, list[zipfile.ZipInfo]]]:
    """(first byte, byte after the last, members) of stretches with no wide gap between them."""
    infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    ends = [info.header_offset for info in infos[1:]] + [archive.start_dir]
    run: list[zipfile.ZipInfo] = []
    last = 0
    for info, end in zip(infos, ends, strict=True):
        if info.filename not in wanted:
            continue
        if run and info.header_offset - last > CHUNK:
            yield run[0].header_offset, last, run
            run = []
        run.append(info)
        last = end
    if run:
        yield run[0].header_offset, last, run


def _unpacked(info: zipfile.ZipInfo, raw: bytes, at: int) -> bytes:
    """A member out of a stretch of the archive. Raises BadZipFile. Layout: APPNOTE 4.3.7."""
    if raw[at : at + 4] != b"PK\3\4":
        raise zipfile.BadZipFile(f"no member begins where {info.filename} should")
    start = at + 30 + sum(struct.unpack_from("<HH", raw, at + 26))
    packed = raw[start : start + info.compress_size]
    data = packed if info.compress_type == zipfile.ZIP_STORED else zlib.decompress(packed, -15)
    if zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"bad checksum of {info.filename}")
    return data


@contextmanager
def open_wheel(file: WheelFile) -> Iterator[RemoteWheel]:
    """Open a wheel on the index by HTTP range. Raises IndexFailure."""
    from remotezip import RemoteZip

    with _session() as session:
        with _failures_of(file.filename):
            archive = RemoteZip(file.url, session=session, fetcher=_fetcher(), timeout=TIMEOUT)
        with archive:
            yield RemoteWheel(file, archive, session)


def _project_page(project: str) -> Any:
    from pypi_simple import NoSuchProjectError, PyPISimple, UnsupportedContentTypeError

    endpoint = os.environ.get("PIP_INDEX_URL", "").strip()
    with _session() as session, _failures_of(f"the package index's page of {project}"):
        client = PyPISimple(endpoint, session=session) if endpoint else PyPISimple(session=session)
        try:
            return client.get_project_page(project, timeout=TIMEOUT)
        except NoSuchProjectError as error:
            raise NoSuchWheel(f"the package index has no project {project}") from error
        except UnsupportedContentTypeError as error:
            raise IndexFailure(f"the package index's page of {project}: {error}") from error


@contextmanager
def _failures_of(what: str) -> Iterator[None]:
    """Turn what the network and the archive raise into one sentence."""
    import requests
    from remotezip import RemoteZipError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (requests.RequestException, HTTPError, RemoteZipError) as error:
        raise IndexFailure(
            f"{what} could not be read: {_plain(error)}",
            "Run the same command again when the network is back; what was read is kept.",
        ) from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise IndexFailure(f"{what} arrived damaged: {error}") from error


def _plain(error: BaseException) -> str:
    """The innermost reason of a network failure, without the addresses of objects."""
    text = str(error) or type(error).__name__
    return re.sub(r"<[^<>]* object at 0x[0-9a-f]+>(: )?", "", text)


def _session() -> requests.Session:
    """A session that tries refused and dropped requests again, with growing pauses."""
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    session = requests.Session()
    retry = Retry(
        total=TRIES - 1,
        backoff_factor=FIRST_PAUSE,
        status_forcelist=PASSING,
        allowed_methods={"GET", "HEAD"},
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    session.headers["Accept-Encoding"] = "identity"  # ranges count the bytes of the file itself
    certificates = os.environ.get("PIP_CERT")
    if certificates:
        session.verify = certificates
    return session


def _fetcher() -> type:
    """A fetcher for RemoteZip whose long transfers go on where they broke off."""
    from remotezip import PartialBuffer, RemoteFetcher

    class Fetcher(RemoteFetcher):  # type: ignore[misc, unused-ignore]
        def fetch(self, data_range: tuple[int, int | None], stream: bool = False) -> Any:
            part = super().fetch(data_range, stream)
            if stream:
                start, size = part.tell(), len(part)

                def again(done: int) -> Any:
                    fetch = super(Fetcher, self).fetch
                    return fetch((start + done, start + size - 1), stream=True).buffer

                return PartialBuffer(_Steady(part.buffer, size, again), start, size, stream=True)
            return part

    return Fetcher


class _Steady:
    """The body of an answer, asked for again from where it broke off."""

    def __init__(self, raw: Any, size: int, again: Callable[[int], Any]) -> None:
        self._raw, self._size, self._again = raw, size, again
        self._done = 0
        self.closed = False

    def tell(self) -> int:
        return self._done

    def close(self) -> None:
        self.closed = True
        self._raw.close()
        self._raw.release_conn()

    def read(self, size: int) -> bytes:
        """As many bytes as asked for, fewer only at the end. Raises RemoteIOError."""
        size = min(size, self._size - self._done)
        parts: list[bytes] = []
        while size > 0:
            parts.append(self._some(size))
            size -= len(parts[-1])
        return b"".join(parts)

    def _some(self, size: int) -> bytes:
        """At least one byte, by asking again as often as TRIES says."""
        pause = FIRST_PAUSE
        reason: Exception | None = None
        for tries_left in reversed(range(TRIES)):
            try:
                piece: bytes = self._raw.read(size)
                if piece:
                    self._done += len(piece)
                    return piece
            except _transfer_errors() as error:
                reason = error
            if tries_left:
                time.sleep(pause)
                pause *= 2
                self._raw.close()
                self._raw = self._again(self._done)
        raise _broken_off(self._done, self._size) from reason


def _transfer_errors() -> tuple[type[Exception], ...]:
    from urllib3.exceptions import HTTPError

    return (HTTPError, OSError)


def _broken_off(done: int, size: int) -> Exception:
    from remotezip import RemoteIOError

    error: Exception = RemoteIOError(f"the transfer broke off after {done:,} of {size:,} bytes")
    return error
