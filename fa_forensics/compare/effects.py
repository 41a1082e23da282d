"""Whether a difference can change what is computed: the table ``data/numerics.json``."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from fa_forensics.facts.tables import read_table

_TABLE = "numerics.json"


class Effect(NamedTuple):
    """``numbers`` is "can", "cannot" or "unknown"; ``reason`` one sentence; ``source`` whose."""

    numbers: str
    reason: str
    source: str


class EffectRow(NamedTuple):
    """One row of the table: the first whose patterns fit a difference decides."""

    group: str
    subject: str
    aspect: str
    effect: Effect


@lru_cache(maxsize=1)
def effect_rows() -> tuple[EffectRow, ...]:
    """The table, in its order."""
    rows = read_table(_TABLE)["rows"]
    return tuple(
        EffectRow(
            row["group"],
            row["subject"],
            row["aspect"],
            Effect(row["numbers"], row["reason"], row["source"]),
        )
        for row in rows
    )


def effect_of(group: str, subject: str, aspect: str) -> Effect:
    """The effect of a difference. Every group has a last row that fits all."""
    for row in effect_rows():
        if (
            row.group == group
            and fnmatchcase(subject, row.subject)
            and fnmatchcase(aspect, row.aspect)
        ):
            return row.effect
    raise KeyError(f"no row of {_TABLE} is for the group {group}")
