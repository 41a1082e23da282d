"""The directories a given interpreter imports packages from, in sys.path order.

Computed from files, as ``Lib/site.py`` of CPython (and Debian's edition of it) would.
The standard library's own directories are left out: no distribution lies there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import field

from fa_forensics.facts.files import absolute, read_bounded
from fa_forensics.facts.interpreter import Interpreter
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

#: A .pth file larger than this (bytes) is not read: real ones have a few lines.
MAX_PTH = 1 << 20

#: .pth files whose import line changes no directory: setuptools, virtualenv, coverage. Those of
#: namespace packages make a module out of directories that are on the path already; those of
#: setuptools' editable installs are read by ``package.editable_mapping``.
_HARMLESS_PTH = lazily(
    r"(?:distutils-precedence|_virtualenv|a1_coverage|.*-nspkg|__editable__.*)\.pth"
)

#: How a directory came onto sys.path; one named by a .pth file has that file's path instead.
BY_PYTHONPATH = "PYTHONPATH"
OF_PREFIX = "site-packages"
OF_USER = "user site"
OF_BASE = "base's site-packages"


@dataclass(frozen=True, slots=True)
class SitePath:
    """The directories of packages of one interpreter, existing ones only, each once.

    ``origins`` says of each how it came onto sys.path: a word of this module, or the path of
    the .pth file that names it. ``notes`` say what was left aside.
    """

    directories: tuple[str, ...]
    origins: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Path:
    """sys.path while it is put together: what is on it, and what was left aside."""

    directories: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def add(self, directory: str, origin: str) -> bool:
        """Append a directory once; True when it was new and exists."""
        if not os.path.isabs(directory):
            return False  # the current directory was removed
        real = os.path.realpath(directory)
        if real in self.seen:
            return False
        if not os.path.isdir(real):
            if os.path.isfile(real):
                self.seen.add(real)
                self.notes.append(f"{directory} is an archive, what lies in it was not looked at")
            return False
        self.seen.add(real)
        self.directories.append(directory)
        self.origins.append(origin)
        return True

    def finish(self) -> SitePath:
        return SitePath(tuple(self.directories), tuple(self.origins), tuple(self.notes))


def site_directories(
    python: Interpreter, environ: Mapping[str, str], running: bool = False
) -> SitePath:
    """The package directories of an interpreter.

    ``running`` takes the process's own ``sys.path`` instead, less its first entry, the
    directory of the program itself.
    """
    if running:
        return _of_this_process(python, environ)
    path = _Path()
    for entry in environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry:
            path.add(absolute(entry), BY_PYTHONPATH)
    if python.is_venv:
        _add_packages(path, python.prefix, python, OF_PREFIX)
    if not python.is_venv or python.system_site:
        user = _user_site(python, environ)
        if user:
            _add_site(path, user, OF_USER)
        origin = OF_BASE if python.is_venv else OF_PREFIX
        _add_packages(path, python.base_prefix, python, origin)
    return path.finish()


def _of_this_process(python: Interpreter, environ: Mapping[str, str]) -> SitePath:
    """``sys.path`` as it is; how each entry came onto it, from what the files say."""
    by_files = site_directories(python, environ)
    known = dict(zip(map(os.path.realpath, by_files.directories), by_files.origins, strict=True))
    path = _Path()
    skipped = 0 if getattr(sys.flags, "safe_path", False) else 1
    for entry in sys.path[skipped:]:
        if entry and not _is_standard(entry, python):
            origin = known.get(os.path.realpath(entry), "sys.path of this process")
            path.add(absolute(entry), origin)
    return path.finish()


def _is_standard(entry: str, python: Interpreter) -> bool:
    """Whether a sys.path entry is the standard library or a part of it."""
    inside = entry == python.stdlib or entry.startswith(os.path.join(python.stdlib, "lib-dynload"))
    return inside or entry.endswith(".zip")


def _add_packages(path: _Path, prefix: str, python: Interpreter, origin: str) -> None:
    """The package directories of one prefix, as ``site.getsitepackages`` orders them."""
    name = os.path.basename(python.stdlib)
    libraries = [os.path.basename(os.path.dirname(python.stdlib)), "lib"]
    for library in dict.fromkeys(libraries):
        _add_site(path, os.path.join(prefix, library, name, "site-packages"), origin)
    if os.path.isdir(os.path.join(python.base_prefix, "lib", "python3", "dist-packages")):
        # Debian's own Python, and only that, has this layout.
        _add_site(path, os.path.join(prefix, "local", "lib", name, "dist-packages"), origin)
        _add_site(path, os.path.join(prefix, "lib", "python3", "dist-packages"), origin)
        _add_site(path, os.path.join(prefix, "lib", name, "dist-packages"), origin)


def _user_site(python: Interpreter, environ: Mapping[str, str]) -> str | None:
    if environ.get("PYTHONNOUSERSITE"):
        return None
    base = environ.get("PYTHONUSERBASE")
    if not base:
        home = environ.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".local")
    return os.path.join(base, "lib", f"python{python.version_short}{python.abiflags}",
                        "site-packages")  # fmt: skip


def _add_site(path: _Path, directory: str, origin: str) -> None:
    """A site directory, then what the path lines of its .pth files name."""
    if not path.add(directory, origin):
        return
    try:
        names = sorted(n for n in os.listdir(directory) if n.endswith(".pth"))
    except OSError as error:
        path.notes.append(f"cannot list {directory}: {error.strerror}")
        return
    for name in names:
        if not name.startswith("."):
            _follow_pth(path, directory, name)


def _follow_pth(path: _Path, directory: str, name: str) -> None:
    file = os.path.join(directory, name)
    try:
        text = read_bounded(file, MAX_PTH + 1)
    except OSError as error:
        path.notes.append(f"cannot read {file}: {error.strerror}")
        return
    if len(text) > MAX_PTH:
        path.notes.append(f"{file} is larger than {MAX_PTH:,} bytes and was not read")
        return
    imports = False
    for line in text.decode("utf-8", "replace").splitlines():
        if line.startswith(("import ", "import\t")):
            imports = True
        elif line.strip() and not line.startswith("#") and "\0" not in line:
            path.add(os.path.abspath(os.path.join(directory, line.rstrip())), file)
    if imports and not _HARMLESS_PTH.fullmatch(name):
        path.notes.append(f"{file}: its import line was not executed, what it adds is unknown")
