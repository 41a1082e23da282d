"""Where a text says that it works, that something was built, or that it fails: GPU by GPU."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

from fa_forensics.patterns import lazily

#: The parts that a GPU can have in a text.
WORKS, BUILT, FAILS = "works", "built", "fails"
#: No longer line is a sentence, and no more lines are read.
MOST_CHARACTERS, MOST_LINES = 600, 20

_SENTENCE = lazily(r"(?<=[.;!?])\s|\u3002|\uff1b")
#: Words that begin another statement within a sentence.
_CLAUSE = lazily(
    r",? ?\b(?:but|however|while|whereas|although|though|yet)\b"
    r"|,? \band (?=(?:I|it|then|when|got|get|gets|fails?|run|ran|running|now|tried|try|used?|using"
    r"|moved?|the error)\b)"
    r"|,? \bthen (?=(?:run|ran|use|used|moved?|copied|copy|migrated?|tried|try|loaded)\b)",
    re.IGNORECASE,
)
_WELL_NEGATED = lazily(
    r"(?:\bnot|\bnever|\bno longer|n['\u2019]t|\bcannot|\bunable to)(?: \w{1,20}){0,2}? "
    r"(?:work\w{0,4}|run\w{0,5}|fine|ok|okay|succe\w{2,12}|used?|train\w{0,4}|execute\w?)\b",
    re.IGNORECASE,
)
_NO_FAULT = lazily(
    r"\b(?:no|without)(?: an?y?)? (?:errors?|problems?|issues?|trouble|failures?)\b", re.IGNORECASE
)
_FAULT = lazily(
    r"\b(?:errors?|fail\w{0,5}|crash\w{0,3}|exceptions?|rais(?:e|es|ed)|encounter\w{0,3}|throws?"
    r"|threw|problems?|issues?|broken|breaks?|no kernel image)\b|报错|错误",
    re.IGNORECASE,
)
#: A fault that is denied: "doesn't crash on T4", "I don't get the error on the A100".
_FAULT_DENIED = lazily(
    r"(?:\bnot|\bnever|\bno longer|n['\u2019]t)(?: \w{1,20}){0,3}? "
    r"(?:errors?|fail\w{0,5}|crash\w{0,3}|exceptions?|raise|encounter|throw|problems?|issues?"
    r"|break)\b",
    re.IGNORECASE,
)
_WELL = lazily(
    r"(?<!\bI )\b(?:works?|worked|working (?:fine|well|ok)"
    r"|can (?:be )?(?:run|train|use|execute)\w{0,2}|could run"
    r"|fine|ok|okay|succe\w{2,12}|normal(?:ly)?|trained|correctly|as expected)\b|正常",
    re.IGNORECASE,
)
_MADE = lazily(r"\b(?:built|builds?|compil\w{1,4}|installed|编译)\b(?! for\b)|编译", re.IGNORECASE)
_NOT_MADE = lazily(
    r"(?:\b(?:not|never|nor|cannot|unable to|without)|n['\u2019]t)(?: \w{1,20}){0,2}? "
    r"(?:built|build|compil|install)|(?:没有?|未|不)(?:在\S{0,20}?)?编译",
    re.IGNORECASE,
)
#: Nothing is said for sure there: questions, hopes, and what holds of all GPUs alike.
_OPEN = lazily(
    r"\?|\b(?:should|supposed|hope\w{0,4}|would|may|might|maybe|whether|if|also|as well|too|both"
    r"|either|same (?:error|problem|issue))\b",
    re.IGNORECASE,
)
#: What joins the names of one list: "A100 or V100".
_JOINT = lazily(r"(?:\s?[,/&]\s?|\s?\b(?:or|and)\b\s?|\s?\b(?:an?|the|my|NVIDIA|Tesla|RTX|GTX)\b\s?"
                r"|\s){1,6}", re.IGNORECASE)  # fmt: skip
#: A list ends with it: "built on an A100, RTX 3090 here" is none.
_LAST = lazily(r"[/&]|\b(?:or|and)\b", re.IGNORECASE)
#: Another machine than the one whose GPU is named.
_ELSEWHERE = lazily(
    r"\b(?:but|however|while)\b[^.\n]{0,120}?\b(?:servers?|cluster|machine|node|workstation|laptop"
    r"|colab|instance|(?:other|another|different) (?:GPU|card))\b",
    re.IGNORECASE,
)

#: The other machine has the GPU that is named.
_SAME = lazily(r"\b(?:same|identical) (?:GPUs?|cards?|model|type|hardware|one)\b", re.IGNORECASE)


def _places(words: str, names: Mapping[str, str]) -> list[tuple[int, int, str]]:
    """(start, end, GPU) of every name in a statement, without those inside a longer one."""
    found: list[tuple[int, int, str]] = []
    low = words.lower()
    for name in sorted(names, key=len, reverse=True):
        for match in itertools.islice(re.finditer(rf"{re.escape(name)}(?![a-z0-9])", low), 20):
            if not any(start < match.end() and match.start() < end for start, end, _ in found):
                found.append((*match.span(), names[name]))
    return sorted(found)


def _sort(words: str) -> str:
    """What a statement says of the GPU in it; "" where it says nothing, or two things."""
    if _OPEN.search(words):
        return ""
    plain = _NO_FAULT.sub(" fine ", words)
    bare = _WELL_NEGATED.sub(" fails ", plain)
    if _FAULT_DENIED.search(bare):
        return ""
    bad, well = _FAULT.search(bare) is not None, _WELL.search(bare) is not None
    made = _MADE.search(bare) is not None and _NOT_MADE.search(bare) is None
    if bad:
        return "" if well or made else FAILS
    return WORKS if well else BUILT if made else ""


def _of_statement(words: str, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """(GPU, its part) for the GPUs of one statement."""
    places = _places(words, names)
    if not places:
        return []
    moved = len(places) == 2 and re.search(r"\bfrom (?:an? |the |my )?\Z", words[: places[0][0]])
    if moved and re.fullmatch(r" (?:GPU |card )?to (?:an? |the |my )?",
                              words[places[0][1] : places[1][0]]):  # fmt: skip
        said = _sort(words[: places[0][0]] + words[places[1][1] :])
        return [(places[0][2], BUILT), (places[1][2], FAILS)] if said == FAILS else []
    gaps = [words[a[1] : b[0]] for a, b in itertools.pairwise(places)]
    if all(_JOINT.fullmatch(gap) for gap in gaps) and (not gaps or _LAST.search(gaps[-1])):
        return [(gpu, part) for part in (_sort(words),) if part for _, _, gpu in places]
    return []


def parts(lines: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """By GPU the part that the lines give it; none where they give it two.

    :param names: by each spelling, in small letters, the GPU that it stands for.
    """
    found: dict[str, set[str]] = {}
    for line in itertools.islice(dict.fromkeys(lines), MOST_LINES):
        if len(line) > MOST_CHARACTERS:
            continue
        for sentence in _SENTENCE.split(line):
            before = ""
            for clause in _CLAUSE.split(sentence):
                # "run on the A100 and get this error": the fault is that of what stands before.
                whole = clause if _places(clause, names) else f"{before}, {clause}"
                told = _of_statement(whole, names)
                if not told:
                    pieces = clause.split(",")
                    told = [one for piece in pieces for one in _of_statement(piece, names)]
                before = "" if told else clause
                for gpu, part in told:
                    found.setdefault(gpu, set()).add(part)
    good = {gpu: said - {BUILT} if said == {BUILT, WORKS} else said for gpu, said in found.items()}
    return {gpu: next(iter(said)) for gpu, said in good.items() if len(said) == 1}


def elsewhere(lines: Iterable[str], names: Mapping[str, str]) -> bool:
    """Whether the one GPU of a text is where it works, and another machine the one that fails."""
    lines = [line for line in itertools.islice(lines, MOST_LINES) if len(line) <= MOST_CHARACTERS]
    if set(parts(lines, names).values()) != {WORKS}:
        return False
    if any(_SAME.search(line) for line in lines):
        return False
    after = [match[0].lower() for line in lines for match in _ELSEWHERE.finditer(line)]
    return bool(after) and not any(name in words for words in after for name in names)
