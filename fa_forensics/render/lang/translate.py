"""Our own English sentences in Chinese, by a table of templates: ``data/zh.json``.

A template is a sentence with numbered gaps: ``{1} exports nothing of that name``. A gap takes
any text; what stands in it is translated where it is itself in the table, else kept. A gap that
is written ``{1!}`` takes only what is in the table: such templates say little by themselves. One
that begins with a blank or a comma is the end of a sentence, after a beginning with a template
of its own. What has no template stays English: a half understood sentence would say less.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

_TABLE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data", "zh.json"
)
_GAP = re.compile(r"\{(\d!?)\}")
#: Where a text is divided into sentences: a stop and a blank.
_STOP = re.compile(r"(?<=\.) (?=\S)")
#: How many sentences one template can be; how deep gaps are translated within gaps; how long
#: a text is looked at, in characters.
_LONGEST, _DEPTH, _MOST = 6, 5, 6000
#: In how many places the end of a sentence is looked for, and in how many clauses.
_PLACES, _CLAUSES = 8, 24
#: How many parts of one text are looked up; a text of ours has some hundred at most.
_ROOM = 300
#: How a text is held against the templates: a whole one without a clause in its gaps, a
#: beginning and an end, any whole one.
_STRICTLY, _IN_PARTS, _LENIENTLY = range(3)
#: Templates are looked up by so many of their first characters, where those are literal.
_KEY = 6
#: Marks of the width of a Chinese character.
_MARKS = "\u3001\u3002\uff0c\uff1a\uff1b\uff08\uff09\u300a\u300b\u201c\u201d"
#: Words that stand in no name; texts in which they count for nothing.
_WORDS = re.compile(
    r"(?<![\w./-])(?:[Tt]he|an?|is|are|was|were|has|have|that|which|its?|of|not|no|with|for|from|by|needs"
    r"|only|than|this|but|did|does|runs|takes|supports|lies|up)(?![\w/-]|\.\w)"
)
#: A clause of its own inside a gap.
_CLAUSE = re.compile(r"; |, (?:so|and|but|which|the) ")
_QUOTED = re.compile(r'"[^"]*"|`[^`]*`|\S*\([^()]*\)|\S*/\S*')
#: A list of names, without other words.
_LIST = re.compile(r"[^\s,]+(?:, [^\s,]+)* (and|or) [^\s,]+")


class Template(NamedTuple):
    """The literal parts around the gaps, the gaps' names as they are written, the translation."""

    literals: tuple[str, ...]
    gaps: tuple[str, ...]
    chinese: str

    def match(self, text: str, longest: bool = False) -> dict[str, str] | None:
        """What stands in the gaps, each as short as can be (``longest``: as long), or None."""
        first, last = self.literals[0], self.literals[-1]
        if not self.gaps:
            return {} if text == first else None
        if not (text.startswith(first) and text.endswith(last)):
            return None
        found: dict[str, str] = {}
        at, end = len(first), len(text) - len(last)
        for name, literal in zip(self.gaps[:-1], self.literals[1:-1], strict=True):
            stop = text.rfind(literal, at, end) if longest else text.find(literal, at, end)
            if stop < 0:
                return None
            found[name] = text[at:stop]
            at = stop + len(literal)
        if at > end:
            return None
        found[self.gaps[-1]] = text[at:end]
        return found


def parse_template(english: str, chinese: str) -> Template:
    """A row of the table. Raises ``ValueError`` for a gap that only one side has, or has twice."""
    parts = _GAP.split(english)
    gaps = tuple(parts[1::2])
    names = [gap.rstrip("!") for gap in gaps]
    if len(set(names)) != len(names) or not set(_GAP.findall(chinese)) <= set(names):
        raise ValueError(f"the gaps of {english!r} and its translation do not agree")
    if "" in parts[2:-1:2]:
        raise ValueError(f"nothing divides two gaps of {english!r}")
    return Template(tuple(parts[0::2]), gaps, chinese)


#: A row of the table as it was read: the English, the Chinese.
_Row = Sequence[str]
#: A template that a text fits, and what then stands in its gaps.
_Fit = tuple[Template, Mapping[str, str]]


class Words:
    """The table: short words by their English, sentences by what tells one from the others."""

    def __init__(
        self,
        labels: Mapping[str, str],
        begun: Mapping[str, Sequence[_Row]],
        probes: Sequence[tuple[str, _Row]],
        ends: Sequence[tuple[str, _Row]],
    ) -> None:
        """``begun`` has the templates by their first characters.

        ``probes`` are those that begin with a gap and ``ends`` the ends of sentences, each
        with its longest literal part.
        """
        self._labels, self._begun, self._probes, self._ends = labels, begun, probes, ends
        self._said: dict[str, str] = {}
        self._parts: dict[str, str | None] = {}
        self._room = 0

    def say(self, text: str) -> str:
        """A label, or a text of one or more sentences; what has no template stays as it is."""
        if text not in self._said:
            self._room = _ROOM
            said = self._sentences(text, 0) if text and len(text) <= _MOST else text
            self._said[text] = said if said == text else _tidy(said)
        return self._said[text]

    def _sentences(self, text: str, depth: int) -> str:
        whole = self._whole(text, depth)
        if whole is not None:
            return whole
        parts = _STOP.split(text)
        out = ""
        while parts:
            for size in range(min(len(parts), _LONGEST), 0, -1):
                whole = self._whole(" ".join(parts[:size]), depth)
                if whole is not None:
                    break
            else:
                whole, size = parts[0], 1
            out += (" " if out and not out.endswith("\u3002") else "") + whole
            parts = parts[size:]
        return out

    def _whole(self, text: str, depth: int) -> str | None:
        """The translation of one sentence or part of one, or None."""
        if text not in self._parts:
            self._room -= 1
            if self._room < 0:
                return None
            self._parts[text] = None  # where it leads back to itself
            said = self._looked_up(text, depth)
            if said is None and self._room < 0:
                del self._parts[text]  # not looked through
                return None
            self._parts[text] = said
        return self._parts[text]

    def _looked_up(self, text: str, depth: int) -> str | None:
        spellings = [text[:-1], text] if text.endswith(".") else [text]
        if text[:1].isupper() and text[1:2].islower():
            spellings += [text[0].lower() + spelt[1:] for spelt in spellings]
        # A gap that swallows a clause counts only where nothing else fits.
        fitting = [(spelt, self._fitting(spelt)) for spelt in spellings]
        for way in (_STRICTLY, _IN_PARTS, _LENIENTLY):
            for spelt, rows in fitting:
                if way == _IN_PARTS:
                    found = self._joined(spelt, depth) if depth < _DEPTH else None
                else:
                    found = self._matched(spelt, rows, depth, way == _STRICTLY)
                if found is not None:
                    lost = spelt[-1:] != text[-1:]  # the stop
                    return found.rstrip("\u3002") + "\u3002" if lost else found
        return None

    def _fitting(self, text: str) -> list[_Fit]:
        """The templates that a text fits, and what then stands in their gaps."""
        rows = list(self._begun.get(text[:_KEY], ()))
        rows += [row for probe, row in self._probes if probe in text]
        out: list[_Fit] = []
        for row in rows:
            template = _parsed(row[0], row[1])
            # The stop belongs to the sentence, not to the last gap of it.
            if template.literals[-1] == "" and text.endswith("."):
                continue
            found = template.match(text)
            if found is not None:
                out.append((template, found))
            longer = template.match(text, longest=True) if len(template.gaps) > 1 else None
            if longer is not None and longer != found:
                out.append((template, longer))
        return out

    def _matched(
        self,
        text: str,
        fitting: Sequence[_Fit],
        depth: int,
        strict: bool,
    ) -> str | None:
        if text in self._labels:
            return self._labels[text]
        for template, found in fitting:
            if strict and any(map(_CLAUSE.search, found.values())):
                continue
            said = self._filled(template, found, depth)
            if said is not None:
                return said
        return None

    def _joined(self, text: str, depth: int) -> str | None:
        """A beginning and an end that have templates, or several clauses that all have."""
        for row in [row for probe, row in self._ends if probe in text]:
            template = _parsed(row[0], row[1])
            at = 0
            for _ in range(_PLACES):
                at = text.find(template.literals[0], at + 1)
                if at < 0:
                    break
                found = template.match(text[at:])
                end = None if found is None else self._filled(template, found, depth)
                start = None if end is None else self._start(text[:at], depth + 1)
                if end is not None and start is not None:
                    return start + end
        for mark, chinese in (("; ", "\uff1b"), (", ", "\u3001")):
            clauses = text.split(mark)
            if 1 < len(clauses) <= _CLAUSES and all(map(_is_whole, clauses)):
                said = [self._whole(clause, depth + 1) for clause in clauses]
                both = [old if new is None else new for old, new in zip(clauses, said, strict=True)]
                if any(said) and not any(map(is_prose, both)):
                    return chinese.join(both)
        return None

    def _start(self, text: str, depth: int) -> str | None:
        """What stands before the end of a sentence: translated, or names alone."""
        said = self._whole(text, depth)
        if said is None:
            return None if is_prose(text) else text
        return said if text.endswith(".") else said.rstrip("\u3002")

    def _filled(self, template: Template, found: Mapping[str, str], depth: int) -> str | None:
        """The translation with its gaps filled; None where one holds words of no template."""
        translated = {}
        for number, (name, text) in enumerate(found.items()):
            quote = template.literals[number][-1:]
            quoted = quote in ('"', "`") and quote not in text
            said = text if quoted else self._gap(text, depth)
            unused = f"{{{name[0]}}}" not in template.chinese and " " not in text
            if not (quoted or unused) and (
                (name[-1] == "!" and said == text) or is_prose(said) or not _is_whole(text)
            ):
                return None
            translated[name.rstrip("!")] = said
        return _GAP.sub(lambda gap: _spaced(gap, translated[gap[1]]), template.chinese)

    def _gap(self, text: str, depth: int) -> str:
        if " " not in text or depth >= _DEPTH:
            return self._labels.get(text, text)
        names = _LIST.fullmatch(text)
        if names and self._whole(text, depth + 1) is None:
            word = "\u548c" if names[1] == "and" else "\u6216"
            return text.replace(f" {names[1]} ", f" {word} ").replace(", ", "\u3001")
        said = self._sentences(text, depth + 1)
        return said if text.endswith(".") else said.rstrip("\u3002")


def _spaced(gap: re.Match[str], text: str) -> str:
    """What stands in a gap, with a blank where its letters would touch Chinese ones."""
    before, after = gap.string[: gap.start()][-1:], gap.string[gap.end() :][:1]
    if before == " ":
        text = text.lstrip(" ")
    if _is_latin(text[:1]) and "\u4e00" <= before <= "\u9fff":
        text = " " + text
    if _is_latin(text[-1:]) and "\u4e00" <= after <= "\u9fff":
        text += " "
    return text


def _is_latin(char: str) -> bool:
    return char != "" and char.isascii() and (char.isalnum() or char in "_/`'\"()<>~*")


def _is_whole(text: str) -> bool:
    """Whether every bracket of a text closes in it."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def is_prose(text: str) -> bool:
    """Whether a text has English words that are no names, quotes or parameters."""
    return bool(_WORDS.search(text)) and bool(_WORDS.search(_QUOTED.sub("_", text)))


def _tidy(text: str) -> str:
    """Without the blanks that stand between two Chinese characters or beside Chinese marks."""
    out = ""
    for piece in text.split(" "):
        before, after = out[-1:], piece[:1]
        marked = (before and before in _MARKS) or (after and after in _MARKS)
        tight = marked or (_is_wide(before) and _is_wide(after))
        out += piece if tight or not out else f" {piece}"
    return out


def _is_wide(char: str) -> bool:
    return char != "" and (char in _MARKS or "\u4e00" <= char <= "\u9fff")


@cache
def chinese_words() -> Words:
    """The shipped table."""
    with open(_TABLE, encoding="utf-8") as file:
        table = json.load(file)
    return words_of(table["labels"], table["sentences"])


def words_of(labels: Mapping[str, str], sentences: Sequence[_Row]) -> Words:
    """A table from its rows; of several templates that fit, the one with more text counts."""
    begun: dict[str, list[_Row]] = {}
    probes: list[tuple[str, _Row]] = []
    ends: list[tuple[str, _Row]] = []
    rows = list(sentences)
    rows += [
        (english[1:], chinese.strip())
        for english, chinese in sentences
        if english[0] == " " and english[1] != "("
    ]
    rows.sort(key=lambda row: 3 * row[0].count("{") - len(row[0]))
    for row in rows:
        english = row[0]
        gap = english.find("{")
        if 0 <= gap < _KEY:
            probes.append((_longest(english), row))
        else:
            begun.setdefault(english[:_KEY], []).append(row)
        if english[0] in " ,:;.":
            ends.append((_longest(english), row))
    return Words(labels, begun, probes, ends)


def _longest(english: str) -> str:
    """The longest literal part of a template."""
    parts = english.split("{")
    return max([parts[0], *(part[part.find("}") + 1 :] for part in parts[1:])], key=len)


@cache
def _parsed(english: str, chinese: str) -> Template:
    return parse_template(english, chinese)
