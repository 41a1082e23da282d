"""Packages that load CUDA's libraries without torch: torch's CUDA is no measure for their files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

#: The directory below site-packages, or the package of a library's own name.
_TOP = lazily(r"-packages/(\w{1,60})/")
_LIBRARY = lazily(r"(?:^|/)lib(\w{1,40}?)(?:_(?:providers|framework)_?\w{0,30})?\.so[\d.]{0,12}$")


def row_without_torch(path: str, told: str = "") -> Mapping[str, Any] | None:
    """The row of the package that a file belongs to, or that a text names as the one that fails.

    ``told`` is that name ("onnxruntime"), "" for none; None for packages that link torch and
    for those of which nothing is known.
    """
    names = {name.replace("-", "_") for name in (told, *_TOP.findall(path)[-1:]) if name}
    library = _LIBRARY.search(path)
    if library is not None:
        names.add(library[1])
    for row in read_table("without_torch.json")["rows"]:
        own = {str(row.get("install", "")).replace("-", "_"), *row.get("packages", {}).values()}
        if names & {*row["folders"], *(name.replace("-", "_") for name in own if name)}:
            found: Mapping[str, Any] = row
            return found
    return None


def releases_for(row: Mapping[str, Any], major: str) -> str | None:
    """What to ask pip for to get the builds for a CUDA major version; None where not known.

    ``onnxruntime-gpu>=1.19.0`` for the newest line, with ``,<1.19.0`` behind for one before.
    """
    lines: list[tuple[str, str]] = [(one[0], one[1]) for one in row.get("cuda", ())]
    for at, (cuda, first) in enumerate(lines):
        if cuda == major:
            end = f",<{lines[at + 1][1]}" if at + 1 < len(lines) else ""
            return f"{row['install']}>={first}{end}"
    return None
