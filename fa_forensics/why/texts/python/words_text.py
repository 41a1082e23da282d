"""Answers to what a person tells of a failure, without the message of the loader or of Python."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.python_names import followed_by, python_spans, version_key
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import inspect_package, package_by_words, package_in
from fa_forensics.why.texts.symbol_text import undefined_symbol

_WHOLE = (
    'The line of the loader with "undefined symbol:" and the whole name behind it tells which '
    "torch the file was built for."
)


def symbol_in_words(seen: Seen) -> Answer:
    """``failed with an undefined `c10::ValueError` symbol``; without a name, its family."""
    name = seen.mention.symbol
    if not name:
        return _of_a_family(seen)
    answer = undefined_symbol(seen)
    if answer.exported_by or answer.direction in (NEWER, OLDER):
        return _hedged(answer)
    if answer.owner is not None and not is_torch(answer.owner):
        return answer
    return _of_a_family(seen, name, answer.owner)


def _hedged(answer: Answer) -> Answer:
    """The answer to a name that a sentence has, whose end it may leave out."""
    confidence = "medium" if answer.confidence == "high" else answer.confidence
    return replace(answer, confidence=confidence, notes=(*answer.notes, _WHOLE))


def _of_a_family(seen: Seen, name: str = "", owner: str | None = None) -> Answer:
    """Names of torch's, or of ROCm's, are missing, and which ones the text leaves out."""
    package = _whose(seen)
    who = package or "The package with the failing file"
    running = f"torch {seen.torch}" if seen.torch else "the one that is loaded"
    rocm = seen.mention.detail.get("family") == "rocm"
    what = "The text tells of missing names and leaves out which"
    if name:
        what = f"{name} is one of torch's names, and what it takes or belongs to is left out"
    cause = (
        f"{what}. {who} was most likely built for another torch than {running}: its compiled files "
        "ask for names that this torch does not export."
    )
    if rocm:
        cause = (
            f"{what}. {who} was most likely built for another torch or another ROCm than "
            f"{running}: its compiled files ask for names that these libraries do not export."
        )
    module = seen.mention.detail.get("import")
    target = package or "PACKAGE"
    notes = [
        _WHOLE,
        f"A build of {package or 'the package'} for this torch, or one that is made on it "
        "(--no-build-isolation), is the way out; so is the torch that it was built for.",
    ]
    if "op" in seen.mention.line.lower().split() or "operator" in seen.mention.line.lower():
        notes.append("An operator that is missing later follows from the file that did not load.")
    helps = [
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
        inspect_package(seen, target),
    ]
    if module and "." in module:
        helps.insert(1, f"{seen.python} -c 'import torch, {module}'")
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=owner or package, direction=UNKNOWN,
        symbol=name or None, confidence="medium" if name else "low", help=tuple(helps),
        notes=tuple(notes),
    )  # fmt: skip


def _whose(seen: Seen) -> str | None:
    """The package of a dotted name in the mention, else the one that the text is about."""
    module = seen.mention.detail.get("import") or seen.mention.detail.get("module") or ""
    top = module.partition(".")[0]
    return (
        package_by_words(top) or (top.replace("_", "-") if "." in module else None)
    ) or package_in(seen)


def python_name_gone(seen: Seen) -> Answer:
    """A private function of CPython's that code of pybind11 or Cython calls."""
    name = seen.mention.symbol or ""
    spans = python_spans(name)
    before = spans[-1].before if spans else None
    running = seen.python_version
    if before is None or (running and version_key(running)[:2] < version_key(before)[:2]):
        return undefined_symbol(seen)
    cause = (
        f"{name} is a private function of CPython's: {before} and later have it no more. Code "
        "that calls it neither compiles nor loads there."
    )
    by = seen.mention.detail.get("by")
    rows = followed_by(name)
    kept = {by: rows[by]} if by in rows else rows
    firsts = " and ".join(f"{tool} {release}" for tool, release in kept.items())
    notes = [
        f"{firsts} and later do without it. Which one a build takes, its sources say (a copy in "
        "third_party, requires in pyproject.toml): that one has to be newer.",
        "A wheel of the package for this Python is compiled already; a Python before "
        f"{before} is the other way.",
    ]
    tools = " ".join(shlex.quote(f"{tool}>={release}") for tool, release in kept.items())
    shown = " ".join(kept)
    return seen.answer(
        "python-abi", "FA402", cause, owner="python", direction=OLDER, confidence="medium",
        symbol=name, help=(f"{seen.pip} show {shown}", f"{seen.pip} install --upgrade {tools}"),
        notes=tuple(notes),
    )  # fmt: skip


def file_not_taken(seen: Seen) -> Answer:
    """``cannot be found ... I do see a .so file``: the file is there, and Python passes it over."""
    detail = seen.mention.detail
    package, module = _whose(seen), detail.get("module", "")
    built, running = detail.get("built", ""), seen.python_version or ""
    minor = ".".join(running.split(".")[:2])
    if built and minor and built != minor:
        cause = (
            f"The file is there, and it was built with Python {built}: its name has the tag of "
            f"that Python, and Python {minor} does not look for a file of that name. No file "
            "is missing."
        )
    else:
        cause = (
            "The file is there, and the import does not take it: most often the tag in its name is "
            "that of another Python than the one that runs (cpython-310 is Python 3.10's), so that "
            "it is passed over; else its own loading fails, and the message of that is hidden."
        )
    helps = [
        f"{seen.python} -c 'import sys, importlib.machinery as m; print(sys.version, "
        "m.EXTENSION_SUFFIXES)'"
    ]
    if module:
        helps.append(f"{seen.python} -c 'import torch, {module}'")
    if package:
        helps.append(inspect_package(seen, package))
    return seen.answer(
        "python-abi", "FA401", cause, owner=package, direction=NONE, confidence="medium",
        help=tuple(helps), notes=(
            "The first command prints the endings that this Python looks for; the file's name has "
            "to end in one of them. A build with this Python is the way out, or one that serves "
            "any (abi3, or a library that torch.ops.load_library loads).",
        ),
    )  # fmt: skip


def no_storage(seen: Seen) -> Answer:
    """``Cannot access data pointer of Tensor that doesn't have storage`` at an extension's call."""
    call = seen.mention.detail["call"]
    package = package_by_words(call) or call.replace("_", "-")
    running = f"torch {seen.torch}" if seen.torch else "the one that runs"
    cause = (
        f"torch refuses to give {call} the address of a tensor's memory. Two causes fit. The "
        "tensor has none: a fake or meta tensor, as torch.compile and tracing make them. Or "
        f"{call} was built for another torch than {running}: it loads, and the classes of that "
        "torch are laid out otherwise than it takes them to be. With plain tensors outside "
        "torch.compile it is the second."
    )
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=package, direction=UNKNOWN, confidence="low", help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
            inspect_package(seen, package),
        ), notes=(
            f"A build of {package} that is made on the torch that runs (--no-build-isolation) "
            "settles which of the two it is.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "file-not-taken": file_not_taken,
    "no-storage": no_storage,
    "python-name-gone": python_name_gone,
    "symbol-in-words": symbol_in_words,
}
