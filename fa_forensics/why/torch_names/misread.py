"""Names of torch that were read off a picture: 1 for l, O for 0, 2 for Z, or in small letters."""

from __future__ import annotations

from collections.abc import Iterator

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import demangle
from fa_forensics.patterns import lazily

#: Signs that readers of pictures take for one another.
_ALIKE = {
    letter: group.replace(letter, "")
    for group in ("l1I", "O0", "2Z", "5S", "8B")
    for letter in group
}
_BEGINNING = lazily(r"_{0,3}[Zz2]?(?P<rest>[Tt]?[VvIiSs]?[Nn]?[VvKkRrOo]{0,3}[\dlIO].{6,400})")
#: The scopes of torch, as they are mangled, with each group of look-alikes as one sign.
_SCOPES = ("2at", "3c10", "5t0rch", "6caffe2")
_PLAIN = str.maketrans({"l": "1", "i": "1", "o": "0", "z": "2", "s": "5", "b": "8"})
_SPECIAL = lazily(r"(?:t[v15])?n?[vkr0]{0,3}")
#: Beginnings that are looked up for one name.
_MOST_STEPS = 3_000


def could_be_misread(name: str) -> bool:
    """Whether a name begins as one of torch does, look-alikes taken for one another."""
    found = _BEGINNING.fullmatch(name)
    if found is None:
        return False
    plain = found["rest"].lower().translate(_PLAIN)
    start = _SPECIAL.match(plain)
    return plain.startswith(_SCOPES, start.end() if start else 0)


def read_again(name: str, atlas: Atlas, machine: str) -> str | None:
    """The name of torch that differs from this one in look-alikes alone; None where none does.

    Where none is whole, the beginning of one that is as long. Letters that are taken for one
    another are tried one by one, as long as some name of torch begins so. A name
    without any capital is also read as one whose capitals were lost.
    """
    found = _BEGINNING.fullmatch(name)
    if found is None:
        return None
    rest = found["rest"]
    small = rest == rest.lower()
    steps, begun = 0, ""
    open_ends = ["_Z"]
    while open_ends and steps < _MOST_STEPS:
        read = open_ends.pop()
        if len(read) == len(rest) + 2:
            if atlas.releases_of(read, machine):
                return read
            begun = begun or read
            continue
        steps += 1
        letter = rest[len(read) - 2]
        choices = [read + other for other in _choices(letter, small)]
        # The last one is taken first: the letter as it stands.
        open_ends += [
            one for one in reversed(choices) if atlas.starting_with(one, machine, limit=1)
        ]
    return begun if begun not in ("", name) and demangle(begun) != begun else None


def _choices(letter: str, small: bool) -> Iterator[str]:
    """What a sign may stand for, itself first."""
    yield letter
    yield from _ALIKE.get(letter, "")
    if small and letter.isalpha():
        yield letter.upper()
        yield from _ALIKE.get(letter.upper(), "")
