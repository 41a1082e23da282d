"""The std::string flavour (``_GLIBCXX_USE_CXX11_ABI``) that an extension expects of torch.

Judged on torch-owned undefined names alone: an extension full of ``std::__cxx11`` names
from libstdc++ says nothing about torch, since libstdc++ exports both flavours.
"""

from __future__ import annotations

from collections.abc import Iterable

from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string
from fa_forensics.facts.owner import is_torch
from fa_forensics.records import dataclass

CXX11 = "cxx11"
PRE_CXX11 = "pre-cxx11"
NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, slots=True)
class Flavour:
    """The flavour and the symbols that show it: mangled names, in table order.

    ``mixed`` is true when torch-owned names of both flavours occur, which no single
    torch can serve; ``value`` is then the more frequent one.
    """

    value: str
    cxx11_symbols: tuple[str, ...]
    old_symbols: tuple[str, ...]

    @property
    def mixed(self) -> bool:
        """Whether names of both flavours occur."""
        return bool(self.cxx11_symbols and self.old_symbols)

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The symbols that show the flavour in ``value``."""
        return self.cxx11_symbols if self.value == CXX11 else self.old_symbols


def flavour_of(symbols: Iterable[tuple[str, str, str]]) -> Flavour:
    """The flavour of an extension from (mangled, demangled, owner) of its undefined names."""
    new: list[str] = []
    old: list[str] = []
    for name, demangled, owner in symbols:
        if not is_torch(owner):
            continue
        if mentions_cxx11(name, demangled):
            new.append(name)
        elif mentions_old_string(demangled):
            old.append(name)
    value = NOT_APPLICABLE
    if new or old:
        value = CXX11 if len(new) >= len(old) else PRE_CXX11
    return Flavour(value, tuple(new), tuple(old))
