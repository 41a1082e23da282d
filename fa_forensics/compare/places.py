"""Paths by their meaning: two homes, prefixes or site-packages are the same place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

#: Prefixes that other software shares: what lies there is at the same place everywhere.
_SHARED = {"", "/usr", "/usr/local", "/opt"}

_HOME = re.compile(r"(?<![\w.~>/-])(?:/home/[^/:\s\"']+|/root)(?=[/:\s\"',;)]|$)")

_MOST_ROOTS = 64

SITE = "<site-packages>"
USER_SITE = "<user site-packages>"
PREFIX = "<prefix>"
HOME = "~"


class Places:
    """The places of one environment, and their names that are the same on every machine."""

    def __init__(self, environment: Mapping[str, object] | None) -> None:
        self._names = _names(environment or {})
        roots = sorted(self._names, key=len, reverse=True)
        pattern = "|".join(re.escape(root) for root in roots)
        end = r"(?=[/:\s\"',;)]|$)"
        self._roots = re.compile(rf"(?<![\w.~>/-])(?:{pattern}){end}") if roots else None

    def name(self, text: str) -> str:
        """The text with the roots of this environment under their common names."""
        if "/" not in text:
            return text
        if self._roots is not None:
            text = self._roots.sub(lambda found: self._names[found.group()], text)
        return _HOME.sub(HOME, text)

    def file(self, path: str) -> str:
        """A file by what follows site-packages, else by its place."""
        named = self.name(path)
        for root in (SITE, USER_SITE):
            if named.startswith(root + "/"):
                named = named[len(root) + 1 :]
        return named


def _names(environment: Mapping[str, object]) -> dict[str, str]:
    names: dict[str, str] = {}
    prefix = environment.get("prefix")
    if isinstance(prefix, str) and prefix.startswith("/") and prefix.rstrip("/") not in _SHARED:
        names[prefix.rstrip("/")] = PREFIX
    for site in _texts(environment.get("site_dirs")):
        root = site.rstrip("/")
        if not root.startswith("/") or not root.endswith(("site-packages", "dist-packages")):
            continue
        names[root] = USER_SITE if "/.local/lib/" in root else SITE
    return names


def _texts(value: object) -> Iterable[str]:
    if not isinstance(value, (list, tuple)):
        return ()
    return [item for item in value[:_MOST_ROOTS] if isinstance(item, str)]
