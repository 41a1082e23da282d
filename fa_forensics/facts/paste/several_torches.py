"""Texts that name more than one torch: which of them counts, and whether any does."""

from __future__ import annotations

from collections.abc import Mapping

#: So many different releases named alike are a list, and none of them is the one that runs.
_A_LIST = 3


def of_several(
    best: dict[str, tuple[int, int, str]],
    torches: Mapping[str, tuple[int, int]],
    surest: int,
    surest_of_prose: int,
) -> None:
    """Leave out a torch that is one of a list; add ``torch_too``, a second one that counts.

    ``torches`` are the public versions that were read, with how sure each place is (small is
    sure) and its line; a second one counts where its place is no less sure than ``surest``.
    ``torch_also`` is the only other one of a sentence, no less sure than ``surest_of_prose``.
    """
    chosen = best.get("torch")
    if chosen is None:
        return
    own = chosen[2].partition("+")[0]
    alike = [version for version, (sort, _) in torches.items() if sort == chosen[0]]
    if len(alike) >= _A_LIST:
        del best["torch"]
        return
    others = sorted(
        (sort, number, version)
        for version, (sort, number) in torches.items()
        if sort <= surest and not _alike(version, own)
    )
    if others and chosen[0] <= surest:
        best["torch_too"] = others[0]
        return
    spoken = sorted(
        (sort, number, version)
        for version, (sort, number) in torches.items()
        if sort <= surest_of_prose and not _alike(version, own)
    )
    if len(spoken) == 1:
        best["torch_also"] = spoken[0]


def _alike(one: str, other: str) -> bool:
    """Whether two versions may be one, of which a number was left out: 2.4 and 2.4.0."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
