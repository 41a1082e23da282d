"""Steps from one release of a package to another, packages built from source, nightlies."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from fa_forensics.facts.paste.checked_out import read_checked_out
from fa_forensics.facts.paste.cures import is_cure
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.moved import not_done
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.own_setup import read_setup
from fa_forensics.facts.paste.provenance import is_wished, read_provenance
from fa_forensics.facts.paste.repositories import read_repositories
from fa_forensics.facts.paste.rocm_system import read_system_rocm
from fa_forensics.facts.paste.version_forms import BANNER, LISTED, PROSE, VERSION
from fa_forensics.patterns import lazily

Offer = Callable[[str, int, int, str], None]

#: How many places of one word are looked at.
_MOST = 20

#: "upgraded from flash_attn 2.7.4.post1 to 2.8.0.post2", "updating vllm from 0.8.5 to 0.9.0".
_STEP = lazily(
    r"\b(?:up|down)(?:grad|dat)(?:ed|es?|ing) (?:from )?(?P<name>[A-Za-z][\w-]{1,40})"
    rf"[= ]{{1,2}}(?:from )?v?(?P<old>{VERSION}) (?:to|->|=>) v?(?P<new>{VERSION})(?![\w.]*\w)",
    re.IGNORECASE,
)
#: "PyTorch nightly 2026.08.31+cu130", "a nightly build of torch", "torch nightly (cu128)".
_NIGHTLY = lazily(
    r"\b(?:py)?torch[ -]{1,2}nightly\b(?:[^\n]{0,24}?\b(?P<label>cu\d{2,3}))?"
    r"|\bnightly (?:build |version |wheel )?(?:of )?(?:py)?torch\b"
    r"(?:[^\n]{0,24}?\b(?P<other>cu\d{2,3}))?"
    r"|\b[12]\.\d{1,2} nightl(?:y|ies)\b(?:[^\n]{0,12}?\b(?P<third>cu\d{2,3}))?",
    re.IGNORECASE,
)
#: "with an own new op", "added a custom operator of mine", "my own CUDA kernel".
_OWN_CODE = lazily(
    r"\b(?:my|our|an?|his|their) (?:own|self-written)(?: new| custom| cuda| c\+\+){0,2} "
    r"(?:op|operator|kernel|function|layer|cuda code|extension)s?\b"
    r"|\b(?:add(?:ed|ing)?|wr(?:o|i)te|writing|implement(?:ed|ing)?|register(?:ed|ing)?) "
    r"(?:a |an |my |our |some |the )?(?:own |new |custom ){1,2}(?:cuda |c\+\+ )?"
    r"(?:op|operator|kernel|function|layer)s?\b|自定义(?:算子|op)"
    r"|(?:직접|새로운?|커스텀) ?(?:추가|작성|구현|만든|연산|커널|함수|op\b)",
    re.IGNORECASE,
)
#: "我自己写了一个算子": what is written, and before it, in the same clause, who writes.
_WRITTEN = lazily(r"算子|函数|卷积|结构|源码|代码|\bop\b|kernel", re.IGNORECASE)
_WRITER = lazily(r"(?:我|自己|自行).{0,20}?(?:添加|增加|新增|编写|写|实现|修改|加|改)")
_CLAUSE_ENDS = re.compile(r"[\n\uff0c。,;]|\.\s")
#: How far before it, how many of them, and how much of a line is looked at (characters).
_CLAUSE, _MOST_WRITTEN, _MOST_LINE = 75, 8, 2_000
#: The image of Triton Inference Server.
_TRITON = lazily(r"\btritonserver:(\d\d\.\d\d)-")


#: Names whose own flag tells of a build from source.
_TORCH = ("torch", "pytorch")
_PACKAGE = "|".join(
    name.replace("-", "[-_]") for name in sorted(PACKAGES, reverse=True) if name not in _TORCH
)
#: "flash-attn 2.5.6 was built from source", "I compiled vllm from source".
_BUILT = lazily(
    rf"(?<![\w./-])(?P<name>{_PACKAGE})(?![\w-]) (?:v?\d[\w.+]{{0,30}} )?"
    r"(?:(?:is|was|were|has been|had been) |\()?(?:self-)?(?:built|compiled|installed|build) "
    r"from source\b"
    rf"|\b(?:built|compiled|building|compiling|installed) (?P<other>{_PACKAGE})(?![\w-]) "
    r"(?:v?\d[\w.+]{0,30} )?from source\b",
    re.IGNORECASE | re.ASCII,
)
#: "the latest torchaudio", "torchaudio latest".
_NEWEST = lazily(
    r"\b(?:latest|newest) (?:version of |release of )?(torchaudio|torchvision|torchtext)\b"
    r"|\b(torchaudio|torchvision|torchtext)[ :=(]{1,2}(?:latest|newest)\b",
    re.IGNORECASE,
)
#: "lmcache 0.3.3 (source, pip install -e .)".
_IN_BRACKETS = lazily(
    rf"(?<![\w./-])(?P<name>{_PACKAGE})(?![\w-]) (?:v?\d[\w.+]{{0,30}} )?\(source(?:[,;)]| build)",
    re.IGNORECASE | re.ASCII,
)


#: "torchaudio from source" in a list of what is there; not "install torchaudio from source".
_LISTED_SOURCE = lazily(
    rf"(?:^|[,;|(+]) ?(?P<name>{_PACKAGE})(?![\w-]) (?:v?\d[\w.+]{{0,30}} |main |master ){{0,2}}"
    r"\(?from source\b",
    re.IGNORECASE | re.ASCII,
)


def read_changes(
    best: dict[str, tuple[int, int, str]], source: Source, places: Places, offer: Offer
) -> None:
    """The keys ``pkg:NAME`` and ``before:NAME`` of packages that the text says were changed.

    The release that a step leaves is not the one that is there; a report's own line is surer.
    """
    found = (place for word in ("upgrad", "downgrad", "updat") for place in places(word)[:_MOST])
    seen = -1
    for place in sorted(found):
        line = source.line_at(place)
        if line.start == seen:
            continue
        seen = line.start
        for match in itertools.islice(_STEP.finditer(line.body), _MOST):
            name = match["name"].lower().replace("_", "-")
            if name not in PACKAGES or name in _TORCH or not_done(line.body, match.start()):
                continue
            if is_cure(line.body, match.start("new"), match.end("new")):
                continue
            key, old, new = f"pkg:{name}", match["old"], match["new"]
            known = best.get(key)
            if known is not None and known[0] >= LISTED and known[2] in (old, old.split("+")[0]):
                best[key] = (known[0], known[1], new)
            offer(key, PROSE, line.number, new)
            offer(f"before:{name}", PROSE, line.number, old)


def _built_from_source(source: Source, places: Places, offer: Offer) -> None:
    for place in places("(source")[:_MOST]:
        line = source.line_at(place)
        for match in itertools.islice(_IN_BRACKETS.finditer(line.body), _MOST):
            name = match["name"].lower().replace("_", "-")
            offer(f"flag:built-from-source:{name}", BANNER, line.number, name)
    for place in places("from source")[:_MOST]:
        line = source.line_at(place)
        for match in itertools.islice(_LISTED_SOURCE.finditer(line.body), _MOST):
            if is_wished(line.body, match.start("name"), match.end()):
                continue
            name = match["name"].lower().replace("_", "-")
            offer(f"flag:built-from-source:{name}", BANNER, line.number, name)
        for match in itertools.islice(_BUILT.finditer(line.body), _MOST):
            name = (match["name"] or match["other"]).lower().replace("_", "-")
            at = match.start("name" if match["name"] else "other")
            wished = is_wished(line.body, at, match.end())
            if not wished and not is_denied(line.body, match.start()):
                offer(f"flag:built-from-source:{name}", BANNER, line.number, name)


def _own_code(source: Source, places: Places, offer: Offer) -> None:
    seen: set[int] = set()
    for word in ("own", "new", "custom", "自定义", "我", "自己", "自行", "직접", "새로", "커스텀"):
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            if line.start in seen:
                continue
            seen.add(line.start)
            body = line.body[:_MOST_LINE]
            if _OWN_CODE.search(body) is not None or _written_by_hand(body):
                offer("flag:own-code", BANNER, line.number, "own")


def _written_by_hand(body: str) -> bool:
    for found in itertools.islice(_WRITTEN.finditer(body), _MOST_WRITTEN):
        before = body[max(0, found.start() - _CLAUSE) : found.start()]
        if _WRITER.search(_CLAUSE_ENDS.split(before)[-1]):
            return True
    return False


def read_steps(source: Source, places: Places, offer: Offer) -> None:
    """The keys ``flag:built-from-source:NAME``, ``nightly``, ``flag:own-code``, ``triton_image``.

    ``nightly`` is the CUDA of torch's nightly (cu130), or "yes"; ``flag:newest`` the package of
    torch's family of which the newest release is there. ``flag:checkout`` is the release
    of vLLM that git checked out (v0.16.0).
    """
    _built_from_source(source, places, offer)
    read_provenance(source, places, offer)
    read_setup(source, places, offer)
    read_repositories(source, places, offer)
    read_system_rocm(source, places, offer)
    for word in ("latest", "newest"):
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            newest = _NEWEST.search(line.body)
            if newest is not None:
                offer("flag:newest", BANNER, line.number, (newest[1] or newest[2]).lower())
    read_checked_out(source, places, offer)
    for place in (*places("nightly")[:_MOST], *places("nightlies")[:_MOST]):
        line = source.line_at(place)
        found = _NIGHTLY.search(line.body)
        if found is not None:
            label = found["label"] or found["other"] or found["third"] or "yes"
            offer("nightly", BANNER, line.number, label.lower())
            break
    _own_code(source, places, offer)
    for place in places("tritonserver:")[:_MOST]:
        line = source.line_at(place)
        found = _TRITON.search(line.body)
        if found is not None:
            offer("triton_image", BANNER, line.number, found[1])
            break
