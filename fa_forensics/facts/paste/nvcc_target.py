"""nvcc does not know a target: which nvcc ran, for which package, and when it is compiled."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.beside import package_beside
from fa_forensics.facts.paste.compile_errors import nvcc_near
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.patterns import lazily

_CUDA_NAMED = lazily(
    r"\bcuda(?:[ _]?toolkit)?(?: ?version)?\W{1,6}v?(\d{1,2}\.\d)(?=[\s.,;)'\"/\\]|$)",
    re.IGNORECASE,
)


#: A source of a package that is compiled where it is installed: the package compiles it as it runs.
_AS_IT_RUNS = lazily(
    r"(?:site|dist)-packages/(?P<package>[A-Za-z]\w{1,40})/[\w./+-]{1,200}?"
    r"(?P<made>\w{1,60})(?:_cuda)?(?:\.cu|\.cpp)\b"
)
_CACHED = lazily(r"torch_extensions/(?:py[\w.]{2,12}/)?(?P<made>\w{1,60})")
#: Names that DeepSpeed gives to what it compiles, where the sources' directory says it.
_OF_DEEPSPEED = lazily(
    r"\b(?P<made>(?:fused|cpu)_(?:adam|lion|lamb|adagrad)|transformer_inference|async_io|utils)\b"
)
#: Its sources in CUDA of an optimiser, which it calls fused.
_FUSED = lazily(r"deepspeed/ops/csrc/(adam|lamb|lion)/\w{1,60}\.cu\b")


def _compiled_there(near: list[Line]) -> dict[str, str]:
    """{"package": ..., "jit": ..., "made": ...}: what was compiled, and whether as it ran."""
    text = "\n".join(one.body[:3_000] for one in near)
    found: dict[str, str] = {}
    source, cached = _AS_IT_RUNS.search(text), _CACHED.search(text)
    if source is not None and source["package"] not in ("torch", "pybind11", "nvidia"):
        found |= {"package": source["package"].replace("_", "-"), "jit": "1"}
    elif named := next((name for one in near if (name := package_beside(one))), ""):
        found["package"] = named
    if cached is not None:
        found |= {"jit": "1", "made": cached["made"]}
    elif found.get("package") == "deepspeed" and "jit" in found:
        told, folder = _OF_DEEPSPEED.search(text), _FUSED.search(text)
        found["made"] = f"fused_{folder[1]}" if folder else told["made"] if told else "*"
    return found


def _of_driver(line: Line) -> bool:
    """``CUDA Version: 10.2`` below ``Driver Version: 440.31``: what nvidia-smi says of a driver."""
    return line.lower.lstrip("|*- ").startswith("cuda version") and any(
        "driver" in one.lower or "smi" in one.lower for one in line.above(1)
    )


def nvcc_refuses(line: Line, match: re.Match[str]) -> Mention:
    """With the nvcc that ran, and the CUDA releases that are named near it as installed."""
    near = [line, *line.above(10), *line.below(15)]
    named = [
        found
        for one in near
        if "driver" not in one.lower and "smi" not in one.lower and not _of_driver(one)
        for found in _CUDA_NAMED.findall(one.body)
    ]
    runs = re.search(r"'(/[\w./+-]{1,200}/nvcc)'", "\n".join(one.body for one in near[:4]))
    detail = {
        "compiler": match["compiler"] or "",
        "arch": match["arch"] or "",
        "nvcc": runs[1] if runs else nvcc_near(line),
        "others": " ".join(dict.fromkeys(named)),
        **_compiled_there(near),
    }
    return line.mention("arch-unsupported-by-nvcc", match.start(), detail=detail)
