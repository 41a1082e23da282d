"""What cuDNN's loader and CTranslate2 say of a library of NVIDIA's on Windows."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.facts.paste.system_around import user_of

#: cudnn_ops64_9.dll, cudnn_cnn_infer64_8.dll, cublasLt64_12.dll, cudart64_110.dll.
_DLL = (
    r"(?P<library>(?P<stem>cudnn(?:_\w{1,30}?)?|cublas(?:Lt)?|cudart|cufft|nvrtc)64_"
    r"(?P<number>\d{1,3})(?:_\d)?\.dll)"
)


def recognisers() -> tuple[Recogniser, ...]:
    """The texts about libraries of CUDA and cuDNN that Windows does not find."""
    return (
        by_pattern(
            ("cudnn64_", "64_7.dll", "64_8.dll", "64_9.dll", "64_1"),
            r"(?:Could not locate|Could not load library|Library|Could not find module|Could not "
            r"load dynamic library|Unable to load|not found:?|missing|找不到)\s{1,3}['\"]?"
            rf"{_DLL}",
            _not_found,
        ),
        plain(
            "could-not-load-library",
            ("could not load symbol cudnn",),
            r"Could not load symbol (?P<symbol>cudnn\w{1,100})\. Error code \d",
        ),
    )


def _not_found(line: Line, match: re.Match[str]) -> Mention:
    detail = {"stem": match["stem"], "number": match["number"], "os": "Windows"}
    detail["used_by"] = user_of(line)
    if match[0].startswith("Library"):
        detail["by"] = "ctranslate2"  # its words: "Library X is not found or cannot be loaded"
    return line.mention("cuda-dll", match.start(), library=match["library"], detail=detail)
