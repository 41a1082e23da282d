"""The torch that somebody says took another one's place: it is the one that is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.cures import is_cure
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.replaced import replaced_by_log
from fa_forensics.facts.paste.version_forms import LISTED, PROSE, VERSION
from fa_forensics.patterns import lazily

#: How often one word is followed up.
_MOST = 40
_NAME = r"(?:py)?torch(?: version)?"
_FROM = rf"(?P<gone>{VERSION})['\"`]{{0,2}}"
_TO = (
    rf"(?:{_NAME}[= ]{{1,3}})?['\"`]{{0,2}}v?"
    r"(?P<come>[012]\.\d{1,2}(?:\.\d{1,2})?(?:\+\w{1,12})?)(?![\w.]{0,20}\d)"
)
_ARROW = r"\s{0,3}(?:->|=>|→|➜)\s{0,3}"
_VERBS = r"(?:upgrad|downgrad|updat|replac|overwr|switch|chang|mov|bump)\w{1,6}"
_MOVED = tuple(
    lazily(pattern, re.IGNORECASE)
    for pattern in (
        # "upgraded torch from 2.5.1 to 2.6.0", "replaced torch 2.5.1 by 2.6.0"
        rf"\b{_VERBS} (?:the |my |our )?['\"`]?{_NAME}['\"`]?(?: from|==)? {{0,2}}v?{_FROM}"
        rf"(?: (?:with|by|to) |{_ARROW}){_TO}",
        # "torch was upgraded from 2.5.1 to 2.6.0", "torch went from 2.5.1 to 2.6.0"
        rf"\b{_NAME} (?:(?:was|is|got|gets|has been|had been) )?(?:{_VERBS}|went|goes) from "
        rf"v?{_FROM}(?: to |{_ARROW}){_TO}",
        # "torch 2.5.1 -> 2.6.0"
        rf"\b{_NAME}[= ]{{1,2}}v?{_FROM}{_ARROW}{_TO}",
        # "uninstalled torch==2.5.1 and installed torch==2.6.0"
        rf"\b(?:uninstall|remov)\w{{0,4}} {_NAME}[= ]{{1,2}}v?{_FROM}[,;.]? "
        rf"(?:(?:and|then) ){{0,2}}(?:re)?install\w{{0,3}} {_TO}",
        # "torch==2.5.1 was removed, torch==2.6.0 installed"
        rf"\b{_NAME}[= ]{{1,2}}v?{_FROM} (?:was |got )?(?:uninstalled|removed|replaced),?"
        rf" (?:and |by |with ){{0,2}}{_TO}",
    )
)
_WORDS = ("upgrad", "downgrad", "updat", "replac", "overwr", "switch", "chang", "moved", "bump",
          "went from", "goes from", "->", "=>", "\u2192", "\u279c", "uninstall",
          "remov")  # fmt: skip
#: "changed pytorch from 1.5 to 1.0. Both of them worked": the one before is what failed.
_WORKED = lazily(
    r"[.,;]? (?:and |then |now )?(?:(?:both|all)(?: of)?(?: them| it)?|everything|it|they|that)"
    r"(?: (?:now|then|all|again))? (?:works?|worked|runs?|ran|was fine|is fine)\b",
    re.IGNORECASE,
)
#: "torch upgraded from 1.1.0 to a later build": which one came is not told.
_GONE = lazily(
    rf"\b{_NAME} (?:(?:was|is|got|gets|has been|had been) )?(?:upgraded|updated) from "
    rf"v?{_FROM}(?= (?:to |-> ?)(?:an? |the |some )?(?:later|newer|new|latest|newest|nightly"
    r"|current|recent|master|main|source))",
    re.IGNORECASE,
)
#: "If you have torch=1.1.0 ... after you install an upgraded torch": that is the one before.
_HAD = lazily(
    rf"\bif you (?:have|had) {_NAME}[= ]{{1,3}}v?{_FROM}[^\n]{{0,80}}?\bafter (?:you )?"
    r"(?:install|upgrad|updat)\w{0,4} (?:to )?(?:an? |the )?(?:upgraded|newer|new|later) "
    rf"{_NAME}",
    re.IGNORECASE,
)
#: "... it will not overwrite _torch_sox.so": a build that keeps the one before.
_KEPT = lazily(
    r"\b(?:not|never) (?:overwrite|replace|rebuild)\b|n't (?:overwrite|replace|rebuild)\b"
)
#: What is not done, or what somebody thinks of doing.
_NOT_DONE = lazily(
    r"\b(?:would|will|wants? to|tries to|try(?:ing)? to|could|should|must|cannot|can't|needs? to"
    r"|have to|going to|asks? to|if you|you can|please|might|may|shall|plan(?:s|ned|ning)?"
    r"|think\w{0,3}|consider\w{0,3}|instead of|avoid\w{0,3}|refus\w{1,3} to)\b[^.;\n]{0,40}\Z",
    re.IGNORECASE,
)


def not_done(words: str, start: int) -> bool:
    """Whether the change told of at ``start`` of a line was not made, or is only thought of."""
    before = words[max(0, start - 60) : start]
    return _NOT_DONE.search(before) is not None or is_denied(words, start)


def without_gone(
    best: dict[str, tuple[int, int, str]],
    torches: dict[str, tuple[int, int]],
    source: Source,
    places: Places,
    offer: Callable[[str, int, int, str], None],
) -> None:
    """Of a torch that another one took the place of, the other one is loaded.

    A report's own line on the loaded torch is surer than that, and stays.
    """
    for place in (*places("upgraded")[:_MOST], *places("updated")[:_MOST]):
        told = source.line_at(place)
        left = _GONE.search(told.body[:2000])
        if left is not None and not not_done(told.body, left.start()):
            offer("before:torch", PROSE, told.number, left["gone"])
        had = _HAD.search(told.body[:2000])
        if had is not None:
            offer("before:torch", PROSE, told.number, had["gone"])
            if _KEPT.search(told.body, had.end(), had.end() + 300):
                offer("flag:same-checkout", PROSE, told.number, "yes")
            if best.get("torch", (0, 0, ""))[2] == had["gone"]:
                torches.pop(best.pop("torch")[2], None)
    if "torch" in best and best["torch"][0] < LISTED:
        return
    found = replaced_by_log(source, places) or _in_words(source, places)
    if found is None:
        return
    number, gone, come = found
    own, other = gone.partition("+")[0], come.partition("+")[0]
    if own == other:
        return
    if "torch" not in best:
        offer("torch", PROSE, number, come)
        torches.pop(own, None)
        return
    sort, line, text = best["torch"]
    public = text.partition("+")[0]
    if public not in (own, other):
        return
    torches.pop(own, None)
    torches.setdefault(other, (sort, line))
    best["torch"] = (sort, line, text if public == other and "+" in text else come)


def _in_words(source: Source, places: Places) -> tuple[int, str, str] | None:
    """(line, gone, come) of the first sentence that tells of it as done, and not as the cure."""
    seen = -1
    for place in sorted(p for word in _WORDS for p in places(word)[:_MOST]):
        line = source.line_at(place)
        if line.start == seen or "torch" not in line.lower:
            continue
        seen = line.start
        words = line.body[:2000]
        for pattern in _MOVED:
            match = pattern.search(words)
            if match is None or not_done(words, match.start()):
                continue
            if is_cure(words, match.start("come"), match.end("come")):
                return None
            if _WORKED.match(words, match.end("come")):
                return None
            return line.number, match["gone"], match["come"]
    return None
