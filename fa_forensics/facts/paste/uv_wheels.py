"""uv's refusals of wheels by their tags: other words than pip's, and a hint at the tag."""

from __future__ import annotations

import re
from urllib.parse import unquote

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.patterns import lazily

_YOU = r"you(?:'|\u2019)re (?:on|using) "
#: ``The wheel is compatible with Linux (`linux_x86_64`), but you're on Windows (`win_amd64`)``;
#: ``You're on Windows (`win_amd64`), but `x` (v1.0) only has wheels for the following platforms``.
_HINT = (
    rf"The wheel is (?:only )?compatible with (?P<tag>[^\n]{{1,160}}?), but {_YOU}"
    r"(?P<here>[^\n]{1,60})"
    rf"|{_YOU}(?P<here2>[^\n,]{{1,60}}), but ['\"`]?(?P<package>[A-Za-z][\w.-]{{0,60}})['\"`]? "
    r"\(v?(?P<version>[\w.+!]{1,40})\) only has wheels (?:for|with) the following "
    r"[A-Za-z ()]{1,40}: ?(?P<tags>[^\n]{1,200})"
)
_FILE = (
    r"A (?:URL|path) dependency is incompatible with the current platform:?\s{1,4}"
    r"(?P<file>\S{1,500})"
)
_DISTRIBUTION = (
    r"Distribution ['\"`](?P<package2>[A-Za-z][\w.-]{0,60})==(?P<version2>[\w.+!]{1,40})"
    r"[^\n]{0,200}? source distribution or wheel for the current platform"
)
_LINE_OF_HINT = lazily(f"(?i){_HINT}")
_PLATFORM = "current platform"
#: Lines between uv's message and its hint.
_BETWEEN = 4


def recognisers() -> tuple[Recogniser, ...]:
    """The refusal of one wheel, or of all wheels of a release."""
    return (
        by_pattern(
            ("is incompatible with the current platform", "the wheel is compatible with",
             "the wheel is only compatible with", "wheel for the current platform",
             "only has wheels "),
            f"{_FILE}|{_DISTRIBUTION}|{_HINT}",
            _refused,
        ),
    )  # fmt: skip


def _refused(line: Line, match: re.Match[str]) -> Mention | None:
    """The message with the hint below it; a hint by itself where no message is above it."""
    groups = _told(match)
    if _PLATFORM not in match[0].lower():
        if any(_PLATFORM in above.lower for above in line.above(_BETWEEN)):
            return None
    else:
        hints = (_LINE_OF_HINT.search(below.body) for below in line.below(_BETWEEN))
        groups |= next((_told(hint) for hint in hints if hint is not None), {})
    file = unquote(groups.pop("file", "")).strip("'\"`")
    detail = {
        "by": "uv",
        "package": groups.get("package") or groups.get("package2", ""),
        "release": groups.get("version") or groups.get("version2", ""),
        "for": (groups.get("tag") or groups.get("tags", "")).strip(" ."),
        "here": (groups.get("here") or groups.get("here2", "")).strip(" ."),
    }
    return line.mention("wheel-not-supported", match.start(), file=file or None, detail=detail)


def _told(match: re.Match[str]) -> dict[str, str]:
    return {key: text for key, text in match.groupdict().items() if text}
