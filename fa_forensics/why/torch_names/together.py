"""Names of torch that one text misses together: what they say that each alone does not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import interval_text
from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.symbol_text import SymbolText, parse_symbol
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Mention, Paste

#: Notes on the torch that one of the names alone would be had from.
_OF_ONE_NAME = lazily(r"torch [\d.]+ has the file's flavour|One of the two commands")
#: Names that are counted together; a listing of a large file has thousands.
_MOST_NAMES = 400
#: Names of a text that are asked for their twin of the other flavour.
_MOST_TWINS = 20


def together(
    answers: tuple[Answer, ...], paste: Paste, place: Place, tables: Tables
) -> tuple[Answer, ...]:
    """The answers in the light of all torch names of the text."""
    atlas, first = tables.ages, answers[0]
    if atlas is None or first.owner is None or not is_torch(first.owner):
        return answers
    if place.present is None:
        answers = _flavour_first(answers)
        first = answers[0]
    names = _torch_names(paste, first)
    if len(names) < 2:
        return answers
    known = atlas.releases(place.machine)
    found = _lives(names, atlas, place.machine)
    common = [r for r in known if all(r in life for life in found.values())]
    if found and not common:
        # No wheel has all of them in one flavour: those of a build that no wheel is.
        found = _lives(names, atlas, place.machine, both=True)
        common = [r for r in known if all(r in life for life in found.values())]
    if len(found) < 2 or not common or len(common) == len(known):
        return answers
    notes = [
        f"All {len(found)} torch names in the text together are exported by torch "
        f"{interval_text(common, known)} alone: that is what the file was built on, whatever its "
        "own version says."
    ]
    flavour = _flavour(list(found))
    if flavour is not None and all(_of(atlas, r, place.machine) != flavour for r in common):
        notes.append(
            f"Its std::string is {flavour}, which no wheel of those releases on the package index "
            "is: the file was built on another build of them (NVIDIA's for Jetson, a container's, "
            "conda-forge's) or without the flag that torch was built with, and those wheels lack "
            "its names with a std::string as well."
        )
        first = replace(
            first,
            help=tuple(c for c in first.help if not re.search(r'"torch[=>]=', c)),
            notes=tuple(n for n in first.notes if not _OF_ONE_NAME.match(n)),
        )
    rest = [one for one in answers[1:] if not _says_the_same(first, one, found)]
    return (replace(first, notes=(*notes, *first.notes)), *rest)


def _of(atlas: Atlas, release: str, machine: str) -> str:
    build = atlas.build(release, machine)
    return build.flavour if build is not None else "unknown"


def _lives(
    names: list[SymbolText], atlas: Atlas, machine: str, both: bool = False
) -> dict[SymbolText, set[str]]:
    """The releases with each name, and those with its twin alone where no other is there.

    With ``both`` the twin's count beside the name's own; names that none has are left out.
    """
    found: dict[SymbolText, set[str]] = {}
    asked = 0
    for symbol in names:
        name = symbol.name or ""
        life = set(atlas.releases_of(name, machine))
        if (both or not life) and asked < _MOST_TWINS and _flavour([symbol]) is not None:
            asked += 1
            twin = atlas.twin(name, machine)
            life |= set(twin.releases) if twin is not None else set()
        if life:
            found[symbol] = life
    return found


def _flavour(names: list[SymbolText]) -> str | None:
    """The std::string flavour that all names with one show; None for none, and for both."""
    shown = set()
    for symbol in names:
        if mentions_cxx11(symbol.name or "", symbol.demangled):
            shown.add("cxx11")
        elif mentions_old_string(symbol.demangled):
            shown.add("pre-cxx11")
    return shown.pop() if len(shown) == 1 else None


def _flavour_first(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """A name whose twin is known tells the flavour, where another could be of an older torch too.

    Both miss for one reason, and the one with the twin shows it.
    """
    first = answers[0]
    old = mentions_old_string(first.demangled or "")
    if first.code != "FA201" or first.confidence == "high" or not old:
        return answers
    telling = [one for one in answers[1:] if one.direction == FLAVOUR]
    telling = [one for one in telling if mentions_old_string(one.demangled or "")]
    if not telling:
        return answers
    note = (
        f"{first.symbol} is missing too, and a torch of the cxx11 flavour lacks both: one cause "
        "fits for all."
    )
    head = replace(telling[0], notes=(note, *telling[0].notes))
    return (head, *(one for one in answers if one is not telling[0] and one is not first))


def _says_the_same(first: Answer, other: Answer, found: dict[SymbolText, set[str]]) -> bool:
    """Whether an answer on another of the counted names has nothing to add."""
    counted = any(symbol.name == other.symbol for symbol in found)
    return counted and (first.kind, first.direction) == (other.kind, other.direction)


def _torch_names(paste: Paste, first: Answer) -> list[SymbolText]:
    """The names of torch that one file misses: those that the text tells of no other file."""
    found: dict[str, SymbolText] = {}
    mentions = paste.mentions[:_MOST_NAMES]
    files = (_base(mention) for mention in mentions if mention.symbol == first.symbol)
    own = next((file for file in files if file), "")
    for mention in mentions:
        undefined = mention.detail.get("sort", "undefined") == "undefined"
        symbol = parse_symbol(mention.symbol) if mention.symbol and undefined else None
        name = symbol.name or "" if symbol is not None else ""
        if symbol is None or not name.startswith("_Z"):
            continue
        if own and _base(mention) not in ("", own):
            continue
        if is_torch(owner_of(name, symbol.version, symbol.demangled)):
            found.setdefault(name, symbol)
    return list(found.values())


def _base(mention: Mention) -> str:
    return (mention.file or "").rsplit("/", 1)[-1]
