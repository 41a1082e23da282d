"""Which numpy a number in its error messages stands for (table: ``data/numpy_abi.json``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.tables import read_table


class Span(NamedTuple):
    """Releases of numpy: from one on, and before another; None where that is open."""

    since: str
    before: str | None

    @property
    def words(self) -> str:
        """``1.20 up to below 1.22``, ``one before 1.20``, ``2.0 or newer``."""
        if self.since == "1.0":
            return f"one before {self.before}"
        if self.before is None:
            return f"{self.since} or newer"
        return f"{self.since} up to below {self.before}"


def span_of_api(number: int) -> Span | None:
    """The releases with a number of the C interface ("API version 0xe")."""
    return _span(_table()["api"], number)


def span_of_abi(number: int) -> Span | None:
    """The releases with a number of the binary layout ("ABI version 0x1000009")."""
    return _span(_table()["abi"], number)


def span_of_size(kind: str, size: int) -> Span | None:
    """The releases whose ``numpy.KIND`` objects have a size in bytes ("Expected 88 ...")."""
    return _span(_table()["sizes"].get(kind, ()), size)


def number(release: str) -> tuple[int, ...]:
    """``1.20`` → (1, 20)."""
    return tuple(int(part) for part in release.split("."))


def _span(rows: Sequence[tuple[str, int]], wanted: int) -> Span | None:
    for place, (since, value) in enumerate(rows):
        if value == wanted:
            return Span(since, rows[place + 1][0] if place + 1 < len(rows) else None)
    return None


@lru_cache(maxsize=1)
def _table() -> Any:
    return read_table("numpy_abi.json")
