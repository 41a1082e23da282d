"""A symbol whose name stands in another line than the words "undefined symbol"."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fa_forensics.facts.paste.lines import Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.tools import bare_symbols
from fa_forensics.patterns import lazily

#: Longer texts (characters) are logs, whose names may be of anything.
_SHORT = 8_000
#: A function of torch with its parameters, as people quote it: ``c10::f(char const*, int)``.
_READABLE = lazily(
    r"(?<![\w:])(?P<name>(?:c10|at|torch|caffe2|c10d)::(?:[A-Za-z_~]\w{0,80}::){0,6}"
    r"[A-Za-z_~]\w{0,80}\((?P<types>[^()`\n;=]{1,400})\)(?: const)?)"
)
#: A parameter is a type: one of the builtin ones, of a namespace, or a pointer or reference.
_TYPES = lazily(
    r"\b(?:const|u?int(?:\d{1,2}_t)?|bool|char|long|short|float|double|void)\b|::|[\w>] ?[&*]"
)
#: Words of a line that speaks of a name that one side has and another one lacks.
_SPOKEN = lazily(
    r"\b(?:imports?|exports?|exported|undefined|unresolved|(?:is|was|are) (?:gone|missing|removed)"
    r"|missing(?=:| symbol| from| [`'\"]{0,3}(?:c10|at|torch|caffe2|c10d)::)|lacks?|lacking"
    r"|no longer|symbols?(?! (?:table|page)))\b",
    re.IGNORECASE,
)
#: What a compiler says of a name, and a name that is there: neither is one that is missing.
_NOT_MISSING = lazily(
    r"\b(?:no matching function|candidate|error C\d{4}|documentation|docs|is there|is present"
    r"|is fine|exists|is found)\b|\?\s{0,3}\Z",
    re.IGNORECASE,
)
#: Before the name that a file wants, where the one that torch has instead stands beside it.
_WANTED = lazily(
    r"\b(?:imports?|wants?|needs?|lacks?|misses|missing|requires?|undefined symbol:?|looks for)"
    r" (?:the )?[`'\"]{0,3}\Z",
    re.IGNORECASE,
)


def named_elsewhere(found: Sequence[Mention], source: Source) -> list[Mention]:
    """The mentions, with the name that a short text has away from "undefined symbol".

    Only where no mention has a name, and the text has one alone; of several, all are listed.
    """
    if len(source.text) > _SHORT or any(m.symbol for m in found):
        return list(found)
    named = [*itertools.islice(bare_symbols(source), 4)] or [*readable_alone(source, spoken=False)]
    if not named or len(named) > 3:
        return list(found)
    if len(named) > 1:
        return [*(m for m in found if m.what != "undefined-symbol" or m.file), *named]
    one = named[0]
    return [
        replace(
            mention,
            symbol=one.symbol,
            version=one.version,
            detail={
                key: text
                for key, text in {**mention.detail, **one.detail}.items()
                if key != "prose"
            },
        )
        if mention.what == "undefined-symbol"
        else mention
        for mention in found
    ]


def readable_alone(source: Source, *, spoken: bool = True) -> Iterator[Mention]:
    """The only function of torch that a short text writes out; ``spoken`` of as a symbol."""
    if len(source.text) > _SHORT:
        return
    found = {
        match["name"]: match
        for match in itertools.islice(_READABLE.finditer(source.text), 20)
        if _TYPES.search(match["types"])
    }
    wanted = [
        match
        for match in found.values()
        if _WANTED.search(source.text[max(0, match.start() - 60) : match.start()])
    ]
    if len(wanted) == 1:
        found = {wanted[0]["name"]: wanted[0]}
    if len(found) != 1:
        return
    name, match = next(iter(found.items()))
    line = source.line_at(match.start())
    if _NOT_MISSING.search(line.body) and not wanted:
        return
    if not spoken or _SPOKEN.search(line.body):
        at = max(0, line.body.find(name))
        yield line.mention("bare-symbol", at, symbol=name, detail={"written": "yes"})
