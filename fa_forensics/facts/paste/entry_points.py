"""The dialog of Windows that says which function a file did not find in a library."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.patterns import lazily

#: Whoever copies the dialog keeps its line ends: so many lines belong to one sentence.
_LINES = 4
_SENTENCE = lazily(
    r"(?:procedure entry point|\u65e0\u6cd5\u5b9a\u4f4d\u7a0b\u5e8f\u8f93\u5165\u70b9"
    r"|Prozedureinsprungpunkt)\s{0,3}['\"\u201e\u201c]?(?P<symbol>[^\s'\"\u201c\u201d]{1,400})"
    r"['\"\u201c\u201d]?(?P<rest>.{0,300})",
    re.IGNORECASE,
)
_FILE = lazily(r"(?P<file>(?:[A-Za-z]:)?[^\s'\":*?<>|]{1,300}\.(?:pyd|dll))\b", re.IGNORECASE)


def recognisers() -> tuple[Recogniser, ...]:
    """``The procedure entry point X could not be located in the dynamic link library Y``."""
    return (
        by_pattern(
            ("procedure entry point", "\u65e0\u6cd5\u5b9a\u4f4d\u7a0b\u5e8f\u8f93\u5165\u70b9",
             "prozedureinsprungpunkt"),
            r"procedure entry point|\u65e0\u6cd5\u5b9a\u4f4d\u7a0b\u5e8f\u8f93\u5165\u70b9"
            r"|Prozedureinsprungpunkt",
            _dialog,
        ),
    )  # fmt: skip


def _dialog(line: Line, match: re.Match[str]) -> Mention | None:
    below = (near.body.strip() for near in line.below(_LINES))
    text = " ".join((line.body[match.start() :][:1000].strip(), *below))[:2000]
    found = _SENTENCE.match(text)
    if found is None:
        return None
    file = _FILE.search(found["rest"])
    return line.mention(
        "windows",
        match.start(),
        symbol=found["symbol"],
        file=file["file"] if file is not None else None,
        detail={"entry": "yes"},
    )
