"""The repositories that a text installs packages from with pip, each by its name."""

from __future__ import annotations

from collections.abc import Callable

from fa_forensics.facts.package import normalized
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.typed_lines import is_refused
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

#: Whole addresses alone: one that goes on with $(x), @$TAG or {x} is another than its first part.
_BY_PIP = lazily(
    r"\bpip[\d.]{0,4} install (?P<before>[^\n|&;]{0,120}?)(?<!@)(?<!@ )"
    r"(?P<address>git\+https://[\w./@#=&~+-]{8,200}[\w/])(?=\.?(?:[\s'\"`),;]|\Z))"
)
_EGG = lazily(r"#(?:[\w=./-]{1,80}&)?egg=(?P<name>[\w.-]{1,60})")
#: How many places are looked at.
_MOST = 20


def read_repositories(
    source: Source, places: Places, offer: Callable[[str, int, int, str], None]
) -> None:
    """``repository:NAME``, the address that the text's own pip command has for it."""
    for place in places("git+https://")[:_MOST]:
        line = source.line_at(place)
        found = _BY_PIP.search(line.body[:2_000])
        if found is not None and not is_refused(line.body, found.start()):
            name = name_of(found["address"])
            if name:
                offer(f"repository:{name}", BANNER, line.number, found["address"])


def name_of(address: str) -> str:
    """The name that an address says it has (``#egg=``), or that of its repository."""
    egg = _EGG.search(address)
    if egg is not None:
        return normalized(egg["name"])
    path = address.split("#")[0].removeprefix("git+https://").partition("/")[2]
    return normalized(path.split("@")[0].rstrip("/").rsplit("/", 1)[-1].removesuffix(".git"))
