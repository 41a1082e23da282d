"""What an installation did to torch: which release went, which came, and for whose sake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fa_forensics.facts.paste.lines import Line, Places, Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.version_forms import VERSION
from fa_forensics.patterns import lazily

#: How often one word of an installation is followed up.
_MOST = 40
_GONE = lazily(
    rf"(?:Found existing installation:|Uninstalling|Successfully uninstalled|^\s*-)\s{{1,4}}"
    rf"torch(?:==|-|\s)(?P<version>{VERSION})(?![\w.])",
    re.IGNORECASE,
)
_COME = lazily(
    rf"(?:Successfully installed\s[^\n]{{0,4000}}?|Would install\s[^\n]{{0,4000}}?|^\s*\+\s{{1,4}})"
    rf"(?<![\w.-])torch(?:==|-)(?P<version>{VERSION})(?![\w.])",
    re.IGNORECASE,
)
_WANTED = lazily(
    rf"Collecting\s{{1,4}}torch(?:==|\s\()(?P<version>{VERSION})(?:[^\n]{{0,80}}?"
    rf"\(from (?P<package>[A-Za-z][\w.-]{{0,60}})(?:==(?P<release>{VERSION}))?)?",
    re.IGNORECASE,
)
_FETCHED = lazily(
    rf"(?:Downloading|Using cached)\s\S{{0,300}}?(?<![\w.])torch-(?P<version>{VERSION}|"
    r"\d[\w.]{1,20}%2B\w{1,12})-cp",
    re.IGNORECASE,
)
_LISTED = lazily(rf"^torch(?:\s{{2,60}}|==)(?P<version>{VERSION})(?:\s|$)", re.IGNORECASE)
#: "uninstalls torch 2.11.0+cu128 and replaces it with torch 2.12.0", as people tell it.
_TOLD = lazily(
    rf"(?:(?:(?:un|re)install|replac|overwr|downgrad|upgrad|updat)\w{{1,6}}\s[^\n]{{0,40}}?"
    rf"\btorch(?:==|-|\s)|\btorch\s(?:was |is |gets? |got )?(?:up|down)grad(?:ed|es?) from\s)"
    rf"v?(?P<gone>{VERSION})['\"`]?\s[^\n]{{0,40}}?\b(?:with|by|to|install\w{{0,3}})\s[^\n]{{0,30}}?"
    rf"(?:torch)?[-=\s`'\"]{{0,3}}v?(?P<come>[12]\.\d{{1,2}}\.\d{{1,2}}(?:\+\w{{1,12}})?)",
    re.IGNORECASE,
)


def replaced(source: Source, places: Places) -> tuple[Mention, ...]:
    """The torch that an installation put in another's place, where its log or somebody says so."""
    found = _by_a_log(source, places) or _in_words(source, places)
    if found is None:
        return ()
    line, place, gone, come, told = found
    if _same(gone, come):
        return ()
    detail = {"gone": gone, "come": come.replace("%2B", "+"), **told}
    return (line.mention("torch-replaced", place, detail=detail),)


def replaced_by_log(source: Source, places: Places) -> tuple[int, str, str] | None:
    """(line, the torch that went, the one that came) by an installation that was done."""
    found = _by_a_log(source, places)
    if found is None or not re.search(r"nstall|^\s*-", found[0].body):
        return None
    line, _, gone, come, _ = found
    return line.number, gone, come.replace("%2B", "+")


Found = tuple[Line, int, str, str, dict[str, str]]


def _by_a_log(source: Source, places: Places) -> Found | None:
    """pip's and uv's own lines; what pip takes into the environment of a build does not count."""
    gone = next(
        _found(source, places, ("installation: torch", "uninstalling torch", "uninstalled torch",
                                "- torch=="), _GONE), None,
    )  # fmt: skip
    wanted = next(_found(source, places, ("collecting torch",), _WANTED), None)
    if gone is None and (wanted is None or places("pip-build-env")):
        return None
    if gone is None:
        gone = next(_found(source, places, ("torch ", "torch=="), _LISTED), None)
        if gone is None or wanted is None or gone[0].number > wanted[0].number:
            return None
    after = (
        next(_found(source, places, ("installed ", "would install", "+ torch=="), _COME), None)
        or wanted
        or next(_found(source, places, ("torch-",), _FETCHED), None)
    )
    if after is None:
        return None
    told = {}
    if wanted is not None and wanted[1]["package"]:
        told = {"package": wanted[1]["package"], "release": wanted[1]["release"] or ""}
    line, match = gone
    return line, match.start(), match["version"], after[1]["version"], told


def _in_words(source: Source, places: Places) -> Found | None:
    for word in ("uninstall", "replac", "overwr", "downgrad", "upgrad"):
        seen = -1
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            if line.start == seen:
                continue
            seen = line.start
            match = _TOLD.search(line.body)
            if match is not None:
                return line, match.start(), match["gone"], match["come"], {"prose": "yes"}
    return None


def _found(
    source: Source, places: Places, signs: Sequence[str], pattern: re.Pattern[str]
) -> Iterator[tuple[Line, re.Match[str]]]:
    seen = -1
    for place in sorted(p for sign in signs for p in places(sign)[:_MOST]):
        line = source.line_at(place)
        if line.start == seen:
            continue
        seen = line.start
        match = pattern.search(line.body)
        if match is not None:
            yield line, match


def _same(one: str, other: str) -> bool:
    """Whether two versions are of one build: 2.3.0 may be any build of 2.3.0."""
    (own, _, local), (their, _, theirs) = one.partition("+"), other.partition("+")
    return own == their and (not local or not theirs or local == theirs)
