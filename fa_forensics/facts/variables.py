"""What environment variables change, and the GPUs that TORCH_CUDA_ARCH_LIST names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.tables import read_table

#: More of a value than this is not taken apart.
_MAX_VALUE = 4_096
_ARCH = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")


class Arch(NamedTuple):
    """One entry of TORCH_CUDA_ARCH_LIST: ``9.0a+PTX`` is (9, 0), "a", True."""

    capability: tuple[int, int]
    feature: str
    ptx: bool

    def serves(self, capability: tuple[int, int]) -> bool:
        """Whether code of this entry runs on a GPU of that compute capability."""
        if self.capability == capability:
            return True
        if self.feature == "a":
            return False
        same_major = self.capability[0] == capability[0]
        return self.capability <= capability and (same_major or (self.ptx and not self.feature))


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table("variables.json")
    return table


def effects() -> Mapping[str, str]:
    """Variable → what it changes, in one sentence without an end."""
    found: Mapping[str, str] = _table()["effects"]
    return found


def parse_arch_list(value: str) -> tuple[tuple[Arch, ...], tuple[str, ...]]:
    """(architectures, words that are none) of a TORCH_CUDA_ARCH_LIST; names count as in torch."""
    text = value[:_MAX_VALUE].replace(" ", ";")
    for name, numbers in _table()["arch_names"].items():
        text = text.replace(name, numbers)
    archs, unknown = [], []
    for word in text.split(";"):
        found = _ARCH.fullmatch(word)
        if found:
            archs.append(Arch((int(found[1]), int(found[2])), found[3], bool(found[4])))
        elif word:
            unknown.append(word)
    return tuple(archs), tuple(unknown)
