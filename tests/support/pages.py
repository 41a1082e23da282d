"""A server on localhost that serves a few pages whole, and as one a small package index."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


@contextmanager
def pages(files: Mapping[str, tuple[str, bytes]]) -> Iterator[str]:
    """Serve path → (content type, body); the address without a slash at its end."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            kind, body = files.get(unquote(self.path.lstrip("/")), ("", None))
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()[:16]}"')
            self.send_header("Cache-Control", "max-age=600")
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    run = {"poll_interval": 0.02}
    threading.Thread(target=server.serve_forever, kwargs=run, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def wheel(name: str, version: str, tag: str = "py3-none-any") -> tuple[str, bytes]:
    """A tiny wheel: its file name and bytes."""
    data = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(f"{name}.py", f"version = {version!r}\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
        )
        archive.writestr(
            f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return f"{name}-{version}-{tag}.whl", data.getvalue()


@contextmanager
def index(*wheels: tuple[str, bytes], form: str = "html") -> Iterator[str]:
    """A simple index on localhost; its address."""
    files: dict[str, tuple[str, bytes]] = {}
    projects: dict[str, list[tuple[str, str]]] = {}
    for name, data in wheels:
        files[f"files/{name}"] = ("application/octet-stream", data)
        projects.setdefault(name.split("-")[0], []).append((name, hashlib.sha256(data).hexdigest()))
    for project, rows in projects.items():
        if form == "html":
            links = "".join(f'<a href="../../files/{n}#sha256={h}">{n}</a>' for n, h in rows)
            files[f"simple/{project}/"] = ("text/html", f"<html>{links}</html>".encode())
        else:
            listed = [
                {"filename": n, "url": f"../../files/{n}", "hashes": {"sha256": h}} for n, h in rows
            ]
            body = json.dumps({"meta": {"api-version": "1.0"}, "name": project, "files": listed})
            files[f"simple/{project}/"] = ("application/vnd.pypi.simple.v1+json", body.encode())
    with pages(files) as address:
        yield f"{address}/simple"
