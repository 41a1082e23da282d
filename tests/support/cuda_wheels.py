"""Small libraries with symbol versions, laid out in wheels as NVIDIA's are."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from support import fake_index, oracles
from support.material import BUILD, require

#: More than what one request fetches with the table of contents, so that the rest is asked for.
NOISE = random.Random(0).randbytes(100_000)

#: Versions to exported functions; the version "" stands for a library without versions.
Versions = Mapping[str, tuple[str, ...]]

#: The hash table that all of today's linkers make.
GNU_HASH = "-Wl,--hash-style=gnu"

#: What every library has beside its functions: names that nobody else can bind to, a weak and
#: a thread-local one, and an import.
COMMON = """
#include <stdlib.h>
__attribute__((visibility("hidden"))) int hidden_function(void) { return 2; }
static int local_function(void) { return 3; }
int imports(void) { return getenv("X") ? local_function() : hidden_function(); }
"""


@cache
def compiled(source: str, script: str, flags: tuple[str, ...]) -> Path:
    """The library of a C source and a version script ("": none), compiled once."""
    require("gcc")
    digest = hashlib.sha256(repr((source, script, flags)).encode()).hexdigest()[:12]
    path = BUILD / "cuda-tests" / f"lib{digest}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        map_file = beside.with_suffix(f".map{os.getpid()}")
        map_file.write_text(script)
        versions = [f"-Wl,--version-script={map_file}"] if script else []
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(beside), *versions, *flags],
            input=source, text=True, check=True,
        )  # fmt: skip
        map_file.unlink()
        beside.rename(path)
    return path


def library(soname: str, versions: Versions, source: str = "", *flags: str) -> Path:
    """A compiled library that exports the functions of each version, and ``imports``."""
    functions = [name for names in versions.values() for name in names]
    body = "\n".join(f"int {name}(void) {{ return imports(); }}" for name in functions)
    script = "".join(
        f"{version} {{ global: {'; '.join((*names, 'imports'))}; local: *; }};\n"
        for version, names in versions.items()
        if version
    )
    return compiled(COMMON + body + source, script, (f"-Wl,-soname,{soname}", *flags))


def gnu_hash_library(soname: str, versions: Versions, source: str = "", *flags: str) -> Path:
    """The same with today's hash table alone."""
    return library(soname, versions, source, GNU_HASH, *flags)


def wheel_name(distribution: str, version: str, tags: str = "py3-none-manylinux1_x86_64") -> str:
    """The file name of a wheel."""
    return f"{distribution.replace('-', '_')}-{version}-{tags}.whl"


def wheel(libraries: Mapping[str, Path]) -> bytes:
    """A wheel with these libraries (member to file), and what lies beside them."""
    members = {f"nvidia/some/lib/{name}": path.read_bytes() for name, path in libraries.items()}
    beside = {"nvidia/some/lib/__init__.py": b"", "nvidia/some/include/some.h": NOISE}
    return fake_index.wheel({**members, **beside})


def bulk(size: int, packed: int = 0) -> str:
    """Source that makes a library ``size`` bytes larger, about ``packed`` of them in a wheel."""
    numbers = ",".join(str(number) for number in random.Random(0).randbytes(packed))
    noise = f".byte {numbers}\\n" if packed else ""
    return f'__asm__(".section .rodata\\n{noise}.zero {max(0, size - packed)}\\n.text");\n'


def nm_exports(path: Path) -> set[tuple[str, str | None, bool]]:
    """(name, version, default) of all that nm -D lists as defined.

    Tolerated differences: the absolute names (A) that stand for the versions themselves, to
    which no program binds; and weak C++ names (W, V, u), of which every file that needs one
    has a copy of its own.
    """
    rows = oracles.nm_rows(path, "--defined-only")
    versions = {version for _letter, (_name, version, _how) in rows}
    return {
        (name, version or None, how != "@")
        for letter, (name, version, how) in rows
        if not (letter == "A" and name in versions)
        and not (letter in "WVu" and name.startswith("_Z"))
    }
