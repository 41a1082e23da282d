"""From a pasted text to answers: its first cause, and the causes that are independent of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from fa_forensics.facts.paste import Mention
from fa_forensics.report_why import Answer
from fa_forensics.why.context import with_context
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.place import Place
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.tables import Tables
from fa_forensics.why.texts.index import ANSWERED_BY
from fa_forensics.why.words import unrecognised

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: Answers to one text; who pastes more wants the first few.
MOST_ANSWERS = 5

#: Lines that only tell something where no error stands in the text, and how many are looked at.
LISTINGS = ("ldd-line", "nm-line", "readelf-line")
MOST_LINES = 100
_ONCE = ("FA202", "FA402")
_OF_WINDOWS = ("flag:windows", "flag:windows-told", "flag:powershell")
_TOLD = (
    "The text tells of the failure in words of its own. The message itself, with the lines around "
    "it, makes this answer sure."
)
#: Stands for a text of which nothing but versions is read.
_NO_MENTION = Mention("versions", "", 0)
#: The torch in question has the name.
_EXPORTED = "FA607"
#: No release has it: it says least of when the file was built.
_NOWHERE = 1000


def answerer_of(what: str) -> Answerer | None:
    """Who answers a word of ``Mention.what``; only that module is loaded. None: nobody."""
    name = next((name for name, words in ANSWERED_BY.items() if what in words), None)
    if name is None:
        return None
    module = import_module(f"fa_forensics.why.texts.{name}")
    answerers: Mapping[str, Answerer] = module.ANSWERERS
    return answerers[what]


def paste_answers(
    paste: Paste, place: Place, tables: Tables, elsewhere: bool
) -> tuple[Answer, ...]:
    """The answers to a text, the first cause first; one "unrecognised" where nothing is known."""
    found: list[Answer] = []
    listed: list[Mention] = []
    for mention in paste.mentions:
        if mention.what in LISTINGS:
            listed.append(mention)
        answerer = answerer_of(mention.what)
        if answerer is None:
            continue
        answer = answerer(Seen(mention, paste, place, tables, elsewhere))
        _add(found, _as_meant(answer, mention))
        if len(found) == MOST_ANSWERS:
            break
    if not found:
        found = _from_listings(listed, paste, place, tables, elsewhere)
    if not found and paste.versions:
        found = _from_versions(Seen(_NO_MENTION, paste, place, tables, elsewhere))
    answers = with_context(tuple(found), paste, place, tables) or (nothing_recognised(),)
    if not any(flag in paste.versions for flag in _OF_WINDOWS) or not paste.mentions:
        return answers
    return _as_typed_there(answers, Seen(paste.mentions[0], paste, place, tables, elsewhere))


def _as_typed_there(answers: tuple[Answer, ...], seen: Seen) -> tuple[Answer, ...]:
    """The answers with their commands for the prompt of a Windows that the text is of."""
    from fa_forensics.why.texts.builds.toolkit_commands import in_wsl, on_windows
    from fa_forensics.why.ways.powershell import in_powershell
    from fa_forensics.why.ways.windows_shell import on_windows_prompt
    from fa_forensics.why.ways.windows_torch import for_cuda_on_windows

    powershell = "flag:powershell" in seen.versions
    if on_windows(seen) and not in_wsl(seen):
        answers = tuple(for_cuda_on_windows(answer, seen) for answer in answers)
        answers = tuple(on_windows_prompt(answer, powershell) for answer in answers)
    return tuple(map(in_powershell, answers)) if powershell else answers


def _as_meant(answer: Answer, mention: Mention) -> Answer:
    """The answer for a name that was put right, or that a person's sentence has, said as such."""
    if mention.detail.get("told"):
        return _as_told(answer)
    written = mention.detail.get("misspelt")
    if not written:
        return answer
    meant = mention.version or mention.library or ""
    note = f"{written} in the text is misspelt, most likely for {meant}."
    confidence = "medium" if answer.confidence == "high" else answer.confidence
    return replace(answer, confidence=confidence, notes=(note, *answer.notes))


def _as_told(answer: Answer) -> Answer:
    """The answer to what a text tells in a person's words: never as sure as to a message."""
    confidence = "medium" if answer.confidence == "high" else answer.confidence
    return replace(answer, confidence=confidence, notes=(*answer.notes, _TOLD))


def _from_listings(
    listed: Sequence[Mention], paste: Paste, place: Place, tables: Tables, elsewhere: bool
) -> list[Answer]:
    """What the lines of ldd, nm and readelf tell, where the text has no error of its own."""
    from fa_forensics.why.texts.tool_text import LINES

    found: list[Answer] = []
    for mention in listed[:MOST_LINES]:
        answer = LINES[mention.what](Seen(mention, paste, place, tables, elsewhere))
        # One line of a sort says what all others of it say: they are many.
        if answer is not None and not (answer.code in _ONCE and _has_code(found, answer.code)):
            _add(found, answer)
    return _narrowest_first(found)[:MOST_ANSWERS]


def _from_versions(seen: Seen) -> list[Answer]:
    """What the versions of a text alone tell: a package that is for another torch."""
    if "torch" not in seen.versions or not any(key.startswith("pkg:") for key in seen.versions):
        return []
    from fa_forensics.why.texts.python.since_torch import versions_apart

    answer = versions_apart(seen)
    return [] if answer is None else [answer]


def _narrowest_first(found: Sequence[Answer]) -> list[Answer]:
    """The names of a list with the one that tells most first; what is no such name stays before.

    A list of imports names what torch has, too: where another name of it is missing from the
    torch in question, those say nothing. Else the name that the fewest releases have tells most.
    """
    drifts = [one for one in found if one.kind in DRIFT]
    lacking = [one for one in drifts if one.code != _EXPORTED]
    wanted = sorted(lacking or drifts, key=lambda one: len(one.exported_by) or _NOWHERE)
    rest = [one for one in found if one not in drifts and (one.code != _EXPORTED or not lacking)]
    return [*rest, *wanted]


def _has_code(found: Sequence[Answer], code: str) -> bool:
    return any(answer.code == code for answer in found)


def _add(found: list[Answer], answer: Answer) -> None:
    if not any(_same(answer, other) for other in found):
        found.append(answer)


def _same(one: Answer, other: Answer) -> bool:
    """Whether two answers say the same thing."""
    return (one.kind, one.symbol, one.cause) == (other.kind, other.symbol, other.cause)


def nothing_recognised() -> Answer:
    """The answer to a text in which nothing is known; it names the lines that would be."""
    return unrecognised(
        "Nothing in this text is recognised. Paste the line that contains "
        '"undefined symbol", "cannot open shared object file", "version ... not found", '
        '"CUDA error" or the last line of the traceback, best with all lines before it.',
        "fa-forensics inspect FILE_OR_PACKAGE",
    )
