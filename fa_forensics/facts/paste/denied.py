"""What a text denies: an error in one sentence of good news, and a word behind a "not"."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.cures import works_there
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


#: "not on", "no", "isn't a", "never used", "nobody has", "no longer", "without any", "not built":
#: the denial and the small words between it and what it denies.
_NOT = lazily(
    r"(?:\b(?:not|no|never|without|nobody|neither|nor|no one)|n't)(?:\s{1,3}(?:longer|really|even"
    r"|an?|any|the|my|our|its|this|in|on|at|under|inside|from|with|via|by|using|used?|uses|is|be|been"
    r"|being|have|has|had|ever|seem|to|built|compiled|build|self-built"
    r"|installed(?=\s(?:from|with|via|by|\Z)))){0,4}\s{1,3}['\"`*(]{0,2}\Z"
    r"|(?:不是|没有|不在|并非|没用|未用|不用|不再|不)(?:在|用|使用|从)?\s?['\"`*]{0,2}\Z",
    re.IGNORECASE,
)
#: "works on the host, but not in the docker image": there it fails.
_WORKS_ELSEWHERE = lazily(
    r"\b(?:works?|worked|working|fine|ok|okay|runs|ran|loads|loaded|succeeds|passes)\b[^.;\n]{0,60}\Z",
    re.IGNORECASE,
)


def is_denied(words: str, start: int) -> bool:
    """Whether a denial stands right before ``start`` of a line: "not on Jetson", "no container"."""
    return _NOT.search(words[max(0, start - 60) : start]) is not None


def is_absent(words: str, start: int) -> bool:
    """Whether what stands at ``start`` of a line is told as not there, where nothing fails."""
    found = _NOT.search(words[max(0, start - 60) : start])
    if found is None:
        return False
    denial = max(0, start - 60) + found.start()
    return _WORKS_ELSEWHERE.search(words[max(0, denial - 80) : denial]) is None


def is_at_hand(words: str, start: int) -> bool:
    """Whether what is named at ``start`` of a line is had, and no place where it works."""
    return not is_denied(words, start) and not works_there(words, start)
