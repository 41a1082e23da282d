"""Asking ``why``: the answers to a text from another machine, and all that an answer says."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def answers(*lines: str) -> tuple[Answer, ...]:
    """The answers to these lines, as of a machine that is not this one."""
    return explain(["\n".join(lines)], None, where="elsewhere").answers


def first(*lines: str) -> Answer:
    """The first of them."""
    return answers(*lines)[0]


def first_here(text: str, python: str) -> Answer:
    """The first answer to a text in an environment, with no variables set."""
    return explain([text], python, {}).answers[0]


def said(answer: Answer) -> str:
    """Cause, notes and commands."""
    return "\n".join((answer.cause, *answer.notes, *answer.help))
