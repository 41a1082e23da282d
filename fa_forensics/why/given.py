"""The text to explain, from a file that holds it."""

from __future__ import annotations

import os
import re
import shlex

from fa_forensics.errors import UsageError
from fa_forensics.facts.files import read_bounded
from fa_forensics.patterns import lazily

#: Longer texts are read up to here (bytes).
MOST = 64 << 20


def names_file(text: str) -> bool:
    """Whether one argument is the path of a file, not a text."""
    if "\n" in text or len(text) > 4096:
        return False
    try:
        return os.path.exists(text)
    except ValueError:
        return False


#: A path, or the name of a text's file: no blank is in it, nor a colon, which errors have.
_PATH = lazily(
    r"(?:~[\w.-]{0,40}|\.{1,2})?/[^\s:'\"`()<>]*|[^\s:'\"`()<>]*\.(?:log|txt|out|err|md)", re.A
)


def names_missing_file(text: str) -> bool:
    """Whether one argument looks like the path of a file, and none is there."""
    return len(text) <= 4096 and _PATH.fullmatch(text) is not None and not names_file(text)


def text_of(path: str) -> str:
    """What a file holds.

    Raises ``UsageError`` where it cannot be read, is no regular file, or is a library or a
    wheel and not a text about one.
    """
    try:
        raw = read_bounded(path, MOST)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if raw.startswith((b"\x7fELF", b"PK\x03\x04")):
        raise UsageError(
            f"{path} is no text but a file to be inspected",
            f"fa-forensics inspect {shlex.quote(path)}",
        )
    return raw.decode("utf-8", "replace")
