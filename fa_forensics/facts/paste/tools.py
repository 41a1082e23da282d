"""Lines of nm, ldd, readelf and objdump, and names that stand alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fa_forensics.facts.paste.lines import Line, Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Claim, Recogniser, by_pattern
from fa_forensics.facts.paste.tokens import path_before, symbol_at
from fa_forensics.patterns import lazily

#: Of one sort of line no more than this is taken; a listing repeats its sort.
MOST_LINES = 300
MOST_BARE = 50
_NM = lazily(r"(?:[0-9a-fA-F]{8}(?:[0-9a-fA-F]{8})?|[ \t]*)\s([A-Za-z])\s+(?=[A-Za-z_~(])")
_ELF_NAME = lazily(r"\[([^\[\]\n]{1,300})\]")


def recognisers() -> tuple[Recogniser, ...]:
    """The lines that tools print about a file."""
    return (
        by_pattern(
            ("=> not found", "=>not found"),
            r"=>\s?not found",
            _ldd_missing,
        ),
        by_pattern(
            ("=> /",),
            r"(?P<library>lib(?:cudart|nvJitLink|cusparse|cublas|cublasLt|cudnn\w{0,30}|nccl"
            r"|stdc\+\+|torch\w{0,20}"
            r"|c10\w{0,8})(?:-\w{8})?\.so[.\d]{0,16})\s=>\s(?P<path>/[^\s()]{1,400})",
            _ldd_found,
        ),
        by_pattern(
            (" und ", "*und*"),
            r"^\s{0,6}(?:\d{1,6}:\s)?\s{0,4}[0-9a-f]{8,16}\s[^\n]{0,80}?"
            r"(?:\bUND|\*UND\*\s{1,20}[0-9a-f]{8,16})\s{1,20}"
            r"(?=\S)",
            _undefined_entry,
        ),
        by_pattern(("(needed)", "(rpath)", "(runpath)", "(soname)"),
                   r"\((?P<tag>NEEDED|RPATH|RUNPATH|SONAME)\)\s{1,20}[A-Za-z ]{1,20}:\s", _dynamic),
    )  # fmt: skip


def _ldd_missing(line: Line, match: re.Match[str]) -> Mention:
    words = line.body[max(0, match.start() - 300) : match.start()].split()
    return line.mention(
        "ldd-line",
        match.start(),
        library=words[-1].strip("'\"`") if words else None,
        file=_file_of_listing(line),
        detail={"sort": "not found"},
    )


def _ldd_found(line: Line, match: re.Match[str]) -> Mention:
    return line.mention(
        "ldd-line",
        match.start(),
        library=match["library"],
        file=_file_of_listing(line),
        detail={"sort": "found", "path": match["path"]},
    )


def _undefined_entry(line: Line, match: re.Match[str]) -> Claim | None:
    version = None
    at = match.end()
    dumped = re.compile(r"\(?((?:GLIBC|GLIBCXX|CXXABI|GCC|lib)[\w.+-]{1,60})\)?\s{1,12}").match(
        line.body, at
    )
    if dumped and "*UND*" in match[0].upper():
        version, at = dumped[1], dumped.end()
    symbol = symbol_at(line, at)
    if symbol is None:
        return None
    mention = line.mention(
        "readelf-line",
        match.start(),
        symbol=symbol.name,
        version=symbol.version or version,
        file=_file_of_listing(line),
        detail={
            "sort": "undefined",
            "weak": "yes" if re.search(r"\sWEAK\s|\sw\s", match[0]) else "",
        },
    )
    return Claim(match.start(), symbol.end, mention)


def _dynamic(line: Line, match: re.Match[str]) -> Mention | None:
    found = _ELF_NAME.search(line.body, match.end())
    if found is None:
        return None
    return line.mention(
        "readelf-line",
        match.start(),
        library=found[1],
        file=_file_of_listing(line),
        detail={"sort": match["tag"].lower()},
    )


def _file_of_listing(line: Line) -> str | None:
    """The file that a listing is of: the command's argument, or the heading of ``ldd a b``."""
    for above in line.above(40):
        body = above.body
        if body.endswith(":") and ".so" in body:
            return path_before(body, len(body))
        found = re.search(r"(?:^|[$#>]\s?)(?:ldd|nm|readelf|objdump)\s[^\n]{0,200}", body)
        if found:
            names = re.findall(r"[^\s|;&'\"]{1,400}\.so[.\d]{0,16}(?=[\s|;&'\"]|$)", found[0])
            return names[0] if names else None
    return None


def several_runtimes(mentions: Sequence[Mention]) -> Iterator[Mention]:
    """Where ldd found the CUDA runtimes of two major versions for one file."""
    found: dict[tuple[str | None, str], Mention] = {}
    for mention in mentions:
        runtime = re.match(r"libcudart\.so\.(\d+)", mention.library or "")
        if mention.what == "ldd-line" and mention.detail.get("sort") == "found" and runtime:
            found.setdefault((mention.file, runtime[1]), mention)
    for file in dict.fromkeys(file for file, _ in found):
        here = [mention for (of, _), mention in found.items() if of == file]
        if len(here) > 1:
            names = " ".join(mention.library or "" for mention in here)
            last = here[-1]
            yield Mention(
                "several-cuda-runtimes",
                last.line,
                last.number,
                last.stream,
                library=last.library,
                file=file,
                detail={"names": names},
            )


def nm_lines(source: Source) -> Iterator[Mention]:
    """Lines of ``nm``: what a file needs (U, w, v) and what it has.

    Found by their form, since nothing in them is a word of their own.
    """
    count = 0
    for sign in ("\nU ", " U ", " T ", " W ", " V ", " D ", " B ", " t ", " w ", " u ", "\tU "):
        at = 0 if sign[0] == "\n" and source.text.startswith(sign[1:]) else source.text.find(sign)
        tries = 0
        while at >= 0 and count < MOST_LINES and tries < 3 * MOST_LINES:
            tries += 1
            line = source.line_at(at + (source.text[at] == "\n"))
            mention = _nm_line(line)
            if mention is not None:
                count += 1
                yield mention
            at = source.text.find(sign, line.start + len(line.raw))


def _nm_line(line: Line) -> Mention | None:
    match = _NM.match(line.raw) or _NM.match(" " + line.body)
    if match is None or (match[1] not in "Uwv" and not match[0].strip()[:1].isdigit()):
        return None
    at = line.body.find(f"{match[1]} ") if line.body.startswith(match[1]) else -1
    start = at + 2 if at >= 0 else line.body.find(f" {match[1]} ") + 3
    symbol = symbol_at(line, start)
    if (
        symbol is None
        or line.body[symbol.end :].strip(" |`'\"")
        or (
            # a line of prose such as "U should ..." has more words than a name
            symbol.name.isalpha() and match[1] == "U" and len(line.raw) - len(line.raw.lstrip()) < 4
        )
    ):
        return None
    sort = "undefined" if match[1] in "Uwv" else "defined"
    detail = {"sort": sort, "type": match[1], "weak": "yes" if match[1] in "wv" else ""}
    return line.mention(
        "nm-line", 0, symbol=symbol.name, version=symbol.version,
        file=_file_of_listing(line), detail=detail,
    )  # fmt: skip


_ANY_MANGLED = lazily(r"(?<![A-Za-z0-9_.$])_{1,2}Z[A-Za-z0-9_.$]{4,4000}")
_ALONE = lazily(
    r"['\"`(]?(?P<name>[A-Za-z_][\w.$]{2,200})['\"`)]?(?:(?:@@?|,?\s+version\s+)[\w.+-]{2,100})?"
)
#: Not a word: with an underscore or a digit, or a capital after a small letter, as in cudaMalloc.
_C_LIKE = lazily(r"\w*[_\d]|[a-z]+[A-Z]|_?Py[A-Z]")


def bare_symbols(source: Source) -> Iterator[Mention]:
    """Mangled names anywhere, and lines that are nothing but a name.

    For texts in which no failure was found.
    """
    listed = list(_names_alone(source)) if len(source.text) <= 20_000 else []
    if listed:
        yield from listed
        return
    seen: set[str] = set()
    at, tries = source.text.find("_Z"), 0
    while at >= 0 and len(seen) < MOST_BARE and tries < 3 * MOST_LINES:
        tries += 1
        line = source.line_at(at)
        for match in _ANY_MANGLED.finditer(line.body):
            symbol = symbol_at(line, match.start())
            if symbol is not None and symbol.name not in seen and len(seen) < MOST_BARE:
                seen.add(symbol.name)
                yield line.mention(
                    "bare-symbol",
                    match.start(),
                    symbol=symbol.name,
                    version=symbol.version,
                    detail={"cut": "yes" if symbol.cut else ""},
                )
        at = source.text.find("_Z", max(at + 2, line.start + len(line.raw)))


def _names_alone(source: Source) -> Iterator[Mention]:
    """The names of a text that is nothing but a list of them."""
    found: list[Mention] = []
    for raw in source.text.split("\n"):
        if not raw.strip():
            continue
        if len(found) >= MOST_BARE or len(raw) > 2_000:
            return
        mention = _name_alone(source.line_at(source.text.find(raw)))
        if mention is None:
            return
        found.append(mention)
    yield from found


def _name_alone(line: Line) -> Mention | None:
    body = line.body.strip("'\"`., ")
    match = _ALONE.fullmatch(body)
    readable = "::" in body and " " not in body.split("(")[0].split("<")[0]
    if not readable and (match is None or not _C_LIKE.match(match["name"])):
        return None
    symbol = symbol_at(line, 0)
    if symbol is None or symbol.end < len(body) - 1:
        return None
    return line.mention("bare-symbol", 0, symbol=symbol.name, version=symbol.version)
