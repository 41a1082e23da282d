"""Answers to a function that a file did not find in a library of Windows."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in

#: Namespaces of torch, and the library of Windows that exports most of each.
_SCOPES = {"c10": "c10.dll", "at": "torch_cpu.dll", "torch": "torch_cpu.dll",
           "caffe2": "torch_cpu.dll"}  # fmt: skip
#: ``?warn@c10@@YAX...``: the name, then its scopes from the innermost to the outermost.
_NAME = lazily(r"\?{1,2}(?P<parts>[\w$?]{1,100}(?:@[\w$?]{1,100}){1,8})@@")


def torch_entry_point(seen: Seen) -> Answer | None:
    """A name of torch, as Microsoft's compiler spells it; None for any other."""
    found = _NAME.match(seen.mention.symbol or "")
    if found is None:
        return None
    *inner, scope = found["parts"].split("@")
    if scope not in _SCOPES:
        return None
    name = "::".join([scope, *reversed(inner)])
    library = "c10_cuda.dll" if scope == "c10" and "cuda" in inner else _SCOPES[scope]
    file = re.split(r"[\\/]", seen.mention.file or "")[-1]
    package = package_in(seen)
    whose = f"{file or 'the file'}" + (f" of {package}" if package else "")
    cause = (
        f"{name} is a name of torch ({library} exports it), and the torch that is loaded has it "
        f"not: {whose}, which the dialog names as the place, only asks for it. What is an "
        "undefined symbol on Linux: that file was built for another release of torch than the one "
        "there."
    )
    wanted = package or "PACKAGE"
    notes = (
        "A wheel for Windows is named for its torch and CUDA. Either the wheel for the torch that "
        "is there takes its place, or the torch that it names; no driver and no CUDA toolkit plays "
        "a part.",
    )
    return seen.answer(
        "windows", "FA889", cause, symbol=seen.mention.symbol, demangled=name,
        owner="torch/c10" if scope == "c10" else "torch/torch_cpu", direction=UNKNOWN,
        confidence="high", notes=notes,
        help=(
            f"{seen.python} -c \"import torch; print(torch.__version__, torch.__path__[0])\"",
            f"{seen.pip} show {wanted}",
            f"{seen.pip} check",
        ),
    )  # fmt: skip
