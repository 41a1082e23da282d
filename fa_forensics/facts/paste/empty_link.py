"""Link lines in which no object file stands: what was built holds nothing."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

#: What a linker makes a module of: object files, archives, sources, and lists of them (@file).
_INPUT = lazily(r"(?:^|\s)(?:[^\s-]\S{0,400}\.(?:o|a|obj|lo|c|cc|cpp|cxx|cu)['\"]?(?=\s|$)|@\S)")
_MADE = lazily(r"\s-o\s{1,3}(?P<made>\S{1,400}\.so)['\"]?\s{0,3}(?=$|\s-)")


def linked_from_nothing(line: Line, function: str) -> str:
    """The module that a link line above makes out of no object file at all; "" for none."""
    name = re.sub(r"^(?:PyInit_|init)", "", function)
    for above in line.above(40):
        body = above.body[:8000]
        if " -shared" not in body or not name or "..." in body or "\u2026" in body:
            continue
        made = _MADE.search(body)
        if made is None or made["made"].rsplit("/", 1)[-1].split(".")[0] != name:
            continue
        return "" if _INPUT.search(body) else made["made"]
    return ""
