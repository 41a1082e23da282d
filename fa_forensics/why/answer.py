"""From what was pasted to answers: symbols one by one, a text by the first cause in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fa_forensics import __version__
from fa_forensics.errors import UsageError
from fa_forensics.facts.symbol_text import SymbolText, parse_symbol
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer, WhyReport
from fa_forensics.views import environment_view
from fa_forensics.why.place import Place, named_place, open_place
from fa_forensics.why.symbol import symbol_answer
from fa_forensics.why.tables import Tables
from fa_forensics.why.words import as_word, is_word

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste
    from fa_forensics.report import JudgedTorch

#: What is longer than this is no symbol (characters).
_LONGEST = 1 << 16

#: One name and nothing else, as the linker spells it, with its version or without.
_ONE_NAME = lazily(r"\s*['\"`]?[A-Za-z_][\w.$]*(@@?[\w.+-]+)?['\"`]?\s*")

#: Names of error codes, which look like functions' and which no library exports.
_ERROR_CODE = lazily(
    r"[A-Z][A-Z0-9]*_(?:ERROR|STATUS)_\w+|(?:cuda|hip)Error[A-Z]\w*"
    r"|nccl(?:\w*Error|InvalidUsage|InvalidArgument)"
)


def explain(
    texts: Sequence[str],
    python: str | None,
    environ: Mapping[str, str] | None = None,
    torch: str | None = None,
    where: str | None = None,
) -> WhyReport:
    """Explain symbols, or one pasted text, in an environment or as if a torch were there.

    Several ``texts`` are several symbols, or one text whose quotes were forgotten. With
    ``torch`` (a release such as "2.9.1") no environment is looked through; ``python`` then
    only says which Python the commands are for. ``where`` is "here" or "elsewhere": whether
    a pasted text is of this environment; None lets the text decide. Raises ``UsageError``
    when one of several texts is no symbol name, or ``torch`` is no release;
    ``EnvironmentNotFound`` as ``find_environment`` does.
    """
    symbols, paste = _asked(texts)
    tables = Tables()
    note = None
    if torch is not None:
        place = named_place(torch, python, environ, tables)
    else:
        place = open_place(python, environ)
    try:
        if paste is None:
            answers = _by_name(symbols, place, tables)
        else:
            # Only for texts: the readers of texts cost more to load than one symbol to answer.
            from fa_forensics.why.whereabouts import judge_text

            place, answers, note = judge_text(paste, place, tables, where, torch is not None)
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
        note,
    )


def _by_name(symbols: Sequence[SymbolText], place: Place, tables: Tables) -> tuple[Answer, ...]:
    """The answers to names that stand alone."""
    return tuple(as_word(symbol, symbol_answer(symbol, place, tables)) for symbol in symbols)


def _asked(texts: Sequence[str]) -> tuple[tuple[SymbolText, ...], Paste | None]:
    """(symbols, None) or ((), the text): what was pasted."""
    single = len(texts) == 1
    names = [_one_name(text) for text in texts]
    if all(names) and not (names[1:] and all(name and is_word(name) for name in names)):
        return tuple(name for name in names if name is not None), None
    from fa_forensics.facts.paste import Paste, read_paste

    paste = read_paste(" ".join(texts))
    if single and _is_code(texts[0]):
        return (), paste if any(m.what != "bare-symbol" for m in paste.mentions) else Paste()
    if single and not paste.mentions and "\n" in texts[0].strip():
        return (), paste
    told = single and bool(paste.mentions) and "torch" in paste.versions
    if told or any(mention.what != "bare-symbol" for mention in paste.mentions):
        return (), paste
    symbols = [_parsed(text, single) for text in texts]
    known = tuple(symbol for symbol in symbols if symbol is not None)
    return (known, None) if len(known) == len(texts) else ((), paste)


def _one_name(text: str) -> SymbolText | None:
    whole = len(text) <= _LONGEST and _ONE_NAME.fullmatch(text) is not None
    return parse_symbol(text) if whole and not _is_code(text) else None


def _is_code(text: str) -> bool:
    """Whether a text is the name of an error code alone: ``CUDA_ERROR_NO_BINARY_FOR_GPU``."""
    return len(text) < 200 and _ERROR_CODE.fullmatch(text.strip(" \t\n'\"`")) is not None


def _parsed(text: str, single: bool) -> SymbolText | None:
    symbol = parse_symbol(text) if len(text) <= _LONGEST else None
    if symbol is None and not single:
        raise UsageError(
            f"{text[:200]!r} is no symbol name",
            "several arguments are several symbols; give a text as one argument in quotes, or on "
            "standard input",
        )
    return symbol


def _judged(place: Place) -> JudgedTorch | None:
    if place.requested is None:
        return None
    from fa_forensics.report import JudgedTorch

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
    if answer.kind == "unrecognised" or answer.source_line is not None:
        return True  # what it says, it says of the text
    known = answer.exported_by or any(other.exported_by for other in answer.overloads)
    return answer.looked_here or (answer.releases_looked_up and bool(known))
