"""What a package index says of one release: its files, their addresses and hashes.

The simple repository API (PEP 503, PEP 691): asked only where the user named an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin

from fa_forensics.errors import UnreadableFile
from fa_forensics.facts.package import normalized
from fa_forensics.facts.remote import TIMEOUT_S, fetch
from fa_forensics.facts.wheel import parse_file_name

#: A project's page is no larger than this (bytes).
MAX_PAGE = 64 << 20
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_LINK = re.compile(r"<a\s([^>]{0,4000})>", re.IGNORECASE)
_HREF = re.compile(r"""href\s*=\s*["']([^"']{1,3000})["']""", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class NoIndexPage(UnreadableFile):
    """A page that is none of a package index."""


class IndexFile(NamedTuple):
    """One file of a project: its name, address, and sha256 ("" where the index has none)."""

    name: str
    url: str
    sha256: str


def project_files(index: str, project: str, timeout_s: float = TIMEOUT_S) -> list[IndexFile]:
    """All files of a project. Raises ``UnreadableFile`` with one sentence."""
    page = f"{index.rstrip('/')}/{normalized(project)}/"
    text, kind = fetch(page, _ACCEPT, MAX_PAGE, timeout_s)
    if "json" in kind:
        return _of_json(text, page)
    return _of_html(text, page)


def wheel_of(
    files: list[IndexFile], version: str, tags: tuple[str, ...]
) -> tuple[IndexFile | None, str]:
    """The wheel of a version with these tags, or None and why in words."""
    of_version = [file for file in files if file.name.endswith(".whl") and _is(file, version)]
    if not of_version:
        return None, "the index has no wheel of this version"
    wanted = set(tags)
    same = [file for file in of_version if _tags(file) & wanted]
    # auditwheel leaves linux_x86_64 in WHEEL, or puts manylinux there: the platform may differ.
    close = same or [file for file in of_version if _loose(_tags(file)) & _loose(wanted)]
    if len(close) == 1 and close[0].sha256:
        return close[0], ""
    if len(close) == 1:
        return None, "the index tells no hash of it"
    return None, f"{len(close)} wheels of the index could be the installed one"


def _is(file: IndexFile, version: str) -> bool:
    return parse_file_name(file.name)[1] == version


def _tags(file: IndexFile) -> set[str]:
    _name, _version, _build, python, abi, platform = parse_file_name(file.name)
    return {f"{p}-{a}-{m}" for p in python for a in abi for m in platform}


def _loose(tags: set[str]) -> set[str]:
    """Tags with the platform cut to its machine."""
    return {re.sub(r"-(?:many|musl)?linux[\d_]*_(\w+?)$", r"-linux_\1", tag) for tag in tags}


def _of_json(text: str, page: str) -> list[IndexFile]:
    try:
        rows = json.loads(text)["files"]
        return [
            IndexFile(str(row["filename"]), urljoin(page, str(row["url"])), _hash(row["hashes"]))
            for row in rows
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoIndexPage(f"{page} is no page of a package index: {error!r}") from None


def _hash(hashes: object) -> str:
    text = str(hashes.get("sha256", "")) if isinstance(hashes, Mapping) else ""
    return text if _SHA256.fullmatch(text) else ""


def _of_html(text: str, page: str) -> list[IndexFile]:
    found = []
    for link in _LINK.finditer(text):
        href = _HREF.search(link[1])
        if href is None:
            continue
        url, fragment = urldefrag(urljoin(page, unescape(href[1])))
        digest = fragment.removeprefix("sha256=")
        name = url.rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")
        found.append(IndexFile(name, url, digest if _SHA256.fullmatch(digest) else ""))
    return found
