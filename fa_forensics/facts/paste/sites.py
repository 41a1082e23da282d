"""The site-packages directories that a text names."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Places, Source

MOST_PLACES = 20


def read_places(source: Source, places: Places) -> tuple[str, ...]:
    """The site-packages directories that a text names, in its order."""
    pattern = re.compile(r"[^\s\"'`:(),;=<>\[\]]{1,300}(?:site|dist)-packages")
    found: dict[str, None] = {}
    for word in ("site-packages", "dist-packages"):
        for place in places(word):
            head = source.text[max(0, place - 300) : place + len(word)]
            match = pattern.search(head.split("\n")[-1])
            if match is not None and match[0].startswith(("/", "~")):
                found[match[0]] = None
            if len(found) >= MOST_PLACES:
                return tuple(found)
    return tuple(found)
