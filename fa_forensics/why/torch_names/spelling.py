"""Readable names as people write them, compared with names as the demangler does."""

from __future__ import annotations

from fa_forensics.facts.demangle import readable
from fa_forensics.facts.symbol_text import SymbolText, mangled_scope, mangled_special

_OLD_STRING = "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"


def same_text(one: str, other: str) -> bool:
    """Whether two readable names are one, blanks and the spelling of std::string aside."""
    return _plain(one) == _plain(other)


def could_be_spelt(symbol: SymbolText) -> bool:
    """Whether the mangled form of a readable name is known well enough to look for it."""
    return (
        mangled_special(symbol.demangled) is not None or mangled_scope(symbol.demangled) is not None
    )


def _plain(demangled: str) -> str:
    return readable(demangled).replace(_OLD_STRING, "std::string").replace(" ", "")
