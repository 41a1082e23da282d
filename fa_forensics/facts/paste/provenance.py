"""Words beside a name that tell of no index's build: self-built, modified, a fork, for ROCm."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from fa_forensics.facts.paste.cures import is_cure
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Line, Places, Source
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

Offer = Callable[[str, int, int, str], None]

#: How many places of one word are looked at.
_MOST = 20

_NAME = "|".join(name.replace("-", "[-_]") for name in sorted(PACKAGES, reverse=True))
_NAMED = rf"(?<![\w./-])(?P<name>{_NAME})(?![\w-]|\.\w)"
_VERSION = r"(?:[ =v]{0,3}\d[\w.+-]{0,40}| (?:release/[\d.]{1,8}|main|master|nightly))?"
#: A build of one's own, in English, Chinese, Korean and Japanese.
_BUILT = (
    r"(?:self|own|custom|local|locally|home|hand)[ -]?(?:built|build|compiled|compile)\b"
    r"|source[ -](?:build|built|compiled|install\w{0,6}|tree|checkout)\b"
    r"|(?:built|compiled|build|installed) (?:from (?:the )?(?:source|master|main)"
    r"|by (?:hand|myself)|myself)\b"
    r"|from source\b|源码|源代码|源碼|自己编译|自行编译|自编译|本地编译|手动编译|编译安装"
    r"|소스|직접 ?(?:빌드|컴파일)|자체 ?빌드|ソース|自前ビルド|自分でビルド"
)
#: Code of one's own in it.
_CHANGED = (
    r"(?:locally |slightly |self-|heavily )?(?:modified|patched|customi[sz]ed|hacked)\b"
    r"|with (?:my|our|own|local|some) (?:own )?(?:changes|patch\w{0,3}|modifications|edits)\b"
    r"|(?:my|our) (?:own )?(?:version|copy|branch)\b(?! ?(?:(?:is|was|are)\b|[:=]|v?\d))"
    r"|修改(?! ?(?:成|为|為|到|至|v?\d))|改过|改動|魔改|二次开发|二开|定制|수정|커스텀|改造|改変"
)
_FORK = r"\bfork(?:ed)?\b|\b분기|포크"
_IN_BRACKETS = lazily(
    rf"{_NAMED}{_VERSION} ?[(\[\uff08【]"
    r"(?P<words>[^()\[\]\uff08\uff09【】\n]{1,80})[)\]\uff09】]",
    re.IGNORECASE | re.ASCII,
)
#: "mmcv 1.3.9 self-built", "torch 2.1 源码编译", "torch, own build".
_BEHIND = lazily(
    rf"{_NAMED}{_VERSION}(?:,|:|是|为|는|은|를|을| is| was)?[ ]?从?"
    rf"(?P<words>(?:{_BUILT}|{_CHANGED}))"
    r"(?! (?:ext|op|ker|mod|wheel|pack|lay|func|cuda|c\+\+)"
    r"|,? (?:(?:version|copy|branch|fork|build|release) )?of\b"
    rf"| (?:the )?(?:{_NAME})(?![\w-]))",
    re.IGNORECASE | re.ASCII,
)
#: "self-built torch", "a modified mmcv", "源码编译的torch", "직접 빌드한 torch".
_AHEAD = lazily(
    r"(?P<words>(?:self|own|custom|locally|home|source)[ -](?:built|compiled|build of)"
    r"|(?<![\w-])(?:modified|patched|customi[sz]ed|forked|(?:my|our|own|a) fork of)"
    r"|(?:源码|源代码|自己|自行|自|本地|手动)(?:编译|安装)(?:安装)?(?:过|好|了)?的?"
    r"|(?:修改|改)(?:过|了|后)的?|魔改的?|(?:직접|소스(?:에서|로)?) ?(?:빌드|컴파일)한|수정한)"
    rf" ?(?:version of |copy of )?{_NAMED}(?! version)"
    r"(?! ?[=\d.]{0,12} ?的?(?:版本|成|为|到))",
    re.IGNORECASE | re.ASCII,
)
#: A build that was wished for, tried or avoided; "I build torch from source" is one's own.
_WISH = lazily(
    r"(?:(?<!\bI )(?<!\bwe )\b(?:re)?(?:build|compile|install)"
    r"|\b(?:avoid\w{0,3}|instead of|without|before|try|trying|tried|than|consider\w{0,3}) "
    r"(?:re)?(?:build|compil|install)ing) (?:the |a |my |own ){0,2}\Z",
    re.IGNORECASE,
)
_NOT_SO = lazily(
    r"['\"`)]{0,2} (?:(?:is|was|are)(?: not|n't)\b|would|could|should|may|might)", re.IGNORECASE
)
_IS_BUILT = lazily(rf"(?:^|\b|(?<=[^\w])){_BUILT}|^source(?:[,;]|$)", re.IGNORECASE)
_IS_CHANGED = lazily(_CHANGED, re.IGNORECASE)
_IS_FORK = lazily(_FORK, re.IGNORECASE)
_IS_ROCM = lazily(r"\b(?:rocm|hip)\b", re.IGNORECASE)
_NOT = lazily(r"\b(?:not|never|un)\b|\bunmodified|未|没有|非|아님|않", re.IGNORECASE)
#: Any of these stands in a text that has one of the patterns.
_SIGNS = (
    "from master", "from main",
    "self-", "self ", "own ", "own-", "custom", "local", "source", "myself", "modified",
    "patched", "hacked", "my ", "our ", "fork", "rocm", "(hip", "源", "编译", "修改", "改",
    "定制", "二次开发", "二开", "소스", "직접", "자체", "수정", "커스텀", "포크", "ソース",
    "自前", "自分で",
)  # fmt: skip
_TORCH = ("torch", "pytorch")


def read_provenance(source: Source, places: Places, offer: Offer) -> None:
    """What the text says of where a package is from.

    The keys ``flag:torch-source``, ``flag:torch-rocm``, ``flag:torch-xpu``,
    ``flag:built-from-source:NAME`` and ``flag:changed:NAME``. A changed package, and a fork, is
    another program than the index's under its name.
    """
    _of_intel(source, places, offer)
    _of_amd(source, places, offer)
    seen: set[int] = set()
    for sign in _SIGNS:
        for place in places(sign)[:_MOST]:
            line = source.line_at(place)
            if line.start not in seen:
                seen.add(line.start)
                _of_line(line, offer)


#: "2.0.110+xpu", "torch of Intel's xpu index", "ipex-llm[xpu]": Intel's GPUs.
_IS_XPU = lazily(
    r"\+xpu\b|\b(?:torch|pytorch|ipex|intel)\b[^\n]{0,60}?(?<![\w.])xpu\b"
    r"|(?<![\w.])xpu\b[^\n]{0,20}?\b(?:torch|pytorch|ipex|build|index|wheel)\b",
    re.IGNORECASE,
)


#: "torch 2.6, ROCm, MI300X": a list of versions that names it without a number.
_IS_AMD = lazily(r"(?:^|[,;(] ?)(?:AMD )?ROCm(?= ?(?:[,;)]|$))", re.IGNORECASE)


def _of_amd(source: Source, places: Places, offer: Offer) -> None:
    """The key ``flag:torch-rocm``, by an entry of a list of versions."""
    for place in places("rocm")[:_MOST]:
        line = source.line_at(place)
        if _IS_AMD.search(line.body) and "," in line.body and not _CUDA.search(line.body):
            offer("flag:torch-rocm", BANNER, line.number, "yes")
            return


_CUDA = lazily(r"\b(?:cuda|nvidia|cu1[1-4]\d)\b", re.IGNORECASE)


def _of_intel(source: Source, places: Places, offer: Offer) -> None:
    """The key ``flag:torch-xpu``: torch is a build for Intel's GPUs, by its version or by words."""
    for place in places("xpu")[:_MOST]:
        line = source.line_at(place)
        if (found := _IS_XPU.search(line.body)) and not is_denied(line.body, found.start()):
            offer("flag:torch-xpu", BANNER, line.number, "yes")
            return


def is_wished(words: str, start: int, end: int) -> bool:
    """Whether the build that a line tells of at ``start`` to ``end`` is one that nobody made."""
    before = words[max(0, start - 60) : start]
    return _WISH.search(before) is not None or _NOT_SO.match(words, end) is not None


def _of_line(line: Line, offer: Offer) -> None:
    for pattern in (_IN_BRACKETS, _BEHIND, _AHEAD):
        for match in itertools.islice(pattern.finditer(line.body), _MOST):
            if is_denied(line.body, match.start()) or is_cure(
                line.body, match.start(), match.end()
            ):
                continue
            if is_wished(line.body, match.start(), match.end()):
                continue
            name = match["name"].lower().replace("_", "-")
            _of_words(match["words"], name, pattern is _IN_BRACKETS, line, offer)
            if pattern is _BEHIND and _AND_TORCH.search(line.body, 0, match.start()):
                _of_words(match["words"], "torch", False, line, offer)


#: "torch and torch_xla built from master": the words are of both.
_AND_TORCH = lazily(r"(?<![\w./-])(?:py)?torch(?: and | ?[&+/] ?)$", re.IGNORECASE)


def _of_words(words: str, name: str, bracketed: bool, line: Line, offer: Offer) -> None:
    if _NOT.search(words):
        return
    torch = name in _TORCH
    changed = _IS_CHANGED.search(words) is not None or (not bracketed and "fork" in words.lower())
    fork = bracketed and _IS_FORK.search(words) is not None
    if torch and bracketed and _IS_ROCM.search(words):
        offer("flag:torch-rocm", BANNER, line.number, "yes")
    if not (changed or fork or _IS_BUILT.search(words) or not bracketed):
        return
    if torch:
        offer("flag:torch-source", BANNER, line.number, "torch")
        return
    offer(f"flag:built-from-source:{name}", BANNER, line.number, name)
    if changed or fork:
        offer(f"flag:changed:{name}", BANNER, line.number, name)
    if changed:
        offer("flag:own-code", BANNER, line.number, "own")
