"""The answer for one symbol: look here, look in the history, judge, say what to type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.dependents import files_that_need
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.symbol_text import SymbolText, mangled_special, parse_symbol
from fa_forensics.report_why import Answer
from fa_forensics.resolve.nearest import Near
from fa_forensics.why.other_names.other import other_answer
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.misread import could_be_misread, read_again
from fa_forensics.why.torch_names.spelling import could_be_spelt, same_text
from fa_forensics.why.torch_names.torch_name import torch_answer


def symbol_answer(
    symbol: SymbolText, place: Place, tables: Tables, file: str | None = None
) -> Answer:
    """Explain one symbol in a place. ``file`` is the one that needs it, as far as it is known."""
    answer = _one_answer(symbol, place, tables, file)
    made = _constructor(symbol)
    if made is None or answer.exported_by or answer.overloads or not is_torch(answer.owner or ""):
        return answer
    of_class = _one_answer(made, place, tables, file)
    return of_class if of_class.exported_by or of_class.overloads else answer


def _constructor(symbol: SymbolText) -> SymbolText | None:
    """What people mean by a class alone, ``c10::ValueError``; None for all other names."""
    scope, bracket, rest = symbol.demangled.partition("(")
    last = scope.rpartition("::")[2]
    if symbol.name or "::" not in scope or not last[:1].isupper():
        return None
    return parse_symbol(f"{scope}::{last}{bracket}{rest}")


def _one_answer(symbol: SymbolText, place: Place, tables: Tables, file: str | None) -> Answer:
    meant = _misread(symbol, place, tables)
    if meant is not None:
        return misspelt(symbol_answer(meant, place, tables, file))
    symbol = _with_its_underscores(symbol)
    owner = owner_of(symbol.name or "_Z", symbol.version, symbol.demangled)
    name, provider, near = _look_here(symbol, place, owner)
    needed_by = _needed_by(name, place, file)
    if is_torch(owner):
        answer = torch_answer(symbol, name, owner, provider, near, place, tables, needed_by)
    else:
        answer = other_answer(symbol, name, owner, provider, place, tables, needed_by)
    notes = [*answer.notes]
    if file is None:
        notes += [f"Needed by {path}." for path in needed_by[:5]]
    if not place.looked(owner) and place.problem:
        notes.append(f"Nothing was looked up here: {place.problem}.")
    notes += tables.problems
    looked = place.looked(owner) and (symbol.name is not None or could_be_spelt(symbol))
    return replace(answer, notes=tuple(notes), looked_here=looked)


def _misread(symbol: SymbolText, place: Place, tables: Tables) -> SymbolText | None:
    """The name of torch that one means which no torch has, by signs that look alike."""
    name = symbol.name or ""
    if not could_be_misread(name) or place.provider(name, symbol.version) is not None:
        return None
    atlas = tables.ages
    if atlas is None or atlas.releases_of(name, place.machine) or not tables.may_repair():
        return None
    meant = read_again(name, atlas, place.machine)
    return None if meant is None else parse_symbol(meant)


def misspelt(answer: Answer) -> Answer:
    """The answer for the name that was meant by another one."""
    note = (
        "The name in the text is misspelt; names of torch that are nearly alike show what was "
        f"meant: {answer.symbol}."
    )
    confidence = "medium" if answer.confidence == "high" else answer.confidence
    return replace(answer, confidence=confidence, notes=(note, *answer.notes))


def _needed_by(name: str, place: Place, file: str | None) -> Sequence[str]:
    """The files that have the name among what they need: the one that is known, else those here."""
    if file is not None:
        return (file,)
    environment = place.environment
    if not name or environment is None or place.linker is None:
        return ()
    return files_that_need(name, environment.site_dirs)


def _with_its_underscores(symbol: SymbolText) -> SymbolText:
    """nvJitLink's names begin with two underscores, of which messages drop one or both."""
    bare = (symbol.name or "").lstrip("_")
    if bare.startswith("nvJitLink") and re.search(r"_\d+_\d+$", bare):
        return replace(symbol, name=f"__{bare}", demangled=f"__{bare}")
    return symbol


def _look_here(
    symbol: SymbolText, place: Place, owner: str
) -> tuple[str, str | None, tuple[Near, ...]]:
    """(the linker's name or "", who exports it here, what stands near it here)."""
    name = symbol.name or mangled_special(symbol.demangled) or ""
    near: tuple[Near, ...] = ()
    if not name:
        near = place.near("", symbol.demangled, owner)
        exact = next((n for n in near if same_text(n.demangled, symbol.demangled)), None)
        name = exact.symbol if exact is not None else ""
    provider = place.provider(name, symbol.version)
    if provider is None and not near and is_torch(owner):
        near = place.near(name, symbol.demangled, owner)
    return name, provider, near
