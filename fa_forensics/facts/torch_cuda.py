"""For which CUDA versions each minor release of torch was published (PyTorch's RELEASE.md)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from fa_forensics.facts.tables import read_table


@lru_cache(maxsize=1)
def published_cuda() -> Mapping[str, tuple[str, ...]]:
    """The CUDA versions ("12.6") by minor release ("2.9"); one that is not listed is not known."""
    table = read_table("torch_cuda.json")["cuda"]
    return {minor: tuple(versions) for minor, versions in table.items()}


@lru_cache(maxsize=1)
def _previous() -> Mapping[str, tuple[str, ...]]:
    table = read_table("torch_cuda.json")["previous"]
    return {minor: tuple(versions) for minor, versions in table.items()}


def cuda_builds(minor: str) -> tuple[str, ...]:
    """The CUDA versions that a minor release of torch has builds for; () where not on record."""
    return published_cuda().get(minor) or _previous().get(minor, ())
