"""What a library's file name alone tells: torch's own over its releases, and what no torch has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.records import dataclass

#: Up to CUDA 10 the minor version of the toolkit is a part of most sonames.
_EXACT = re.compile(
    r"lib(?:cudart|nvrtc|cublas|cufft|curand|cusolver|cusparse|nvgraph|npp\w{1,8})"
    r"\.so\.(?P<toolkit>[6-9]\.\d|10\.\d)(?:\.\d{1,4})?"
)


@dataclass(frozen=True, slots=True)
class OutsideLibrary:
    """A library that no torch wheel brings: whose it is, and how to come by it.

    ``major`` is the number that the name carries, "" for none; ``row`` the table's row.
    """

    soname: str
    title: str
    way: str
    major: str
    row: Mapping[str, Any]

    @property
    def release(self) -> Any:
        """What the table says of this number of this library; None for unknown ones."""
        stems: Mapping[str, Mapping[str, str]] = self.row.get("stems", {})
        numbers: Mapping[str, Any] = self.row.get("numbers", {})
        stem = self.soname.split(".so")[0]
        return (stems.get(stem, stems.get("", {})) or numbers).get(self.major)


def outside_library(soname: str) -> OutsideLibrary | None:
    """What is known of a library by its file name; None for unknown ones."""
    for pattern, row in _outside():
        match = pattern.fullmatch(soname)
        if match is not None:
            major = match.groupdict().get("major") or ""
            return OutsideLibrary(soname, row["title"], row["way"], major, row)
    return None


def torch_library_life(soname: str) -> tuple[str, str | None] | None:
    """(first, last) torch release with a library of torch's own; last is None for the newest."""
    found = _torch()["libraries"].get(soname)
    return None if found is None else (found[0], found[1])


def only_in_builds(soname: str) -> str | None:
    """The builds of torch that alone have a library ("CUDA 11"); None for all of them."""
    found: str | None = _torch()["builds"].get(soname)
    return found


@dataclass(frozen=True, slots=True)
class Flavours:
    """A package that is given out for each CUDA major version.

    It has one distribution for each (``wheels``), or one name, and an index for each CUDA
    (``index``, with ``labels``). ``faulty`` are the releases of a distribution that were built for
    another CUDA than it is for, and the release that took the place of each.
    """

    title: str
    wheels: Mapping[str, str]
    plain: tuple[str, ...]
    index: str
    labels: Mapping[str, str]
    faulty: Mapping[str, Mapping[str, str]]


def flavours_of(names: Iterable[str]) -> Flavours | None:
    """The package of modules or directories that comes once for each CUDA; None for others."""
    wanted = {name.replace("-", "_").lower() for name in names if name}
    for row in read_table("cuda_flavours.json")["rows"]:
        if wanted & set(row["folders"]):
            return Flavours(
                row["title"], row["wheels"], tuple(row["plain"]), row.get("index", ""),
                row.get("labels", {}), row.get("faulty", {}),
            )  # fmt: skip
    return None


def exact_toolkit(soname: str) -> str | None:
    """The CUDA toolkit ("10.1") of a soname that carries the minor version too, else None."""
    match = _EXACT.fullmatch(soname)
    return None if match is None else match["toolkit"]


def is_of_cuda_10(soname: str) -> bool:
    """Whether a library is one of CUDA 10 by a number of its own: ``libcusolver.so.10``."""
    return soname in read_table("outside_libraries.json")["cuda10"]


def is_of_cuda_10_too(soname: str) -> bool:
    """Whether CUDA 10.1 and 10.2 have a library under the number of CUDA 11: libcufft.so.10."""
    return soname in read_table("outside_libraries.json")["cuda10too"]


@lru_cache(maxsize=1)
def _torch() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table("torch_libraries.json")
    return table


@lru_cache(maxsize=1)
def _outside() -> tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...]:
    rows = read_table("outside_libraries.json")["rows"]
    return tuple((re.compile(row["names"]), row) for row in rows)


@lru_cache(maxsize=1)
def compiled_modules() -> frozenset[str]:
    """The compiled modules of the packages on record, by their own names: flash_attn_2_cuda."""
    rows = read_table("packages.json")["packages"]
    return frozenset(str(module) for row in rows for module in row["modules"])
