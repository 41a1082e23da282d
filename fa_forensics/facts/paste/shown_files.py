"""What file(1) says of a library where no loader says anything: a Linux library on a Mac."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.patterns import lazily

#: Words of a loader, which says by itself what is wrong.
_LOADERS = lazily(
    r"dlopen\(|cannot open shared object|mach-o|invalid elf|wrong elf|undefined symbol"
    r"|symbol not found|exec format"
)
#: The system of a text, and what bitsandbytes' old set-up says where a Linux variable is not set.
_MAC = lazily(r"\bmacos\b|\bmac os\b|\bdarwin\b|\bmacbook\b|\bosx\b")
_NO_VARIABLE = lazily(r"keyerror: ['\"]?ld_library_path")
#: Longer texts are logs, in which one line of file(1) is no answer.
_LONGEST = 200_000


def recognisers() -> tuple[Recogniser, ...]:
    """The output of file(1) on a library."""
    return (
        by_pattern(
            (": elf 64-bit", ": elf 32-bit"),
            r"(?P<file>[\w./~+-]{0,300}\.(?:so|dylib)(?:\.\d{1,9}){0,4}): {1,8}ELF (?:64|32)-bit "
            r"[LM]SB [^,\n]{1,60}, (?P<machine>[\w -]{2,40}?),",
            _shown,
        ),
    )


def _shown(line: Line, match: re.Match[str]) -> Mention | None:
    lower = line.source.lower
    if len(lower) > _LONGEST or _LOADERS.search(lower):
        return None
    mac, variable = _MAC.search(lower), _NO_VARIABLE.search(lower)
    if mac is None and variable is None:
        return None
    detail = {
        "elf": "yes",
        "shown": "yes",
        "for_machine": match["machine"],
        "os": "macOS" if mac is not None else "",
        "intel": "yes" if re.search(r"\bintel\b", lower) else "",
        "variable": "yes" if variable is not None else "",
    }
    return line.mention("wrong-machine", match.start(), file=match["file"], detail=detail)
