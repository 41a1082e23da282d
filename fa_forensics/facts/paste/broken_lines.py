"""A message that the reporter, or a narrow window, broke into several lines."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Build, Claim
from fa_forensics.patterns import lazily

#: How the loader's words behind "Could not load library X." begin.
_GOES_ON = lazily(r"\s{0,20}(?:Error|Reason)\s?:", re.IGNORECASE)
#: A name that is not found: those lines are a mention of their own, which says more.
_OF_A_NAME = ("undefined symbol", "link time reference")


def where_whole(build: Build) -> Build:
    """``build`` without the lines whose second half, below, is a message on a missing name."""

    def whole(line: Line, match: re.Match[str]) -> Mention | Claim | None:
        return None if _names_below(line, match.end()) else build(line, match)

    return whole


def _names_below(line: Line, end: int) -> bool:
    if line.body[end:].strip(" ."):
        return False
    below = list(line.below(3))
    if not below or _GOES_ON.match(below[0].body) is None:
        return False
    return any(words in one.lower for one in below for words in _OF_A_NAME)
