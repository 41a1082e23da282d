"""The repositories that a text installs packages from with pip, each by its name."""

from __future__ import annotations

from collections.abc import Callable

from fa_forensics.facts.package import normalized
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.typed_lines import is_refused, typed
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

#: Whole addresses alone: one that goes on with $(x), @$TAG or {x} is another than its first part.
_BY_PIP = lazily(
    r"(?:[A-Z][A-Z\d_]{2,40}=\S{1,80} ){0,6}(?:sudo |uv )?(?:\S{0,80}python[\d.]{0,4} -m )?"
    r"pip[\d.]{0,4} install (?:-{1,2}[\w=-]{1,40} ){0,6}['\"]?(?:[\w.-]{1,60} ?@ ?)?"
    r"(?P<address>git\+https://(?![^/\s]{0,200}@)[\w./@#=&~+-]{8,200}[\w/])['\"]?"
    r"(?: -{1,2}[\w=-]{1,40}){0,6}"
)
#: Such a command in brackets behind what it is said of: "foo (pip install git+https://...)".
_IN_BRACKETS = lazily(
    r"\((?:(?:with|by|via|using) )?(?P<command>pip[\d.]{0,4} install [^()\n]{8,300})\)"
)
_EGG = lazily(r"#(?:[\w=./-]{1,80}&)?egg=(?P<name>[\w.-]{1,60})")
#: How many places are looked at.
_MOST = 20


def read_repositories(
    source: Source, places: Places, offer: Callable[[str, int, int, str], None]
) -> None:
    """``repository:NAME``, the address that the text's own pip command has for it."""
    told: dict[str, dict[str, int]] = {}
    for place in places("git+https://")[:_MOST]:
        line = source.line_at(place)
        body = line.body[:2_000]
        inside = _IN_BRACKETS.search(body)
        refused = inside is not None and is_refused(body, inside.start())
        command = inside["command"] if inside is not None and not refused else typed(line.raw)[0]
        found = _BY_PIP.fullmatch(command)
        name = name_of(found["address"]) if found is not None else ""
        if found is not None and name:
            told.setdefault(name, {}).setdefault(found["address"], line.number)
    for name, addresses in told.items():
        if len(addresses) == 1:
            address, number = next(iter(addresses.items()))
            offer(f"repository:{name}", BANNER, number, address)


def name_of(address: str) -> str:
    """The name that an address says it has (``#egg=``), or that of its repository."""
    egg = _EGG.search(address)
    if egg is not None:
        return normalized(egg["name"])
    path = address.split("#")[0].removeprefix("git+https://").partition("/")[2]
    return normalized(path.split("@")[0].rstrip("/").rsplit("/", 1)[-1].removesuffix(".git"))
