"""Whose name a symbol is: torch, the CUDA runtime, Python, libstdc++, the extension itself.

Decided by the name alone, before any talk of versions: the symbol version, the C name,
or the C++ function's own qualified name. What a function takes as arguments says nothing
about whose it is: ``transpose_embedding_input(at::Tensor)`` is the extension's own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache

from fa_forensics.facts.demangle import qualified_name

OWN = "extension"
PYTHON = "python"
#: torch's C interface that keeps its promises from release to release.
STABLE = "torch/stable"

_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "owners.json")


@lru_cache(maxsize=1)
def _rows() -> tuple[Mapping[str, object], ...]:
    with open(_DATA, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    for row in rows:
        for key in ("versions", "names", "scopes"):
            row[key] = tuple(row.get(key, ()))
        row["pattern"] = row.get("pattern")
    return tuple(rows)


@lru_cache(maxsize=8_192)
def owner_of(name: str, version: str | None, demangled: str) -> str:
    """The owner of a symbol; ``extension`` when no known library owns such a name."""
    row = _row_of(name, version, demangled)
    return OWN if row is None else str(row["owner"])


def is_torch(owner: str) -> bool:
    """Whether an owner is one of torch's own libraries."""
    return owner.startswith("torch/")


def title_of(owner: str) -> str:
    """An owner in words, for messages."""
    if owner == OWN:
        return "the extension itself or a library of its own package"
    for row in _rows():
        if row["owner"] == owner:
            return str(row["title"])
    return owner


def libraries_of(owner: str) -> tuple[str, ...]:
    """File names (or their starts) of the libraries that define an owner's symbols."""
    found: dict[str, None] = {}
    for row in _rows():
        if row["owner"] == owner:
            found.update(dict.fromkeys(row["libraries"]))  # type: ignore[call-overload]
    return tuple(found)


#: Since torch 1.5 (its wheels, and the release's split of libtorch) there is a libtorch_cpu.so and
#: a libtorch_cuda.so; before there was libtorch.so alone, and before 1.2 the names of ATen and
#: Caffe2 stood in libcaffe2.so.
_SPLIT, _ONE = (1, 5), (1, 2)
_HALVES = {"torch/torch_cpu": ("libtorch.so", "libcaffe2.so"),
           "torch/torch_cuda": ("libtorch.so", "libcaffe2_gpu.so")}  # fmt: skip


def library_then(owner: str, release: str, demangled: str = "") -> str:
    """The library that has an owner's names in a release of torch ("1.0.1"; "" for today's)."""
    parts = [int(p) for p in release.split("+")[0].split(".")[:2] if re.fullmatch("[0-9]{1,4}", p)]
    number = tuple(parts) if len(parts) == 2 else _SPLIT
    if owner not in _HALVES or number >= _SPLIT:
        return libraries_of(owner)[0]
    one, before = _HALVES[owner]
    of_torch = demangled.rpartition(" for ")[2].startswith("torch::")
    return one if number >= _ONE or of_torch else before


#: Rows whose name is the start of many: libpython3.11.so, librocm_sysdeps_z.so.
_STARTS = ("libpython", "_")


@lru_cache(maxsize=4_096)
def owner_of_library(soname: str) -> str | None:
    """The owner whose library a soname names: ``libcudart.so.12`` → ``cudart``."""
    for row in _rows():
        if row["owner"] == STABLE:
            continue  # an interface within a library, not whose the library is
        libraries: tuple[str, ...] = tuple(row["libraries"])  # type: ignore[arg-type]
        for library in libraries:
            if (
                soname == library
                or soname.startswith(library + ".")
                or (library.endswith(_STARTS) and soname.startswith(library))
            ):
                return str(row["owner"])
    return None


def is_cuda_library(soname: str) -> bool:
    """Whether a soname is a library of the CUDA toolkit; the driver's are not."""
    owner = owner_of_library(soname)
    return any(row["owner"] == owner and row.get("cuda") for row in _rows())


def is_cuda(owner: str) -> bool:
    """Whether an owner is a library of the CUDA toolkit, or the soname of one."""
    return is_cuda_library(owner) or any(r["owner"] == owner and r.get("cuda") for r in _rows())


def is_rocm(owner: str) -> bool:
    """Whether an owner is a library of ROCm."""
    return any(row["owner"] == owner and row.get("rocm") for row in _rows())


def _row_of(name: str, version: str | None, demangled: str) -> Mapping[str, object] | None:
    mangled = name.startswith("_Z")
    scope = qualified_name(demangled) if mangled else ""
    for row in _rows():
        if version is not None and version.startswith(row["versions"]):  # type: ignore[arg-type]
            return row
        if mangled:
            if scope.startswith(row["scopes"]):  # type: ignore[arg-type]
                return row
        else:
            pattern = row["pattern"]
            if name.startswith(row["names"]) or (  # type: ignore[arg-type]
                isinstance(pattern, str) and _compiled(pattern).match(name)
            ):
                return row
    return None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    """At first use: the names of torch and of C++ need none of the patterns."""
    return re.compile(pattern)
