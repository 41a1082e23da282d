"""Which Python a path, a name or a directory stands for, read from files alone.

No interpreter is started. The rules are those of CPython's ``Modules/getpath.py``
(prefix, ``pyvenv.cfg``) and of the pyenv shims.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from fa_forensics.errors import EnvironmentNotFound, ForensicsError
from fa_forensics.facts.elf.image import PT_INTERP, ElfImage
from fa_forensics.facts.files import absolute, is_denied, read_bounded
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

#: Names of ELF machines (e_machine, /usr/include/elf.h) as platform tags write them.
MACHINES = {62: "x86_64", 183: "aarch64", 3: "i686", 40: "armv7l", 21: "ppc64le", 22: "s390x",
            243: "riscv64", 258: "loongarch64"}  # fmt: skip

#: A C function that every interpreter's ELF file defines, or imports from libpython.
_ENTRY_POINTS = (b"Py_BytesMain\0", b"_Py_UnixMain\0", b"Py_Main\0", b"pypy_main_startup\0")

_VERSIONED_NAME = lazily(r"(?:python|pypy)(\d+\.\d+)(t?)")
_PYTHON_NAME = lazily(r"(?:python|pypy)[\d.]*t?")

#: What a shell script turns into, where that is an absolute path; not "$0", not a substitution.
_EXEC = lazily(
    r"""^[ \t]*exec[ \t]+(?:-a[ \t]+\S+[ \t]+)?"""
    r"""(?:"(/[^"$`\n]+)"|'(/[^'\n]+)'|(/[^"'\s$`;&|]+))(?=[\s;]|$)""",
    re.MULTILINE,
)
_ANY_EXEC = lazily(r"^[^#\n]*\bexec\s", re.MULTILINE)
#: The last line of a pyenv shim: exec "/…/libexec/pyenv" exec "$program" "$@".
_PYENV_EXEC = lazily(
    r"""^[ \t]*exec[ \t]+["']?(?:/[^"'$\n]*/)?pyenv["']?[ \t]+exec[ \t]+["']?([^"'\s]+)""",
    re.MULTILINE,
)
_LIBRARY_DIR = lazily(r"(?:python|pypy)(\d+\.\d+)(t?)$")
_LIBRARY_ROOTS = ("lib", "lib64")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter as its files describe it.

    ``path`` is the executable as it was found, links not followed; ``stdlib`` is the
    directory of the standard library; ``abiflags`` is "t" for a free-threaded build.
    ``system_site`` says whether a virtual environment also sees its base's packages.
    """

    path: str
    real: str
    prefix: str
    base_prefix: str
    stdlib: str
    version: str
    version_short: str
    abiflags: str
    implementation: str
    machine: str
    libc: str
    loader: str | None
    is_venv: bool
    system_site: bool


def locate(request: str, environ: Mapping[str, str]) -> str:
    """The executable that ``request`` means: a path, a name on PATH, or a directory.

    Raises ``EnvironmentNotFound`` with one sentence when there is none.
    """
    if not request:
        raise EnvironmentNotFound(
            "an empty argument names no Python environment",
            "give the environment's directory or its python: --python .venv/bin/python",
        )
    request = os.path.expanduser(request)
    if os.sep not in request and not os.path.isdir(request):
        return _on_path(request, environ)
    path = absolute(request)
    if os.path.isdir(path):
        found = python_in(path)
        if found is None and is_denied(os.path.join(path, "bin", "python")):
            raise _denied(request)
        if found is None:
            raise EnvironmentNotFound(
                f"{request} is a directory with no Python in it (looked for bin/python)",
                "give the environment's directory or its python, for example "
                "--python .venv/bin/python",
            )
        return found
    if is_denied(path):
        raise _denied(request)
    if not os.path.lexists(path):
        raise EnvironmentNotFound(f"{request} does not exist, so it is no Python environment")
    return unshim(path, environ)


def _denied(what: str) -> EnvironmentNotFound:
    return EnvironmentNotFound(
        f"this user may not look at {what}: permission denied",
        "run this as a user who may read that environment",
    )


def python_in(directory: str, version_short: str = "") -> str | None:
    """The interpreter of an environment's directory, or None.

    With ``version_short`` ("3.11") the interpreter of that version is preferred, as
    several share ``/usr/bin``.
    """
    binaries = os.path.join(directory, "bin")
    names = [f"python{version_short}", "python", "python3"] if version_short else []
    for name in names or ["python", "python3"]:
        path = os.path.join(binaries, name)
        if os.path.lexists(path):
            return path
    try:
        versioned = sorted(n for n in os.listdir(binaries) if re.fullmatch(r"python3\.\d+t?", n))
    except OSError:
        return None
    return os.path.join(binaries, versioned[-1]) if versioned else None


def unshim(path: str, environ: Mapping[str, str]) -> str:
    """``path`` itself, or the interpreter that a shell script of that name starts.

    Understands scripts that end in ``exec /path/to/python "$@"`` and pyenv's shims.
    """
    for _hop in range(4):
        text = _script_text(path)
        if text is None:
            return path
        started = {found[1] or found[2] or found[3] for found in _EXEC.finditer(text)}
        pythons = [name for name in started if _PYTHON_NAME.fullmatch(os.path.basename(name))]
        # One that starts this or that, by a rule of its own, is not guessed at.
        if len(started) == len(pythons) == 1 and len(_EXEC.findall(text)) == len(
            _ANY_EXEC.findall(text)
        ):
            if not os.path.lexists(pythons[0]) and not is_denied(pythons[0]):
                raise EnvironmentNotFound(f"{path} starts {pythons[0]}, which does not exist")
            path = pythons[0]
            continue
        if shim := _PYENV_EXEC.search(text):
            return _through_pyenv(path, text, shim[1], environ)
        break
    raise EnvironmentNotFound(
        f"{path} is a script, not a Python interpreter, and it does not plainly say which one "
        "it starts",
        "give the interpreter itself: run 'python -c \"import sys; print(sys.executable)\"' there",
    )


def read_interpreter(path: str) -> Interpreter:
    """Read what the files around an executable say. Raises ``EnvironmentNotFound``."""
    real = os.path.realpath(path)
    if is_denied(real):
        raise _denied(path if real == path else f"{real}, which {path} leads to")
    if not os.path.exists(real):
        raise EnvironmentNotFound(
            f"{path} is a link to {real}, which does not exist: its Python was removed",
            "make the environment again with a Python that is installed",
        )
    if os.path.isdir(real):
        raise EnvironmentNotFound(f"{path} is a directory, not a Python interpreter")
    machine, loader, is_python, embedded = _read_executable(path, real)
    config, config_dir = _venv_config(path)
    home = config.get("home", "")
    found = _find_stdlib(path, real, home)
    if found is None or not is_python:
        what = (
            "no standard library (lib/pythonX.Y) belongs to it"
            if is_python
            else ("the file is another program")
        )
        raise EnvironmentNotFound(f"{path} is no Python interpreter: {what}")
    base_prefix, stdlib = found
    name = _LIBRARY_DIR.match(os.path.basename(stdlib))
    short, flags = (name.group(1), name.group(2)) if name else ("", "")
    return Interpreter(
        path=path,
        real=real,
        prefix=config_dir or base_prefix,
        base_prefix=base_prefix,
        stdlib=stdlib,
        version=_full_version(base_prefix, short, flags, embedded, config),
        version_short=short,
        abiflags=flags,
        implementation="pypy" if "pypy" in os.path.basename(stdlib) else "cpython",
        machine=machine,
        libc=_libc_of(loader),
        loader=loader,
        is_venv=config_dir is not None,
        # site.py takes a missing key for true.
        system_site=config.get("include-system-site-packages", "true").lower() == "true",
    )


def _on_path(name: str, environ: Mapping[str, str]) -> str:
    problem: EnvironmentNotFound | None = None
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory or ".", name)
        if not (os.path.isfile(path) and os.access(path, os.X_OK)):
            continue
        try:
            return unshim(absolute(path), environ)
        except EnvironmentNotFound as error:
            problem = problem or error  # a shim that selects nothing: PATH goes on
    raise problem or EnvironmentNotFound(
        f"no program named {name} is on PATH, and there is no such file or directory here",
        "give the path of the interpreter or of the environment's directory",
    )


def _script_text(path: str) -> str | None:
    """The first 64 KB of a script, or None when the file starts with no ``#!``."""
    try:
        start = read_bounded(path, 65_536)
    except OSError:
        return None
    return start.decode("utf-8", "replace") if start.startswith(b"#!") else None


def _through_pyenv(shim: str, text: str, program: str, environ: Mapping[str, str]) -> str:
    named = re.search(r"PYENV_ROOT=[\"']?([^\"'\s]+)", text)
    root = named.group(1) if named else os.path.dirname(os.path.dirname(shim))
    # A shim passes its own name on ("$program"); a hand-written script names one.
    name = os.path.basename(shim if program.startswith("$") else program)
    chosen = _pyenv_choice(root, environ)
    for version in chosen:
        if version == "system":
            shims = os.path.join(root, "shims")
            others = [p for p in environ.get("PATH", "").split(os.pathsep) if p != shims]
            return _on_path(name, {**environ, "PATH": os.pathsep.join(others)})
        path = os.path.join(root, "versions", version, "bin", name)
        if os.path.isfile(path):
            return path
    import glob

    having = sorted(glob.glob(os.path.join(glob.escape(root), "versions", "*", "bin", name)))
    raise EnvironmentNotFound(
        f"{shim} is a pyenv shim, and the version that pyenv selects here "
        f"({', '.join(chosen) or 'none'}) has no {name}",
        f"give the interpreter itself: --python {having[-1]}" if having else None,
    )


def _pyenv_choice(root: str, environ: Mapping[str, str]) -> list[str]:
    """The selected versions: PYENV_VERSION, a .python-version above here, the global file."""
    if environ.get("PYENV_VERSION"):
        return environ["PYENV_VERSION"].split(":")
    try:
        places = [os.path.join(d, ".python-version") for d in _parents(os.getcwd())]
    except FileNotFoundError:  # the current directory was removed: no file above it counts
        places = []
    for place in [*places, os.path.join(root, "version")]:
        words = _first_bytes(place).split()
        if words:
            return words
    return ["system"]


def _parents(directory: str) -> Iterator[str]:
    """``directory`` and all directories above it."""
    while True:
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above


def _first_bytes(path: str, limit: int = 65_536) -> str:
    """The start of a text file, or "" when it cannot be read."""
    try:
        return read_bounded(path, limit).decode("utf-8", "replace")
    except OSError:
        return ""


def _read_executable(path: str, real: str) -> tuple[str, str | None, bool, tuple[str, ...]]:
    """Machine, loader (PT_INTERP), whether it is a Python, version strings in its data."""
    try:
        image = ElfImage(real)
    except ForensicsError as error:
        raise EnvironmentNotFound(f"{path} is no Python interpreter: {error.message}") from error
    with image:
        loader = None
        for segment in image.segments:
            if segment.type == PT_INTERP:
                loader = image.string(segment.offset, 4096).decode("utf-8", "replace") or None
        strings, constants = image.section(".dynstr"), image.section(".rodata")
        names = image.read(strings.offset, min(strings.size, 1 << 24)) if strings else b""
        # Without section headers only the name of the file is left to judge by.
        is_python = (
            any(point in names for point in _ENTRY_POINTS)
            if names
            else (re.match(r"python|pypy", os.path.basename(real)) is not None)
        )
        data = image.read(constants.offset, min(constants.size, 1 << 25)) if constants else b""
        found = re.findall(rb"\x00(3\.\d+\.\d+(?:(?:a|b|rc)\d+)?)\+?\x00", data)
        machine = MACHINES.get(image.machine, f"e_machine {image.machine}")
    return machine, loader, is_python, tuple(sorted({text.decode() for text in found}))


def _libc_of(loader: str | None) -> str:
    name = os.path.basename(loader or "")
    if "musl" in name:
        return "musl"
    return "glibc" if name.startswith(("ld-linux", "ld64")) else "unknown"


def _venv_config(path: str) -> tuple[dict[str, str], str | None]:
    """pyvenv.cfg beside the executable or one above: its keys, the environment's prefix."""
    binaries = os.path.dirname(os.path.abspath(path))
    prefix = os.path.dirname(binaries)
    for directory in (binaries, prefix):
        file = os.path.join(directory, "pyvenv.cfg")
        if os.path.exists(file) and not os.path.isfile(file):
            raise EnvironmentNotFound(f"{file} is not a regular file, so {path} cannot be judged")
        text = _first_bytes(file)
        if text:
            pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
            return {key.strip().lower(): value.strip() for key, _, value in pairs}, prefix
    return {}, None


def _find_stdlib(path: str, real: str, home: str) -> tuple[str, str] | None:
    """(base prefix, standard library): the first above the home with lib/pythonX.Y/os.py."""
    named = _VERSIONED_NAME.match(os.path.basename(real)) or _VERSIONED_NAME.match(
        os.path.basename(path)
    )
    wanted = named.groups() if named else None
    for start in dict.fromkeys((home, os.path.dirname(real), os.path.dirname(path))):
        for prefix in _parents(start) if start else ():
            for root in _LIBRARY_ROOTS:
                directory = _stdlib_below(os.path.join(prefix, root), wanted)
                if directory:
                    return prefix, directory
    return None


def _stdlib_below(root: str, wanted: tuple[str, ...] | None) -> str | None:
    if wanted:
        candidates = [f"python{''.join(wanted)}", f"pypy{''.join(wanted)}"]
    else:
        try:
            candidates = [n for n in sorted(os.listdir(root)) if _LIBRARY_DIR.match(n)]
        except OSError:
            return None
    for name in candidates:
        if os.path.isfile(os.path.join(root, name, "os.py")):
            return os.path.join(root, name)
    return None


def _full_version(
    base_prefix: str, short: str, flags: str, embedded: tuple[str, ...], config: dict[str, str]
) -> str:
    """Version such as "3.11.7": C header, executable or pyvenv.cfg; else the short one."""
    for suffix in (flags, "m"):  # "m" (pymalloc) was part of the name up to 3.7
        header = os.path.join(base_prefix, "include", f"python{short}{suffix}", "patchlevel.h")
        defined = re.search(r'#define\s+PY_VERSION\s+"([^"+]+)', _first_bytes(header))
        if defined and defined.group(1).startswith(short + "."):
            return defined.group(1)
    matching = [text for text in embedded if text.startswith(short + ".")]
    if len(matching) == 1:
        return matching[0]
    # venv writes "version", virtualenv and uv "version_info" ("3.11.7.final.0" or "3.11.7").
    recorded = config.get("version") or config.get("version_info", "")
    exact = re.match(r"\d+\.\d+\.\d+", recorded)
    return exact.group(0) if exact and exact.group(0).startswith(short + ".") else short
