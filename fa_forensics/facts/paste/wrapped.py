"""Messages of the loader that a window, a chat or a mail broke into lines, put together again.

A break may stand anywhere: between two words, within a word, a path or a name. What is joined is
closed on both sides: a phrase by its own words, a path by the phrase behind it, a file in brackets
by the bracket, a name by the version behind it. (A mangled name has its end told by the demangler:
see ``tokens``.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from fa_forensics.facts.paste.lines import Joint
from fa_forensics.facts.paste.prefixes import split_prefix
from fa_forensics.facts.paste.recogniser import in_every_language
from fa_forensics.patterns import lazily

#: What the loader and CUDA say, without the names and paths in it.
_PHRASES = (
    "undefined symbol:", "symbol not found", "not defined in file", "with link time reference",
    "symbol lookup error:", "error while loading shared libraries:",
    "cannot open shared object file", "cannot open shared object file: No such file or directory",
    "not found (required by",
    "cannot allocate memory in static TLS block", "cannot load any more object with static TLS",
    "failed to map segment from shared object", "cannot make segment writable for relocation",
    "cannot apply additional memory protection after relocation",
    "cannot restore segment prot after reloc", "cannot change memory protections",
    "cannot create shared object descriptor", "cannot map zero-fill pages",
    "cannot allocate memory for program header",
    "cannot enable executable stack as shared object requires",
    "ELF load command address/offset not properly aligned",
    "ELF load command address/offset not page-aligned",
    "ELF load command alignment not page-aligned", "ELF load command past end of file",
    "invalid ELF header", "file too short", "cannot read file data",
    "wrong ELF class: ELFCLASS32", "wrong ELF class: ELFCLASS64",
    "object file has no dynamic section", "object file has no loadable segments",
    "ELF file's phentsize not the expected size", "ELF file data encoding not",
    "ELF file OS ABI invalid", "cannot dynamically load executable",
    "cannot dynamically load position-independent executable",
    "only ET_DYN and ET_EXEC can be loaded", "Exec format error", "cannot execute binary file",
    "CPU ISA level is lower than required",
    "no kernel image is available for execution on the device",
    "CUDA driver version is insufficient for CUDA runtime version", "No module named",
)  # fmt: skip
#: What stands near every message.
_ANCHORS = ("rror:", ".so", "symbol", "cuda")
#: Lines above and below an anchor that its message may reach over, and characters.
_ABOVE, _BELOW, _REACH = 6, 14, 6_000
#: What is looked at in one text at most: anchors, characters, and messages of one phrase.
_MOST_ANCHORS, _MOST_TEXT, _MOST_FOUND = 4_000, 200_000, 500
#: Windows that touch are one up to this length (characters).
_MOST_WINDOW = 12_000
#: Between two lines of a window that belong together, and between others.
_BREAK, _WALL = "\n", "\x1e"
#: The phrases that a version stands before.
_OF_VERSIONS = ("not found (", "not defined in file")
#: The phrases that a program or a symbol stands before.
_NO_PATH_BEFORE = (
    "symbol lookup error:", "error while loading shared libraries:", "with link time reference",
    "no module named",
)  # fmt: skip
#: The lines of one path.
_MOST_PIECES = 12
#: A line as wide as this may have been broken by a window.
_WIDE = 60

#: What cuDNN's loader puts before the loader's own message.
_OPENING = lazily(r"(?i:could not load library )[^\s]{3,200} Error:(?P<break>\n)")

_PATH_END = lazily(r"([\w./~+@${}<>\u2026-]{1,400})\s?:?\s?['\"(]{0,2}$")
_PATH_START = lazily(
    r"(?P<head>^|[:'\"(`\s])\s?(?P<path>[\w./~+@${}<>\u2026-]{1,400}(?:\s?:)?)$", re.ASCII
)
#: The number of a soname, which a launcher's rank looks like.
_NUMBER = lazily(r"[\d.]{0,8}\d\s?:\s")
_AT_NUMBER = lazily(r"\.so(?:\.[\d.]{0,8})?$")
#: The version behind a name of C.
_VERSION_BEHIND = lazily(
    r"[ \n]?(?P<name>[A-Za-z_][\w$]{0,200}(?:\n[\w$]{1,200}){0,3})(?:,[ \n]?|\n?,[ \n])"
    r"(?P<word>v\n?e\n?r\n?s\n?i\n?o\n?n)[ \n](?P<version>[\w.+-]{1,100}(?:\n[\w.+-]{1,100})?)",
    re.ASCII,
)
_SONAME = lazily(r"lib[\w+-]{1,60}\.so\.[\d.]{1,12}$")
#: A name by itself, or one with what the loader prints behind it, on the line below.
_NAME_BELOW = lazily(
    r"[ ]?\n['\"`]?(?:_{1,3}Z[A-Za-z0-9_.$]{3}|[A-Za-z_]\w{2,200}['\"`]?(?:$|\n|\x1e|\s\(/|@))",
    re.ASCII,
)
#: What stands before "not found (required by" and "not defined in file".
_VERSION_BEFORE = lazily(
    r"(?P<word>v\n?e\n?r\n?s\n?i\n?o\n?n)[ \n][`'\"]?(?P<version>[\w.+-]{1,60}(?:\n[\w.+-]{1,60})?)"
    r"[`'\"]?[ \n]?$",
    re.ASCII,
)
#: What stands before that where a name has the version.
_SYMBOL_BEFORE = lazily(
    r"(?P<word>s\n?y\n?m\n?b\n?o\n?l)[ \n]"
    r"[`'\"]?[\w.$]{1,4000}(?:\n[\w.$]{1,400}){0,40}['\"]?,?[ \n]?$",
    re.ASCII,
)
_IN_FILE = lazily(
    r"[ \n]?[`'\"]?[\w./+-]{1,200}(?:\n[\w./+-]{1,200}){0,3}['\"]?(?P<blank>[ \n])"
    r"w\n?i\n?t\n?h[ \n]l",
    re.ASCII,
)
_REQUIRED_BY = lazily(r"[ \n]?[\w./~+@\u2026-]{1,400}(?:\n[\w./~+@-]{1,400}){0,6}\)", re.ASCII)


class _Row(NamedTuple):
    """A line of a window: where its body begins and ends in the text, and its whole width."""

    start: int
    end: int
    raw: int
    width: int


def unwrapped(text: str) -> tuple[str, tuple[Joint, ...]]:
    """The text with the broken messages in one line each, and where they were broken."""
    if "\n" not in text:
        return text, ()
    joins: dict[int, tuple[int, str, Joint]] = {}
    windows = [_flattened(text, start, end) for start, end in _windows(text)]
    windows = [(flat, rows) for flat, rows in windows if _BREAK in flat]
    phrases = _phrases_in(_WALL.join(flat for flat, _ in windows))
    for flat, rows in windows:
        for number, blank in _breaks(flat, phrases).items():
            row, below = rows[number], rows[number + 1]
            joint = Joint(0, row.width, below.start - below.raw)
            joins[row.end] = (below.start, blank, joint)
    return _joined(text, joins) if joins else (text, ())


def _joined(text: str, joins: dict[int, tuple[int, str, Joint]]) -> tuple[str, tuple[Joint, ...]]:
    parts: list[str] = []
    joints: list[Joint] = []
    at = length = 0
    for end in sorted(joins):
        begin, blank, joint = joins[end]
        parts.append(text[at:end] + blank)
        length += len(parts[-1])
        joints.append(Joint(length, joint.before, joint.prefix))
        at = begin
    return "".join((*parts, text[at:])), tuple(joints)


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """The parts of the text near the anchors, as wide as a message may be."""
    if len(text) <= _REACH:
        yield 0, len(text)
        return
    lower = text.lower() if text.isascii() else text
    places = sorted(place for word in _ANCHORS for place in _some(lower, word))
    left, held = _MOST_TEXT, (0, 0)
    for place in places[:_MOST_ANCHORS]:
        if place < held[1] - _REACH // 4:
            continue
        start = end = place
        for _ in range(_ABOVE):
            start = max(0, text.rfind("\n", max(0, place - _REACH), start))
        for _ in range(_BELOW):
            found = text.find("\n", end + 1, place + _REACH)
            if found < 0:
                break
            end = found
        start = max(start + (text[start : start + 1] == "\n"), held[1])
        if end > start:
            left -= end - start
            if start <= held[1] + 1 and end - held[0] <= _MOST_WINDOW:
                held = (held[0], end)
                continue
            if held[1]:
                yield held
            held = (start, end)
        if left <= 0:
            break
    if held[1]:
        yield held


def _some(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    for _ in range(_MOST_ANCHORS):
        if at < 0:
            return
        yield at
        # One in each few hundred characters: a window reaches further.
        at = text.find(word, at + 200)


def _flattened(text: str, start: int, end: int) -> tuple[str, list[_Row]]:
    """The bodies of a window's lines in one text, and where each is."""
    parts: list[str] = []
    rows: list[_Row] = []
    stream = last = ""
    for raw in text[start:end].split("\n"):
        told, body = split_prefix(raw[:_REACH])
        if ".so" in last[-12:] and _AT_NUMBER.search(last):
            bare = raw[:_REACH].strip()
            told, body = ("", bare) if _NUMBER.match(bare) else (told, body)
        if len(raw) > _REACH or "\x1f" in body or _WALL in body:
            body = ""
        if rows:
            parts.append(_BREAK if body and last and told in ("", stream) else _WALL)
        parts.append(body)
        begin = start + (len(raw.rstrip()) - len(body) if body else len(raw))
        rows.append(_Row(begin, begin + len(body), start, len(raw)))
        stream = told or (stream if body and last else "")
        last = body
        start += len(raw) + 1
    return "".join(parts), rows


def _breaks(flat: str, phrases: Iterable[str]) -> dict[int, str]:
    """The line breaks of a window that are within messages, and what stands in their place."""
    found: dict[int, str] = {}
    for phrase in phrases:
        for count, match in enumerate(_pattern(phrase).finditer(flat)):
            if count >= _MOST_FOUND:
                break
            found.update(_within(phrase, match))
            start = match.start()
            if phrase.startswith(_OF_VERSIONS):
                start, breaks = _version(flat, start)
                found.update(breaks)
            if phrase not in _NO_PATH_BEFORE:
                found.update(_before(flat, start))
            found.update(_behind(flat, match.end(), phrase))
    for match in _OPENING.finditer(flat):
        found.setdefault(match.start("break"), " ")
    if not found:
        return {}
    numbers = [at for at, sign in enumerate(flat) if sign in (_BREAK, _WALL)]
    order = {place: number for number, place in enumerate(numbers)}
    return {order[place]: blank for place, blank in found.items()}


@lru_cache(maxsize=1)
def _phrases() -> tuple[tuple[str, str], ...]:
    """Each phrase, and without its blanks."""
    every = (text for phrase in _PHRASES for text in (phrase, *in_every_language(phrase)))
    return tuple((text, "".join(text.split())) for text in dict.fromkeys(map(str.lower, every)))


def _phrases_in(flat: str) -> tuple[str, ...]:
    """The phrases that may stand in the windows of a text: a few, however many the windows are."""
    squeezed = "".join(flat.lower().split()).replace(_WALL, "")
    return tuple(phrase for phrase, bare in _phrases() if bare in squeezed)


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    """A phrase with a line break anywhere: in place of a blank, or between two letters."""
    words = (r"\n?".join(map(re.escape, word)) for word in phrase.split())
    return re.compile(r"(?: |\n)".join(words), re.IGNORECASE)


def _within(phrase: str, match: re.Match[str]) -> Iterator[tuple[int, str]]:
    at = 0
    for place, sign in enumerate(match[0], match.start()):
        if sign != _BREAK:
            at += 1
        elif phrase[at] == " ":
            yield place, " "
            at += 1
        else:
            yield place, ""


def _before(flat: str, place: int) -> Iterator[tuple[int, str]]:
    """The breaks in the path that ends before a phrase, and between the two."""
    floor = max(flat.rfind(_WALL, 0, place) + 1, place - 1_500)
    rest = flat[floor:place].rstrip(" ")
    if rest.endswith(_BREAK):  # PATH: / phrase
        above = rest[:-1]
        if re.search(r"\.so(?:\.\d{1,4}){0,4}\s?:$", above[-80:]) is None:
            return
        yield floor + len(above), " "
        rest = above
    pieces: list[tuple[int, str]] = []
    for _ in range(_MOST_PIECES):
        at = rest.rfind(_BREAK)
        piece, above = rest[at + 1 :], rest[: max(at, 0)]
        if at < 0 or (piece.strip(" :'\"(") and _PATH_END.fullmatch(piece) is None):
            return
        begun = _PATH_START.search(above[above.rfind(_BREAK) + 1 :][-500:])
        if begun is None or not _may_go_on(begun, piece):
            return
        pieces.append((floor + at, ""))
        if _goes_on(begun, piece):
            yield from pieces
            pieces = []
        elif begun.start("path"):
            return
        rest = above


def _may_go_on(begun: re.Match[str], piece: str) -> bool:
    """Whether a line's last word is no whole path, so that the next line may belong to it."""
    path = begun["path"].rstrip()
    if begun.string[: begun.start("path")].rstrip().lower().endswith(("symbol:", "symbol")):
        return False
    if path.endswith(".so"):
        return piece.startswith((".", ":"))
    if piece.startswith(("./", "../", "~")) or path.endswith(("...", "\u2026")):
        return False
    if "/" not in path and piece.startswith(("/", "lib")):
        return False
    return re.search(r":$|\.(?:py|cpp|cu|so(?:\.\d{1,3})+)$|^//|://|^_{1,3}Z", path) is None


def _goes_on(begun: re.Match[str], piece: str) -> bool:
    """Whether a path at a line's end goes on with what the next line begins with."""
    path, head = begun["path"].rstrip(), begun.string[: begun.start("path")].rstrip()
    if path.endswith(".so"):
        return True
    if "/" not in path and not head.endswith((":", "'", '"')):
        return len(begun.string) >= _WIDE and not head
    if piece.startswith("/") and ("." in path.rpartition("/")[2] or not head):
        return "-packages" in path or path.endswith(("/lib", "/lib64"))
    if head.endswith((":", "'", '"', "(")):
        return True
    whole = piece.startswith("lib") and not path.endswith("/")
    return len(begun.string) >= _WIDE and path.startswith(("/", "...")) and not whole


def _version(flat: str, place: int) -> tuple[int, dict[int, str]]:
    """Where the message on a version begins that ends before a place, and the breaks in it."""
    found: dict[int, str] = {}
    for pattern in (_VERSION_BEFORE, _SYMBOL_BEFORE):
        floor = max(0, place - 4_500)
        floor = max(floor, flat.rfind(_WALL, floor, place) + 1)
        word = "version" if pattern is _VERSION_BEFORE else "symbol"
        at = _last(flat, word, floor, place)
        match = pattern.match(flat[:place], at) if at >= 0 else None
        if match is None:
            break
        gap = match.end("word")
        found.update(_all_in(flat, at, place, {gap: " ", place - 1: " "}))
        place = at
    return place, found


def _last(flat: str, word: str, floor: int, place: int) -> int:
    """The last place of a word that may be broken; -1 for none."""
    if (at := flat.rfind(word, floor, place)) >= 0:
        return at
    return max((m.start() for m in _pattern(word).finditer(flat, floor, place)), default=-1)


def _behind(flat: str, place: int, phrase: str) -> Iterator[tuple[int, str]]:
    """The breaks in what stands behind a phrase: a name, its version, a file in brackets."""
    if phrase.endswith("required by"):
        match = _REQUIRED_BY.match(flat, place)
        if match is not None:
            yield from _all_in(flat, match.start(), match.end(), {match.start(): " "})
        return
    if phrase == "not defined in file":
        match = _IN_FILE.match(flat, place)
        if match is not None:
            blanks = {match.start(): " ", match.start("blank"): " "}
            yield from _all_in(flat, place, match.end("blank"), blanks)
    if phrase != "undefined symbol:":
        return
    versioned = _VERSION_BEHIND.match(flat, place)
    if versioned is not None:
        end = versioned.end()
        first = versioned["version"].split(_BREAK)[0]
        if _SONAME.match(first) or not _SONAME.match(versioned["version"].replace(_BREAK, "")):
            end = versioned.start("version") + len(first)
        gaps = (place, versioned.start("word") - 1, versioned.start("version") - 1)
        yield from _all_in(flat, place, end, dict.fromkeys(gaps, " "))
    elif _NAME_BELOW.match(flat, place) is not None:
        yield flat.index(_BREAK, place), " "


def _all_in(flat: str, start: int, end: int, blanks: dict[int, str]) -> Iterator[tuple[int, str]]:
    for place in range(start, end):
        if flat[place] == _BREAK:
            yield place, blanks.get(place, "")
