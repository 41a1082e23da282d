"""Regular expressions that are compiled when they are first used.

The readers of texts hold some five hundred, of which a text needs a few: compiling all of them
took a fifth of the time of a short ``why``.
"""

from __future__ import annotations

import re
from typing import Any, cast

#: What a pattern is asked for; each is the compiled pattern's own once there is one.
_ASKED = ("finditer", "findall", "fullmatch", "match", "pattern", "search", "split", "sub", "subn")


class _Lazy:
    __slots__ = ("_flags", "_text", *_ASKED)

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Called where a slot is still empty: before the first use."""
        if name not in _ASKED:
            raise AttributeError(name)
        compiled = re.compile(self._text, self._flags)
        for asked in _ASKED:
            setattr(self, asked, getattr(compiled, asked))
        return getattr(compiled, name)


def lazily(text: str, flags: int | re.RegexFlag = 0) -> re.Pattern[str]:
    """What ``re.compile`` gives, compiled at the first search; errors in it come then too."""
    return cast("re.Pattern[str]", _Lazy(text, int(flags)))
