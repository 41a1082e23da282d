"""What the dynamic loaders say of a symbol, and what people make of it."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.library_names import compiled_modules
from fa_forensics.facts.paste.around import importing, path_of_line_above, whole_path
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.first_import import beside_paddle, imported_alone
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.misread import name_meant
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Claim, Recogniser, by_pattern, by_words
from fa_forensics.facts.paste.system_around import cuda_around
from fa_forensics.facts.paste.tokens import Symbol, path_after, path_before, symbol_at
from fa_forensics.patterns import lazily

#: glibc's words for a symbol whose version a library has, without the symbol.
LINK_TIME = (
    r"symbol\s+[`'\"*]{0,3}(?P<symbol>[A-Za-z_][\w.$]{0,4000})[`'\"*]{0,3},?\s+version\s+"
    r"[`'\"*]{0,3}(?P<version>[\w.+-]{1,100})[`'\"*]{0,3}\s+not defined in file\b"
    r"(?:\s+(?!with\b)[`'\"*]{0,3}(?P<library>[^\s'\"`*]{1,300})[`'\"*]{0,3})?"
    r"(?:\s+with link time reference)?"
)
_PROSE_BEFORE = lazily(r"(?:\bno|\bnot an?|\bwithout(?: an?)?|\bany|\bhas many)\s+$", re.IGNORECASE)
_PROSE_WORDS = frozenset(
    ("error", "errors", "in", "when", "while", "problem", "issue", "at", "on", "for", "and", "is",
     "after", "with", "from", "hidden", "caused", "about", "or", "during", "that", "the", "name",
     "names", "of", "to", "not", "was", "lookup", "related", "by", "again", "due", "if", "message",
     "undefined", "symbol", "symbols", "messages", "because", "but", "like", "as", "this", "these",
     "it", "can", "found")
)  # fmt: skip


#: A word of small letters behind the words, without a quote before it.
_WORD = lazily(r"[`'\"]?\s{1,4}[a-z]{2,30}(?![\w@$`'\"(])")
#: What people write in a name's place.
_STAND_INS = lazily(
    r"(?:SYMBOL|NAME|FUNCTION|MANGLED|SOME|ANY|THE|MY|YOUR)(?:_?(?:SYMBOL|NAME|FUNCTION)){0,2}"
    r"|X{2,40}|Y{2,40}|N{3,40}|blah|etc|_{1,20}",
    re.IGNORECASE,
)
_ONE_CASE = lazily(r"[A-Z]?[a-z]{1,30}")
#: Behind a word that begins a sentence: another word, or none of what stands behind a name.
_SENTENCE = lazily(r"[,.;]?\s{1,4}(?!version\b|symbol\b|in\b|from\b|by\b|of\b)[A-Za-z]")

#: ``undefined symbol: X originating from the vllm._C.abi3.so shared library``.
_FILE_BEHIND = lazily(
    r"[`'\"*,]{0,4}\s{1,3}(?:\(?(?:originating|coming|needed|required|used)\s)?(?:from|in|of|by)\s"
    r"(?:the\s)?[`'\"*]{0,3}(?P<file>[\w./+-]{1,200}\.so)(?![\w/])"
)
_FILE_IN_BRACKETS = lazily(r"[\s`'\"]{0,9}\(([^\s()]{1,500})\)")


#: ``SetDeviceEi undefined symbol``: a name that is no English word.
_NAME_BEFORE = lazily(
    r"(?<![\w/.-])(_{1,3}Z[A-Za-z0-9_.$]{2,200}|[A-Za-z]+[A-Z0-9_][A-Za-z0-9_]{2,100})[`'\"]?"
    r"(?:\s+is an?)?\s+$"
)


#: A mangled name in the same sentence: ```undefined symbol` related to CUDA (`_ZN3c10...`)``.
_IN_SENTENCE = lazily(r"(?<![\w/.])_{1,3}Z(?=[NKTSL\d])[A-Za-z0-9_.$]{6,2000}")


def _said_in_sentence(line: Line, match: re.Match[str]) -> Claim | None:
    """The words without a name behind them, and the only mangled name near them."""
    body, floor = line.body, max(0, match.start() - 600)
    found = list(_IN_SENTENCE.finditer(body, floor, match.end() + 600))
    if len({name[0] for name in found}) != 1:
        return None
    symbol = symbol_at(line, found[0].start())
    if symbol is None:
        return None
    detail = {"cut": "yes"} if symbol.cut else {}
    mention = line.mention("undefined-symbol", match.start(), symbol=symbol.name, detail=detail)
    return Claim(min(match.start(), found[0].start()), max(match.end(), found[0].end()), mention)


def _is_prose(symbol: Symbol, body: str, exact: bool, file: str | None) -> bool:
    """Whether what stands behind the words is no name: "undefined symbol: see below"."""
    word = symbol.name
    if _STAND_INS.fullmatch(word):
        return True
    if word.lower().startswith(("(see ", "(below", "(above", "(full ", "(same ")):
        return True
    if not exact:
        return word.lower() in _PROSE_WORDS
    if word.lower() == "undefined":
        return True
    if symbol.version is not None or _ONE_CASE.fullmatch(word) is None:
        return False
    behind = _SENTENCE.match(body, symbol.end) is not None
    return behind or (file is None and word.lower() in _PROSE_WORDS)


def _undefined(line: Line, match: re.Match[str]) -> Claim | None:
    body = line.body
    exact = match[0][-1] == ":"
    if not exact and _PROSE_BEFORE.search(body[max(0, match.start() - 20) : match.start()]):
        return None
    if line.lower.startswith(("ld.lld", "lld", "mold", "wasm-ld"), 0):
        return None  # a linker's, see there
    if body[max(0, match.start() - 8) : match.start()].lower() == "against ":
        return None  # a relocation's: what it refers to need not be missing
    file = path_before(body, match.start())
    symbol = symbol_at(line, match.end())
    if symbol is not None and (meant := name_meant(symbol.name)) != symbol.name:
        symbol = replace(symbol, name=meant)
    if symbol is not None and _is_prose(symbol, body, exact, file):
        symbol = None
    if symbol is not None and not exact and _WORD.match(body, match.end()):
        symbol = None  # an English word: names of libraries have capitals, digits or underscores
    if symbol is None and not exact:
        before = _NAME_BEFORE.search(body[max(0, match.start() - 300) : match.start()])
        if before and file is None and before[1] in compiled_modules():
            module = {"prose": "yes", "import": before[1]}
            prose = line.mention("undefined-symbol", match.start(), detail=module)
            return _said_in_sentence(line, match) or Claim(match.start(), match.end(), prose)
        if before and file is None:
            detail = {"cut": "yes"} if not before[1].startswith("_Z") else {}
            named = line.mention("undefined-symbol", 0, symbol=before[1], detail=detail)
            return Claim(match.start() - len(before[0]), match.end(), named)
    if symbol is None and not exact and file is None:
        prose = line.mention("undefined-symbol", match.start(), detail={"prose": "yes"})
        return _said_in_sentence(line, match) or Claim(match.start(), match.end(), prose)
    detail = {}
    end = match.end() if symbol is None else symbol.end
    what = "undefined-symbol"
    if symbol is not None:
        if symbol.cut:
            detail["cut"] = "yes"
        behind = _FILE_IN_BRACKETS.match(body, end)
        if behind and file is None and ("/" in behind[1] or ".so" in behind[1]):
            what, file, end = "ldd-line", behind[1], behind.end()
            detail["sort"] = "undefined"
    if "lookup error" in body[: match.start()].lower():
        detail["lookup"] = "lazy"
    if what == "undefined-symbol" and body.lower().rfind("attributeerror", 0, match.start()) >= 0:
        what = "ctypes-attribute"
    if file is None:
        after = _FILE_BEHIND.match(body, end) if symbol is not None else None
        file = after["file"] if after is not None else path_of_line_above(line)
    file = whole_path(line, file)
    detail["import"] = importing(line)
    if any("cmake" in near.lower for near in (line, *line.above(4), *line.below(4))):
        detail["build"] = "cmake"
    name = _spelt_out(line, symbol.name, end) if symbol is not None else None
    version = symbol.version if symbol is not None else None
    detail.update(cuda_around(line, version, file))
    detail.update(beside_paddle(line, name))
    detail.update(imported_alone(line))
    mention = line.mention(
        what, match.start(), symbol=name, version=version, file=file, detail=detail
    )
    return Claim(match.start(), end, mention)


_IN_BRACKETS = lazily(
    r"[\s`'\"]{0,9}[(\[](?:i\.e\.?,?\s?|mangled:?\s?)?[`'\"]?(_{1,2}Z[A-Za-z0-9_.$]{3,2000})"
)


#: "Undefined symbol", as people translate it; the C library leaves it in English.
_UNDEFINED_ELSEWHERE = (
    "\u672a\u5b9a\u4e49\u7b26\u53f7",
    "\u672a\u5b9a\u4e49\u7684\u7b26\u53f7",
    "\u627e\u4e0d\u5230\u7b26\u53f7",
    "\u672a\u5b9a\u7fa9\u7b26\u865f",
    "\u672a\u5b9a\u7fa9\u30b7\u30f3\u30dc\u30eb",
    "\uc815\uc758\ub418\uc9c0 \uc54a\uc740 \uc2ec\ubcfc",
    "\uc815\uc758\ub418\uc9c0 \uc54a\uc740 \uae30\ud638",
)


def _undefined_in_words(line: Line, match: re.Match[str]) -> Claim | None:
    symbol = symbol_at(line, match.end())
    if symbol is None or _ONE_CASE.fullmatch(symbol.name) or is_denied(line.body, match.start()):
        return None
    mention = line.mention(
        "undefined-symbol",
        match.start(),
        symbol=symbol.name,
        version=symbol.version,
        file=path_before(line.body, match.start()),
        detail={"cut": "yes" if symbol.cut else ""},
    )
    return Claim(match.start(), symbol.end, mention)


def _spelt_out(line: Line, name: str, end: int) -> str:
    """The mangled name that stands in brackets behind the readable one, else the name."""
    behind = _IN_BRACKETS.match(line.body, end)
    return name if behind is None or "Z" in name[:3] else behind[1]


def _link_time(line: Line, match: re.Match[str]) -> Mention:
    return line.mention(
        "undefined-symbol",
        match.start(),
        symbol=match["symbol"],
        version=match["version"],
        library=match["library"] or (match["version"] if ".so" in match["version"] else ""),
        file=(file := path_before(line.body, match.start())),
        detail={
            "sort": "link-time reference",
            "import": importing(line),
            **cuda_around(line, match["version"], file),
        },
    )


#: The file that dyld was asked for.
_OPENED = lazily(r"dlopen\(([^\s,()]{1,500}),")


def _macho_symbol(line: Line, match: re.Match[str]) -> Mention | None:
    symbol = symbol_at(line, match.end())
    if match.end() >= len(line.body.rstrip()) and not (symbol and symbol.name.startswith("_")):
        return None  # the words end the line, and the next one begins with no name of Mach-O
    name = symbol.name if symbol else None
    if name is not None and name.startswith("_"):
        name = name[1:]  # Mach-O writes every name of C with one more underscore
    parts = {"referenced from": "", "expected in": ""}
    for text in (line.body, *(below.body for below in line.below(4))):
        for words in parts:
            at = text.lower().find(words)
            if at >= 0 and not parts[words]:
                parts[words] = path_after(text, at + len(words) + 1) or ""
    opened = _OPENED.search(line.body) if not parts["referenced from"] else None
    return line.mention(
        "symbol-not-found-macho",
        match.start(),
        symbol=name,
        file=parts["referenced from"] or (opened[1] if opened else ""),
        library=parts["expected in"],
        detail={"pasted": symbol.name if symbol else "", "os": "macOS"},
    )


def recognisers() -> tuple[Recogniser, ...]:
    """The texts about symbols."""
    return (
        by_pattern(
            ("not defined in file",),
            LINK_TIME,
            _link_time,
        ),
        by_pattern(("undefined symbol",), r"undefined symbols?(?:\s?:|\b)", _undefined),
        by_pattern(
            ("fined symbol", "finded symbol", "find symbol:", "fine symbol:"),
            r"\bun[a-z]{0,6}fin(?:e|ed|d|ded) symbols?\s?:",
            _undefined,
        ),
        by_pattern(
            ("missing symbol", "unresolved symbol"),
            r"(?:missing|unresolved) symbols?(?:\s?:)?\s{1,4}(?=[`'\""
            r"(]{0,2}[A-Za-z_]\w{0,60}[\d_:A-Z])",
            _undefined_in_words,
        ),
        by_words(
            _UNDEFINED_ELSEWHERE,
            r"\s{0,4}:?\s{0,4}(?=[`'\"(]{0,2}[A-Za-z_])",
            _undefined_in_words,
        ),
        by_pattern(
            ("symbol ",),
            r"symbol\s+[`'\"]?(?P<symbol>_{1,3}Z[\w.$]{2,2000}|[A-Za-z]\w{0,60}[A-Z_\d]\w{0,200})"
            r"[`'\"]?\s+(?:was |is |could )?(?:not (?:be )?found|missing|undefined|unresolved)",
            lambda line, match: line.mention(
                "undefined-symbol",
                match.start(),
                symbol=match["symbol"],
                file=path_before(line.body, match.start()),
            ),
        ),
        by_pattern(
            ("symbol not found",),
            r"Symbol not found(?: in flat namespace)?\s?:?\s?"
            r"(?=['\"`(]?(?:_|Z?N[KVRO]{0,3}\d{1,2}[a-z])|\s{0,9}$)",
            _macho_symbol,
        ),
        by_pattern(
            ("error relocating",),
            r"Error relocating (?P<file>[^\s:]{1,500}): (?P<symbol>[\w.$]{1,4000}): "
            r"symbol not found",
            lambda line, match: line.mention(
                "undefined-symbol",
                match.start(),
                symbol=match["symbol"],
                file=match["file"],
                detail={"libc": "musl"},
            ),
        ),
    )
