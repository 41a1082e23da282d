"""Answers to ``cannot allocate memory in static TLS block``: what is loaded too late."""

from __future__ import annotations

import re

from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.system_releases import number, system_named
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import base
from fa_forensics.why.texts.files.file_text import is_torchs, owner_of, path_of
from fa_forensics.why.texts.gpu.jetson_text import is_jetson, jetpack_of

LOADER = "elf-loader"

_TOP = lazily(r"(?:site|dist)-packages/([A-Za-z_]\w{0,60})/")
#: The libraries that a wheel brings beside its package: ``scikit_learn.libs/libgomp-...``.
_LIBS = lazily(r"(?:^|/)(?P<name>[A-Za-z][\w-]{0,60})\.libs/")
_TUNABLE = "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2000000"


def static_tls(seen: Seen) -> Answer:
    """``cannot allocate memory in static TLS block``: not a matter of memory."""
    path = path_of(seen)
    name = base(path)
    if "any more object" in seen.mention.line:
        return _old_static_tls(seen, path)
    paths = _all_of_them(seen)
    if len(paths) > 1:
        return _together(seen, paths)
    cause = (
        f"{name or 'The library'} keeps thread-local variables in the block that is sized when the "
        "process starts, and what is left of that block does not hold them: most likely too much "
        "was loaded before it. It is not a lack of memory."
    )
    failing = failing_module(seen, path)
    module = failing or "MODULE"
    first = f"{seen.python} -c 'import {'torch,MODULE' if module == 'torch' else module}'"
    if path.startswith("/") or (path and "/" not in path):
        module = failing or _module(seen, path)
        first = (
            f"{seen.python} -c 'import ctypes; ctypes.CDLL({_python_text(path)}, "
            f"ctypes.RTLD_GLOBAL); import {module}'"
        )
    second, larger = _larger(seen, path, module)
    if _UNPACKED.match(path) and module == "torch":
        first = (
            f"{seen.python} -c 'import ctypes, importlib.util as u; "
            'd = u.find_spec("torch").submodule_search_locations[0]; '
            f'ctypes.CDLL(d + "/lib/{name}", ctypes.RTLD_GLOBAL); import torch\''
        )
    notes = (
        *((_ANEW,) if _UNPACKED.match(path) else ()),
        *((_ON_ARM,) if _is_arm(seen) else ()),
        _earlier(name or "that library", failing),
        *_unnamed(first, *second),
        "Where the program cannot be changed, it is run from such a line: import runpy; "
        'runpy.run_path("PROGRAM.py", run_name="__main__") stands in place of the last import. In '
        "a notebook the line goes into the first cell, after the kernel was started again.",
        *_very_file(path),
        *(larger or (_SMALL_BLOCK,)),
    )
    return seen.answer(
        LOADER, "FA107", cause, owner=_tls_owner(seen, path), direction="none", confidence="high",
        help=(first, *second), notes=notes,
    )  # fmt: skip


def _unnamed(*commands: str) -> tuple[str, ...]:
    """What MODULE stands for in commands, where one of them has it."""
    if not any(re.search(r"\bMODULE\b", command) for command in commands):
        return ()
    return ("MODULE is what the program imports and fails at.",)


def _earlier(library: str, failing: str) -> str:
    """What helps: the package whose import fails goes first."""
    if failing in ("", "torch"):
        return (
            f"What helps is to load {library} earlier: import the package that needs it, or torch, "
            "before all others, as the first command does."
        )
    return (
        f"What helps is to load {library} earlier: import {failing} before torch and all others, "
        "in the first line of the program, as the first command does."
    )


#: An environment that is unpacked at each start, as Triton's Python backend does.
_UNPACKED = lazily(r"/tmp/[\w./+-]{1,300}/torch/lib/[\w.+-]+$")
_ANEW = (
    "The path lies in /tmp, under a name that is another one at each start (Triton's Python "
    "backend unpacks its environment there): what is set by path (LD_PRELOAD) takes the same file "
    "from the environment that was packed."
)
_ON_ARM = (
    "It is most often seen on aarch64 (ARM), where libgomp and its like take their variables from "
    "that small block."
)


def _is_arm(seen: Seen) -> bool:
    words = f"{seen.versions.get('machine', '')} {seen.mention.file or ''} {seen.mention.line}"
    return "flag:arm64" in seen.versions or "aarch64" in words


#: glibc before 2.32 has no setting for it; 1,664 bytes: csu/libc-tls.c, TLS_STATIC_SURPLUS.
_SMALL_BLOCK = (
    "A glibc before 2.32 keeps 1,664 bytes of that block free, and a library that needs more fails "
    "even where it is the first: then the file named in LD_PRELOAD, or a system with glibc 2.32 or "
    "newer, is what helps."
)


def _very_file(path: str) -> tuple[str, ...]:
    """A library by its own path, before the process starts: no other copy serves."""
    if not path.startswith("/") and _LIBS.search(path) is None:
        return ()
    return (
        "Where no line of the program can be changed, LD_PRELOAD with the path of that very file "
        'does the same, set before the process starts (for a Jupyter kernel under "env" of its '
        "kernel.json); another copy of the library does not.",
    )


def _all_of_them(seen: Seen) -> tuple[str, ...]:
    """The libraries that the text tells this of; which comes first changes from try to try."""
    found = (m.file or "" for m in seen.paste.mentions if m.what == "static-tls")
    return tuple(dict.fromkeys(path for path in found if path.startswith("/")))[:4]


def _together(seen: Seen, paths: tuple[str, ...]) -> Answer:
    """Two libraries fail in turn: whichever is not loaded first."""
    names = " and ".join(base(path) for path in paths)
    cause = (
        f"{names} keep thread-local variables in the block that is sized when the process starts, "
        "and what is left of that block does not hold those of all: whichever is loaded last "
        "fails, so loading one of them earlier only moves the error to the other. It is not a lack "
        "of memory."
    )
    module = _module(seen, paths[0])
    files = ", ".join(map(_python_text, paths))
    first = (
        f"{seen.python} -c 'import ctypes; [ctypes.CDLL(f, ctypes.RTLD_GLOBAL) for f in ({files})]"
        f"; import {module}'"
    )
    second, larger = _larger(seen, paths[0], module)
    notes = (
        "All of them have to be loaded before everything else, as the first command does: in a "
        "notebook, in its first cell. Where that code cannot be changed, LD_PRELOAD with their "
        "paths, a colon between them, does the same; for a Jupyter kernel it stands under "
        '"env" of its kernel.json.',
        *_unnamed(first, *second),
        *larger,
    )
    return seen.answer(
        LOADER, "FA107", cause, owner=_tls_owner(seen, paths[0]), direction="none",
        confidence="high", help=(first, *second), notes=notes,
    )  # fmt: skip


#: Pythons that came with the system, or that use its glibc without a doubt.
_OF_SYSTEM = lazily(r"^/(?:usr|opt/ros)/|/\.local/lib/python")


def _larger(seen: Seen, path: str, module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(command, note) that make the block larger; () where the system's glibc has no such setting.

    Distributions with glibc 2.32 or later have Python 3.8 or later.
    """
    glibc, python = _told_glibc(seen), seen.python_version or ""
    old = bool(glibc) and number(glibc) < (2, 32)
    old = old or bool(_OF_SYSTEM.search(path) and python and number(python) < (3, 8))
    if old:
        return (), ()
    note = (
        "The second makes the block larger (glibc 2.32 and later; an older one ignores it, and a "
        "system or container with a newer one is a way out); it must be set before the process "
        "starts. A Jupyter kernel does not read the shell's settings: put it under "
        '"env" of its kernel.json.'
    )
    return (f"{_TUNABLE} {seen.python} -c 'import {module}'",), (note,)


def _told_glibc(seen: Seen) -> str:
    """The glibc that the text tells, by its number, its system's name or its JetPack; else ""."""
    versions = seen.versions
    row = jetpack_of(seen) if is_jetson(seen) else None
    system = system_named(" ".join((versions.get("os", ""), versions.get("system", ""))))
    return versions.get("glibc") or (row["glibc"] if row else system[1] if system else "")


_MOST_OFTEN = (
    "Most often it is a libgomp that comes too late: each package with OpenMP may bring one "
    "(PACKAGE.libs/libgomp-....so.1 beside it). Where no line of the program can be changed, "
    "LD_PRELOAD with the path of that very file takes it in first, set before the process starts."
)


def _old_static_tls(seen: Seen, path: str) -> Answer:
    """The same of a glibc that counts libraries, not bytes; no setting changes its number."""
    cause = (
        "glibc before 2.22 takes a fixed number of libraries with static thread-local variables "
        "(TLS) into one process, and they are used up: too much was loaded before this one. It is "
        "not a lack of memory."
    )
    module = failing_module(seen, path)
    modules = f"torch,{_beside_torch(seen)}" if module == "torch" else f"{module or 'MODULE'},torch"
    told = _earlier("that library", module)
    first = f"{seen.python} -c 'import {modules}'"
    return seen.answer(
        LOADER, "FA107", cause, owner=_tls_owner(seen, path), direction="none", confidence="high",
        help=(first, "ldd --version | head -1"),
        notes=(
            f"{told} A system with glibc 2.22 or newer does not have that limit.",
            *((_MOST_OFTEN,) if not path else ()),
            *_unnamed(first),
        ),
    )  # fmt: skip


def _beside_torch(seen: Seen) -> str:
    """The module of the one package that the text names beside torch; MODULE for none."""
    from fa_forensics.why.texts.builds.toolkit_commands import package_built

    name = package_built(seen) or ""
    if name in ("", "torch"):
        return "MODULE"
    return str(read_table("import_names.json")["names"].get(name, name.replace("-", "_")))


def _tls_owner(seen: Seen, path: str) -> str | None:
    name = base(path)
    owner = "torch" if is_torchs(path) else owner_of_library(name) if name else None
    if owner is None and (libs := _LIBS.search(path)) is not None:
        return libs["name"].replace("_", "-")
    owner = owner or owner_of(seen, path)
    return owner or name or failing_module(seen, path) or None


def failing_module(seen: Seen, path: str) -> str:
    """The module of the package that has the library, or whose import fails; "" if not told."""
    libs = _LIBS.search(path)
    if libs is not None:
        own = libs["name"].replace("_", "-").lower()
        return str(read_table("import_names.json")["names"].get(own, own.replace("-", "_")))
    found = _TOP.search(path)
    if found is not None:
        return found[1]
    named = seen.mention.detail.get("import", "").split(".")[0]
    return named if re.fullmatch(r"[A-Za-z]\w{0,60}", named) else ""


def _module(seen: Seen, path: str) -> str:
    """The module whose import shows whether it helped: the library's own package, else torch."""
    failing = failing_module(seen, path)
    if failing:
        return failing
    lists = {key.partition(":")[2] for key in seen.versions if key.startswith(("pkg:", "named:"))}
    about_torch = seen.torch or "torch" in f"{' '.join(lists)} {seen.mention.line}"
    return "torch" if about_torch or not seen.versions else "MODULE"


def _python_text(path: str) -> str:
    """A path as a text of Python inside of single quotes of the shell."""
    plain = re.fullmatch(r"[\w./+@~-]+", path)
    return f'"{path}"' if plain and "..." not in path else '"/path/to/the/library.so"'


ANSWERERS: dict[str, Answerer] = {"static-tls": static_tls}
