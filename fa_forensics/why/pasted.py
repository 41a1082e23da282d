"""From a pasted text to answers: its first cause, and the causes that are independent of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fa_forensics.report import Answer
from fa_forensics.why.place import Place
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.tables import Tables

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Answers to one text; who pastes more wants the first few.
MOST_ANSWERS = 5


def answerers() -> Mapping[str, Answerer]:
    """Who answers what: a module's table for each of its words in ``Mention.what``."""
    from fa_forensics.why import (
        api_change,
        banner_text,
        build_text,
        call_text,
        driver_text,
        file_text,
        gpu_text,
        library_text,
        python_text,
        symbol_text,
        toolchain_text,
    )

    modules = (
        api_change,
        banner_text,
        build_text,
        call_text,
        driver_text,
        file_text,
        gpu_text,
        python_text,
        toolchain_text,
        symbol_text,
        library_text,
    )
    return {what: answerer for module in modules for what, answerer in module.ANSWERERS.items()}


def paste_answers(
    paste: Paste, place: Place, tables: Tables, elsewhere: bool
) -> tuple[Answer, ...]:
    """The answers to a text, the first cause first; one "unrecognised" where nothing is known."""
    table = answerers()
    found: list[Answer] = []
    for mention in paste.mentions:
        answerer = table.get(mention.what)
        if answerer is None:
            continue
        answer = answerer(Seen(mention, paste, place, tables, elsewhere))
        if not any(_same(answer, other) for other in found):
            found.append(answer)
        if len(found) == MOST_ANSWERS:
            break
    return tuple(found) or (nothing_recognised(),)


def _same(one: Answer, other: Answer) -> bool:
    """Whether two answers say the same thing."""
    return (one.kind, one.symbol, one.cause) == (other.kind, other.symbol, other.cause)


def nothing_recognised() -> Answer:
    """The answer to a text in which nothing is known; it names the lines that would be."""
    return Answer(
        kind="unrecognised",
        code="FA899",
        symbol=None,
        demangled=None,
        owner=None,
        provider=None,
        cause=(
            "Nothing in this text is recognised. Paste the line that contains "
            '"undefined symbol", "cannot open shared object file", "version ... not found", '
            '"CUDA error" or the last line of the traceback, best with all lines before it.'
        ),
        confidence="high",
        help=("fa-forensics inspect FILE_OR_PACKAGE",),
        looked_here=False,
        releases_looked_up=False,
    )
