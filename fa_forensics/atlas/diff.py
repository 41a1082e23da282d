"""What changed between two torch releases: names removed, added, re-signed, or of other flavour.

A torch that turns from one std::string flavour to the other (2.6 to 2.7 on x86_64) renames
every function that handles a string; those are told apart from functions that really went.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import demangle_many, fold_flavour, qualified_name
from fa_forensics.facts.mangled import mangled_scopes, plain_start
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.atlas.store import Atlas

#: In the names of what nvcc generates: anonymous namespaces and wrapped lambdas. No two of
#: them are overloads of one function.
_GENERATED = re.compile(r"_GLOBAL__N__|__nv_hdl_wrapper_t|__nv_dl_")


@dataclass(frozen=True, slots=True)
class Name:
    """An exported name: as the linker knows it, and readable.

    The forms of a constructor or destructor read alike; ``symbol`` is the first of them.
    """

    symbol: str
    demangled: str


@dataclass(frozen=True, slots=True)
class Resigned:
    """A function that both releases have, with other parameters (or other constness).

    ``name`` is its qualified name; ``before`` and ``after`` are the signatures that only the
    older and only the newer release has.
    """

    name: str
    before: tuple[Name, ...]
    after: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Renamed:
    """One function whose mangled name changed, and its readable name and parameters did not."""

    before: Name
    after: Name


@dataclass(frozen=True, slots=True)
class Difference:
    """The names that tell two releases apart, each in one list, sorted by readable name.

    ``flavour`` are those that changed with the std::string flavour alone. ``generated`` are
    those that nvcc gives another name in each build (anonymous namespaces); nothing outside
    their library can link with them.
    """

    old: str
    new: str
    machine: str
    removed: tuple[Name, ...]
    added: tuple[Name, ...]
    resigned: tuple[Resigned, ...]
    flavour: tuple[Renamed, ...]
    generated: tuple[Renamed, ...]


def difference(
    atlas: Atlas,
    old: str,
    new: str,
    machine: str = "x86_64",
    namespace: str | None = None,
    libraries: Collection[str] | None = None,
) -> Difference:
    """Compare what two releases export.

    ``namespace`` narrows to names in a namespace or class (``c10::cuda``), ``libraries`` to
    those that one of these libraries exports (``libc10_cuda.so``). Raises KeyError for a
    release that the atlas does not know.
    """
    prefixes = mangled_scopes(namespace) if namespace else ()
    gone, come = (
        _within(names, namespace)
        for names in atlas.removed_added(old, new, machine, libraries, prefixes)
    )
    renamed, gone, come = _renamed(gone, come)
    resigned, gone, come = _resigned(gone, come)
    return Difference(
        old,
        new,
        machine,
        removed=tuple(_sorted(gone)),
        added=tuple(_sorted(come)),
        resigned=resigned,
        flavour=tuple(one for one in renamed if one.before.demangled != one.after.demangled),
        generated=tuple(one for one in renamed if one.before.demangled == one.after.demangled),
    )


def has_namespace(
    atlas: Atlas, namespace: str, releases: Collection[str], machine: str = "x86_64"
) -> bool:
    """Whether one of these releases exports a name in a namespace or class.

    True too where its names cannot be told by their start (std is abbreviated in many ways).
    """
    scopes = [start for start in mangled_scopes(namespace) if start.startswith(b"_ZN")]
    return not scopes or any(
        not having.isdisjoint(releases)
        for start in scopes
        for _, names in atlas.search(start, machine)
        for having in (frozenset(names),)
    )


def _sorted(names: Iterable[Name]) -> list[Name]:
    return sorted(names, key=lambda name: (name.demangled, name.symbol))


def _within(symbols: list[str], namespace: str | None) -> list[Name]:
    """The names readable, each text once, those outside the namespace left out."""
    names: dict[str, Name] = {}
    for symbol, text in zip(symbols, demangle_many(symbols), strict=True):
        names.setdefault(text, Name(symbol, text))
    if not namespace:
        return list(names.values())
    scope = namespace.removesuffix("::")
    found = []
    for name in names.values():
        own = qualified_name(name.demangled)
        if own == scope or own.startswith(f"{scope}::"):
            found.append(name)
    return found


def _renamed(gone: list[Name], come: list[Name]) -> tuple[list[Renamed], list[Name], list[Name]]:
    """Pairs that read alike once the flavour is folded away, and the names left over."""
    after = {fold_flavour(name.demangled): name for name in come}
    pairs, left = [], []
    for name in gone:
        alike = after.pop(fold_flavour(name.demangled), None)
        if alike is None:
            left.append(name)
        else:
            pairs.append(Renamed(name, alike))
    pairs.sort(key=lambda pair: (pair.before.demangled, pair.before.symbol))
    paired = {pair.after.symbol for pair in pairs}
    return pairs, left, [name for name in come if name.symbol not in paired]


def _resigned(
    gone: list[Name], come: list[Name]
) -> tuple[tuple[Resigned, ...], list[Name], list[Name]]:
    """Functions of one qualified name on both sides, and the names left over."""
    # Overloads share the plain start of their mangled names, which costs less to read than
    # the qualified name does: most names have nothing to be compared with.
    went, came = ([_start(name) for name in names] for names in (gone, come))
    both = set(went) & set(came)
    before, after = _by_function(gone, went, both), _by_function(come, came, both)
    found = tuple(
        Resigned(scope, tuple(_sorted(before[scope])), tuple(_sorted(after[scope])))
        for scope in sorted(before.keys() & after.keys())
    )
    paired = {name.symbol for one in found for name in (*one.before, *one.after)}
    return (
        found,
        [name for name in gone if name.symbol not in paired],
        [name for name in come if name.symbol not in paired],
    )


def _start(name: Name) -> bytes:
    return plain_start(name.symbol.encode("utf-8", "surrogateescape"))


def _by_function(
    names: list[Name], starts: list[bytes], wanted: set[bytes]
) -> dict[str, list[Name]]:
    """Functions whose start is one of ``wanted``, by qualified name; a start for each name."""
    found: dict[str, list[Name]] = {}
    for name, start in zip(names, starts, strict=True):
        if start not in wanted or _GENERATED.search(name.symbol):
            continue
        folded = fold_flavour(name.demangled)
        scope = qualified_name(folded)
        if not folded.endswith(scope):  # else data, which has no parameters
            found.setdefault(scope, []).append(name)
    return found
