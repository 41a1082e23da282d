"""The release of a source tree, by the git commands of the text that made it."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

Offer = Callable[[str, int, int, str], None]

#: How many places of one word are looked at.
_MOST = 20

_TAG = r"v?\d{1,3}(?:\.\d{1,3}){1,3}(?:\.post\d)?"
#: "git checkout v0.16.0".
_CHECKOUT = lazily(rf"\bgit (?:checkout|switch --detach) (?:tags/|-f )?(?P<tag>{_TAG})(?![\w./-])")
#: "git clone -b v0.16.0 https://github.com/vllm-project/vllm.git": its words, to the line's end.
_CLONE = lazily(r"\bgit clone (?P<words>[^\n;&|]{1,300})")
_BRANCH = lazily(rf"(?:^|\s)(?:-b|--branch)[ =](?P<tag>{_TAG})(?![\w./-])")
_ADDRESS = lazily(r"(?:https?://|git@|ssh://)[^\s'\"`]{1,200}")
_FOLDER = lazily(r"(?:^|[\s;&`$>])cd (?P<folder>[\w.~/+-]{1,200})")
_NAME = "vllm"


def read_checked_out(source: Source, places: Places, offer: Offer) -> None:
    """The key ``flag:checkout``: the release of vLLM whose tree git made, as the text types it.

    A clone tells its repository. What is checked out is of the directory that the text entered
    last, or else of the repository that it cloned last; where it has neither it is taken as it
    is, for the one tree that is spoken of.
    """
    for place in places("git clone ")[:_MOST]:
        line = source.line_at(place)
        clone = _CLONE.search(line.body)
        if clone is None or is_denied(line.body, clone.start()):
            continue
        tag = _BRANCH.search(clone["words"])
        if tag is not None and _repository(clone["words"]) == _NAME:
            offer("flag:checkout", BANNER, line.number, tag["tag"])
    for word in ("git checkout ", "git switch "):
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            found = _CHECKOUT.search(line.body)
            if found is None or is_denied(line.body, found.start()):
                continue
            if _tree_at(source, place) in (_NAME, ""):
                offer("flag:checkout", BANNER, line.number, found["tag"])


def _repository(words: str) -> str:
    """The last part of the address that is cloned, without .git; "" where there is none."""
    address = _ADDRESS.search(words)
    if address is None:
        return ""
    return _last(address[0].lower().rstrip("/.,)").removesuffix(".git"))


def _last(path: str) -> str:
    return re.split(r"[/:]", path.rstrip("/"))[-1]


def _tree_at(source: Source, place: int) -> str:
    """The name of the tree that a command at a place of the text works in; "" for none told."""
    before = source.text[max(0, place - 2_000) : place]
    name, at = "", -1
    for found in _CLONE.finditer(before):
        name, at = _repository(found["words"]) or name, found.start()
    for found in _FOLDER.finditer(before):
        folder = _last(found["folder"]).lower()
        if found.start() > at and folder.strip("."):
            name = folder
    return name
