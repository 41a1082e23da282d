"""GPUs that packages' own build files compile for: ``data/build_archs.json``, with its sources."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from fa_forensics.facts.flash_limits import release_key
from fa_forensics.facts.gpus import Capability, parse_capability
from fa_forensics.facts.package import normalized
from fa_forensics.facts.tables import read_table


class OwnTarget(NamedTuple):
    """One entry of a build file's own list.

    since, last: the first and the last CUDA ("12.8") with which the file takes it; last None for
    all later ones.
    """

    capability: Capability
    since: str
    last: str | None


class OwnList(NamedTuple):
    """The list of the releases from ``since`` on."""

    since: str
    targets: tuple[OwnTarget, ...]


@lru_cache(maxsize=8)
def own_lists(name: str) -> tuple[OwnList, ...]:
    """All lists of a distribution, oldest first; none where torch's helper chooses the targets."""
    rows = read_table("build_archs.json")["own"].get(normalized(name), ())
    return tuple(
        OwnList(
            row["since"],
            tuple(
                OwnTarget(parse_capability(arch), since, last[0] if last else None)
                for arch, since, *last in row["archs"]
            ),
        )
        for row in rows
    )


def own_list(name: str, version: str | None) -> OwnList | None:
    """The list of one release, or of the newest one on record where none is told."""
    lists, key = own_lists(name), release_key(version or "")
    if key is None:
        return lists[-1] if lists else None
    fitting = [one for one in lists if (release_key(one.since) or key) <= key]
    return fitting[-1] if fitting else (lists[0] if lists else None)


class PartOfFlash(NamedTuple):
    """An extension below csrc/ of flash-attention, which is built by itself.

    module: what it makes. instead: what does the same without it. targets: the list that its
    setup.py passes, machine code alone; none where that is left to torch.
    """

    module: str
    instead: str
    targets: tuple[OwnTarget, ...]


@lru_cache(maxsize=1)
def parts_of_flash() -> dict[str, PartOfFlash]:
    """Those extensions by their directory."""
    table = read_table("build_archs.json")
    targets = tuple(
        OwnTarget(parse_capability(arch), since, None) for arch, since in table["parts_archs"]
    )
    return {
        folder: PartOfFlash(row["module"], row["instead"], targets if row["own"] else ())
        for folder, row in table["parts_of_flash"].items()
    }


def rocm_option(name: str) -> str | None:
    """What names gfx targets to a package's own build; None where torch's helper does.

    A variable of the environment, or, with ``-D`` before it, an option of CMake.
    """
    found: str | None = read_table("build_archs.json")["rocm"].get(normalized(name))
    return found


def operator_of_kernel(function: str) -> str | None:
    """The operator that a function which prints its own name is compiled into."""
    found: str | None = read_table("build_archs.json")["kernels"].get(function)
    return found
