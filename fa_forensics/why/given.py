"""The text to explain, from a file that holds it."""

from __future__ import annotations

import os

from fa_forensics.errors import UsageError
from fa_forensics.facts.files import read_bounded

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


def text_of(path: str) -> str:
    """What a file holds. Raises ``UsageError`` where it cannot be read or is no regular file."""
    try:
        return read_bounded(path, MOST).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
