"""A small torch in four releases, compiled with g++ and read with nm, as records of the atlas."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from support import oracles
from support.material import BUILD, require

from fixtures.tiny_build import SOURCES

#: Release, machine, flavour. 1.9 to 1.10 shows an order that text does not have.
RELEASES = (
    ("1.9.0", "x86_64", "pre-cxx11"),
    ("1.10.0", "x86_64", "pre-cxx11"),
    ("2.0.0", "x86_64", "cxx11"),
    ("2.1.0", "x86_64", "cxx11"),
    ("1.10.0", "aarch64", "cxx11"),  # the same compiler; the names are what matters
)
LIBRARIES = ("libc10.so", "libc10_cuda.so")
_NUMBER = {"1.9.0": 1, "1.10.0": 2, "2.0.0": 3, "2.1.0": 4}
_BIND = {"W": "weak", "V": "weak", "u": "unique"}

#: (name, library, bind) as nm -D tells them.
Rows = frozenset[tuple[str, str, str]]


def _flavour(release: str, machine: str) -> str:
    return next(f for r, m, f in RELEASES if (r, m) == (release, machine))


@cache
def library(release: str, machine: str, name: str) -> Path:
    """One library, compiled once for all workers of a test run."""
    require("g++")
    source, flavour = SOURCES / "atlas.cpp", _flavour(release, machine)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    folder = BUILD / "tiny-atlas" / f"{digest}-{release}-{flavour}"
    final = folder / name
    if not final.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / name
            command = ["g++", "-O0", "-shared", "-fPIC", "-o", str(made), str(source)]
            command += [f"-DRELEASE={_NUMBER[release]}"]
            command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(flavour == 'cxx11')}"]
            command += ["-DCUDA_PART"] * (name == "libc10_cuda.so")
            subprocess.run(command, check=True, timeout=120)
            made.rename(final)
    return final


@cache
def exported(release: str, machine: str) -> Rows:
    """What nm says one release exports."""
    rows = set()
    for file in LIBRARIES:
        path = library(release, machine, file)
        for letter, (name, _, _) in oracles.nm_rows(path, "--defined-only"):
            rows.add((name, file, _BIND.get(letter, "global")))
    return frozenset(rows)


@cache
def record(release: str, machine: str) -> dict[str, Any]:
    """The record of one release, as the builder writes them."""
    libraries: dict[str, dict[str, list[str]]] = {
        file: {"global": [], "weak": [], "unique": []} for file in LIBRARIES
    }
    for name, file, bind in sorted(exported(release, machine)):
        libraries[file][bind].append(name)
    return record_of(release, machine, libraries, flavour=_flavour(release, machine))


def record_of(
    release: str, machine: str, libraries: dict[str, dict[str, list[str]]], **more: Any
) -> dict[str, Any]:
    """A record with these libraries and plausible other facts."""
    return {
        "format": 1,
        "release": release,
        "machine": machine,
        "version": f"{release}+cu121",
        "cuda": "12.1",
        "flavour": "cxx11",
        "date": "2024-07-24",
        "wheel": f"torch-{release}-cp311-cp311-manylinux1_{machine}.whl",
        "pythons": ["3.8", "3.11", "3.10"],
        "requires": {"nvidia-cuda-runtime-cu12": "12.1.105"},
        "needed": ["libcudart.so.12", "libc.so.6"],
        "pybind11": "__pybind11_internals_v4_gcc_libstdcpp_cxxabi1011__",
        "gcc": "GCC: (GNU) 9.3.1",
        "libraries": libraries,
        **more,
    }


def records() -> list[dict[str, Any]]:
    """All records, in the order of RELEASES."""
    return [record(release, machine) for release, machine, _ in RELEASES]
