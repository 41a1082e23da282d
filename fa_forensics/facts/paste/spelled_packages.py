"""A package's name in a text and the version behind it, in the forms in which people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from fa_forensics.facts.paste.denied import is_absent
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.version_forms import VERSION, VERSION_WORD
from fa_forensics.patterns import lazily

#: How people write a name that is not the distribution's. They count with three numbers alone:
#: "Flash Attention 2.0" is a kind of attention in messages of transformers.
ALSO = {
    "flash-attn": ("flash attention", "flashattention", "flash-attention", "flash attn"),
    "transformer-engine": ("transformer engine", "transformerengine"),
}


#: ``pip show NAME`` at a prompt, where "Name:" of what it prints was left out.
_SHOWN = lazily(r"\bpip[\d.]{0,4} show (?:-f )?$")


@lru_cache(maxsize=256)
def _versioned(name: str) -> re.Pattern[str]:
    """A package's name and a version behind it, as lists, wheels, tables and sentences do."""
    also = any(name in names for names in ALSO.values())
    version = rf"(?=\d+\.\d+\.\d){VERSION}" if also else VERSION
    # The rules read torch in these forms, and know which of them say less.
    more = "" if name in ("torch", "pytorch") else rf"|\s?\|\s{{0,20}}|{VERSION_WORD}|(?=\d+\.\d)"
    return re.compile(
        rf"(?<![\w/.-])(?P<name>{re.escape(name)})(?:\[[\w,-]{{1,40}}\])?"
        rf"(?:\s?==\s?|\s?[:=]\s{{1,3}}v?(?=\d)|\s{{2,60}}|-(?=\d+\.\d)|\s\(|=(?=\d)"
        rf"|\s+(?:(?:version:?|is)\s){{0,2}}v?{more})(?P<version>{version})",
        re.IGNORECASE | re.ASCII,
    )


def stands_alone(text: str, place: int, name: str) -> bool:
    """Whether a package is named at a place as a word, an extra (.[vllm]) or a library (X.so).

    "vLLM, not flashinfer" names no flashinfer.
    """
    said = text[max(0, place - 60) : place].rpartition("\n")[2]
    if is_absent(said, len(said)):
        return False
    before = text[max(0, place - 1) : place]
    after = text[place + len(name) : place + len(name) + 3]
    return not re.match(r"[\w/.-]", before, re.ASCII) and not re.match(
        r"[\w/-]|\.(?!so\b|\s|$)", after, re.ASCII
    )


def versions_behind(line: Line, place: int, name: str) -> Iterable[re.Match[str]]:
    """The package at a place of the text and its version, and pip show's two lines."""
    offset = line.raw.lower().find(name, max(0, place - line.start - 1))
    if offset < 0 or line.raw[max(0, offset - 1) : offset] in tuple("/_-.") + tuple(
        "abcdefghijklmnopqrstuvwxyz"
    ):
        return
    match = _versioned(name).match(line.raw, offset)
    if match is not None:
        yield match
        return
    if _SHOWN.search(line.body.lower().partition(name)[0]):
        below = next(iter(line.below(1)), None)
        shown = re.match(rf"Version: (?P<version>{VERSION})", below.body) if below else None
        if shown is not None and line.body.lower().endswith(name):
            yield shown
            return
    if line.body.lower() == f"name: {name}":
        for below in line.below(1):
            shown = re.match(rf"Version: (?P<version>{VERSION})", below.body)
            if shown:
                yield shown
