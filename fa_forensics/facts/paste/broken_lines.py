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


#: The loader's reason: a file is there and is no library for this process.
_FAULT = lazily(
    r"[^\n]{0,40}?Error:\s{0,3}[^\s:]{1,300}\.so[.\d]{0,20}: "
    r"(?:wrong ELF class|invalid ELF header|file too short|ELF file)",
    re.IGNORECASE,
)


def where_whole(build: Build) -> Build:
    """``build`` without the lines whose second half is a message that says more.

    On a missing name, below; or on a file that is not one for this process (32 bits, damaged),
    which another library had to load.
    """

    def whole(line: Line, match: re.Match[str]) -> Mention | Claim | None:
        if _names_below(line, match.end()) or _FAULT.match(line.body, match.end()):
            return None
        return build(line, match)

    return whole


def _names_below(line: Line, end: int) -> bool:
    if line.body[end:].strip(" ."):
        return False
    below = list(line.below(3))
    if not below or _GOES_ON.match(below[0].body) is None:
        return False
    return any(words in one.lower for one in below for words in _OF_A_NAME)
