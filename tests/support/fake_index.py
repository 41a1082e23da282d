"""A package index on this machine: project pages as JSON, and files that answer to ranges.

Source: "Simple repository API" of the Python packaging specifications (JSON, version 1.1), and
RFC 9110, section 14 (range requests).
"""

from __future__ import annotations

import json
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class FakeIndex:
    """What the index has, and what it was asked for. ``breaks`` cuts transfers short."""

    address: str = ""
    #: Project to (file name, contents, day of upload).
    files: dict[str, list[tuple[str, bytes, str]]] = field(default_factory=dict)
    #: File name to the ranges asked for, in order.
    asked: list[tuple[str, str]] = field(default_factory=list)
    #: File name to how many of its next transfers end early.
    breaks: dict[str, int] = field(default_factory=dict)
    #: Answers with this status instead, while it is set.
    status: int | None = None

    def add(self, filename: str, contents: bytes, day: str = "2024-07-24") -> None:
        """Publish a file; its project is the first part of its name."""
        project = filename.partition("-")[0].replace("_", "-").lower()
        self.files.setdefault(project, []).append((filename, contents, day))

    def ranges(self, filename: str) -> list[str]:
        """The ranges of a file that were asked for."""
        return [asked for name, asked in self.asked if name == filename]


def wheel(members: Mapping[str, bytes], compress: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A wheel with these members."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", compress) as archive:
        for name, contents in members.items():
            archive.writestr(zipfile.ZipInfo(name), contents, compress)
    return out.getvalue()


@contextmanager
def serve() -> Iterator[FakeIndex]:
    """An index on a free port of this machine, until the block ends."""
    index = FakeIndex()

    class Handler(_Handler):
        served = index

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    index.address = f"http://127.0.0.1:{server.server_address[1]}/simple/"
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: FakeIndex
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def do_GET(self) -> None:
        index = self.served
        kind, _, name = self.path.strip("/").partition("/")
        if index.status is not None:
            self._answer(index.status, b"", {})
        elif kind == "simple" and name in index.files:
            self._answer(200, _page(name, index.files[name]), {"Content-Type": JSON})
        elif kind == "files":
            self._file(name)
        else:
            self._answer(404, b"", {})

    def _file(self, name: str) -> None:
        index = self.served
        contents = next(c for files in index.files.values() for n, c, _ in files if n == name)
        asked = self.headers.get("Range", "")
        index.asked.append((name, asked))
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked)
        assert match, f"the whole of {name} was asked for"
        size = len(contents)
        if match[1]:
            first, last = int(match[1]), min(int(match[2] or size), size - 1)
        else:
            first, last = max(0, size - int(match[2])), size - 1
        head = {"Content-Range": f"bytes {first}-{last}/{size}"}
        # The end of the file, where its table of contents lies, always arrives.
        cut = bool(match[1]) and index.breaks.get(name, 0) > 0
        if cut:
            index.breaks[name] -= 1
        self._answer(206, contents[first : last + 1], head, cut)

    def _answer(self, status: int, body: bytes, head: dict[str, str], cut: bool = False) -> None:
        self.send_response(status)
        for key, value in {**head, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True


def _page(project: str, files: list[tuple[str, bytes, str]]) -> bytes:
    rows = [
        {
            "filename": name,
            "url": f"/files/{name}",
            "hashes": {},
            "size": len(contents),
            "upload-time": f"{day}T12:00:00Z",
        }
        for name, contents, day in files
    ]
    page = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": rows}
    return json.dumps(page).encode()
