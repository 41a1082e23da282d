"""A text that names two torches: the answer for one is compared with that for the other."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, OLDER
from fa_forensics.why.pasted import paste_answers
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of
from fa_forensics.why.tables import Tables
from fa_forensics.why.ways.not_the_wheel import banner_torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa_forensics.facts.paste import Paste

_LESS = {"high": "medium", "medium": "low", "low": "low"}


def with_the_other(
    answers: tuple[Answer, ...],
    paste: Paste,
    place: Place,
    tables: Tables,
    told_place: Callable[[Paste, Tables], Place],
) -> tuple[Answer, ...]:
    """The answers, the first with a note on the text's other torch, where it names one.

    What differs by the torch is less sure where the text does not tell which of them runs.
    """
    other = paste.versions.get("torch_too")
    if other is None or place.present is None or answers[0].kind == "unrecognised":
        return answers
    if banner_torch(paste, "here_torch") == paste.versions["torch"].partition("+")[0]:
        return answers  # the banner tells which of them ran
    versions = {**paste.versions, "torch": other}
    for key in ("torch_too", "torch_cuda", "cxx11_abi"):
        versions.pop(key, None)
    second = replace(paste, versions=versions)
    there = told_place(second, tables)
    first, judged = answers[0], paste_answers(second, there, tables, True)[0]
    named = paste.versions["torch"]
    if _verdict(first) == _verdict(judged):
        note = f"The text names torch {named} and torch {other}; the answer is the same for both."
        if _pinned(first) != _pinned(judged):
            note = (
                f"The text names torch {named} and torch {other}. The cause is the same for both, "
                "and the releases in the commands are those for the first: torch.__version__, "
                "printed by the Python that fails, tells which one runs."
            )
        return (replace(first, notes=(note, *first.notes)), *answers[1:])
    note = (
        f"The text names torch {named} and torch {other}; this is the answer for the first of "
        "them, and it is another one for the second. torch.__version__, printed by the Python that "
        "fails, tells which one runs."
    )
    unsure = replace(first, confidence=_LESS[first.confidence], notes=(note, *first.notes))
    return (unsure, *answers[1:])


def _pinned(answer: Answer) -> set[str]:
    """The releases that the commands of an answer install."""
    return {pin for text in answer.help for pin in re.findall(r"[=<>]=[\w.+*]{1,40}", text)}


def the_one_that_lacks_it(
    answers: tuple[Answer, ...],
    paste: Paste,
    tables: Tables,
    told_place: Callable[[Paste, Tables], Place],
) -> tuple[Place, tuple[Answer, ...]] | None:
    """(the place, the answers) for the text's other torch, where that alone lacks the name.

    A name that is missing is missing from the torch that is loaded. None where the first torch
    lacks it, where no other is named, or where the other one has it too.
    """
    other = paste.versions.get("torch_too") or paste.versions.get("torch_also")
    first = answers[0]
    if other is None or first.code != "FA607" or not first.symbol:
        return None
    versions = {**paste.versions, "torch": other}
    for key in ("torch_too", "torch_also", "torch_cuda", "cxx11_abi"):
        versions.pop(key, None)
    second = replace(paste, versions=versions)
    there = told_place(second, tables)
    judged = paste_answers(second, there, tables, True)
    if judged[0].kind != "symbol-drift" or judged[0].direction not in (OLDER, NEWER):
        return None
    named = paste.versions["torch"]
    if _condas(paste, named):
        return there, (_without_pips(judged[0], named, other), *judged[1:])
    note = (
        f"The text names torch {named} and torch {other}, and torch {named} has the name: the "
        "other one is what is loaded. Where both are in one environment, conda's and pip's, pip's "
        "hides the other one, and python -m pip uninstall torch takes it away."
    )
    helps = judged[0].help
    if named in judged[0].exported_by:
        helps = tuple(re.sub(r'(?<="torch==)[\d.]+(?="$)', named, text) for text in helps)
    sure, notes = _LESS[judged[0].confidence], (note, *judged[0].notes)
    unsure = replace(judged[0], confidence=sure, help=helps, notes=notes)
    return there, (unsure, *judged[1:])


_VENV = lazily(r"/[.\w-]{0,20}(?:venv|virtualenv)[\w.-]{0,20}/|/virtualenvs/")


def _condas(paste: Paste, named: str) -> bool:
    """Whether the text shows that conda installed a torch, which may be the one of a release.

    An environment of venv has pip's alone.
    """
    told = paste.versions.get("flag:conda-torch")
    if told is None or _VENV.search(file_of(paste)) is not None:
        return False
    release = re.search(r"\d[\d.]*", told)
    return release is None or named.startswith(release[0].rstrip("."))


#: Notes on a build of the file, and on another torch: the one that fits is there.
_ON_OTHERS = lazily(
    r"One\sof\sthe\stwo|Another\sbuild\sof|The\scommand\s|Installing\sanother"
    r"|torch\s[^;]{1,60}\shave?s?\sthis\sname|[\w-]{1,40}'s\sown\sproject\shas\swheels"
)


def _without_pips(answer: Answer, named: str, other: str) -> Answer:
    """The answer where conda's torch has the name and pip's, which has not, stands before it."""
    note = (
        f"The text names torch {named} and torch {other}, and torch {named} has the name: the "
        "other one is what is loaded. conda's and pip's torch are two, and pip's hides conda's. "
        f"Where the first command prints {other}, the second takes that one away, and the first, "
        f"again, prints {named}; nothing is to be compiled."
    )
    more = (
        "Where both lay in one directory, conda's files may go with it: conda install "
        f"--force-reinstall pytorch={named}, with the channel it came from, puts them back."
    )
    which = "python -c 'import torch; print(torch.__version__, torch.__path__[0])'"
    look = tuple(text for text in answer.help if text.startswith("fa-forensics inspect"))
    kept = (n for n in answer.notes if not _ON_OTHERS.match(n))
    return replace(
        answer, confidence=_LESS[answer.confidence], notes=(note, more, *kept),
        help=(which, "python -m pip uninstall -y torch", *look),
    )  # fmt: skip


def _verdict(answer: Answer) -> tuple[str, str, str, bool]:
    return answer.kind, answer.code, answer.direction, answer.provider is None
