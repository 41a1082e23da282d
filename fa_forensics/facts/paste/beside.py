"""What people write beside an error: which package they installed, and which code it lacks."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line

_INSTALLED = re.compile(
    r"pip3? install (?:-{1,2}[\w-]{1,30} ){0,4}(?P<name>[A-Za-z][\w-]{1,40})(?![\w./:@-])"
)
_LACKS = re.compile(
    r"(?:n't|not|no|without|lacks?|missing)\s(?:[\w-]{1,20}\s){0,4}?(?:sm_?|compute_)(\d{2,3})(?!\d)",
    re.IGNORECASE,
)
#: A call of a compiled module in a line of source: ``out = causal_conv1d_cuda.fwd(``.
_CALL = re.compile(
    r"(?<![\w.])[A-Za-z_]\w{2,60}(?:_cuda|_ext|_C|_cpp|_engine)\.[A-Za-z_]\w{0,80}\("
)
#: Names that are no extension's: torch's own family, and the tools of builds.
_TOOLS = frozenset(
    ("torch", "torchvision", "torchaudio", "pip", "ninja", "packaging", "wheel", "setuptools",
     "numpy", "triton", "install", "the")
)  # fmt: skip


def said_beside(line: Line) -> dict[str, str]:
    """{"asked": package, "sm": code}, as far as the lines around a message say it."""
    found: dict[str, str] = {}
    for near in (line, *line.above(3), *line.below(3)):
        installed = _INSTALLED.search(near.body)
        if installed and installed["name"].lower() not in _TOOLS:
            found.setdefault("asked", installed["name"])
        if "failed with error" in line.lower and "sgl" in near.lower:
            found.setdefault("asked", "sgl-kernel")  # FlashInfer's kernels are in its file too
        if near is not line and (call := _CALL.search(near.body)):
            found.setdefault("call", call[0])
        lacks = _LACKS.search(near.body)
        if lacks:
            found.setdefault("sm", f"sm_{lacks[1]}")
    return found
