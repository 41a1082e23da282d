"""Answers to a package's list of the places that it tried to load its compiled part from."""

from __future__ import annotations

import shlex

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Answerer, Seen, package_of
from fa_forensics.why.texts.clues import package_in


def tries_without_errors(seen: Seen) -> Answer:
    """``[sgl_kernel] CRITICAL: Could not load any common_ops library!`` without its last lines.

    The package prints, behind that list, the error of every try (sgl_kernel's load_utils.py).
    """
    package = seen.mention.detail["package"]
    module = seen.mention.detail["module"]
    last = (
        'Below the list the package prints the errors of its tries ("Error details from previous '
        'import attempts"): paste those lines. They name the symbol or the library.'
    )
    file = seen.mention.file
    if not file:
        cause = (
            f"{package} found no {module} file in the places that it lists, so nothing was loaded: "
            f"its wheel is not whole, or is one without code for the GPU that it names."
        )
        return seen.answer(
            "missing-library", "FA202", cause, owner=package, confidence="medium", notes=(last,),
            help=(f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {package}",),
        )  # fmt: skip
    name = file.rsplit("/", 1)[-1]
    cause = (
        f"{name} is there, by the list of places, and could not be loaded: no file is missing, and "
        "the lines about architectures and the GPU are by the way. Most often the file was built "
        f"for another torch than the one that is loaded, or a library of CUDA that it needs is "
        "not found."
    )
    present = seen.place.present
    notes = [last]
    if present is not None:
        notes.append(
            f"The text names torch {present.release}: where {package} was built with another one, "
            "torch has to be of that minor version for both the build and the run (pinned with == "
            f"in each), or {package} is built again for torch {present.release}."
        )
    else:
        notes.append(
            f"Each release of {package} is built for one torch, which the release of the program "
            "that uses it pins: pip check shows where another one is installed."
        )
    return seen.answer(
        "wrong-torch", "FA607", cause, owner=package, direction=UNKNOWN, confidence="low",
        notes=tuple(notes), help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'",
            f"{seen.python} -c 'import torch, ctypes; ctypes.CDLL({_in_code(file)})'",
            f"{seen.pip} check", seen.inspect_command(),
        ),
    )  # fmt: skip


#: The file at the head of an entry: "1. sm100/common_ops.abi3.so - undefined symbol".
_HEAD = lazily(r"(?P<file>[\w./+-]{1,200}\.so)\b")


def symbol_in_words(seen: Seen) -> Answer:
    """``undefined symbol (PyTorch C10 ABI mismatch)``: of torch, and which one is left out."""
    found = _HEAD.search(seen.mention.line)
    file = seen.mention.file or (found["file"] if found else "")
    package = package_of(file) or package_in(seen)
    told = next((one for one in _SGL if f"pkg:{one}" in seen.versions), None)
    package = told if told and package in _SGL else package
    name = file.rsplit("/", 1)[-1] or "the file"
    version = seen.versions.get(f"pkg:{package}", "") if package else ""
    whose = f"{name} of {package} {version}".rstrip() if package else name
    present = seen.place.present
    there = present.text if present is not None else "the one that is loaded"
    cause = (
        f"{whose} lacks a name of torch, which the text puts into words: it was built for another "
        f"torch than {there}. Lines about directories or architectures that are not there list "
        "what was tried besides, and are not the cause: no GPU and no driver plays a part."
    )
    notes = [
        "With the name that the loader prints behind undefined symbol: the answer says which torch "
        "the file was built for, and whether that is older or newer."
    ]
    helps = [f"{seen.python} -c 'import torch; print(torch.__version__, torch.__path__[0])'"]
    if package is not None:
        notes.insert(0, (
            f"Each release of {package} is built for one torch: the release of the program that "
            "uses it pins the two, and pip check shows where another torch is installed. That "
            f"torch, or another release of {package} or a build of it for the torch that is there, "
            "puts it right."
        ))  # fmt: skip
        helps += [f"{seen.pip} check", f"{seen.pip} show {package}"]
    return seen.answer(
        "wrong-torch", "FA607", cause, owner="torch", direction=UNKNOWN, confidence="medium",
        notes=tuple(notes), help=(*helps, seen.inspect_command()),
    )  # fmt: skip


#: One package under its two names.
_SGL = ("sglang-kernel", "sgl-kernel")


def _in_code(path: str) -> str:
    """A path as a Python string within single quotes of a shell."""
    plain = shlex.quote(path)
    return f'"{path}"' if plain == path else '"/path/to/the/file.so"'


ANSWERERS: dict[str, Answerer] = {"tries-without-errors": tries_without_errors}
