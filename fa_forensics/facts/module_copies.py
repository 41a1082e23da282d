"""Every copy of an importable name on sys.path, in the order in which Python looks for it.

Rules: CPython's ``importlib._bootstrap_external.FileFinder.find_spec`` (in one directory a
package goes before a module, an extension before a source file), ``PathFinder`` (a directory
without ``__init__.py`` only when nothing else is found), and setuptools' editable finder, which
is appended to ``sys.meta_path`` and so asked last.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import editable_mapping

PACKAGE, EXTENSION, SOURCE, NAMESPACE = "package", "extension", "source", "namespace"

#: The origin of a copy that an editable install's finder leads to.
EDITABLE = "editable install"

#: No more is read of a file that may assign a version (bytes); real ones have some KB.
MAX_SOURCE = 1 << 18

_ORDER = {PACKAGE: 0, EXTENSION: 1, SOURCE: 2, NAMESPACE: 3}


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy: ``path`` of the package directory or the module's file.

    ``site`` is the entry of sys.path it lies in, ``origin`` how that came onto sys.path (see
    ``facts.site_dirs``). ``version`` is the text that its own source assigns to
    ``__version__``, None where none is assigned as plain text.
    """

    name: str
    path: str
    kind: str
    site: str
    origin: str
    version: str | None = None
    version_file: str | None = None


def copies_of(
    name: str, site_dirs: Sequence[str], origins: Sequence[str], python_short: str
) -> tuple[Copy, ...]:
    """All copies of a top-level name; the first is the one that ``import`` takes.

    ``python_short`` ("3.11") tells which extension files this interpreter would take.
    """
    regular: list[Copy] = []
    namespaces: list[Copy] = []
    mapped: list[Copy] = []
    for at, site in enumerate(site_dirs):
        origin = origins[at] if at < len(origins) else ""
        for kind, path in _in_directory(site, name, python_short):
            copy = Copy(name, path, kind, site, origin, *source_version(path, kind))
            (namespaces if kind == NAMESPACE else regular).append(copy)
        target = editable_mapping(site).get(name)
        if target:
            kind = PACKAGE if os.path.isdir(target) else SOURCE
            mapped.append(Copy(name, target, kind, site, EDITABLE, *source_version(target, kind)))
    seen: set[str] = set()
    found = []
    for copy in (*regular, *mapped, *namespaces):
        real = os.path.realpath(copy.path)
        if real not in seen:
            seen.add(real)
            found.append(copy)
    return tuple(found)


def _in_directory(site: str, name: str, python_short: str) -> list[tuple[str, str]]:
    """(kind, path) of what one directory has under a name, in Python's order."""
    base = os.path.join(site, name)
    found = []
    if os.path.isdir(base):
        has_init = os.path.isfile(os.path.join(base, "__init__.py"))
        found.append((PACKAGE if has_init else NAMESPACE, base))
    tag = "cpython-" + python_short.replace(".", "")
    try:
        names = [
            entry for entry in os.listdir(site) if entry.split(".")[0] == name and entry != name
        ]
    except OSError:
        names = []
    for entry in sorted(names):
        if entry.endswith(".so") and ("cpython-" not in entry or tag in entry):
            found.append((EXTENSION, os.path.join(site, entry)))
        elif entry == name + ".py":
            found.append((SOURCE, os.path.join(site, entry)))
    found.sort(key=lambda pair: _ORDER[pair[0]])
    return found


def source_version(path: str, kind: str) -> tuple[str | None, str | None]:
    """(version, file) that a package's or module's own source assigns to ``__version__``.

    Read by parsing, never by importing: a version that is computed is None.
    """
    if kind == SOURCE:
        places = [path]
    elif kind == PACKAGE:
        names = ("__init__.py", "version.py", "_version.py", "__version__.py", "__about__.py")
        places = [os.path.join(path, name) for name in names]
    else:
        return None, None
    for place in places:
        version = _assigned_version(place)
        if version is not None:
            return version, place
    return None, None


def _assigned_version(path: str) -> str | None:
    try:
        source = read_bounded(path, MAX_SOURCE)
    except OSError:
        return None
    if b"version" not in source:
        return None
    # Parsing costs some ms for a large file: its assignments alone are enough.
    lines = [line for line in source.splitlines() if re.match(rb"_*version_*\b[^=\n]*=", line)]
    for line in lines:
        version = _literal(line)
        if version is not None:
            return version
    return None


def _literal(line: bytes) -> str | None:
    """The text that ``__version__ = version = "1.2"`` assigns, None for anything else."""
    try:
        body = ast.parse(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in body:
        value: ast.expr | None
        if isinstance(node, ast.Assign):
            names, value = [t.id for t in node.targets if isinstance(t, ast.Name)], node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names, value = [node.target.id], node.value
        else:
            continue
        if not {"__version__", "version"} & set(names):
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return None
