"""A file on an HTTP server, read piece by piece: nothing of it is written to disk.

Each read asks for what follows (``Range``, RFC 9110 section 14) on one connection and goes on
reading it, so that a member of an archive costs its own size. Only http and https are followed.
"""

from __future__ import annotations

import io
import re
import time
from base64 import b64encode
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fa_forensics.errors import UnreadableFile, UsageError

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

#: Seconds to wait for a connection, and for the next bytes of an answer.
TIMEOUT_S = 30.0
#: A larger file is not believed, and no more is read at once (bytes).
MAX_FILE = 16 << 30
MAX_READ = 64 << 20
#: A step forwards that is read over rather than asked for anew (bytes).
_SHORT_STEP = 1 << 16
#: The end of a file that is kept: an archive's list of members is read there piece by piece.
_TAIL = 1 << 16
#: A server that keeps sending less than this (bytes a second) is given up.
SLOWEST = 1 << 10
#: So many characters of what a server said of itself are repeated.
_SAID = 200
#: Broken transfers that are taken up again where they stopped.
_TRIES = 3

_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class ServerRefused(UnreadableFile):
    """The server answered, and does not give what was asked for."""


def is_url(text: str) -> bool:
    """Whether an argument is an address of the web."""
    return re.match(r"https?://", text, re.IGNORECASE) is not None


def file_name_of(url: str) -> str:
    """The last part of an address's path, escapes resolved: a wheel's name keeps its "+"."""
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    return unquote(path.rpartition("/")[2])


class RemoteFile(io.RawIOBase):
    """A readable, seekable file at an address; a context manager.

    ``size`` is in bytes; ``received`` counts those that came over the network. Raises
    ``UnreadableFile`` with one sentence for all that goes wrong, ``UsageError`` for an address
    that is none.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__()
        self.url = url
        self.shown = shown_address(url)
        self.received = 0
        self._timeout_s = timeout_s
        self._at = 0  # where the reader is
        self._answer: HTTPResponse | None = None
        self._answer_at = 0  # where the open answer is
        self._mark: str | None = None
        self._tail = b""
        self.size = 0
        self._ask(0)

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._hang_up()
        super().close()

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read from any place."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; nothing is asked of the server until the next read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise OSError(22, "a place before the start of the file")
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Up to ``size`` bytes from here; all that is left for None or a negative number."""
        left = max(0, self.size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > MAX_READ:
            raise UnreadableFile(f"{self.shown} asks for {wanted:,} bytes at once: not believed")
        start = max(0, self.size - _TAIL)
        if wanted and self._at >= start:
            if not self._tail:
                self._tail = self._fetch(start, self.size - start)
            data = self._tail[self._at - start :][:wanted]
            self._at += len(data)
            return data
        data = self._fetch(self._at, wanted)
        self._at += len(data)
        return data

    def _fetch(self, at: int, wanted: int) -> bytes:
        """Bytes of the file, over the network; a broken transfer is taken up again."""
        pieces: list[bytes] = []
        tries = got = 0
        begun = time.monotonic()
        while wanted:
            piece = self._piece(at, wanted)
            if not piece:
                tries += 1
                self._hang_up()
                if tries >= _TRIES:
                    raise UnreadableFile(f"{self.shown} stopped at byte {at:,}, again and again")
                continue
            pieces.append(piece)
            at += len(piece)
            wanted -= len(piece)
            got += len(piece)
            passed = time.monotonic() - begun
            if wanted and passed > self._timeout_s and got < passed * SLOWEST:
                raise UnreadableFile(
                    f"{self.shown} sends less than 1 KiB a second",
                    "download the file and give its path",
                )
        return b"".join(pieces)

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override]
        """Fill a buffer, as far as the file goes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _piece(self, at: int, wanted: int) -> bytes:
        """Some bytes from a place; nothing where the connection broke."""
        step = at - self._answer_at
        if self._answer is None or not 0 <= step <= _SHORT_STEP:
            self._ask(at)
            step = 0
        assert self._answer is not None
        try:
            while step:
                passed = self._answer.read1(step)
                if not passed:
                    return b""
                self._count(passed)
                step -= len(passed)
            piece = self._answer.read1(wanted)  # what has come, not all of it
        except OSError:  # a connection that was reset or timed out
            return b""
        except Exception as error:
            if not _is_protocol_error(error):
                raise
            return b""
        self._count(piece)
        return piece

    def _count(self, piece: bytes) -> None:
        self._answer_at += len(piece)
        self.received += len(piece)

    def _ask(self, start: int) -> None:
        """Open an answer that begins at a byte."""
        self._hang_up()
        answer = self._open(f"bytes={start}-")
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        problem = None
        if answer.status != 206 or found is None:
            problem = "its server sends whole files only (no byte ranges)"
        elif int(found[1]) != start:
            problem = "its server sent other bytes than were asked for"
        elif int(found[3]) > MAX_FILE:
            problem = f"it is said to have {int(found[3]):,} bytes, which is not believed"
        else:
            mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            if self.size and (int(found[3]) != self.size or mark != self._mark):
                problem = "it changed while it was being read"
            self.size, self._mark = int(found[3]), mark
        if problem is not None:
            answer.close()
            raise UnreadableFile(
                f"cannot read {self.shown}: {problem}", "download the file and give its path"
            )
        self._answer, self._answer_at = answer, start

    def _open(self, span: str) -> HTTPResponse:
        # Compressed on the way, the bytes of a range would be others.
        return _open(self.url, self.shown, self._timeout_s, {"Range": span})

    def _hang_up(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def fetch(url: str, accept: str, limit: int, timeout_s: float = TIMEOUT_S) -> tuple[str, str]:
    """(text, content type) of a page that is no larger than ``limit`` bytes.

    Raises ``UnreadableFile`` with one sentence, ``UsageError`` for an address that is none.
    """
    shown = shown_address(url)
    answer = _open(url, shown, timeout_s, {"Accept": accept})
    try:
        data = answer.read(limit + 1)
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"cannot read {shown}: {error}") from error
    except Exception as error:
        if not _is_protocol_error(error):
            raise
        raise UnreadableFile(f"cannot read {shown}: it stopped too early") from error
    finally:
        answer.close()
    if len(data) > limit:
        raise UnreadableFile(f"{shown} has more than {limit:,} bytes: not believed")
    return data.decode("utf-8", "replace"), answer.headers.get("Content-Type", "")


def shown_address(url: str) -> str:
    """An address for messages, without a password or a query.

    Raises ``UsageError`` for one that is none.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no IPv6 address
        parts = urlsplit("")
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url} is no address of the web (https://host/file.whl)")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _open(url: str, shown: str, timeout_s: float, headers: dict[str, str]) -> HTTPResponse:
    """An answer whose status is one of success. Raises ``UnreadableFile`` for all else."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    sent = {"Accept-Encoding": "identity", "User-Agent": "fa-forensics", **headers}
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    request = Request(parts._replace(netloc=host, fragment="").geturl(), headers=sent)
    if at:  # a name and a password are for this host alone: no redirect carries them on
        word = b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {word}")
    try:
        answer: HTTPResponse = _opener().open(request, timeout=timeout_s)
    except HTTPError as error:
        error.close()
        answered = f"its server answers {error.code} {_brief(error.reason)}"
        if error.code == 416:
            answered = "it is empty (0 bytes)"
        raise ServerRefused(f"cannot read {shown}: {answered}") from None
    except (URLError, OSError, ValueError) as error:
        reason: object = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            reason = f"no answer in {timeout_s:g} s"
        raise UnreadableFile(f"cannot read {shown}: {reason}") from error
    except Exception as error:
        if not _is_protocol_error(error):
            raise
        raise UnreadableFile(f"cannot read {shown}: {_brief(repr(error))} is no HTTP") from error
    return answer


def _brief(said: object) -> str:
    """The first line of a server's words, cut to what a sentence bears."""
    line = (str(said).splitlines() or [""])[0]
    return line if len(line) <= _SAID else line[:_SAID] + " ..."


def _is_protocol_error(error: Exception) -> bool:
    from http.client import HTTPException

    return isinstance(error, HTTPException)


def _opener() -> OpenerDirector:
    """An opener for http and https alone: a redirect to ftp: or file: is not followed."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler, request.UnknownHandler, request.HTTPHandler, request.HTTPSHandler,
        request.HTTPDefaultErrorHandler, request.HTTPRedirectHandler, request.HTTPErrorProcessor,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener
