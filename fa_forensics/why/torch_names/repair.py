"""Mangled names that were typed by hand or lost characters on the way, put right by the table.

A mangled name counts the letters of each of its parts. Where one part lacks a letter or has a
wrong one, the name cannot be read any more; names of torch that begin alike show the part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import MAX_MANGLED, demangle
from fa_forensics.patterns import lazily

#: Parts that are put right in one name.
_MOST_PARTS = 3
#: Names of torch that are compared with.
_MOST_NAMES = 40
#: How alike a damaged part and the right one have to be.
_ALIKE = 0.8
_SHORTEST = 8
#: Nobody pastes longer names by hand.
_LONGEST = 1_000
#: The beginning was lost: ``ZN2at...``, ``N2at...``.
_BEHEADED = lazily(r"_{0,3}Z?(?P<rest>(?:T[VIS])?N[VKRO]{0,3}\d[\w.$]{4,})")
#: Markdown takes the two underscores before ``cxx11`` for emphasis.
_EATEN = lazily(r"(?<=St)7cxx11(?=\d)")


def with_its_beginning(text: str) -> str:
    """A mangled name whose first letters are missing, whole again; any other text as it is."""
    found = _BEHEADED.fullmatch(text.strip(" '\"`()[]"))
    if found is None or text.startswith("_Z") or len(text) > MAX_MANGLED:
        return text
    name = "_Z" + found["rest"].rstrip(".")
    return name if demangle(name) != name else text


#: Letters that typing and reading take for one another.
_ALIKE_LETTERS = {"l": "I1", "I": "l1", "1": "lI", "O": "0", "0": "O"}
#: Places that are tried in one name; one of them is wrong.
_MOST_PLACES = 60


def swapped(name: str) -> Iterator[str]:
    """The name with one letter exchanged for one that looks alike."""
    places = [i for i, letter in enumerate(name) if letter in _ALIKE_LETTERS][:_MOST_PLACES]
    for i in places:
        for other in _ALIKE_LETTERS[name[i]]:
            yield name[:i] + other + name[i + 1 :]


def repaired(name: str, atlas: Atlas, machine: str) -> str | None:
    """The name that was meant by a damaged one, as far as names of torch show it."""
    if len(name) > _LONGEST or not name.startswith("_Z"):
        return None
    fixed = _EATEN.sub("7__cxx11", name)
    for _ in range(_MOST_PARTS):
        if fixed != name and demangle(fixed) != fixed:
            return fixed
        better = _one_part(fixed, atlas, machine)
        if better is None:
            return None
        fixed = better
    return fixed if demangle(fixed) != fixed else None


def _one_part(name: str, atlas: Atlas, machine: str) -> str | None:
    """The name with its first damaged part as names that begin alike have it."""
    shared = _shared(name, atlas, machine)
    if shared < _SHORTEST:
        return None
    best: tuple[float, bool, str] | None = None
    for other, _ in atlas.starting_with(name[:shared], machine, limit=_MOST_NAMES):
        for start, digits, end in _parts(other):
            if not start < shared <= end or name[:start] != other[:start]:
                continue
            for alike, fixed in _with_part(name, start, other[start:digits], other[digits:end]):
                row = (alike, demangle(fixed) != fixed, fixed)
                if best is None or row[:2] > best[:2]:
                    best = row
    return None if best is None else best[2]


def _shared(name: str, atlas: Atlas, machine: str) -> int:
    """How many of a name's first characters some name of torch begins with."""
    low, high = 0, len(name)
    while low < high:
        middle = (low + high + 1) // 2
        if atlas.starting_with(name[:middle], machine, limit=1):
            low = middle
        else:
            high = middle - 1
    return low


def _parts(name: str) -> Iterator[tuple[int, int, int]]:
    """(start of the number, start of the text, end) of each counted part of a sound name."""
    at = 0
    while (found := re.compile(r"\d{1,3}").search(name, at)) is not None:
        end = found.end() + int(found[0])
        if name[found.end() : found.end() + 1].isdigit() or end > len(name) or found[0] == "0":
            at = found.end()
            continue
        if re.fullmatch(r"[A-Za-z_]\w*", name[found.end() : end]):
            yield found.start(), found.end(), end
            at = end
        else:
            at = found.end()


def _with_part(name: str, start: int, number: str, text: str) -> Iterator[tuple[float, str]]:
    """(how alike, the name) with one part replaced, for each length that the damaged one may be."""
    digits = re.compile(r"\d{0,3}").match(name, start)
    begin = start if digits is None else digits.end()
    for length in range(max(1, len(text) - 2), len(text) + 3):
        piece = name[begin : begin + length]
        if piece == text and name[start:begin] == number:
            continue
        alike = SequenceMatcher(None, piece, text).ratio()
        if alike >= _ALIKE:
            yield alike, name[:start] + number + text + name[begin + length :]
