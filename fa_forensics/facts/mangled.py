"""The plain beginning of a mangled name: what all overloads of one function share.

Reads the leading part of the Itanium C++ ABI's <encoding>: ``_Z``, ``N``, qualifiers and
source names. Everything behind it (templates, substitutions, parameters) is left alone.
"""

from __future__ import annotations

import re

#: How an exported name relates to the one that was asked for.
SAME_NAME = "same name"
OTHER_FLAVOUR = "other std::string flavour"
OTHER_PARAMETERS = "other parameters"

#: How operators are spelled in mangled names (Itanium C++ ABI, <operator-name>); those
#: with a unary and a binary form have two codes.
OPERATORS: dict[str, tuple[str, ...]] = {
    "new": ("nw",), "new[]": ("na",), "delete": ("dl",), "delete[]": ("da",),
    "~": ("co",), "+": ("pl", "ps"), "-": ("mi", "ng"), "*": ("ml", "de"), "/": ("dv",),
    "%": ("rm",), "&": ("an", "ad"), "|": ("or",), "^": ("eo",), "=": ("aS",), "+=": ("pL",),
    "-=": ("mI",), "*=": ("mL",), "/=": ("dV",), "%=": ("rM",), "&=": ("aN",), "|=": ("oR",),
    "^=": ("eO",), "<<": ("ls",), ">>": ("rs",), "<<=": ("lS",), ">>=": ("rS",), "==": ("eq",),
    "!=": ("ne",), "<": ("lt",), ">": ("gt",), "<=": ("le",), ">=": ("ge",), "<=>": ("ss",),
    "!": ("nt",), "&&": ("aa",), "||": ("oo",), "++": ("pp",), "--": ("mm",), ",": ("cm",),
    "->*": ("pm",), "->": ("pt",), "()": ("cl",), "[]": ("ix",),
}  # fmt: skip

_SPECIAL = re.compile(rb"_Z(?:T[VTIS]|GV)")
_COMPONENT = re.compile(rb"(\d+)")
_STRUCTOR = re.compile(rb"[CD][0-9]")


def mangled_prefix(name: bytes) -> bytes:
    """The mangled start that all overloads of a name share, as far as it is plain.

    Reads ``_Z``, ``N``, CV qualifiers and the leading source names of the Itanium grammar
    (<nested-name>); stops at templates, substitutions and ABI tags.
    """
    special = _SPECIAL.match(name)
    if special:
        return name
    at = 2
    nested = name[at : at + 1] == b"N"
    if nested:
        at += 1
        while name[at : at + 1] in (b"r", b"V", b"K", b"R", b"O"):
            at += 1
    while True:
        number = _COMPONENT.match(name, at)
        # No name has a length of ten digits; int() of a longer one is slow, then an error.
        if number is None or len(number[1]) > 9:
            break
        end = number.end() + int(number[1])
        if end > len(name):
            break
        at = end
        if not nested:
            break
    structor = _STRUCTOR.match(name, at)
    if structor and nested:
        at = structor.end()
    return name[:at]


def const_spellings(prefix: bytes) -> tuple[bytes, ...]:
    """The prefix with and without a const method's ``K``: constness is drift too."""
    if prefix.startswith(b"_ZNK"):
        return prefix, b"_ZN" + prefix[4:]
    if prefix.startswith(b"_ZN"):
        return prefix, b"_ZNK" + prefix[3:]
    return (prefix,)


def shared_start(one: str, other: str) -> int:
    """How many characters two texts have in common from the start."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
