"""Since when CUDA's libraries have a function, where the record of NVIDIA's wheels is too short."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.records import dataclass


@dataclass(frozen=True, slots=True)
class Gone:
    """A name that a library no longer has: its last and its first version without it.

    ``nvcc`` is the first nvcc that writes other names in its place ("9.2"), "" for names that
    stand in the source.
    """

    after: str
    first: str
    nvcc: str = ""


def cuda_name_since(owner: str, name: str) -> str | None:
    """The first version with a function: CUDA's ("11.4"), cuDNN's own ("7.4") for cuDNN.

    None for names that the table does not have.
    """
    return _since().get((owner, name))


def cuda_name_gone(owner: str, name: str) -> Gone | None:
    """When a function was dropped; None for those that are there, or not known."""
    for row in _table()["gone"].get(owner, ()):
        if re.fullmatch(row["names"], name):
            return Gone(row["after"], row["first"], row.get("nvcc", ""))
    return None


def is_in_every(owner: str, name: str) -> bool:
    """Whether a function came before CUDA 10, so that no library of today is too old for it."""
    pattern: str = _table()["ever"].get(owner, "")
    return bool(pattern) and re.fullmatch(pattern, name) is not None


def first_torch_with(cuda: str) -> str | None:
    """The first torch release for a CUDA version ("10.1") or a newer one; None for newer ones."""
    rows: Mapping[str, str] = _table()["torch"]
    wanted = tuple(int(part) for part in cuda.split(".")[:2])
    return next((t for c, t in rows.items() if tuple(map(int, c.split("."))) >= wanted), None)


def newest_cuda_of(torch: str) -> str | None:
    """The newest CUDA that an old torch release was given out for ("9.2" for 0.4.1).

    None for releases of which the builds are on record one by one (1.12 and newer).
    """
    rows: Mapping[str, str] = _table()["torch"]
    if cuda_on_pypi(torch) is None:
        return None
    own = _numbers(torch)
    return next((c for c, first in reversed(tuple(rows.items())) if _numbers(first) <= own), None)


def cuda_on_pypi(torch: str) -> str | None:
    """The CUDA of an old torch release's build on the package index; None where not known."""
    rows: Mapping[str, str] = _table()["pypi"]
    return rows.get(".".join(torch.split(".")[:2]))


def _numbers(version: str) -> tuple[int, ...]:
    """What versions of two or of three numbers compare by: torch 1.0 is 1.0.0."""
    parts = [int(part) for part in re.findall(r"\d{1,3}", version)[:3]]
    return (*parts, *(0,) * (3 - len(parts)))


@dataclass(frozen=True, slots=True)
class PartNotBrought:
    """A part that one cuDNN opens by name, and the first wheels that have it."""

    part: str
    since: str


def cudnn_part_not_brought(version: str) -> PartNotBrought | None:
    """The part that a wheel of cuDNN opens and does not have; None where it has all of them."""
    for row in _table()["parts"]:
        if version == row["cudnn"] or version.startswith(f"{row['cudnn']}."):
            return PartNotBrought(row["part"], row["since"])
    return None


def is_emitted(name: str) -> bool:
    """Whether nvcc writes a name into all that it compiles, so that it tells which nvcc it was."""
    return name in _table()["emitted"]


def counted_by(owner: str) -> str:
    """Whose versions ``cuda_name_since`` gives for an owner, in words: "CUDA" or "cuDNN"."""
    return "cuDNN" if owner == "cudnn" else "CUDA"


@lru_cache(maxsize=1)
def _since() -> Mapping[tuple[str, str], str]:
    rows: Mapping[str, Mapping[str, list[str]]] = _table()["since"]
    return {
        (owner, name): version
        for owner, versions in rows.items()
        for version, names in versions.items()
        for name in names
    }


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table("cuda_names.json")
    return table
