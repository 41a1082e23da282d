"""What each finding code means: ``data/codes.json``."""

from __future__ import annotations

from functools import lru_cache

from fa_forensics.facts.tables import read_table
from fa_forensics.records import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One code: its title, what it means, how it is known, and what to do about it.

    ``zh`` holds the title, the meaning and the remedy in Chinese.
    """

    code: str
    title: str
    means: str
    known_by: str
    do: str
    zh: tuple[str, str, str]


@lru_cache(maxsize=1)
def read_codes() -> dict[str, Code]:
    """Every code, in order."""
    rows = read_table("codes.json")["codes"]
    return {
        code: Code(
            code,
            row["title"],
            row["means"],
            row["known_by"],
            row["do"],
            (row["zh"]["title"], row["zh"]["means"], row["zh"]["do"]),
        )
        for code, row in sorted(rows.items())
    }
