"""How a sort of failure is found in a text: the words that give it away, and who reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.unescape import plainly
from fa_forensics.facts.tables import read_table
from fa_forensics.records import dataclass

#: No more failures than this are read from one line.
PER_LINE = 8
_FIELDS = ("symbol", "version", "library", "file")


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of a line's body (from ``start`` up to ``end``) and what it tells of."""

    start: int
    end: int
    mention: Mention


Reader = Callable[[Line], Iterable[Claim]]
Build = Callable[[Line, "re.Match[str]"], "Mention | Claim | None"]


@dataclass(frozen=True, slots=True)
class Recogniser:
    """``signs`` are lower-case texts, one of which is on every line that ``read`` can read."""

    signs: tuple[str, ...]
    read: Reader


def by_pattern(signs: Iterable[str], pattern: str, build: Build) -> Recogniser:
    """Claims for each match of a pattern; where ``build`` returns None there is none.

    Patterns are searched in windows of up to 10,000 characters of anybody's text: they begin
    with a literal, and what they repeat is bounded.
    """

    @cache
    def compiled() -> re.Pattern[str]:
        """At first use: most texts have the signs of a few of the patterns."""
        return re.compile(pattern, re.IGNORECASE)

    def read(line: Line) -> Iterator[Claim]:
        for count, match in enumerate(compiled().finditer(line.body)):
            if count >= PER_LINE:
                return
            built = build(line, match)
            if isinstance(built, Mention):
                built = Claim(match.start(), match.end(), built)
            if built is not None:
                yield built

    return Recogniser(tuple(signs), read)


def plain(what: str, signs: Iterable[str], pattern: str, **fixed: str) -> Recogniser:
    """A failure whose named groups say all: ``symbol``, ``version`` … and else its details."""

    def build(line: Line, match: re.Match[str]) -> Mention:
        groups = {key: text.strip() for key, text in match.groupdict().items() if text}
        named = {key: groups.pop(key) for key in _FIELDS if key in groups}
        detail = {**{key: text for key, text in fixed.items()}, **groups}
        return line.mention(what, match.start(), detail=detail, **named)

    return by_pattern(signs, pattern, build)


def by_words(phrases: Iterable[str], rest: str, build: Build) -> Recogniser:
    """As ``by_pattern``, for any of several small-letter phrases with ``rest`` behind it.

    Phrases in many languages are found faster one by one than as alternatives of a pattern.
    """
    signs = tuple(dict.fromkeys(phrases))

    @cache
    def compiled(sign: str) -> re.Pattern[str]:
        return re.compile(re.escape(sign) + rest, re.IGNORECASE)

    def read(line: Line) -> Iterator[Claim]:
        for sign in signs:
            at, count = line.lower.find(sign), 0
            while at >= 0 and count < PER_LINE:
                match = compiled(sign).match(line.body, at)
                built = build(line, match) if match is not None else None
                if isinstance(built, Mention) and match is not None:
                    built = Claim(at, match.end(), built)
                if isinstance(built, Claim):
                    yield built
                at, count = line.lower.find(sign, at + len(sign)), count + 1

    return Recogniser(signs, read)


@lru_cache(maxsize=1)
def _languages() -> Mapping[str, Mapping[str, str]]:
    texts: Mapping[str, Mapping[str, str]] = read_table("loader_languages.json")["texts"]
    return texts


def in_every_language(phrase: str) -> tuple[str, ...]:
    """A message of the C library as systems in other languages print it, in small letters."""
    others = _languages().get(phrase, {}).values()
    return tuple(dict.fromkeys(plainly(text).lower() for text in (phrase, *others)))
