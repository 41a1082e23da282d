"""From pasted symbols to answers: look here, look in the history, judge, say what to type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fa_forensics import __version__
from fa_forensics.errors import UsageError
from fa_forensics.facts.dependents import files_that_need
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.symbol_text import SymbolText, mangled_special, parse_symbol
from fa_forensics.report import Answer, JudgedTorch, WhyReport
from fa_forensics.resolve.nearest import Near
from fa_forensics.views import environment_view
from fa_forensics.why.other import other_answer
from fa_forensics.why.place import Place, named_place, open_place
from fa_forensics.why.spelling import could_be_spelt, same_text
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_name import torch_answer


def explain(
    texts: Sequence[str],
    python: str | None,
    environ: Mapping[str, str] | None = None,
    torch: str | None = None,
) -> WhyReport:
    """Explain symbols in an environment, or as if the torch of a release were there.

    With ``torch`` (a release such as "2.9.1") no environment is looked through; ``python``
    then only says which Python the commands are for. Raises ``UsageError`` when a text is
    no symbol name or no release, ``EnvironmentNotFound`` as ``find_environment`` does.
    """
    symbols = [_parsed(text) for text in texts]
    tables = Tables()
    if torch is None:
        place = open_place(python, environ)
    else:
        place = named_place(torch, python, environ, tables)
    try:
        answers = tuple(_answer(symbol, place, tables) for symbol in symbols)
    finally:
        place.close()
    environment = place.environment
    unanswered = place.problem is not None and not all(map(_is_answered, answers))
    return WhyReport(
        __version__,
        None if environment is None else environment_view(environment),
        answers,
        place.problem if unanswered else None,
        _judged(place),
    )


def _judged(place: Place) -> JudgedTorch | None:
    if place.requested is None:
        return None
    torch = place.requested
    return JudgedTorch(
        torch.request.text,
        torch.version,
        torch.release,
        torch.cuda,
        torch.flavour,
        "table",
        torch.note,
    )


def _is_answered(answer: Answer) -> bool:
    """Whether an answer stands by itself: from what is here, or from the history of the name."""
    known = answer.exported_by or any(other.exported_by for other in answer.overloads)
    return answer.looked_here or (answer.releases_looked_up and bool(known))


def _parsed(text: str) -> SymbolText:
    symbol = parse_symbol(text)
    if symbol is None:
        raise UsageError(
            f"{text[:200]!r} is no symbol name",
            'paste the name that follows "undefined symbol:" in the error, whole; for an error '
            "without a symbol, inspect the file itself: fa-forensics inspect FILE_OR_PACKAGE",
        )
    return symbol


def _answer(symbol: SymbolText, place: Place, tables: Tables) -> Answer:
    symbol = _with_its_underscores(symbol)
    owner = owner_of(symbol.name or "_Z", symbol.version, symbol.demangled)
    name, provider, near = _look_here(symbol, place, owner)
    environment = place.environment
    needed_by: list[str] = []
    if name and environment is not None and place.linker is not None:
        needed_by = files_that_need(name, environment.site_dirs)
    if is_torch(owner):
        answer = torch_answer(symbol, name, owner, provider, near, place, tables, needed_by)
    else:
        answer = other_answer(symbol, name, owner, provider, place, tables, needed_by)
    notes = [*answer.notes, *(f"Needed by {path}." for path in needed_by[:5])]
    if not place.looked(owner) and place.problem:
        notes.append(f"Nothing was looked up here: {place.problem}.")
    notes += tables.problems
    looked = place.looked(owner) and (symbol.name is not None or could_be_spelt(symbol))
    return replace(answer, notes=tuple(notes), looked_here=looked)


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
