"""Names and paths, picked out of the text around them."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.demangle import MANY_REFERENCES, MAX_MANGLED, can_demangle, demangle
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.symbol_text import PARAMETERS, without_blanks
from fa_forensics.patterns import lazily
from fa_forensics.records import dataclass

_MANGLED = lazily(r"_{1,3}Z[A-Za-z0-9_.$]+")
#: _Float16 and its like, bfloat16: GCC demangles them since 13.
_NEWER_TYPES = lazily(r"DF\d{2,3}(?:_|b|x)")
#: A mangled name whose underscores Markdown took for emphasis: ``*ZN3c104cuda9set*deviceEi``.
_EMPHASISED = lazily(r"(?<![\w*])\*{1,2}Z(?=[NTSK0-9])[A-Za-z0-9_.$*]{4,4000}")
#: What several processes print at once sticks to a name: ``...D1EvImportError``.
_STUCK = lazily(r"(?:ImportError|OSError|AttributeError|RuntimeError|Traceback|WARNING|ERROR)$")
_C_NAME = lazily(r"[A-Za-z_][A-Za-z0-9_$]*")
_VERSION = lazily(r"(?:@@?@?|,?\s{0,4}version:?\s{1,4}[`'\"]?)([A-Za-z_][\w.+-]{0,100})", re.A)
_OPENERS, _CLOSERS = "([<", ")]>"
_SPECIAL = lazily(
    r"(?:(?:construction )?vtable|VTT|typeinfo(?: name)?|guard variable"
    r"|reference temporary(?: #\d+)?|(?:non-virtual|virtual|covariant return) thunk"
    r"|TLS (?:init|wrapper) function|invocation function) (?:for|to) "
)
_SYMBOLIC = lazily(r"operator\s?(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[<>]=?)")
#: What follows a readable name after a space and still belongs to it.
_QUALIFIER = lazily(r"(?:const|volatile|noexcept)(?:\s?&{1,2})?(?![\w:])|&{1,2}|\[clone\s|\[abi:")
_REFERENCE = lazily(r"S[0-9A-Z]*_|T[0-9]*_")
MAX_WHOLE = 4_096
_WRAP_WIDTHS = frozenset({72, 76, 78, 79, 80, 100, 119, 120, 132, 140, 160, 200})
_CONTINUATION = lazily(r"[A-Za-z0-9_.$]+(?=[\s,)'\"`]|$)")
_CONTINUED = lazily(r"([A-Za-z0-9_.$]{1,8000})(\\?)")
#: Words of another script that touch a path: no space parts them from it.
_FOREIGN = lazily(r"[^/]*[^\x00-\x7f]:?")
#: A word as people write it; also the codes of some parameters.
_WORD = lazily(r"[A-Za-z][a-z]+")
_FILE_STOP = lazily(r"[\s'\"`()<>|;,=\[\]{}*!]")
_ENDING = ".,;:!?)'\"`]*"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol's name in a line: its text, its version, where it ends, whether it is cut off."""

    name: str
    version: str | None
    end: int
    cut: bool = False


def symbol_at(line: Line, place: int) -> Symbol | None:
    """The symbol that stands at a place of a line's body, or on the next line.

    A mangled name that a terminal broke over lines is put together again.
    """
    body = line.body
    emphasised = _EMPHASISED.search(body, place, place + 4_100)
    if emphasised is not None and not body[place : emphasised.start()].strip(" \t:'\"`"):
        text = emphasised[0].rstrip("*.").replace("**", "__").replace("*", "_")
        text = "_" + text.lstrip("_")
        return Symbol(text, None, emphasised.end(), can_demangle() and not is_whole(text))
    start = _skip(body, place)
    if start >= len(body):
        return _on_next_line(line)
    mangled = _MANGLED.match(body, start + (body[start] in "([<"))
    if mangled is not None:
        return _mangled(line, mangled)
    name = _C_NAME.match(body, start)
    after = body[name.end() : name.end() + 2] if name else ""
    if (
        name
        and not (after[:1] in ("(", "<", "~", "[") or after == "::")
        and not _spaced(body, start)
    ):
        return _with_version(body, name[0], name.end(), body.startswith("..", name.end()))
    return _readable(body, start)


def _skip(body: str, place: int) -> int:
    while place < len(body) and body[place] in " \t:'\"`*":
        # A readable name may begin with "::"; nothing else begins with a colon.
        place += 1
    return place


def _spaced(body: str, start: int) -> bool:
    """Whether a readable name of several words begins here: ``vtable for x``, ``int f<int>()``."""
    if _SPECIAL.match(body, start):
        return True
    words = body[start : start + 400].split()
    return len(words) > 1 and ("::" in words[1].split("(")[0] or words[0] == "operator")


def _on_next_line(line: Line) -> Symbol | None:
    for below in line.below(2):
        token = re.sub(r"^[*•-] ", "", below.body.strip("'\"` ")).strip("'\"` ")
        if token:
            mangled = _MANGLED.match(token)
            if mangled is not None:
                return _mangled(below, mangled) if token == below.body else _plain(mangled[0])
            if _C_NAME.fullmatch(token) or ("::" in token.split("(")[0] and ". " not in token):
                return Symbol(token, None, len(line.body))
            return None
    return None


def _plain(text: str) -> Symbol:
    return Symbol(text, None, len(text))


def _mangled(line: Line, match: re.Match[str]) -> Symbol:
    text, end = match[0], match.end()
    dots = text.find("..")
    if dots >= 0:
        return Symbol(text[:dots], None, end, True)
    text = text.rstrip(".")
    stuck = _STUCK.search(text)
    if stuck is not None and can_demangle() and not is_whole(text):
        text = text[: stuck.start()] if is_whole(text[: stuck.start()]) else text
    if end == len(line.body):
        text = _rejoined(line, text)
    elif line.body[end : end + 2] == "\\":
        text = _continued(line, text)
    return _with_version(line.body, text, end, can_demangle() and not is_whole(text))


def _continued(line: Line, text: str) -> str:
    """A mangled name that backslashes at the ends of its lines continue."""
    joined = text
    for below in line.below(40):
        match = _CONTINUED.match(below.body)
        if match is None or len(joined) > MAX_MANGLED:
            break
        joined += match[1]
        if not match[2]:
            break
    return joined if not can_demangle() or is_whole(joined) else text


def _rejoined(line: Line, text: str) -> str:
    """A mangled name whose rest a terminal put onto the next lines.

    All its lines but the last are as wide as the terminal. The demangler tells where a name is
    whole. Where both a part and the sum are, the sum is meant if lines were broken at a width:
    that of terminals, or that of the line above too.
    """
    width = line.width
    usual = width in _WRAP_WIDTHS
    broken = line.width_before == width or any(above.width == width for above in line.above(1))
    joined, best = text, text if is_whole(text) else ""
    if best and not (broken or usual):
        return text
    for below in line.below(40):
        body = below.body
        match = _CONTINUATION.match(body)
        if match is None or len(joined) > MAX_MANGLED or _MANGLED.match(body):
            break
        rest = body[match.end() :].lstrip(",)'\"`. ")
        if rest and not body.startswith((",", ")", "'", '"', "`"), match.end()):
            break  # a word and more words: a sentence
        if best and not broken and _WORD.fullmatch(match[0]):
            break  # rather a word than parameters
        joined += match[0].rstrip(".")
        if is_whole(joined):
            best = joined
        if len(below.raw) != width:
            break
        broken = True
    return best or text


def is_whole(text: str) -> bool:
    """Whether a mangled name is one that demangles."""
    name = "_Z" + text.split("Z", 1)[1]
    # A hostile name may take the demangler seconds: what is long enough counts as whole.
    if len(name) > MAX_WHOLE or len(_REFERENCE.findall(name)) > MANY_REFERENCES:
        return True
    # Types that this system's demangler may be too old for are builtin ones, as float is.
    return any(demangle(text) != text for text in (name, _NEWER_TYPES.sub("f", name)))


def _with_version(body: str, name: str, end: int, cut: bool) -> Symbol:
    version = _VERSION.match(body, end)
    if version is None:
        return Symbol(name, None, end, cut)
    return Symbol(name, version[1].rstrip("."), version.end(), cut)


def _readable(body: str, start: int) -> Symbol | None:
    """A readable C++ name: its brackets are balanced, and prose may follow it."""
    at, depth, roof = start, 0, min(len(body), start + 6_000)
    special = _SPECIAL.match(body, start)
    if special:
        at = special.end()
    seen_call = False
    while at < roof:
        character = body[at]
        symbolic = _SYMBOLIC.match(body, at) if character == "o" else None
        if symbolic:
            at = symbolic.end()
            continue
        if character in _OPENERS:
            seen_call = seen_call or (character == "(" and depth == 0)
            depth += 1
        elif character in _CLOSERS:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (
            character in "'\"`,;"
            or (character.isspace() and not _goes_on(body, start, at, seen_call))
        ):
            break
        at += 1
    name = body[start:at].rstrip().rstrip(".:;,!?")
    if not re.search(r"[A-Za-z_]\w", name, re.ASCII) or not (
        "::" in name or "(" in name or special
    ):
        return None
    cut = depth > 0 or body[at : at + 2] == ".."
    name, _, version = name.partition("@")  # f()@GLIBCXX_3.4.29
    found = _with_version(body, without_blanks(name), at, cut)
    return replace(found, version=version.strip("@")) if version else found


_SCOPE = lazily(r"::\s?[A-Za-z_~]")


def _goes_on(body: str, start: int, at: int, seen_call: bool) -> bool:
    rest = body[at:].lstrip()[:200]
    if _QUALIFIER.match(rest):
        return True
    if seen_call or not rest:
        return False
    if body[start:at].endswith("::") or _SCOPE.match(rest):
        return True
    if "::" in body[start:at] and PARAMETERS.match(rest):
        return True  # SetDevice (int)
    word = rest.split()[0]
    before = body[start:at].split()[-1]
    return (
        before in ("operator", "unsigned", "signed", "long")
        or ("::" in word.split("(")[0] and "::" not in word[:2])
        or (word[0] in "*&" and len(word) < 3)
    )


#: ``ImportError:../x.so``: the name of an error without a blank behind it.
_AN_ERROR = lazily(
    r"^(?:(?:[A-Z]\w{0,40}(?:Error|Exception|Warning)|ERROR|[Ee]rror|FATAL|WARNING):(?=[./~\w])"
    r"|[A-Za-z]\w{0,40}:(?=lib[\w+-]{1,60}\.so))"
)


def path_before(body: str, place: int) -> str | None:
    """The path that ends right before a place: ``X`` of ``ImportError: X: undefined symbol``."""
    end = place
    while end > 0 and body[end - 1] in " \t:'\"`":
        end -= 1
    floor = max(0, end - 1_000)
    segment = body[floor:end]
    for mark in (": ", '("', "('", " '", ' "', " `", ">"):
        cut = segment.rfind(mark)
        if cut >= 0 and not (mark == ">" and segment.startswith("/", cut + 1) and "<" in segment):
            segment = segment[cut + len(mark) :]
    said_twice = segment.rfind(" - /")  # R's torch: "PATH - PATH: message"
    if said_twice >= 0 and segment[:said_twice].endswith((".so", ".dylib")):
        segment = segment[said_twice + 3 :]
    segment = _AN_ERROR.sub("", segment.strip("'\"` "))
    if not segment.startswith(("/", "~", "...", "<")) or "'" in segment:
        stops = list(_FILE_STOP.finditer(segment))
        if stops:
            whole, segment = segment, _with_its_variable(segment, stops[-1].end())
            if is_half_a_name(segment):
                return None
            if whole.startswith("/") and "/" in segment and _QUOTED.search(whole):
                segment = whole  # a path with quotes and blanks in it
    foreign = _FOREIGN.match(segment)
    if foreign is not None:
        segment = segment[foreign.end() :]
    if ":/" in segment and not re.match(r"[A-Za-z]:/", segment):
        segment = segment[segment.rfind(":/") + 1 :]
    return segment if is_file_name(segment) else None


#: A quote within a word, which opens and closes nothing.
_QUOTED = lazily(r"\w['\"]\w")


def is_half_a_name(text: str) -> bool:
    """Whether a name begins with its ending, as the rest of one with strange signs does."""
    return re.match(r"\.(?!\.?/|\.\.)", text) is not None


_VARIABLE = lazily(r"\$\{[A-Z_]{2,40}\}$")


def _with_its_variable(segment: str, at: int) -> str:
    """What follows the last sign that is no part of a path; ``${CONDA_PREFIX}/lib`` stays whole."""
    before, rest = segment[:at], segment[at:]
    variable = _VARIABLE.search(before[-50:])
    if variable is not None and rest.startswith("/"):
        return variable[0] + rest
    return rest.lstrip("/") if before.endswith("*") else rest


_NAME = lazily(r"\.(?:so|dylib|pyd|dll|node)(?![A-Za-z])|\.\.\.so$|^<[^<>]{1,100}>$|lib[\w+-]+$")
_BINARY = lazily(r"/(?:python[\d.]*|bin/[\w.-]+|ld)$")


def is_file_name(text: str) -> bool:
    """Whether a text is the name of a library or of a program."""
    return bool(text) and len(text) < 1_000 and bool(_NAME.search(text) or _BINARY.search(text))


def path_after(body: str, place: int) -> str | None:
    """The path that begins at a place."""
    start = _skip(body, place)
    if body[start : start + 1] == "<":  # dyld's <UUID> before a path
        close = body.find(">", start, start + 80)
        start = _skip(body, close + 1) if close >= 0 else start
    end = start
    roof = min(len(body), start + 1_000)
    while end < roof and not _FILE_STOP.match(body[end]):
        end += 1
    return body[start:end].rstrip(_ENDING) or None


def is_binary_name(text: str) -> bool:
    """Whether a path ends as an extension module's does: a Python tag, abi3, or no ``lib``."""
    name = re.split(r"[/\\]", text)[-1]
    if re.search(r"\.(?:cpython-\w+|abi3|pypy\w*)[\w-]*\.so$", name):
        return True
    return name.endswith(".so") and not name.startswith("lib")
