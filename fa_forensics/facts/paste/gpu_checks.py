"""What Triton's compiler and the build files of packages say of a GPU that they do not take."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily

_CONVERSION = lazily(r"Unsupported conversion from (\w{2,12}) to (\w{2,12})", re.IGNORECASE)
#: A line of a traceback in a package's build file: ``File "/w/x/setup.py", line 70``.
_BUILD_FILE = lazily(r"[/\\](?:setup|build|build_ext|conanfile)\.py$")


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of Triton's compiler about types and GPUs, and of setup.py about a GPU."""
    return (
        by_pattern(
            ("unsupported conversion from", "unsupported rounding mode"),
            r"Unsupported conversion from \w{2,12} to \w{2,12}"
            r"|LLVM ERROR: Unsupported rounding mode for conversion",
            _conversion,
        ),
        plain(
            "triton-gpu-not-known",
            ("computecapability not suppo", "computecapability > "),
            r"computeCapability (?:not suppo|> ?\d{2,3} not suppo)",
        ),
        by_pattern(
            ("unsupported gpu", "unsupported compute capability", "gpu not supported",
             "unsupported device capability"),
            r"(?:Error|Exception)\(?: ?['\"]?(?P<said>Unsupported (?:GPU|compute capability"
            r"|device capability)|GPU not supported)\b(?! arch)",
            _by_build_file,
        ),
    )  # fmt: skip


def _conversion(line: Line, match: re.Match[str]) -> Mention | None:
    """The types stand on the line above LLVM's own words."""
    found = _CONVERSION.search(match[0])
    if found is None:
        above = [_CONVERSION.search(near.body) for near in line.above(3)]
        if any(above):
            return None  # that line is read by itself
    detail = {"source": found[1], "target": found[2]} if found else {}
    return line.mention("triton-no-conversion", match.start(), detail=detail)


def _by_build_file(line: Line, match: re.Match[str]) -> Mention | None:
    """Only what a package's build file raises: at run time other readers know more."""
    path, function, code = frame(line)
    if not _BUILD_FILE.search(path):
        return None
    number = re.search(r"line (\d{1,6})", _line_of(line, path))
    detail = {"frame": path, "function": function, "code": code, "by": "build-file",
              "row": number[1] if number else "", "said": match["said"]}  # fmt: skip
    return line.mention("gpu-refused-by-build", match.start(), detail=detail)


def _line_of(line: Line, path: str) -> str:
    return next((near.body for near in line.above(12) if path in near.body), "")
