"""Commands that a text shows as typed: a whole line, behind a prompt or with none.

A command in a sentence may be a question, a plan or what somebody else typed.
"""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

#: "(venv) user@host:~/x$ ", "-bash-4.2# ", "[u@h x]$ ", "root@h:/w# ", "$ ", "!", "RUN ".
_PROMPT = lazily(
    r"\s{0,20}(?:(?:\([\w. -]{1,40}\) ?){0,2}"
    r"(?:[\w.-]{1,40}@[\w.-]{1,60}[: ]?[\w.~/+-]{0,120} ?"
    r"|\[[\w.-]{1,40}@[\w.-]{1,60} [\w.~/+-]{1,80}\]|-?(?:ba|z|da)?sh-[\d.]{1,6})?"
    r"[$#%] ?|(?:\([\w. -]{1,40}\) )?> ?|!(?=[a-z])|RUN )(?=\S)"
)
#: A comment, a redirection or a pipe behind a command; a sentence is none of these.
_BEHIND = lazily(r"\s{1,4}(?:#\s.*|(?:2>&1 ?)?(?:\|&? ?tee|>{1,2}) ?[\w./~-]{1,80}|2>&1)?\Z")
#: Words before a command in its sentence that refuse it, or ask for it.
_REFUSED = lazily(
    r"(?:\b(?:not|never|no|without|instead|avoid|cannot|rather|should|shall|must|would|could|can"
    r"|if|whether|how|do|does|tried|try|why)\b|n['\u2019]t\b|不|没|別|别|勿|是否|如何)[^.;!?\n]{0,120}\Z",
    re.IGNORECASE,
)
#: Directories that hold much else than one source tree, or that have no name of their own.
_MANY = lazily(
    r"(?:.{0,400}/)?(?:\.{0,2}|-|~)|/root|/(?:home|Users)/[^/]{1,80}|~[\w.-]{1,40}"
    r"|/(?:home|Users|usr|opt|srv|mnt|media|var|etc|data|tmp|workspace|content|usr/\w{1,20})"
)
_LONGEST = 400


def typed(body: str) -> tuple[str, bool]:
    """The command that a line is, and whether a prompt stands before it.

    Without a prompt the line may be anything: who asks looks at every word of it.
    """
    line = body[:_LONGEST]
    prompt = _PROMPT.match(line)
    rest = line[prompt.end() :] if prompt is not None else line
    return _BEHIND.sub("", f"{rest.strip()} ").strip(), prompt is not None


def is_refused(body: str, start: int) -> bool:
    """Whether words before ``start`` in the same sentence refuse a command or ask for it."""
    return _REFUSED.search(body[max(0, start - 200) : start]) is not None


def holds_many(folder: str) -> bool:
    """Whether a directory is no one package's: ``/``, ``..``, a home, the top of a disk."""
    return _MANY.fullmatch(folder.rstrip("/") or "/") is not None
