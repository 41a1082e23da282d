"""The page of a project's own wheels for one torch and its CUDA, where it has one for those."""

from __future__ import annotations

import re
from collections.abc import Mapping


def page_of(row: Mapping[str, object] | None, label: str, minor: str) -> str:
    """The address for ``cu121`` and torch ``2.1``; "" where the project has no such page.

    ``find_links_to`` in the table says where the pages end. What is no number (``cuNNN``,
    ``X.Y``) stands for one that the reader fills in.
    """
    page = str((row or {}).get("find_links", ""))
    ends = (row or {}).get("find_links_to")
    if not page:
        return ""
    if isinstance(ends, Mapping):
        cuda = re.fullmatch(r"cu(\d{2,3})", label)
        if cuda is not None and int(cuda[1]) > int(str(ends["label"]).removeprefix("cu")):
            return ""
        if _number(minor) > _number(str(ends["torch"])):
            return ""
    return page.format(label=label, minor=minor)


def _number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split("."))) if re.fullmatch(r"\d{1,2}\.\d{1,3}", minor) else ()
