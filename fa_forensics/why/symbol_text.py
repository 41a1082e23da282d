"""Answers to mentions of a symbol: undefined in the loader's, the linker's or a tool's words."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.facts.symbol_text import SymbolText, parse_symbol
from fa_forensics.report import Answer
from fa_forensics.why.cut import cut_answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.signs import with_signs
from fa_forensics.why.symbol import symbol_answer


def undefined_symbol(seen: Seen) -> Answer:
    """A symbol that the loader did not find."""
    symbol = _symbol(seen)
    if symbol is None:
        return cut_answer(seen)
    answer = symbol_answer(symbol, seen.place, seen.tables, seen.mention.file)
    answer = replace(answer, source_line=seen.mention.line or None)
    return with_signs(answer, seen)


def _symbol(seen: Seen) -> SymbolText | None:
    """The symbol as it was meant; None where it is cut off or none."""
    text = seen.mention.symbol or ""
    symbol = parse_symbol(text)
    if symbol is not None and seen.mention.version is not None:
        symbol = replace(symbol, version=seen.mention.version)
    return symbol


ANSWERERS: dict[str, Answerer] = {
    "undefined-symbol": undefined_symbol,
    "bare-symbol": undefined_symbol,
    "symbol-not-found-macho": undefined_symbol,
}
