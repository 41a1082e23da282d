"""Which of torch's own indexes for ROCm has a release of torch."""

from __future__ import annotations

import re

from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_index import index_option
from fa_forensics.why.seen import Seen


def torch_for_rocm(seen: Seen) -> str:
    """Install torch from an index for ROCm that has it, or one that is to be chosen (X.Y).

    The ROCm of the system does not name the index: each release of torch has its own ones.
    """
    told, by_torch = seen.versions.get("rocm", ""), read_table("rocm_sonames.json")["by_torch"]
    release = (seen.torch or "").partition("+")[0]
    full = re.fullmatch(r"(\d{1,2}\.\d{1,3})\.\d{1,2}", release)
    every = [one for row in by_torch.values() for one in row]
    rows = by_torch.get(full[1], []) if full is not None else every
    minor = re.match(r"\d{1,2}\.\d", told)
    both = (told, minor[0]) if minor is not None else ()
    index = next((one for one in both if one in rows), "")
    if full is not None:
        index = index or (rows[-1] if rows else "X.Y")
    name = f"torch=={release}" if full is not None else "torch"
    # A ROCm that is newer than the record may have an index of its own.
    newer = minor is not None and int(told.partition(".")[0]) >= 7 and full is None
    index = index or (minor[0] if newer and minor is not None else "X.Y")
    return (
        f"{seen.pip} install --force-reinstall --no-cache-dir {name}{index_option(f'rocm{index}')}"
    )
