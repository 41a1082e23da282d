"""The ROCm of the system, which compiles extensions, beside the one that torch brings along."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.paste.version_forms import PROSE, REPORT
from fa_forensics.patterns import lazily

Offer = Callable[[str, int, int, str], None]

_MOST = 20
_SHORT = r"(\d{1,2}\.\d{1,2})(?:\.\d{1,6})?"
_TOLD = (
    # "system ROCm 6.4", "ROCm 6.4 on the host", "compiled with ROCm 6.4.1"
    ("rocm", PROSE + 1, rf"\b(?:system|host|machine|installed|local)(?:'s)? ROCm\W{{0,3}}{_SHORT}"),
    ("rocm", PROSE + 1, rf"\b(?:compiled|built) (?:with|by|using) ROCm\W{{0,3}}{_SHORT}"),
    ("rocm", PROSE, rf"(?<![+\w/])ROCm[ :=]{{0,2}}v?{_SHORT}"),
    ("/opt/rocm-", REPORT, rf"/opt/rocm-{_SHORT}"),
    ("hip version", REPORT, r"\bHIP version\W{1,4}(\d{1,2}\.\d{1,2})\.\d{4,6}"),
    ("rocm-", REPORT, r"\brocm-(?:libs|core|dev|hip-sdk|hip-runtime)[^\d\n]{1,20}"
     r"(\d{1,2}\.\d{1,2})"),
)  # fmt: skip
#: What dpkg -s and apt show print: the version stands on a line of its own.
_PACKAGE = lazily(r"^\s{0,4}(?:Package|Name) ?: ?(?:rocm-(?:libs|core|dev)|hip-runtime-amd)\s*$")
_VERSION = lazily(r"^\s{0,4}Version ?: ?(\d{1,2}\.\d{1,2})")
#: How many lines below its name a package's version may stand.
_BELOW = 12


def read_system_rocm(source: Source, places: Places, offer: Offer) -> None:
    """The key ``system_rocm``, "6.4": what the text says of ROCm apart from torch's own."""
    for word, sort, pattern in _TOLD:
        spelt = re.compile(pattern, re.IGNORECASE)
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            found = spelt.search(line.body)
            if found is None or is_denied(line.body, found.start()):
                continue
            ahead = line.body[max(0, found.start() - 24) : found.start()].lower()
            if "torch" not in ahead and "wheel" not in ahead:
                offer("system_rocm", sort, line.number, found[1])
    for word in ("rocm-", "hip-runtime-amd"):
        for place in places(word)[:_MOST]:
            line = source.line_at(place)
            if _PACKAGE.match(line.body) is None:
                continue
            for below in itertools.islice(source.behind(line), _BELOW):
                version = _VERSION.match(below.body)
                if version is not None:
                    offer("system_rocm", REPORT, below.number, version[1])
                    break
