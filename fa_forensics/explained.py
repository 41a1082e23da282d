"""The codes that were asked for, from the table of all codes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from fa_forensics.errors import UsageError
from fa_forensics.facts.codes import Code, read_codes


def explain_codes(asked: Sequence[str]) -> tuple[Code, ...]:
    """The codes of that name, in the order they were asked for; all of them without a name.

    ``FA2`` and ``FA2xx`` mean all codes that begin so. Raises ``UsageError`` for a text that is
    no code, with the nearest ones.
    """
    known = read_codes()
    if not asked:
        return tuple(known.values())
    found: dict[str, Code] = {}
    for text in asked:
        word = text.strip().strip("[]").upper()
        stem = word.rstrip("X")
        whole = [known[word]] if word in known else []
        if not whole and len(stem) >= 3:
            whole = [code for name, code in known.items() if name.startswith(stem)]
        if not whole:
            near = difflib.get_close_matches(word, known, n=3)
            raise UsageError(
                f"{text[:40]} is no code of this tool",
                f"the nearest are {', '.join(near)}" if near else "fa-forensics explain lists all",
            )
        found.update((code.code, code) for code in whole)
    return tuple(found.values())
