"""What people write beside an error: which package they installed, and which code it lacks."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.named_packages import PACKAGES
from fa_forensics.patterns import lazily

_INSTALLED = lazily(
    r"pip3? install (?:-{1,2}[\w-]{1,30} ){0,4}(?P<name>[A-Za-z][\w-]{1,40})(?![\w./:@-])"
)
_LACKS = lazily(
    r"(?:n't|not|no|without|lacks?|missing)\s(?:[\w-]{1,20}\s){0,4}?(?:sm_?|compute_)(\d{2,3})(?!\d)",
    re.IGNORECASE,
)
#: A call of a compiled module in a line of source: ``out = causal_conv1d_cuda.fwd(``.
_CALL = lazily(
    r"(?<![\w.])(?:[A-Za-z_]\w{2,60}(?:_cuda|_ext|_C|_cpp|_engine)|_C_[a-z]\w{2,40})"
    r"\.[A-Za-z_]\w{0,80}\("
)
#: ``I built xformers with ...``: whose file is one of the writer's own.
_BUILT = lazily(
    r"\b(?:re)?(?:built|compiled|build|compile|building|compiling)\s(?P<name>[a-z][\w-]{2,40})\s"
    r"(?:with|from|using|for|against|myself|on)\b",
    re.IGNORECASE,
)
#: Names that are no extension's: torch's own family, and the tools of builds.
_TOOLS = frozenset(
    ("torch", "torchvision", "torchaudio", "pip", "ninja", "packaging", "wheel", "setuptools",
     "numpy", "triton", "install", "the")
)  # fmt: skip


#: Names that are words too, or of what every text has.
_NO_EXTENSION = frozenset(
    ("torch", "pytorch", "numpy", "triton", "transformers", "accelerate", "kernels", "ninja", "mkl",
     "pybind11", "cudatoolkit", "pytorch-cuda", "libstdcxx-ng")
)  # fmt: skip


def package_beside(line: Line) -> str:
    """The one package with compiled code that the lines around a message name; "" for several."""
    near = " ".join(other.lower for other in (*line.above(6), line, *line.below(8)))[:6_000]
    near = near.replace("_", "-")
    found = {
        name
        for name in PACKAGES
        if name not in _NO_EXTENSION
        and not name.startswith("nvidia-")
        and name in near
        and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w])", near)
    }
    family = {"torchvision", "torchaudio", "vllm", "sglang", "deepspeed"}
    named = found - family or found
    return named.pop() if len(named) == 1 else ""


#: The function that a report names as the failing one, in quotes or bold: "causal_conv1d_cuda.fwd".
_TOLD = lazily(
    r"['\"`*]{1,4}(?P<call>[A-Za-z_]\w{2,60}(?:_cuda|_ext|_C|_cpp|_engine)\.[A-Za-z_]\w{0,80})"
    r"(?:\(\))?['\"`*]{1,4}"
)


_SGL = lazily(r"sgl[-_]kernel")


def said_beside(line: Line) -> dict[str, str]:
    """{"asked": package, "call": code, "sm": code}, as far as the lines around a message say it."""
    found: dict[str, str] = {}
    for near in (line, *line.above(3), *line.below(3)):
        installed = _INSTALLED.search(near.body)
        if installed and installed["name"].lower() not in _TOOLS:
            found.setdefault("asked", installed["name"])
        built = _BUILT.search(near.body[:2_000])
        name = built["name"].lower().replace("_", "-") if built is not None else ""
        if name in PACKAGES and name not in _NO_EXTENSION and name not in _TOOLS:
            found.setdefault("asked", name)
        if "failed with error" in line.lower and _SGL.search(near.lower):
            found.setdefault("asked", "sgl-kernel")  # FlashInfer's kernels are in its file too
        if near is not line and (call := _CALL.search(near.body)):
            found.setdefault("call", call[0])
        lacks = _LACKS.search(near.body)
        if lacks:
            found.setdefault("sm", f"sm_{lacks[1]}")
    for near in (line, *line.below(6), *line.above(6)):
        told = _TOLD.search(near.body[:2_000])
        if told is not None:
            found.setdefault("call", f"{told['call']}(")
    return found
