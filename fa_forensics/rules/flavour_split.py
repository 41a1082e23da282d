"""Missing torch symbols, split by cause: the other std::string flavour, or another release."""

from __future__ import annotations

from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string
from fa_forensics.facts.flavour import CXX11, PRE_CXX11
from fa_forensics.facts.owner import is_torch
from fa_forensics.records import dataclass
from fa_forensics.resolve.explain import Missing
from fa_forensics.resolve.nearest import OTHER_FLAVOUR
from fa_forensics.rules.base import Context


@dataclass(frozen=True, slots=True)
class FlavourSplit:
    """``other_flavour`` differs from torch only by std::string; ``drifted`` is all else."""

    other_flavour: tuple[Missing, ...]
    drifted: tuple[Missing, ...]


def symbol_flavour(item: Missing) -> str | None:
    """The std::string flavour that one symbol shows, or None when it carries no string."""
    if mentions_cxx11(item.binding.symbol, item.demangled):
        return CXX11
    return PRE_CXX11 if mentions_old_string(item.demangled) else None


def split_by_flavour(ctx: Context) -> FlavourSplit:
    """Split the missing torch symbols that are causes, in the loader's order.

    A symbol of the other flavour whose twin was looked for and not found has drifted as
    well; where no twin was looked for, the flavour alone explains it.
    """
    if ctx.resolution is not None and ctx.resolution.torch_misses:
        return FlavourSplit((), ())  # what a broken torch does not export says nothing
    torch = ctx.environment.torch if ctx.environment else None
    torch_flavour = torch.cxx11_abi if torch else "unknown"
    other: list[Missing] = []
    drifted: list[Missing] = []
    for item in ctx.causes:
        if not is_torch(item.owner):
            continue
        flavour = symbol_flavour(item)
        differs = (
            flavour is not None
            and torch_flavour in (CXX11, PRE_CXX11)
            and (flavour != torch_flavour)
        )
        twin = any(near.relation == OTHER_FLAVOUR for near in item.nearest)
        if twin or (differs and not item.nearest_sought):
            other.append(item)
        else:
            drifted.append(item)
    return FlavourSplit(tuple(other), tuple(drifted))
