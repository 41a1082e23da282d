"""What other lines of a text add to the answer on an undefined symbol: ldd's, and a build's."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.owner import OWN, is_torch, owner_of_library
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.seen import Seen
from fa_forensics.why.torch_names.history import order_key
from fa_forensics.why.ways.builds import is_module


def beside_ldd(answer: Answer, seen: Seen) -> Answer:
    """The answer with a word on torch's libraries that ldd does not find, where it has others."""
    if not answer.symbol or is_torch(answer.owner or "torch/"):
        return answer
    lost = [
        m.library.rsplit("/", 1)[-1]
        for m in seen.paste.mentions[:100]
        if m.what == "ldd-line" and m.detail.get("sort") == "not found" and m.library
    ]
    named = [name for name in lost if is_torch(owner_of_library(name) or "")]
    if not named:
        return answer
    note = (
        f"{named[0]} => not found in ldd is no error: ldd does not know torch's directory, and "
        "import torch loads its libraries before the file."
    )
    return replace(answer, notes=(*answer.notes, note))


def as_the_build_says(answer: Answer, seen: Seen) -> Answer:
    """An own name that is missing, with what the text tells of the build."""
    if answer.owner != OWN or answer.code != "FA205" or answer.provider or not answer.demangled:
        return answer
    from fa_forensics.why.other_names.left_out import of_one_arch, older_gpu, text_words

    if note := older_gpu(answer.demangled, seen.versions):
        answer = replace(answer, notes=(note, *answer.notes))
    words, notes, commands = text_words(seen.versions, seen.mention.file or "")
    if not words and answer.help:
        from fa_forensics.why.other_names.own_package import of_named_package

        return of_one_arch(of_named_package(answer, seen), seen)
    if not words or not answer.help:
        return answer
    kept = (text for text in answer.notes if commands or not text.startswith("CUDA_HOME"))
    if "hipifies" in words:
        from fa_forensics.why.other_names.own_package import not_for_rocm

        answer = not_for_rocm(answer)
        kept = (text for text in answer.notes if not text.startswith("CUDA_HOME"))
    return replace(
        answer, cause=f"{answer.cause} {words}", notes=(*notes, *kept),
        help=(*answer.help[:-1], *commands, answer.help[-1]),
    )  # fmt: skip


#: From torch 1.5 on torch's build helper links extensions with libc10.so and libtorch.so: what is
#: imported without torch then lacks a library, and no name (torch/utils/cpp_extension.py).
_LINKED_SINCE = (1, 5)


def torch_first(answer: Answer, seen: Seen) -> Answer:
    """The answer with the order of imports as a second cause, where the text shows that order."""
    module = seen.mention.detail.get("alone")
    if not module:
        return _or_torch_first(answer, seen)
    if answer.kind not in DRIFT or not is_torch(answer.owner or ""):
        return answer
    cured = "cured" in seen.mention.detail
    told = re.match(r"(\d{1,2})\.(\d{1,2})", seen.torch or "")
    old = [release for release in answer.exported_by if order_key(release)[:2] < _LINKED_SINCE]
    linked = told is not None and (int(told[1]), int(told[2])) >= _LINKED_SINCE
    if not cured and (linked or (answer.exported_by and not old)):
        return answer
    cause = (
        f"Torch was not imported before the file, as the text {'says' if cured else 'shows'}, and "
        "extensions of torch 1.4 and before are not linked with torch's libraries: import torch "
        f"first. Or: {answer.cause}"
    )
    failing = module if module != "yes" else seen.module or "MODULE"
    return replace(
        answer, cause=cause, confidence="medium" if answer.confidence == "high" else
        answer.confidence, help=(f"{seen.python} -c 'import torch, {failing}'", *answer.help),
        notes=("Where the first command works, the order of imports is all that is wrong.",
               *answer.notes),
    )  # fmt: skip


#: The last torch whose names a file of those days can have: the next one is of 2020.
_DAYS_OF_14 = (1, 5)


_OR_BEFORE_TORCH = (
    "Or the file was imported before torch: extensions of torch 1.4 and before are not linked with "
    "torch's libraries, and miss every name of torch then. The first command tells the two apart."
)


def _or_torch_first(answer: Answer, seen: Seen) -> Answer:
    """The order of imports as a second cause, for a name that only torch of those days has.

    A package that is on record imports torch itself; of a program's own module nothing is known.
    """
    file, module = seen.mention.file or "", seen.module
    if answer.kind not in DRIFT or not is_torch(answer.owner or "") or not answer.exported_by:
        return answer
    ends = order_key(answer.exported_by[-1])[:2] <= _DAYS_OF_14
    told = re.match(r"(\d{1,2})\.(\d{1,2})", seen.torch or "")
    linked = told is not None and (int(told[1]), int(told[2])) >= _LINKED_SINCE
    if not ends or linked or not module or seen.package is not None or not is_module(file):
        return answer
    if is_torch(owner_of_library(file.rsplit("/", 1)[-1]) or "") or "/torch_extensions/" in file:
        return answer  # torch itself, or what torch has compiled and loads
    if seen.mention.detail.get("build") == "cmake" or answer.provider:
        return answer
    cause = " ".join((answer.cause, _OR_BEFORE_TORCH))
    dotted = file.replace("\\", "/").rsplit("-packages/", 1)[-1].rsplit("/", 2)
    inner = f"{dotted[-2]}.{module}" if module.startswith("_") and len(dotted) > 1 else module
    inner = inner if re.fullmatch(r"[\w.]{1,100}", inner) else module
    return replace(
        answer, cause=cause, confidence="low" if answer.confidence == "low" else "medium",
        help=(f"{seen.python} -c 'import torch; import {inner}'", *answer.help),
        notes=("Where the first command works, the order of imports is all that is wrong: import "
               "torch goes before the module's.", *answer.notes),
    )  # fmt: skip
