"""What log collectors, launchers and quoting put before a line, and whose line it is."""

from __future__ import annotations

import re
from functools import lru_cache

from fa_forensics.patterns import lazily

_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_TIME = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_DATE = r"\d{4}[-/]\d\d[-/]\d\d"

_DIGITS = "0123456789"
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: The characters that levels begin with.
_L = "TDINWECF"

#: (the characters that it may begin with, a pattern, the words for its stream or None). Tried in
#: turn, again and again, at a line's start.
_ROWS: tuple[tuple[str, str, str | None], ...] = (
    # quoting: mail, a REPL, pytest, pip's frames, lists
    (">", r">(?:>>|[> ])*\s?", None),
    ("E", r"E\s{2,}", None),
    (
        "".join(map(chr, range(0x2500, 0x2580))) + "\xd7\u279c\u276f\u2022",
        r"[\u2500-\u257f\xd7\u279c\u276f\u2022]+>?\s?",
        None,
    ),
    ("-*", r"[-*]\s+(?=[A-Z])", None),
    ("#", r"#(\d+)\s+\d+\.\d+\s", "build step {}"),
    ("#", r"##\[\w{1,20}\]", None),
    # launchers
    ("[", r"\[1,(\d{1,5})\]<std(?:err|out)>:\s?", "rank {}"),
    ("[Rr", r"\[?[Rr]ank\s?(\d{1,5})\]?\s?:\s?", "rank {}"),
    (
        "[",
        r"\[(?:default|local_rank|LOCAL_RANK |Rank |RANK |rank )(\d{1,5})\][:>]?\s?",
        "rank {}",
    ),
    # srun -l; the number before an entry of a symbol table is no rank
    (_DIGITS, r"(\d{1,4}):\s(?=[^\s\d])(?![0-9a-f]{8})", "rank {}"),
    (
        "(",
        r"\(([A-Za-z][\w.:+-]{0,80}\s[^()\n]{0,60}?(?:pid|rank|ip)=[^()\n]{1,80})\)\s?",
        "{}",
    ),
    # collectors
    (
        "[" + _DIGITS,
        rf"\[?{_DATE}[T ]{_TIME}(?:Z|\s?[+-]\d\d:?\d\d)?(?:\s?UTC)?\]?:?\s?",
        None,
    ),
    ("s", r"std(?:err|out) [FP] ", None),
    (
        _CAPITALS,
        rf"[A-Z][a-z]{{2}}\s{{1,2}}\d{{1,2}}\s{_TIME}\s[\w.-]{{1,64}}\s"
        r"([\w./@-]{1,64}(?:\[\d{1,9}\])?):\s",
        "{}",
    ),
    ("[" + _DIGITS, rf"\[?{_TIME}\]?\s(?=\S)", None),
    # loggers
    (
        _L,
        rf"{_LEVEL}[\s:]{{1,4}}(?:\d\d-\d\d\s|{_DATE}\s)?{_TIME}\s+"
        r"\[?[\w./-]{1,80}:\d{1,6}\]:?\s?",
        None,
    ),
    ("[", rf"\[{_LEVEL}\]\s?", None),
    ("[", rf"\[[\w.]{{1,60}}\]\[{_LEVEL}\]\s-\s", None),
    (_L, rf"{_LEVEL}:[\w.-]{{1,80}}:\s?", None),
    (
        "IWEF",
        r"[IWEF]\d{4}\s\d\d:\d\d:\d\d\.\d{3,9}\s+\d{1,9}\s[\w./-]{1,80}:\d{1,6}\]\s?",
        None,
    ),
    ("[" + _L, rf"\[?{_LEVEL}\]?(?:\s?[|:-]|\s(?=\[))\s?", None),
    ("-", rf"-\s[\w.]{{1,80}}\s-\s{_LEVEL}\s-\s", None),
    ("|", rf"\|\s{_LEVEL}\s{{1,4}}\|\s[\w.:<>-]{{1,100}}\s-\s", None),
    ("[", r"\[[\w.-]{1,40}\.(?:py|cpp|cc|cu):\d{1,6}(?::[\w.<>]{1,60})?\]:?\s?", None),
    ("[", r"\[(\d{1,9})\]:?\s(?=\S)", "process {}"),
)


def _by_start() -> dict[str, list[tuple[re.Pattern[str], str | None]]]:
    table: dict[str, list[tuple[re.Pattern[str], str | None]]] = {}
    for starts, text, words in _ROWS:
        pattern = re.compile(text)
        for character in starts:
            table.setdefault(character, []).append((pattern, words))
    return table


#: The rows that a line may begin with, by its first character: there are many lines.
_PREFIXES = _by_start()
_COMPOSE = lazily(r"([A-Za-z][\w.-]{0,62})\s{0,40}\|\s")
_TABLE_WORDS = frozenset({"name", "package", "version", "torch", "cuda", "python", "gpu"})
#: More than this many prefixes has no line.
_MAX_PREFIXES = 8
#: Prefixes stand in the first characters of a line.
_ROOM = 400


def split_prefix(raw: str) -> tuple[str, str]:
    """(whose line it is or "", the line without what a collector put before it)."""
    head = raw[:_ROOM]
    stream, begin = _split_head(head)
    return stream, (head[begin:] + raw[_ROOM:]).strip()


@lru_cache(maxsize=8_192)
def _split_head(head: str) -> tuple[str, int]:
    """The stream, and where the rest begins. Lines are split more than once, and logs repeat."""
    whole = len(head)
    streams: list[str] = []
    for _ in range(_MAX_PREFIXES):
        found = _first_prefix(head, streams)
        if found is None:
            break
        words, end = found
        if words and words not in streams:
            streams.append(words)
        head = head[end:]
    return ", ".join(streams[:3]), whole - len(head)


def _first_prefix(head: str, streams: list[str]) -> tuple[str, int] | None:
    if not head:
        return None
    if head[0] in " \t":
        stripped = head.lstrip()
        found = _first_prefix(stripped, streams) if stripped else None
        return None if found is None else (found[0], found[1] + len(head) - len(stripped))
    for pattern, words in _PREFIXES.get(head[0], ()):
        match = pattern.match(head)
        if match is not None and match.end():
            return (words.format(match[1]) if words else ""), match.end()
    match = _COMPOSE.match(head)
    if match is not None and not streams and match[1].lower() not in _TABLE_WORDS:
        return f"container {match[1]}", match.end()
    return None
