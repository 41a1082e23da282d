"""``flash_attn broken after upgrading torch to 2.8``: a package fails since torch was changed."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache

from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.spelled_packages import ALSO
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

_CHANGED = lazily(
    r"\b(?:after|since|once)\b[^.;\n]{0,20}?\b(?:up|down)?(?:grad|dat|install|re-?install"
    r"|chang|switch|mov|bump)\w{0,4}\b[^.;\n]{0,24}?\b(?:py)?torch\b(?![\w./-])"
    r"|(?:升级|更新|更换|重装)[^。\n]{0,8}(?:py)?torch[^。\n]{0,12}(?:后|之后|以后)",
    re.IGNORECASE,
)
_FAILS = lazily(
    r"\b(?:broken?|breaks|broke|stop(?:s|ped) working|(?:doesn't|does not|not|won't|no longer) "
    r"(?:work(?:ing)?|import|load|run)|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|errors?"
    r"|(?:can't|can ?not) (?:be )?(?:import(?:ed)?|load(?:ed)?|use[d]?))\b"
    r"|报错|失败|不能用|无法(?:使用|导入)|崩溃",
    re.IGNORECASE,
)
#: It is the other way round: "works after upgrading torch".
_WORKS = lazily(r"\bwork(?:s|ed|ing)?\s(?:\w{1,8} ){0,2}(?:after|since|once)\b", re.IGNORECASE)
_WORD = lazily(r"[A-Za-z][\w-]{1,40}")


@lru_cache(maxsize=1)
def _known() -> dict[str, str]:
    """(a name as people write it, in small letters; the distribution) of compiled packages."""
    known: dict[str, str] = {}
    for row in read_table("packages.json")["packages"]:
        distribution = str(row["distribution"])
        if row["modules"] and distribution != "torch":
            names = (distribution, str(row["import"]).split(".")[0], *row["modules"])
            for name in (*names, *ALSO.get(distribution, ())):
                known.setdefault(str(name).lower().replace("_", "-"), distribution)
    return known


def broken_since(source: Source) -> Mention | None:
    """The first sentence that says so of a package on record."""
    for found in itertools.islice(_CHANGED.finditer(source.text), 10):
        line = source.line_at(found.start())
        body = line.body
        fails = _FAILS.search(body)
        if fails is None or is_denied(body, fails.start()) or _works(body):
            continue
        package = _package(body)
        if package is not None:
            return line.mention("broken-since", 0, detail={"package": package})
    return None


def _works(body: str) -> bool:
    found = _WORKS.search(body)
    return found is not None and not is_denied(body, found.start())


def _package(body: str) -> str | None:
    """The first package on record that a line names, in one word or in two ("flash attention")."""
    words = [
        word[0].lower().replace("_", "-") for word in itertools.islice(_WORD.finditer(body), 60)
    ]
    for one, two in itertools.zip_longest(words, words[1:], fillvalue=""):
        for name in (f"{one}-{two}", f"{one} {two}", one):
            if name in _known():
                return _known()[name]
    return None
