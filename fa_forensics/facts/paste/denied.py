"""One sentence that says of an error that it does not occur: release notes, good news."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

#: Longer texts are no single sentence (characters).
_LONGEST = 300
_ERROR = (
    r"(?:undefined symbols?|no kernel image|cannot open shared object|symbol not found"
    r"|(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,8}|nvcc fatal|CUDA error|out of memory|illegal memory)"
)
_DENIED = (
    # "there is no undefined symbol", "removes the "no kernel image is available" error"
    rf"(?:\b(?:no|zero|0|without(?: any| an?)?"
    rf"|never (?:saw|seen|had|got|get|see)(?: any| an?| the)?"
    rf"|(?:removes|removed|fixes|fixed|resolves|resolved|eliminates|eliminated)(?: the| all| an?)?)"
    rf"\s{{1,3}}[\"'`]?{_ERROR})"
    # "undefined symbol errors no longer occur", "nvcc fatal: none"
    rf"|(?:{_ERROR}[^.;!?\n]{{0,40}}?(?:\bno longer\b|\bany ?more\b|:\s?none\b"
    rf"|\b(?:is|are|was|were) (?:gone|fixed|resolved|not (?:a|my|the|our) (?:problem|issue))\b))"
)
_DENIAL = lazily(_DENIED, re.IGNORECASE)
#: Of such a text something is wrong all the same: a question, a turn, a loader's own line.
_COMPLAINT = lazily(
    r"\?|\b(?:but|however|instead|still|except|yet|help|how|why|what|now|fails?|failed)\b"
    r"|\babort|core dumped|\bseg|\bcrash|Error:|Traceback|_Z\w"
    r"|(?:^|[\s:'\"(])/\w|\.so[\d.]{0,20}: undefined symbol|version [`'\"]",
    re.IGNORECASE,
)


def is_denial(text: str) -> bool:
    """Whether a text is one line of prose that names an error as absent, past or removed."""
    line = text.strip()
    if len(line) > _LONGEST or "\n" in line:
        return False
    return _DENIAL.search(line) is not None and _COMPLAINT.search(line) is None
