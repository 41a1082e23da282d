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

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import editable_mapping
from fa_forensics.records import dataclass

PACKAGE, EXTENSION, SOURCE, NAMESPACE = "package", "extension", "source", "namespace"

#: The origin of a copy that an editable install's finder leads to.
EDITABLE = "editable install"

#: No more is read of a file that may assign a version (bytes); real ones have some KB.
MAX_SOURCE = 1 << 18


#: Sources, and byte code without one.
_SOURCE = (".py", ".pyc")


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


def extension_suffixes(environment: Environment) -> tuple[str, ...]:
    """How an interpreter's extension files end, in its order (``EXTENSION_SUFFIXES``).

    CPython's ``Python/dynload_shlib.c``: its own tag, the stable ABI's, the plain one; a
    free-threaded build has no stable ABI before 3.15.
    """
    libc = "musl" if environment.libc == "musl" else "gnu"
    tag = environment.version_short.replace(".", "") + environment.abiflags
    own = f".cpython-{tag}-{environment.machine}-linux-{libc}.so"
    if environment.implementation != "cpython":
        return (".so",)
    return (own, ".so") if "t" in environment.abiflags else (own, ".abi3.so", ".so")


def copies_of(
    name: str, site_dirs: Sequence[str], origins: Sequence[str], suffixes: Sequence[str]
) -> tuple[Copy, ...]:
    """All copies of a top-level name; the first is the one that ``import`` takes.

    ``suffixes`` are the interpreter's ``extension_suffixes``.
    """
    regular: list[Copy] = []
    namespaces: list[Copy] = []
    mapped: list[Copy] = []
    for at, site in enumerate(site_dirs):
        origin = origins[at] if at < len(origins) else ""
        for kind, path in _in_directory(site, name, suffixes):
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


def _in_directory(site: str, name: str, suffixes: Sequence[str]) -> list[tuple[str, str]]:
    """(kind, path) of what one directory has under a name, in Python's order."""
    base = os.path.join(site, name)
    is_directory = os.path.isdir(base)
    found = []
    if is_directory and any(
        os.path.isfile(os.path.join(base, "__init__" + suffix)) for suffix in (*suffixes, *_SOURCE)
    ):
        found.append((PACKAGE, base))
    found += [(EXTENSION, base + s) for s in suffixes if os.path.isfile(base + s)]
    found += [(SOURCE, base + s) for s in _SOURCE if os.path.isfile(base + s)][:1]
    if is_directory and not found:
        found.append((NAMESPACE, base))
    return found


def source_version(path: str, kind: str) -> tuple[str | None, str | None]:
    """(version, file) that a package's or module's own source assigns to ``__version__``.

    Read by parsing, never by importing: a version that is computed is None.
    """
    if kind == SOURCE:
        places = [path] if path.endswith(".py") else []
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
