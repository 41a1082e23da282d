"""Versions told as past ones, in a sentence that tells of the one that took their place."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.version_forms import PROSE, VERSION
from fa_forensics.patterns import lazily

#: How far the words around a version are looked at, and how often one word is followed up.
_AROUND, _MOST = 60, 40
_V = rf"['\"`]{{0,2}}v?(?P<version>{VERSION})(?![\w.]{{0,20}}\d)"
#: "previously torch 2.5.0", "used to have torch 2.5.0", "from torch 2.5.0": words before it.
_BEFORE = lazily(
    r"(?:\b(?:previously|formerly|originally|earlier|in the past"
    r"|until (?:recently|yesterday|now))\b"
    r"|\b(?:before(?: that)?|old|previous(?: version)?|prior)\s?[:=,]"
    r"|\b(?:my|the|our) (?:previous|former)\b|\bused to\b"
    r"|\b(?:was|were|had been) (?:working|running fine|fine)\b"
    r"|\b(?:work|ran|runs?)(?:ed|s)? before\b"
    r"|\b(?:up|down)grad(?:ed?|ing) from"
    r"|\b(?:(?:updat|switch|mov|migrat|chang|bump)(?:ed?|ing)?|went|coming|revert(?:ed|ing)"
    r"|(?:rolled|went|going|rolling) back) (?:away )?from)"
    r"(?: (?:i|we|it|this|all|everything|was|were|be|had|have|ran|run|used?|using|on|with|in"
    r"|under|at|an?|the|my|our|fine|well|ok|worked|running|working|version|(?:py)?torch|cuda)"
    r"){0,6}[ :=,'\"`(]{0,4}\Z"
    r"|(?:之前|以前|原来|原先|原本|此前|先前|曾经|早先|从前|旧版本?|老版本?)"
    r"[^.;,\n\d\u3002\uff0c\uff1b]{0,12}\Z",
    re.IGNORECASE,
)
#: "rolled back to torch 2.5.1 from torch 2.6.0", "moved to 2.6.0 from torch 2.5.0".
_FROM = lazily(
    rf"\b(?:back|updated|switched|moved|went|upgraded|downgraded) to [^;\n]{{0,24}}{VERSION} from "
    r"\Z",
    re.IGNORECASE,
)
#: "torch 2.5.0 before, now ...": a word of time that ends its clause, not "before flash-attn".
_AFTER = lazily(
    r"['\"`)]{0,2} (?:previously|earlier|formerly) (?:worked|ran|was fine)\b"
    r"|['\"`)]{0,2} (?:(?:worked|ran|was (?:fine|working|ok|installed)|was there)"
    r"(?: fine| well)? )?(?:before|previously|earlier|formerly|in the past|originally"
    r"|until (?:recently|yesterday|now)|last (?:week|month|year))"
    r"(?=\s{0,2}(?:[,.;:)!(\u3002\uff0c]|$|and\b|but\b|now\b|then\b))"
    r"|['\"`)]{0,2} (?:worked|ran|was fine|was working)(?: fine| well| ok)?[,;.]? "
    rf"(?:but |and |while )?(?:(?:with |now |on )?(?:(?:py)?torch |cuda )?v?{VERSION})"
    r"|\s?(?:的时候|时)?(?:都)?(?:升级?|降级?|更新|切换|换|改|回退)(?:到|成|为|至)",
    re.IGNORECASE,
)
_INSTALLED = lazily(r"\b(?:re)?install\w{0,3} (?:the |my )?['\"`]{0,2}\Z", re.IGNORECASE)
#: "I was using 1.10.2 before, when I switched to 1.9 it was solved": the one before is what failed.
_CURED = lazily(
    r"[^\n]{0,60}?\d\.\d[^\n]{0,60}?(?:(?<!not )(?<!n't )\b(?:solved|fixed|resolved|went away"
    r"|disappeared|is gone|was gone)\b|\b(?:it|everything|all|that) (?:now |all )?work(?:s|ed)\b"
    r"|\bworks? (?:now|again|fine)\b|解决|没问题了|就好了|正常了)",
    re.IGNORECASE,
)
#: What takes the place: "now 2.6.0", "现在是 2.6.0", and next to the past one "to 2.6.0".
_SMALL = (
    r"(?: (?:i|we|it|its|is|am|are|on|at|have|has|with|using|use|run|running|run with|it's|i'm"
    r"|i've|we're|that|the|an?|version|torch|pytorch)){0,5}"
)
_NOW = (
    rf"(?:(?:\b(?:now|currently|today|at present|presently|right now|new|after|current)\b[:,=]?"
    rf"{_SMALL}|\b(?:up|down)grad\w{{2,3}}(?: it)? to|\b(?:updated|switched|moved|went"
    rf"|rolled back|went back|going back)(?: it)? to)[ :=(]{{1,3}}"
    r"|(?:现在|目前|当前|如今|今天|升级?到|降级?到|更新到|换成|换到|改成|改为|升级为|切换到|回退到)"
    r"(?:装|用|使用|安装)?(?:的)?(?:版本)?(?:是|为|了|:|\uff1a)?\s?)"
)
_PRESENT = (
    r"(?:{now}(?:{name}[ :=v]{{0,3}})?{v}|(?<![\w.])(?:it is|it's|is) {v2} (?:now|today)"
    r"|(?<![\w.-] )(?<![\w.-]){v3}\s?"
    r"(?:(?:now )?(?:fails|does(?:n't| not)|breaks|crashes)|报错|不行))"
)
_IS_NOW = r"(?<![\w./-]){name}(?![\w-])(?: is| version)?\s?{now}{v}"
_TO = r"['\"`)]{{0,2}}(?: (?:back )?to |\s?(?:->|=>|→|➜)\s?){v}"
#: Words of which a sentence of that sort has one.
_WORDS = ("previous", "former", "original", "before", "used to", "earlier", "until ", "in the past",
          "from ", "worked", "was working", "last ", "ran ", "old:",
          "之前", "以前", "原来", "原先", "原本", "此前", "先前", "曾经", "从前", "升级", "升到",
          "降级", "更新到", "切换到", "回退到", "换成", "改成",
          "旧版", "老版", "now ", "now: ", "today", "现在", "目前", "当前")  # fmt: skip


def is_past(words: str, start: int, end: int) -> bool:
    """Whether the version at ``start`` to ``end`` of a line is told as one that was there."""
    before = words[max(0, start - _AROUND) : start]
    if _CURED.match(words[end : end + 3 * _AROUND]) is not None:
        return False
    if _FROM.search(before) is not None:
        return not is_denied(words, start)
    if (told := _BEFORE.search(before)) is not None:
        return not is_denied(before, told.start())  # "not upgraded from torch 2.5.0"
    if _INSTALLED.search(before) is not None:
        return False  # "installed torch 2.5.0 before" something else
    return _AFTER.match(words[end : end + _AROUND]) is not None


def read_present(
    source: Source, places: Places, offer: Callable[[str, int, int, str], None]
) -> None:
    """The bare version that a sentence with a past one gives as today's: "2.5.0 before, now 2.6.0".

    ``before:NAME`` is the past one.
    """
    seen = -1
    for place in sorted(p for word in _WORDS for p in places(word)[:_MOST]):
        line = source.line_at(place)
        if line.start == seen:
            continue
        seen = line.start
        words = line.body[:1000]
        for name, key in _named(words.lower()):
            _of_name(words, name, key, line.number, offer)


def _named(lower: str) -> list[tuple[str, str]]:
    found = [(name, "torch") for name in ("pytorch", "torch") if name in lower][:1]
    found += [("cuda", "cuda")] if "cuda" in lower else []
    found += [
        (name, f"pkg:{name}")
        for name in PACKAGES
        if name not in ("torch", "pytorch") and name in lower
    ]
    return found[:6]


def _of_name(
    words: str, name: str, key: str, number: int, offer: Callable[[str, int, int, str], None]
) -> None:
    called = r"(?:py)?torch" if key == "torch" else re.escape(name)
    mention = re.compile(
        rf"(?<![\w./-]){called}(?![\w-])(?:(?: version| used to| was| had been| is| it| be)"
        rf"{{0,4}}[ :=v]{{1,3}}|\s?(?:之前|以前|原来|版本|是|为|用的?){{0,4}}\s?)"
        rf"(?P<version>{VERSION})(?![\w.]{{0,20}}\d)",
        re.IGNORECASE,
    )
    present = re.compile(
        _PRESENT.format(
            now=_NOW, name=called, v=_V,
            v2=_V.replace("?P<version>", "?P<other>"), v3=_V.replace("?P<version>", "?P<third>"),
        ), re.IGNORECASE,
    )  # fmt: skip
    own = re.compile(_IS_NOW.format(now=_NOW, name=called, v=_V), re.IGNORECASE).search(words)
    if own is not None and not is_denied(words, own.start()):
        offer(key, PROSE, number, own["version"])
    for told in list(mention.finditer(words))[:8]:
        verb = re.search(r"\b(?:was|used to|had been)\b|之前|以前|原来", told[0])
        cured = _CURED.match(words[told.end() : told.end() + 3 * _AROUND])
        if cured or not (verb or is_past(words, told.start(), told.end())):
            continue
        come = re.compile(_TO.format(v=_V), re.IGNORECASE).match(words, told.end())
        come = come or present.search(words, told.end()) or present.search(words[: told.start()])
        offer(f"before:{key.removeprefix('pkg:')}", PROSE, number, told["version"])
        if come is None:
            continue
        version = next(text for text in come.groups() if text)
        if version != told["version"] and _depth(version) == _depth(told["version"]):
            offer(key, PROSE, number, version)


def _depth(version: str) -> int:
    """How many numbers a version has, without what stands behind them: 3 of 2.7.4.post1."""
    return len((re.match(r"\d+(?:\.\d+)*", version) or [""])[0].split("."))
