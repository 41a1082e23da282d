"""Which GPUs torch's own wheels hold code for: ``data/torch_archs.json``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fa_forensics.facts.tables import read_table

#: The machine that a list is of, where nothing is said of it.
X86 = "x86_64"


@lru_cache(maxsize=2)
def _rows(machine: str) -> list[dict[str, Any]]:
    table = read_table("torch_archs.json")
    rows: list[dict[str, Any]] = table["aarch64" if machine == "aarch64" else "rows"]
    return rows


def torch_archs(release: str, cuda: str, machine: str = X86) -> tuple[str, ...] | None:
    """The code in the wheels of a release for a CUDA version, such as ``sm_80``, ``compute_120``.

    ``release`` is any text that begins with one ("2.7.0.dev20250310"). None where the pair is
    not in the table, as for a build of somebody's own.
    """
    minor = ".".join(release.split(".")[:2])
    short = ".".join(cuda.split(".")[:2])
    for row in _rows(machine):
        if minor in row["torch"]:
            return _names(row["cuda"].get(short))
    return None


def first_torch(capability: tuple[int, int]) -> str:
    """The first release with code for GPUs of a compute capability; "" where all have it."""
    rows: list[dict[str, str]] = read_table("torch_archs.json")["first"]
    of = [r["torch"] for r in rows if tuple(map(int, r["capability"].split("."))) <= capability]
    return of[-1] if of else ""


def torch_minors(machine: str = X86) -> tuple[str, ...]:
    """The minor releases of the table, oldest first."""
    return tuple(minor for row in _rows(machine) for minor in row["torch"])


def cuda_of_minor(minor: str, machine: str = X86) -> tuple[str, ...]:
    """The CUDA versions that a minor release has wheels for."""
    return next((tuple(row["cuda"]) for row in _rows(machine) if minor in row["torch"]), ())


def _names(values: list[str] | None) -> tuple[str, ...] | None:
    if values is None:
        return None
    names: list[str] = []
    for value in values:
        number = value.partition("+")[0].replace(".", "")
        names.append(f"sm_{number}")
        if value.endswith("+PTX"):
            names.append(f"compute_{number}")
    return tuple(names)
