"""Pointers of Git LFS, a text of three lines in place of a library, as a paste shows them."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.patterns import lazily

#: The first line of a pointer and the third.
_SPEC = lazily(r"(?:^|[:|+]\s{0,3})version https://git-lfs\.github\.com/spec/v1\s*$")
_SIZE = lazily(r"size (\d{1,15})$", re.ASCII)
_SHOWN = lazily(r"(?:\bcat|\bhead(?: -\w{1,3}(?: \d{1,4})?)?|\bless)\s+(\S{1,400})")


def pointer_near(line: Line) -> dict[str, str]:
    """``pointer`` and ``size``, where a pointer of Git LFS is printed around a refusal."""
    for other in (*line.above(15), *line.below(15)):
        if _SPEC.search(other.body) is not None:
            return {"pointer": "yes", "size": _size_below(other)}
    return {}


def _size_below(line: Line) -> str:
    return next((s[1] for b in line.below(3) if (s := _SIZE.match(b.body.strip()))), "")


def printed_pointer(line: Line, match: re.Match[str]) -> Mention:
    """A Git LFS pointer, as somebody printed it."""
    file = next((s[1] for a in line.above(2) if (s := _SHOWN.search(a.body))), None)
    return line.mention("lfs-pointer", match.start(), file=file, detail={"size": _size_below(line)})
