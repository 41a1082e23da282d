"""From a pasted text to its mentions."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.model import MAX_LINE, Mention, Paste

_UNDEFINED = re.compile(
    r"(?:(?P<file>[^\s:'\"]+\.so[\w.]*):\s+)?undefined symbol:\s*(?P<symbol>[^\s,'\"]+)"
    r"(?:,\s*version\s+(?P<version>[\w.+-]+))?"
)
_MISSING = re.compile(r"(?P<library>[^\s:'\"]+\.so[\w.]*):\s+cannot open shared object file")


def read_paste(text: str) -> Paste:
    """The failures that a text tells of, the first cause first."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _UNDEFINED.search(line)
        if match is not None:
            found.append(
                Mention(
                    "undefined-symbol",
                    line.strip()[:MAX_LINE],
                    number,
                    symbol=match["symbol"],
                    version=match["version"],
                    file=match["file"],
                )
            )
            continue
        match = _MISSING.search(line)
        if match is not None:
            found.append(
                Mention(
                    "missing-library", line.strip()[:MAX_LINE], number, library=match["library"]
                )
            )
    return Paste(tuple(found))
