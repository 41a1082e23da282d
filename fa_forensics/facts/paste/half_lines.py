"""A text that ends in the middle of a sentence of the loader's or of CUDA's."""

from __future__ import annotations

import re
from functools import cache

from fa_forensics.patterns import lazily

#: The sentences, from their first word on.
_SENTENCES = (
    "cannot open shared object file: No such file or directory",
    "undefined symbol: ",
    "cannot allocate memory in static TLS block",
    "cannot enable executable stack as shared object requires: Invalid argument",
    "failed to map segment from shared object",
    "invalid ELF header",
    "wrong ELF class: ELFCLASS32",
    "file too short",
    "object file has no dynamic section",
    "symbol not found in flat namespace",
    "CUDA error: no kernel image is available for execution on the device",
    "no kernel image is available for execution on the device",
    "device kernel image is invalid",
    "the provided PTX was compiled with an unsupported toolchain.",
    "CUDA driver version is insufficient for CUDA runtime version",
    "DLL load failed while importing",
    "Exec format error",
)
#: What stands behind the last word that is there.
HALF_ENDS = " \t\r\n.\u2026'\"`"
#: So much of the second word has to be there, and so much of the text is looked at (characters).
_OF_SECOND, _TAIL = 2, 400
#: Only behind a program's own beginning: people write "I cannot open" too.
_BEGINNING = lazily(r"(?:\A|[\n:])\s{0,8}(?:\w{0,30}Error:\s{1,3})?['\"`]?\Z")


@cache
def _begun() -> re.Pattern[str]:
    """The first words of each sentence."""
    firsts = {" ".join(s.split()[:1]) + " " + s.split()[1][:_OF_SECOND] for s in _SENTENCES}
    return re.compile("|".join(re.escape(first) for first in sorted(firsts)), re.IGNORECASE)


def whole_again(text: str) -> str:
    """The text with the rest of the sentence that its end breaks off; "" where there is none."""
    ended = text.rstrip(HALF_ENDS)
    tail = ended[-_TAIL:]
    for match in _begun().finditer(tail):
        begun = tail[match.start() :]
        before = tail[: match.start()]
        if _BEGINNING.search(before[-60:]) is None:
            continue
        for sentence in _SENTENCES:
            if sentence.lower().startswith(begun.lower()) and len(begun) < len(
                sentence.rstrip(": ")
            ):
                return ended + sentence[len(begun) :]
    return ""
