"""Forms that versions have in texts, and what stands between a name and its version."""

from __future__ import annotations

from collections.abc import Callable

#: Sources, the surest first: a report's own line, a package list,
#: what pip says it fetches, a tool's banner, a path, prose.
REPORT, LISTED, FETCHED, BANNER, PATH, PROSE = range(6)
#: A torch version: 2.4.0, 2.4.0+cu121, 2.2.0a0+81ea7a4, 2.9.0.dev20250801+cu128, 2.5.1+git.
VERSION = (
    r"\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,3}(?:(?:a|b|rc|\.?dev|\.?post)\d{0,10}){0,2}"
    r"(?:\+[A-Za-z0-9.]{1,40})?"
)
#: A toolkit's, a Python's, a glibc's: 12.1, 3.10.12.
SHORT = r"\d{1,2}\.\d{1,2}(?:\.\d{1,4})?"
#: What separates a name from its version: "torch: 2.3", "torch == 2.3", "torch .... 2.3".
SEP = (
    r"['\"`*]{0,3}\s{0,40}(?:[:=]{1,2}|\.{2,60}|\||->|-(?=\s)|is|v(?:ersion)?)?"
    r"\s{0,40}['\"`*(]{0,3}\s?v?"
)

#: Markdown's stars and backticks around a name.
MARK = r"[*`]{0,3}"

#: "version", as Chinese, Japanese and Korean put it behind a name.
VERSION_WORD = r"\s?(?:的)?(?:版本|版|バージョン|버전)(?:号|번호)?(?:是|为|為|은|는|:)?[\s:]{0,3}v?"

#: (small-letter sign, pattern, key, how sure[, what makes of it the version]).
Row = tuple[str, str, str, int] | tuple[str, str, str, int, Callable[[str], str]]
