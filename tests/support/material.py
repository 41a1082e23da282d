"""The files that tests read: husks, tiny compiled files, stand-in torch trees, system libraries.

Everything is made once under ``build/`` and shared by parallel workers and later runs: the
makers write beside the place and rename, and a directory's name carries a digest of its sources.
"""

from __future__ import annotations

import hashlib
import shutil
from functools import cache
from pathlib import Path

import pytest

from fixtures import husk, tiny, tiny_build
from fixtures.stub_torch import StubTorch, cached_stub_torch

BUILD = Path(__file__).parent.parent.parent / "build"

#: (husk, member) of every husk, as ids that read well.
HUSK_IDS = tuple(f"{h.name}:{m.path}" for h in husk.list_husks() for m in h.members)
TINY_IDS = tuple(sorted(tiny.TINIES))

#: Tiny files that are no 64-bit little-endian ELF file with a dynamic section.
NO_DYNAMIC = frozenset(
    ("cut-short", "cut-in-header", "empty", "text", "pe-dll", "mach-o", "big-endian", "elf-32",
     "relocatable")
)  # fmt: skip

SYSTEM_LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1")

HUGE = "vllm_flash_attn-2.6.2:vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


@cache
def husk_file(identity: str) -> Path:
    """The unpacked binary of an id of HUSK_IDS: a sparse file of the true size."""
    name, member = identity.split(":")
    return Path(husk.unpack(name, BUILD / "husks")) / member


def husks_of(machine: str = "x86_64") -> tuple[str, ...]:
    """The ids of the husks for one machine."""
    return tuple(i for i in HUSK_IDS if ("aarch64" in i) == (machine == "aarch64"))


@cache
def _tiny_top() -> Path:
    digest = hashlib.sha256()
    for module in (tiny_build, tiny.tiny_bind, tiny.tiny_broken, tiny.tiny_search):
        digest.update(Path(str(module.__file__)).read_bytes())
    for source in sorted(tiny_build.SOURCES.iterdir()):
        digest.update(source.read_bytes())
    return BUILD / "tiny" / digest.hexdigest()[:12]


@cache
def tiny_file(name: str) -> Path:
    """The file to look at of a tiny case; skips the test where it cannot be built."""
    for tool in ("gcc", "g++"):
        require(tool)
    try:
        return tiny.build_tiny(name, _tiny_top())
    except tiny.CannotBuild as error:
        pytest.skip(f"cannot build {name}: {error}")


def tiny_dir(name: str) -> Path:
    """The directory of a tiny case, to which its library_path and first are relative."""
    tiny_file(name)
    return _tiny_top() / name


@cache
def stub(version: str) -> StubTorch:
    """A stand-in torch environment; skips the test without binutils."""
    for tool in ("as", "ld"):
        require(tool)
    return cached_stub_torch(version)


@cache
def system_library(soname: str) -> Path:
    """The file this system's loader maps for a soname (read from this process's own map)."""
    import ctypes

    try:
        ctypes.CDLL(soname)
    except OSError as error:
        pytest.skip(f"{soname}: {error}")
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        at = Path(path)
        named = path.startswith("/") and at.name.startswith(soname.split(".so")[0])
        if named and at.resolve() == (at.parent / soname).resolve():
            return at
    pytest.skip(f"{soname} is not mapped from a file of that name")


@cache
def file_of(identity: str) -> Path:
    """A file by one id: ``husk:...``, ``tiny:NAME`` or ``system:SONAME``."""
    kind, _, rest = identity.partition("|")
    makers = {"husk": husk_file, "tiny": tiny_file, "system": system_library}
    return makers[kind](rest)


#: One id for each file with a dynamic section, for ``file_of``.
DYNAMIC_FILES = (
    *(f"husk|{i}" for i in HUSK_IDS),
    *(f"tiny|{name}" for name in TINY_IDS if name not in NO_DYNAMIC),
    *(f"system|{soname}" for soname in SYSTEM_LIBRARIES),
)


def require(tool: str) -> str:
    """The path of a tool; skips the test by the tool's name where it is absent."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    return path
