"""A module that setuptools alone built: none of torch's libraries is among those it lists."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.owner import is_torch, libraries_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.ways.builds import clean_build, cmake_build

_DRIFT = ("FA201", "FA301", "FA210", "FA607")


def of_plain_extension(answer: Answer, seen: Seen) -> Answer | None:
    """The answer for a module that the text builds as setuptools.Extension; None for others."""
    versions = seen.versions
    if "flag:plain-extension" not in versions or "flag:cpp-extension" in versions:
        return None
    if answer.code not in _DRIFT or answer.owner is None or not is_torch(answer.owner):
        return None
    named = versions["flag:plain-extension"]
    if named == "Extension":
        named = seen.module or versions.get("flag:extension-name", "")
    module = named if re.fullmatch(r"[A-Za-z_][\w.]*", named) else "MODULE"
    library = libraries_of(answer.owner)[0]
    cause = (
        "The text builds the module as a plain setuptools.Extension, which links none of torch's "
        f"libraries: its names of {library} are there only where torch was imported before it, and "
        "most likely no release is wrong."
    )
    notes = [
        "In setup.py, CppExtension of torch.utils.cpp_extension in place of Extension, with "
        "cmdclass={'build_ext': BuildExtension}, takes torch's headers, flags and (since torch "
        "1.5) libraries; build/ goes before. Up to torch 1.4 the import of torch has to come first "
        "in any case."
    ]
    if answer.interval:
        notes.append(
            f"Where torch is imported before and the name is missing all the same, the release "
            f"counts: torch {answer.interval} export it."
        )
    return replace(
        answer, kind="import-order", code="FA210", direction=NONE, cause=cause, confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; import {module}'",
            clean_build(raw_python(seen), ""),
            seen.inspect_command(),
        ),
        notes=tuple(notes),
    )  # fmt: skip


_OF_INSTALLS = lazily(r"(?:Compiled on that|The package index has|The command that begins)\b")


def of_inductor(answer: Answer, seen: Seen) -> Answer:
    """The other std::string flavour in a model that AOTInductor compiled for a C++ program."""
    helps = [t for t in answer.help if not t.startswith("rm -rf build") and '"torch==' not in t]
    helps.insert(-1, cmake_build(raw_python(seen)))
    note = (
        "AOTInductor compiles the model with the torch of Python, in that torch's flavour, and a "
        "C++ program loads it with the libtorch that it was linked with: nothing is to be "
        "installed for Python. The command with cmake builds the program on the torch that "
        "compiled the model. Else the download of libtorch in the model's flavour (up to 2.6.0 "
        "libtorch-shared-with-deps is pre-cxx11, libtorch-cxx11-abi-shared-with-deps is cxx11; "
        "from 2.7.0 on all are cxx11), or a model that a torch of the program's flavour compiled."
    )
    kept = (text for text in answer.notes if not _OF_INSTALLS.match(text))
    return replace(answer, help=tuple(helps), notes=(note, *kept))
