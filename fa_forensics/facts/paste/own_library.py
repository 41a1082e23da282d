"""What bitsandbytes prints before it loads its library: which one, and for which CUDA."""

from __future__ import annotations

from collections.abc import Iterable

from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

#: bitsandbytes/cuda_setup/main.py of 0.35 to 0.42.
_SET_UP = lazily(r"\bbin (/\S{1,400}/libbits\w{1,60}\.so)|Detected CUDA version (\d{2,3})\b")


def told_by_set_up(near: Iterable[Line]) -> dict[str, str]:
    """``bin``: the path of the library that it wants; ``detected``: the CUDA that it found."""
    told = _SET_UP.findall("\n".join(line.body for line in near))
    return {key: max((found[i] for found in told), default="")
            for i, key in enumerate(("bin", "detected"))}  # fmt: skip
