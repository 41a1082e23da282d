"""Errors of the CUDA runtime that stop a run: an address, a launch, a device, the hardware."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.facts.tables import read_table

#: Frames of a traceback above the message that may name the package.
_ABOVE = 12


@lru_cache(maxsize=1)
def _rows() -> tuple[Mapping[str, str], ...]:
    return tuple(read_table("cuda_errors.json")["rows"])


@lru_cache(maxsize=1)
def _by_words() -> Mapping[str, Mapping[str, str]]:
    """The rows by the message, the runtime's name and the driver's, in small letters."""
    found: dict[str, Mapping[str, str]] = {}
    for row in _rows():
        found[row["text"].lower()] = row
        found[row["name"].lower()] = row
        if "driver" in row:
            found[row["driver"].lower()] = row
    return found


def recognisers() -> tuple[Recogniser, ...]:
    """``CUDA error: MESSAGE``, ``CUDA error (FILE:LINE): MESSAGE`` and the names of errors."""
    return (
        by_pattern(
            ("cuda error", "cuda runtime error", "cuda kernel failed"),
            r"CUDA (?:runtime |kernel |driver )?(?:error|failed)(?: ?\d{1,3})?"
            r"(?: ?[\[(](?P<place>[^\n()\[\]]{1,200})[\])])?(?: at [^\s:]{1,200}:\d{1,6})?"
            r" ?:? {1,3}(?P<said>[A-Za-z_][\w ,/()\-]{4,120})",
            _said,
        ),
        by_pattern(("cudaerror",), r"\b(?P<said>cudaError[A-Z][A-Za-z]{2,40})\b", _said),
        by_pattern(("cuda_error_",), r"\b(?P<said>CUDA_ERROR_[A-Z_]{2,40})\b", _said),
        by_pattern(
            ("triton error",), r"Triton Error \[CUDA\]: (?P<said>[a-z][\w ,/()-]{4,80})", _said
        ),
    )


def _said(line: Line, match: re.Match[str]) -> Mention | None:
    words = match["said"].lower().strip()
    row = _by_words().get(words) or next(
        (row for row in _rows() if words.startswith(row["text"].lower())), None
    )
    if row is None:
        return None
    place = match.groupdict().get("place") or ""
    frames = " ".join(above.body for above in line.above(_ABOVE) if ".py" in above.body)
    detail = {
        "error": row["name"],
        "text": row["text"],
        "sort": row["sort"],
        "place": place if re.search(r"[/\\.]", place) else "",
        "frames": frames[-600:],
    }
    return line.mention("cuda-error", match.start(), detail=detail)
