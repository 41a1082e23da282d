"""Which package a name was imported from, where the message leaves it out.

Python 3.6 and older say ``cannot import name '_C'`` alone, and people cut the rest off.
"""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

_FROM = lazily(
    r"\bfrom\s{1,9}(?P<package>\.{1,3}[\w.]{0,200}|[A-Za-z_][\w.]{0,200})\s{1,9}import\s{1,9}"
    r"\(?\s{0,9}(?P<names>[\w ,.]{1,200})",
    re.ASCII,
)
#: A step of a traceback: its file, below a directory.
_STEP = lazily(r"File \"(?P<folder>[^\"\n]{1,400})[/\\]\w{1,80}\.py\"")
#: Lines that an import statement stands away from its error, above and below.
_ABOVE, _BELOW = 12, 4


def imported_from(line: Line, at: int, name: str) -> dict[str, str]:
    """``module``: what an import statement near a message takes ``name`` from; {} for none.

    ``at`` is where the message begins in its line.
    """
    before = [line.body[:at], *(above.body for above in line.above(_ABOVE))]
    for place, body in enumerate((*before, *(below.body for below in line.below(_BELOW)))):
        if "import" not in body:
            continue
        for found in reversed(list(_FROM.finditer(body))):
            names = {one.split()[0] for one in found["names"].split(",") if one.strip()}
            if name in names:
                package = found["package"]
                whole = package if package[0] != "." else _whole(package, before[place:])
                return {"module": whole} if whole else {}
    return {}


def _whole(relative: str, above: list[str]) -> str:
    """``..layers`` of a step in ``site-packages/core/ops/x.py`` as ``core.layers``, where told."""
    step = next((found for body in above if (found := _STEP.search(body)) is not None), None)
    if step is None:
        return ""
    rest = relative.lstrip(".")
    folders = re.split(r"[/\\]", step["folder"])
    site = next((n for n, one in enumerate(folders) if one.endswith("-packages")), None)
    up = len(relative) - len(rest) - 1
    kept = folders[: len(folders) - up] if up else folders
    # In a tree of its own nothing tells which of the directories is the package's.
    kept = kept[site + 1 :] if site is not None else []
    whole = [*kept, *([rest] if rest else [])]
    return ".".join(whole) if kept and all(part.isidentifier() for part in kept) else ""
