"""A server on localhost that sends files by range, and others that misbehave."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


@dataclass
class Server:
    """What it serves and how: ``files`` by path, ``manner`` one of the words below.

    whole: no ranges. slow: no answer. cut: closes after 1000 bytes. drop-once: so, but the first
    time only. shifted: other bytes than asked for. changing: another size each time. garbage: no
    HTTP. to-file: redirects to file:. in-a-circle: redirects to itself. talkative: a status of
    100,000 letters. dripping: a byte now and then. ``asked`` are the ranges that were asked
    for, and ``authorized`` the words of Authorization that came with them.
    """

    files: dict[str, bytes]
    manner: str = ""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    authorized: list[str | None] = field(default_factory=list)

    def url(self, name: str) -> str:
        """The address of a file."""
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def serving(files: dict[str, bytes], manner: str = "") -> Iterator[Server]:
    """A running server."""
    server = Server(files, manner)
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    http.daemon_threads = True
    server.port = http.server_address[1]
    thread = threading.Thread(
        target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):  # the client may hang up
                answer(self, server)

    return Handler


def answer(request: BaseHTTPRequestHandler, server: Server) -> None:
    """One answer in the server's manner."""
    path = unquote(request.path.partition("?")[0].lstrip("/"))
    span = request.headers.get("Range", "")
    server.asked.append(span)
    server.authorized.append(request.headers.get("Authorization"))
    if server.manner == "slow":
        time.sleep(3)
    if server.manner == "garbage":
        request.wfile.write(b"\0\1\2 this is no answer\r\n\r\n")
        return
    if server.manner == "to-file" or path.startswith("moved/"):
        request.send_response(302)
        target = "file:///etc/passwd" if server.manner == "to-file" else "/" + path[6:]
        request.send_header("Location", target)
        request.end_headers()
        return
    if server.manner == "in-a-circle":
        request.send_response(302)
        request.send_header("Location", request.path)
        request.end_headers()
        return
    if server.manner == "talkative":
        request.wfile.write(b"X" * 100_000 + b"\r\n\r\n")
        return
    body = server.files.get(path)
    if body is None:
        request.send_error(404)
        return
    found = re.fullmatch(r"bytes=(\d+)-", span)
    assert found is not None, span
    start, size = int(found[1]), len(body)
    if server.manner == "whole":
        request.send_response(200)
    elif start >= size:
        request.send_error(416)
        return
    else:
        request.send_response(206)
        shift = 1 if server.manner == "shifted" else 0
        claimed = size + len(server.asked) if server.manner == "changing" else size
        if server.manner == "huge":
            claimed = 1 << 50
        request.send_header("Content-Range", f"bytes {start + shift}-{size - 1}/{claimed}")
    request.send_header("Content-Length", str(size - start))
    request.end_headers()
    cut = server.manner == "cut" or (server.manner == "drop-once" and len(server.asked) == 1)
    if server.manner == "dripping":
        for place in range(start, size):
            request.wfile.write(body[place : place + 1])
            time.sleep(0.02)
        return
    request.wfile.write(body[start : start + 1000] if cut else body[start:])
