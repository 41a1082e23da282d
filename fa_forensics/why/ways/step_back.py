"""The release of a package that the text tells: the one before it failed, or that cured it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import is_torch
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, FLAVOUR, OLDER
from fa_forensics.why.place import Place
from fa_forensics.why.ways.builds import pip_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_RELEASE = lazily(r"\d{1,3}(?:\.\d{1,4}){1,3}")


def _called_false(answer: Answer, paste: Paste, name: str) -> Answer:
    """The answer with a word on wheels of flash-attn whose name tells another flavour."""
    from fa_forensics.facts.wheel_matrix import PACKAGE, called_pre_cxx11

    told = paste.versions.get(f"pkg:{name}", "").partition("+")[0]
    new = mentions_cxx11(answer.symbol or "", answer.demangled or "")
    if name != PACKAGE or answer.direction != FLAVOUR or not new:
        return answer
    if not called_pre_cxx11(told, "2.6"):
        return answer
    note = (
        f"The wheels of flash-attn {told} for torch 2.6 that are called cxx11abiFALSE have a cxx11 "
        "file in them, which no pre-cxx11 torch loads (those of 2.6.0 for CUDA 11.8 and 12.4, and "
        "all before 2.6): up to 2.7.4.post1 the name is true."
    )
    return replace(answer, notes=(note, *answer.notes))


def step_back(answer: Answer, paste: Paste, place: Place, name: str) -> Answer:
    """The answer with the way back, where the package alone was changed; any other as it is.

    A file that is older than torch is helped by no release before it.
    """
    answer = _called_false(answer, paste, name)
    before = paste.versions.get(f"before:{name}", "")
    if not before or answer.kind not in DRIFT or answer.direction == OLDER:
        return answer
    note = (
        f"The text says that {name} was {before} before: while torch is the one of then, that "
        "release is the shortest way back."
    )
    # What stands behind the plus is a wheel's own; no index has a release of that name.
    return _with_release(answer, place, f"{name}=={before.partition('+')[0]}", note)


def put_right(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer with the release of the package, or of torch, that the text says put it right."""
    if answer.kind not in DRIFT or answer.owner is None or not is_torch(answer.owner):
        return answer
    for one in (name, "torch", "pytorch"):
        release = paste.versions.get(f"cure:{one}", "") if one else ""
        if one is None or not _RELEASE.fullmatch(release):
            continue
        one = "torch" if one == "pytorch" else one
        note = (
            f"The text says that {one} {release} put it right: that is the way back to what fitted."
        )
        if one == "torch":
            return replace(answer, notes=(note, *answer.notes))
        return _with_release(answer, place, f"{one}=={release}", note)
    return answer


def _with_release(answer: Answer, place: Place, wanted: str, note: str) -> Answer:
    """The answer with one release of the package typed first, behind the look at torch."""
    pin = (
        f"{pip_of(place)} install --force-reinstall --no-deps --no-build-isolation --no-cache-dir "
        f"{shlex.quote(wanted)}"
    )
    at = 1 if answer.help and "print(torch" in answer.help[0] else 0
    helps = (*answer.help[:at], pin, *answer.help[at:])
    # With this one there are three ways, and another command is the first.
    kept = (n for n in answer.notes if not n.startswith("One of the two commands"))
    return replace(answer, help=tuple(dict.fromkeys(helps)), notes=(note, *kept))
