"""Versions that a text names as what put it right: no torch that failed is of them."""

from __future__ import annotations

import re

#: How far the words around a version are looked at.
_AROUND = 70

#: "goes away with PyTorch 2.5.1", "works with torch==2.1", "fixed by downgrading torch to 2.0".
_BEFORE = re.compile(
    r"\b(?:go(?:es|ne)? away|went away|disappear(?:s|ed)|work(?:s|ed)?(?: fine| well| again)?"
    r"|(?:fix|solv|resolv|cur)(?:ed|es))"
    r" (?:with|by|in|on|under|after|when|for)"
    r"(?: (?:installing|reinstalling|using|(?:down|up)grading(?: to)?|going back to|an?|the"
    r"|(?:py)?torch(?: version)?|to)){0,4}[ ='\"`]{0,4}\Z",
    re.IGNORECASE,
)
#: "never worked with", "no longer works with": that version is the one that fails.
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\blonger)\s{1,3}\Z", re.IGNORECASE)
#: "pytorch 1.10.1 reinstalled works", "after downgrading to torch 2.1 it works", "torch 2.1 fixes
#: it"; not "torch 2.6 works, but".
_BEHIND = re.compile(
    r"['\"`)]{0,3},? (?:"
    r"(?:re-?installed|instead|it|everything|all|that)(?: now)? (?:works|worked|is (?:fine|fixed))"
    r"|(?:fixe[sd]|solve[sd]|cure[sd]|resolve[sd]) (?:it|this|that|the)"
    r")\b(?! (?:fine |well )?(?:until|but)\b|, but\b| fine,? but\b)",
    re.IGNORECASE,
)


def is_cure(words: str, start: int, end: int) -> bool:
    """Whether the version at ``start`` to ``end`` of a line is told as what put it right."""
    before = words[max(0, start - _AROUND) : start]
    found = _BEFORE.search(before)
    if found is not None and not _NEGATED.search(before[: found.start()]):
        return True
    return _BEHIND.match(words[end : end + _AROUND]) is not None
