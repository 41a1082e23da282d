"""AMD GPUs by name and by gfx target: ``data/amd_gpus.json``, whose rows name their source."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fa_forensics.facts.numbers import minor_numbers
from fa_forensics.facts.tables import read_table


class AmdFamily(NamedTuple):
    """Targets that share one instruction set.

    runs_as: the one of them that libraries are most often built for; version: the text that
    HSA_OVERRIDE_GFX_VERSION takes for it.
    """

    runs_as: str
    version: str
    targets: frozenset[str]


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    rows = read_table("amd_gpus.json")["targets"]
    return {_key(name): row["target"] for row in rows for name in row["names"]}


@lru_cache(maxsize=1)
def amd_families() -> tuple[AmdFamily, ...]:
    """The families of the table."""
    rows = read_table("amd_gpus.json")["families"]
    return tuple(
        AmdFamily(row["runs_as"], row["version"], frozenset(row["targets"])) for row in rows
    )


def amd_family(target: str) -> AmdFamily | None:
    """The family of a target; None where the table has none."""
    return next((family for family in amd_families() if target in family.targets), None)


def amd_target(name: str) -> str | None:
    """``AMD Radeon RX 7800 XT`` → gfx1101; None for a name that is not in the table."""
    return _names().get(_key(name))


def amd_names(target: str) -> tuple[str, ...]:
    """The names of a target's GPUs in the table: gfx90a → MI210, MI250, MI250X."""
    rows = read_table("amd_gpus.json")["targets"]
    return next((tuple(row["names"]) for row in rows if row["target"] == target), ())


class Wheels(NamedTuple):
    """torch's own ROCm wheels: the first minor release that has code for a target, by target."""

    since: dict[str, str]

    def first(self, target: str) -> str | None:
        """The first minor release ("2.7") whose wheels have the target; None where none has."""
        return self.since.get(target)

    def older(self, release: str) -> bool:
        """Whether a release is from before the first one of which the targets are known."""
        first = min(self.since.values(), key=minor_numbers)
        return minor_numbers(release) < minor_numbers(first)

    def lacks(self, target: str, release: str) -> bool:
        """Whether it is known that the wheels of a release do not have the target."""
        unknown = self.in_all_known(target) and self.older(release)
        return not unknown and not self.has(target, release)

    def in_all_known(self, target: str) -> bool:
        """Whether the wheels have a target in each release of which the targets are known."""
        return self.first(target) == min(self.since.values(), key=minor_numbers)

    def has(self, target: str, release: str) -> bool:
        """Whether the wheels of a release ("2.6.0") have the target."""
        since = self.first(target)
        return since is not None and minor_numbers(release) >= minor_numbers(since)


@lru_cache(maxsize=1)
def torch_wheels() -> Wheels:
    """What torch's own ROCm wheels for Linux hold code for: ``data/torch_hip.json``."""
    rows = read_table("torch_hip.json")["wheels"]
    return Wheels({target: row["since"] for row in rows for target in row["targets"]})


def _key(name: str) -> str:
    lower = re.sub(
        r"\b(?:amd|radeon|graphics|instinct|gpu|rx|pro|tm|ryzen [3579])\b", "", name.lower()
    )
    lower = re.sub(r"\brx(?=\d)", "", lower)
    return re.sub(r"[\s_()-]+", "", lower)
