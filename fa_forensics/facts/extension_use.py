"""Which of a package's extension files it really loads: a table, and the names of builds."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from fa_forensics.facts.package import normalized
from fa_forensics.facts.tables import read_table

BY_CUDA, ON_DEMAND = "by-cuda", "on-demand"

#: What tells builds of one library for several versions apart: libtorchcodec_core6.so.
_NUMBER = re.compile(r"(?<=[A-Za-z])(\d{1,4})(?=\.|_|$)")


@lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, str], ...]:
    return tuple(read_table("extension_use.json")["packages"])


def why_unused(
    package: str, path: str, siblings: Sequence[str], cuda: str | None, environ: Mapping[str, str]
) -> str | None:
    """Why a file that does not load is no matter, as one clause; None where it is one.

    ``siblings`` are the package's extension files, ``cuda`` the CUDA version of torch ("12.1").
    """
    name = os.path.basename(path)
    for row in _rows():
        if row["distribution"] != normalized(package) or not fnmatch.fnmatch(name, row["files"]):
            continue
        if row["use"] == ON_DEMAND:
            return row["why"]
        chosen = _by_cuda(row, path, siblings, cuda, environ)
        if chosen is None:
            return None if cuda else "torch here has no CUDA, so no build for CUDA is used"
        return None if chosen == name else f"{row['why']}, here {chosen}"
    return None


def chosen_for_cuda(
    package: str, path: str, siblings: Sequence[str], cuda: str | None, environ: Mapping[str, str]
) -> str | None:
    """The name of the one build that a package loads for a CUDA version, of those like ``path``.

    None where the file is not one of several builds for CUDA versions, or none of them fits.
    """
    name = os.path.basename(path)
    for row in _rows():
        ours = row["distribution"] == normalized(package) and row["use"] == BY_CUDA
        if ours and fnmatch.fnmatch(name, row["files"]):
            return _by_cuda(row, path, siblings, cuda, environ)
    return None


def _by_cuda(
    row: Mapping[str, str],
    path: str,
    siblings: Sequence[str],
    cuda: str | None,
    environ: Mapping[str, str],
) -> str | None:
    """The file that is loaded under a CUDA version, None where none fits."""
    wanted = environ.get(row.get("override", "")) or (cuda or "").replace(".", "")
    if not re.fullmatch(r"\d{2,3}", wanted):
        return None
    here = os.path.dirname(path)
    builds = {
        found.group(1): os.path.basename(other)
        for other in siblings
        if os.path.dirname(other) == here
        and fnmatch.fnmatch(os.path.basename(other), row["files"])
        and (found := _NUMBER.search(os.path.basename(other)))
    }
    same = [n for n in builds if len(n) == len(wanted) and n[:-1] == wanted[:-1]]
    lower = [n for n in same if n <= wanted]
    best = max(lower) if lower else min(same, default=None)
    return None if best is None else builds[best]


def other_build(path: str, loading: Sequence[str]) -> str | None:
    """The name of another build of the same library, beside it, among files that load.

    Builds for several versions differ in one number: libtorchcodec_core4.so, ..._core6.so.
    """
    directory, name = os.path.split(path)
    family = _NUMBER.sub("*", name)
    if family == name:
        return None
    for other in loading:
        place, other_name = os.path.split(other)
        if other != path and place == directory and _NUMBER.sub("*", other_name) == family:
            return other_name
    return None
