"""Paragraphs that a window, a chat or a mail broke into lines, each in one line again.

For texts in which nothing is recognised as they stand: ``wrapped`` knows where the loader's own
messages go on, but any other message may be broken too.
"""

from __future__ import annotations

import itertools

from fa_forensics.facts.paste.lines import Joint
from fa_forensics.facts.paste.prefixes import split_prefix
from fa_forensics.patterns import lazily

#: Longer texts are logs of programs, which break no lines; a window's width is seldom less.
_MOST_TEXT, _MOST_LINES, _NARROWEST = 20_000, 400, 38
#: How a line begins that is no other line's end.
_BEGINS = lazily(
    r"Traceback|File \"|\s|[$>#%=*+|`-]|\d{1,6}[:.)]\s|[\w.]{1,80}(?:Error|Exception|Warning)\b|"
    r"(?:ERROR|WARNING|INFO|DEBUG|note|error|warning)\b"
)

#: A line that begins with as many characters of the paragraph's own beginning is the next copy.
_ALIKE = 24


def paragraphs(text: str) -> tuple[str, tuple[Joint, ...]]:
    """The text with the lines of each paragraph joined by blanks, and where they were joined."""
    lines = text.split("\n")
    if not 1 < len(lines) <= _MOST_LINES or len(text) > _MOST_TEXT:
        return text, ()
    parts: list[str] = []
    joints: list[Joint] = []
    length, stream, above, begun = 0, "", "", ""
    for number, raw in enumerate(lines):
        told, body = split_prefix(raw)
        same = told in ("", stream) and body[:_ALIKE] != begun
        if number and same and len(above) >= _NARROWEST and body and not _BEGINS.match(body):
            parts.append(" " + body)
            joints.append(Joint(length + 1, len(above), len(raw.rstrip()) - len(body)))
        else:
            parts.append(("\n" if number else "") + raw)
            stream, begun = told, body[:_ALIKE]
        length += len(parts[-1])
        above = raw.rstrip()
    return ("".join(parts), tuple(joints)) if joints else (text, ())


#: The widths of windows, where a single line shows it; else two lines have to end at one column.
_WINDOWS = (80, 100, 120, 132)
_LEAST_WIDTH = 60


def columns(text: str) -> tuple[str, tuple[Joint, ...]]:
    """The text with the lines joined that a window broke at its last column, within words too."""
    lines = text.split("\n")
    if not 1 < len(lines) <= _MOST_LINES or len(text) > _MOST_TEXT:
        return text, ()
    widths = [len(line) for line in lines[:-1]]
    width = max(widths)
    if width < _LEAST_WIDTH or (widths.count(width) < 2 and width not in _WINDOWS):
        return text, ()
    alone = widths.count(width) < 2
    parts: list[str] = [lines[0]]
    joints: list[Joint] = []
    length = len(lines[0])
    for above, raw in itertools.pairwise(lines):
        joined = len(above) == width and raw.strip() and not _STARTS.match(raw)
        joined = joined and not (alone and _ends_by_chance(above, raw.strip()))
        joined = joined and raw[:_PREFIX] != above[:_PREFIX] and not split_prefix(raw)[0]
        parts.append(raw if joined else "\n" + raw)
        if joined:
            joints.append(Joint(length, width, 0))
        length += len(parts[-1])
    return ("".join(parts), tuple(joints)) if joints else (text, ())


#: A name at a line's end, and what no rest of one is: several words, or one of small letters.
_NAME = lazily(r"\b_{1,3}Z\w+$|\bsymbol:? \S+$")
_WORDS = lazily(r"\S+[ ,]\s?\S|[a-z]+\W?$")


def _ends_by_chance(above: str, below: str) -> bool:
    """Whether the only line that ends at a column is most likely whole."""
    if _NAME.search(above) is not None:
        return _WORDS.match(below) is not None
    return _ENDED.search(above) is not None


#: Lines that begin alike are copies, or have one log's prefix (characters).
_PREFIX = 6
#: One line alone that ends at a column with a sentence is no broken one.
_ENDED = lazily(r"[.!?:;)\]}]$")
#: What is another line all the same, though the one above is as wide as the window.
_STARTS = lazily(r"\s{2}|[>|]|Traceback|[\w.]{1,80}(?:Error|Exception|Warning):")
