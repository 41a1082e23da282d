"""Since which GCC its OpenMP library has a name or a symbol version: ``openmp_releases.json``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fa_forensics.facts.tables import read_table


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("openmp_releases.json")
    return table


def gcc_of_openmp(version: str) -> str | None:
    """The GCC whose libgomp first defines a symbol version ("GOMP_4.0" → "4.9"), or None."""
    release: str | None = _table()["versions"].get(version)
    return release


def version_of_openmp(name: str) -> str | None:
    """The symbol version of a name of libgomp that came after the first; None for others."""
    return next((v for v, names in _table()["names"].items() if name in names.split()), None)
