"""Every exported function of one qualified name, whatever its parameters or flavour.

Candidates share the plain start of the mangled name; the trie finds them. Which of them
really have the same qualified name shows in demangled form with both std::string flavours
folded, and demangling is what costs: candidates that cannot match are set aside first.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import demangle, demangle_many, fold_flavour, qualified_name
from fa_forensics.facts.mangled import (
    IDENTIFIER,
    OPERATOR,
    OPERATOR_CODES,
    OTHER_FLAVOUR,
    OTHER_PARAMETERS,
    SAME_NAME,
    const_spellings,
    mangled_body,
    mangled_prefix,
    qualifier_spellings,
    scope_parts,
    shared_start,
)
from fa_forensics.facts.symbol_text import mangled_special
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.atlas.store import Atlas

#: Names looked at under one plain start, 2 to 10 us each.
MAX_CANDIDATES = 1_500
#: Names demangled for one question, 10 us each.
MAX_DEMANGLED = 300
#: Of a template with more instances than that, only the names most alike are compared.
MOST_ALIKE = 60
#: The shortest plain start worth a search: ``_ZN2at`` alone has 100,000 names behind it.
MIN_PREFIX = 6

_STRUCTOR = re.compile(rb"[CD]\d$")
_ORDER = {SAME_NAME: 0, OTHER_FLAVOUR: 1, OTHER_PARAMETERS: 2}


@dataclass(frozen=True, slots=True)
class Named:
    """An exported function, the releases that export it, and how it relates to the question.

    ``relation`` is ``same name``, ``other std::string flavour`` or ``other parameters``.
    """

    symbol: str
    demangled: str
    releases: tuple[str, ...]
    relation: str


@dataclass(frozen=True, slots=True)
class _Question:
    """What was asked for, and what its answers must look like.

    ``symbol`` is empty for a readable name. ``scope`` is the qualified name and ``rest``
    what follows it (parameters, const), both folded and without spaces; ``rest`` is ``None``
    where none was given. ``prefixes`` are the plain starts of mangled names, ``follows`` the
    bytes one of which comes next (empty: any), ``own`` the last part of the scope as mangled
    names spell it.
    """

    symbol: str
    text: str
    scope: str
    rest: str | None
    prefixes: tuple[bytes, ...]
    follows: bytes
    own: bytes

    def starts(self, prefix: bytes) -> list[bytes]:
        """The mangled starts to search by, for one spelling of the plain start."""
        return [prefix + bytes((byte,)) for byte in self.follows] if self.follows else [prefix]


def find(atlas: Atlas, text: str, machine: str) -> tuple[Named, ...]:
    """The answers to ``Atlas.overloads``."""
    question = _mangled_question(text) if text.startswith("_Z") else _readable_question(text)
    groups: dict[tuple[str, str], list[tuple[str, tuple[str, ...]]]] = {}
    if question is None or not question.symbol:
        releases = atlas.releases_of(text, machine)  # a name of C, or one that reads as it is
        if releases or question is None:
            return (Named(text, demangle(text), releases, SAME_NAME),) if releases else ()
    candidates = _candidates(atlas, question, machine)
    symbols = [name.decode("utf-8", "surrogateescape") for name, _ in candidates]
    for symbol, readable, (_, releases) in zip(
        symbols, demangle_many(symbols), candidates, strict=True
    ):
        relation = _relation(question, symbol, readable)
        if relation:
            groups.setdefault((readable, relation), []).append((symbol, releases))
    found = [
        _merged(question, readable, relation, members, atlas.releases(machine))
        for (readable, relation), members in groups.items()
    ]
    folded = fold_flavour(question.text)
    # The overload that reads alike for longest is the one people look for.
    found.sort(
        key=lambda named: (
            _ORDER[named.relation],
            -shared_start(fold_flavour(named.demangled), folded),
            named.demangled,
        )
    )
    return tuple(found)


def find_twin(atlas: Atlas, name: str, machine: str) -> Named | None:
    """The answer to ``Atlas.twin``."""
    if not name.startswith("_Z"):
        return None
    twins = (n for n in find(atlas, name, machine) if n.relation == OTHER_FLAVOUR)
    return next(twins, None)


def _mangled_question(symbol: str) -> _Question | None:
    """The question that a mangled name asks; ``None`` if its plain start is too short."""
    name = os.fsencode(symbol)
    prefix = mangled_prefix(name)
    text = demangle(symbol)
    if text == symbol or len(prefix) < MIN_PREFIX or name.startswith(b"_ZZ"):
        return None  # no name, or no plain start: std, what is local to a function
    follows = b""
    scope, rest = _split(text)
    own = _own_name(scope_parts(scope))
    if not own and _STRUCTOR.search(prefix):  # any form of the same constructor
        prefix, follows = prefix[:-1], b"0123456789"
    elif name[len(prefix) : len(prefix) + 1] in (b"E", b"B"):
        follows = b"EB"
    elif name[len(prefix) : len(prefix) + 2] in OPERATOR_CODES:
        prefix = name[: len(prefix) + 2]
    return _Question(symbol, text, scope, rest, (prefix,), follows, own)


def _readable_question(text: str) -> _Question | None:
    """The question that a readable C++ name asks; ``None`` for a C name and the like."""
    text = " ".join(text.split())
    special = mangled_special(text)
    if special is not None:
        return _mangled_question(special)
    scope, rest = _split(text)
    parts = scope_parts(scope)
    if not parts or parts[0] == "std":
        return None
    start = b"_ZN" if len(parts) > 1 else b"_Z"
    body, follows = mangled_body(parts)
    prefixes = tuple(start + one.encode() for one in body)
    if min(map(len, prefixes)) < MIN_PREFIX:
        return None
    if len(parts) == 1 and follows != b"I":
        follows = b""  # parameters follow at once
    return _Question("", text, scope, rest or None, prefixes, follows, _own_name(parts))


def _split(text: str) -> tuple[str, str]:
    """The qualified name and what follows it, folded and without spaces."""
    folded = fold_flavour(text)
    scope = qualified_name(folded)
    rest = folded[folded.index(scope) + len(scope) :]
    return scope.replace(" ", ""), rest.replace(" ", "")


def _own_name(parts: list[str]) -> bytes:
    """How mangled names spell a function's own name; empty where it may be shortened."""
    last = parts[-1] if parts else ""
    identifier = IDENTIFIER.match(last)
    if identifier is None or OPERATOR.match(last):
        return b""
    if len(parts) > 1 and identifier[0] == parts[-2].split("<")[0]:
        return b""  # a constructor
    return f"{len(identifier[0])}{identifier[0]}".encode()


def _candidates(
    atlas: Atlas, question: _Question, machine: str
) -> list[tuple[bytes, tuple[str, ...]]]:
    """Exported names that may be answers, at most about MAX_DEMANGLED."""
    found: dict[bytes, tuple[str, ...]] = {}
    cut = False
    for prefix in question.prefixes:
        for spelling in qualifier_spellings(prefix):
            for start in question.starts(spelling):
                names = list(islice(atlas.search(start, machine), MAX_CANDIDATES))
                cut = cut or len(names) == MAX_CANDIDATES
                found.update((name, some) for name, some in names if question.own in name)
    if not cut and len(found) <= MAX_DEMANGLED:
        return list(found.items())
    if not question.symbol:
        return sorted(found.items())[:MAX_DEMANGLED]
    found = {}
    name, prefix = os.fsencode(question.symbol), question.prefixes[0]
    for spelling in const_spellings(prefix):
        found |= _closest(atlas, spelling, name[len(prefix) :], machine)
    return list(found.items())


def _closest(
    atlas: Atlas, prefix: bytes, rest: bytes, machine: str
) -> dict[bytes, tuple[str, ...]]:
    """The names that share the most with ``prefix + rest``, of too many that share the prefix.

    Overloads of a template's instance have its arguments in common, too.
    """
    name = prefix + rest
    short, long = len(prefix), len(name)
    while short < long:
        middle = (short + long) // 2
        names = islice(atlas.search(name[:middle], machine), MOST_ALIKE + 1)
        if sum(1 for _ in names) > MOST_ALIKE:
            short = middle + 1
        else:
            long = middle
    return dict(islice(atlas.search(name[:short], machine), MOST_ALIKE))


def _relation(question: _Question, symbol: str, readable: str) -> str | None:
    """How an exported name relates to the question; ``None`` for another function."""
    scope, rest = _split(readable)
    if question.symbol:
        if scope != question.scope:
            return None
        if symbol == question.symbol:
            return SAME_NAME
        if fold_flavour(readable) != fold_flavour(question.text):
            return OTHER_PARAMETERS
        return SAME_NAME if readable == question.text else OTHER_FLAVOUR
    if question.scope not in (scope, _without_arguments(scope)):
        return None
    if question.rest is None:
        return SAME_NAME
    if rest != question.rest:
        return OTHER_PARAMETERS
    alike = ("cxx11" in readable) == ("cxx11" in question.text)
    return SAME_NAME if alike else OTHER_FLAVOUR


def _without_arguments(scope: str) -> str:
    """A qualified name without the template arguments at its end."""
    if not scope.endswith(">") or "operator" in scope:
        return scope
    depth = 0
    for at in range(len(scope) - 1, -1, -1):
        depth += (scope[at] == ">") - (scope[at] == "<")
        if not depth:
            return scope[:at]
    return scope


def _merged(
    question: _Question,
    readable: str,
    relation: str,
    members: list[tuple[str, tuple[str, ...]]],
    order: tuple[str, ...],
) -> Named:
    """One answer for the names that read alike (complete and base constructor)."""
    releases = dict(members)
    if question.symbol in releases:  # what the file asks for is this very name
        return Named(question.symbol, readable, releases[question.symbol], relation)
    union = {release for _, some in members for release in some}
    return Named(min(releases), readable, tuple(r for r in order if r in union), relation)
