"""Wheels that a text's commands install from a file or an address: the package and its release."""

from __future__ import annotations

import re
from collections.abc import Callable

from fa_forensics.facts.paste.cures import is_cure
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.facts.paste.version_forms import BANNER
from fa_forensics.patterns import lazily

#: The file name of a wheel (PEP 427): name, version, perhaps a build number, and three tags.
_WHEEL = lazily(
    r"(?<![\w.+%-])(?P<name>[A-Za-z]\w{1,40})-(?P<version>\d[\w.+%]{1,80})"
    r"(?:-\d\w{0,20})?-(?:cp|py|pp)\w{1,12}-\w{2,24}-[\w.]{3,60}\.whl",
    re.IGNORECASE,
)
_INSTALLS = lazily(r"\binstall\s|^\W{0,4}processing\s", re.IGNORECASE)
#: Another wheel than the one that failed.
_ANOTHER = lazily(
    r"\b(?:try|tried|instead|should|fix(?:ed)?|solved?|works?|worked|solution|remedy|can)\b",
    re.IGNORECASE,
)
#: Wheels that are read in one text.
_MOST = 40


def read_given_wheels(
    source: Source, places: Places, offer: Callable[[str, int, int, str], None]
) -> None:
    """The key ``pkg:NAME`` of each package of which one wheel alone is installed by its file."""
    known = {name.replace("-", "_"): name for name in PACKAGES if name not in ("torch", "pytorch")}
    found: dict[str, dict[str, int]] = {}
    for place in places(".whl")[:_MOST]:
        line = source.line_at(place)
        for match in _WHEEL.finditer(line.body[:2_000]):
            package = known.get(match["name"].lower())
            before = line.body[: match.start()]
            if package is None or not _INSTALLS.search(before) or _ANOTHER.search(before):
                continue
            if is_cure(line.body, match.start(), match.end()):
                continue
            version = re.sub("%2b", "+", match["version"], flags=re.IGNORECASE)
            found.setdefault(package, {}).setdefault(version, line.number)
    for package, versions in found.items():
        if len(versions) == 1:
            ((version, number),) = versions.items()
            offer(f"pkg:{package}", BANNER, number, version)


#: "flash-attn 2.7.4.post1 wheel" as one item of a list.
_ITEM = lazily(r"(?:^|[,;|+(])[\s*-]{0,3}\Z")
_END = lazily(r"\swheel\s{0,3}(?:$|[,;|)])")


def is_own_wheel(match: re.Match[str]) -> bool:
    """Whether "wheel" behind a version tells what is installed, and not what is asked for.

    In a list of versions, or of a wheel whose version names what it was built for (+cu118torch2.3).
    """
    told = re.search(r"\+\S*torch\d", match["version"]) is not None
    listed = _ITEM.search(match.string, max(0, match.start() - 5), match.start()) is not None
    return (told or listed) and _END.match(match.string, match.end()) is not None
