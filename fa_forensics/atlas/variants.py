"""Builds of a release whose std::string flavour is not that of the wheel on the package index."""

from __future__ import annotations

from fa_forensics.facts.tables import read_table


def variants_of(release: str, machine: str) -> tuple[tuple[str, str], ...]:
    """(CUDA, flavour) of each build of a release whose flavour is not that of its usual wheel."""
    return tuple(
        (str(row["cuda"]), str(row["cxx11_abi"]))
        for row in read_table("torch_variants.json")["rows"]
        if (row["release"], row["machine"]) == (release, machine)
    )
