"""Python's stable ABI: which C names it has, and since which Python.

The names are those of CPython's ``Misc/stable_abi.toml``, by way of the package abi3info.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from fa_forensics.records import dataclass

PythonVersion = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StableAbi:
    """What a file that claims the stable ABI takes of Python.

    ``outside`` are the names that are not part of it. ``floor`` is the Python that brought the
    newest of the others, ``newest`` the names that came with it; None and empty without any.
    """

    outside: tuple[str, ...]
    floor: PythonVersion | None
    newest: tuple[str, ...]


@lru_cache(maxsize=1)
def _added() -> dict[str, PythonVersion]:
    """Name → the Python that added it to the stable ABI."""
    import abi3info

    found: dict[str, PythonVersion] = {}
    for table in (abi3info.FUNCTIONS, abi3info.DATAS):
        for symbol, row in table.items():
            name = symbol if isinstance(symbol, str) else symbol.name
            found[name] = (row.added.major, row.added.minor)
    return found


def stable_abi(names: Iterable[str]) -> StableAbi:
    """Sort the C names of Python that a file needs. Order and repeats do not matter."""
    known = _added()
    wanted = sorted(set(names))
    outside = tuple(name for name in wanted if name not in known)
    inside = [name for name in wanted if name in known]
    floor = max((known[name] for name in inside), default=None)
    newest = tuple(name for name in inside if known[name] == floor)
    return StableAbi(outside, floor, newest)


def newer_than(names: Iterable[str], version: PythonVersion) -> dict[str, PythonVersion]:
    """Those of the names that came into the stable ABI after a Python, each with its own."""
    known = _added()
    return {n: known[n] for n in sorted(set(names)) if n in known and known[n] > version}
