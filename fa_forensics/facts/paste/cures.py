"""Versions that a text names as what put it right, or was made for: none of them failed."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

#: How far the words around a version are looked at.
_AROUND = 70

#: "goes away with PyTorch 2.5.1", "works with torch==2.1", "fixed by downgrading torch to 2.0".
_BEFORE = lazily(
    r"\b(?:go(?:es|ne)? away|went away|disappear(?:s|ed)|work(?:s|ed)?(?: fine| well| again)?"
    r"|(?:fix|solv|resolv|cur)(?:ed|es))"
    r" (?:with|by|in|on|under|after|when|for)"
    r"(?: (?:installing|reinstalling|using|(?:down|up)grading(?: to)?|going back to|an?|the"
    r"|(?:py)?torch(?: version)?|to)){0,4}[ ='\"`]{0,4}\Z",
    re.IGNORECASE,
)
#: "written for pytorch 1.0", "trained with torch 1.10": what the program or its data is of.
_MADE_FOR = lazily(
    r"\b(?:(?:built|compiled)(?: and tested)?|written|developed|designed|intended|meant|trained"
    r"|authored|tested|(?:repo|repository|code|codebase|project) is)"
    r" (?:for|with|on|in|under|against)(?: (?:an?|the|(?:py)?torch(?: version)?)){0,2}"
    r"[ ='\"`]{0,4}\Z",
    re.IGNORECASE,
)
#: "downgrade to torch 1.1", "going back to torch 2.0": what is told to do, not what was done.
_BACK = lazily(
    r"(?<!after )(?<!then )\b(?:downgrade|roll(?:ing)? back|go(?:ing)? back|revert(?:ing)?)"
    r"(?: (?:to|an?|the|(?:py)?torch(?: version)?)){1,4}[ ='\"`]{0,4}\Z"
    r"|(?:降级?到|回退到|退回到?|换回)\s?(?:(?:py)?torch)?[ ='\"`]{0,4}\Z",
    re.IGNORECASE,
)
#: "never worked with", "no longer works with": that version is the one that fails.
_NEGATED = lazily(r"(?:\bnot|n't|\bnever|\blonger)\s{1,3}\Z", re.IGNORECASE)
#: "pytorch 1.10.1 reinstalled works", "after downgrading to torch 2.1 it works", "torch 2.1 fixes
#: it"; not "torch 2.6 works, but".
_BEHIND = lazily(
    r"['\"`)]{0,3},? (?:"
    r"(?:re-?installed|instead|it|everything|all|that)(?: now)? (?:works|worked|is (?:fine|fixed))"
    r"|(?:fixe[sd]|solve[sd]|cure[sd]|resolve[sd]) (?:it|this|that|the)"
    r"|(?:has |have |had )?(?:cleared|removed|got rid of|gets rid of|clears|removes|solved|fixed"
    r"|resolved|cured) (?:it|this|that|the|my)|helped|helps|did (?:it|the trick|help)"
    r"|(?:is|was) the (?:fix|cure|solution|answer)"
    r")\b(?! (?:fine |well )?(?:until|but)\b|, but\b| fine,? but\b)"
    r"|['\"`)]{0,3}\s?(?:版本)?(?:后|就|即)?(?:解决|可以解决|即可|就好了|就可以了)",
    re.IGNORECASE,
)


#: "works only with the torch of nvcr.io/...", "fine in the 23.08 container": not where it fails.
_WORKS_IN = lazily(
    r"(?P<not>(?:\bnot|n't|\bnever|\blonger)\s{1,3})?\b(?:works?|worked|runs|ran|loads|loaded|fine)"
    r"(?: (?:only|fine|well|just|correctly|ok)){0,3} (?:with|in|on|inside|under|within)"
    r"(?: (?:the|an?|torch|pytorch|image|container|docker|of|from|nvidia's|nvidia|ngc)){0,8}"
    r"[ :'\"`]{0,4}\Z",
    re.IGNORECASE,
)


#: A denial anywhere in the clause before: "it does not seem to work in".
_DENIES = lazily(r"\b(?:not|never|longer|fails?|failed|cannot)\b|n't\b", re.IGNORECASE)
#: What follows a version that was tried in vain.
_IN_VAIN = lazily(
    r"[^.;\n]{0,40}?\b(?:did(?: not|n't)|does(?: not|n't)|no luck|no effect|still"
    r"|but (?:it )?fails?|in vain)\b|[^.;\n]{0,12}\bis the answer of\b",
    re.IGNORECASE,
)


def works_there(words: str, start: int) -> bool:
    """Whether what is named at ``start`` of a line is told as a place where nothing fails."""
    found = _WORKS_IN.search(words[max(0, start - 2 * _AROUND) : start])
    if found is None or found["not"]:
        return False
    clause = re.split(r"[.;\n]", words[:start][-2 * _AROUND :])[-1]
    return _DENIES.search(clause[: clause.rfind(found[0].strip()[:8])]) is None


def put_it_right(words: str, start: int, end: int) -> bool:
    """Whether the version at ``start`` to ``end`` of a line is told as what put it right."""
    before = words[max(0, start - _AROUND) : start]
    made_for = _MADE_FOR.search(before) is not None
    return is_cure(words, start, end) and not made_for and not has_the_name(words, start, end)


#: "exports at torch 2.10 and not at 2.11", "exists in torch 2.10 only": what has a name.
_HAS = lazily(
    r"\b(?:exports?|exported|exists?|existed|present|available|found|defined|ha[sd]|have)\b"
    r"[^.;\n]{0,40}\Z",
    re.IGNORECASE,
)
_AND_NOT = lazily(
    r"['\"`)]{0,3}(?: only\b|,? (?:and|but) (?:(?:is|was|it is) )?(?:not|no longer|missing|absent"
    r"|gone)(?: any ?more)? (?:at|in|by|from|with)\b)",
    re.IGNORECASE,
)


def has_the_name(words: str, start: int, end: int) -> bool:
    """Whether the version at ``start`` to ``end`` is told as one that has what another lacks."""
    if _AND_NOT.match(words[end : end + _AROUND]) is None:
        return False
    return _HAS.search(words[max(0, start - _AROUND) : start]) is not None


#: "compiled with torch 1.4", "built against PyTorch 2.1": the torch of a file, not the loaded one.
_OF_A_FILE = lazily(
    r"\b(?:(?:built|compiled|made) (?:for|with|against|under|on|using)"
    r"|wheels? (?:of [\w.-]{1,40} )?for)(?: an?| the)?(?: (?:py)?torch)?[ =<>~-]{0,4}\Z",
    re.IGNORECASE,
)


def of_a_file(words: str, start: int) -> bool:
    """Whether the version at ``start`` of a line is told as what something was compiled with."""
    return _OF_A_FILE.search(words[max(0, start - _AROUND) : start]) is not None


def is_cure(words: str, start: int, end: int) -> bool:
    """Whether the version at ``start`` to ``end`` of a line is another than the one that failed.

    It put it right, the program was written for it, or a file was built on it.
    """
    if _IN_VAIN.match(words[end : end + _AROUND]) is not None:
        return False
    before = words[max(0, start - _AROUND) : start]
    found = _BEFORE.search(before)
    if found is not None and not _NEGATED.search(before[: found.start()]):
        return True
    if _MADE_FOR.search(before) or _BACK.search(before) or has_the_name(words, start, end):
        return True
    return _BEHIND.match(words[end : end + _AROUND]) is not None
