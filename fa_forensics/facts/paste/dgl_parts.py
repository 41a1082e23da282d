"""What DGL says where it has no compiled part for the torch that is there."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.loader import missing
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.patterns import lazily


def recognisers() -> tuple[Recogniser, ...]:
    """DGL's message with the path behind it, and without."""
    return (
        by_pattern(
            ("cannot find dgl c++",),
            r"Cannot find DGL C\+\+ [\w ]{1,40} at\s{1,3}['\"]?"
            r"(?P<library>[^\s'\"]{1,300}\.(?:so|dylib|dll))",
            _of_one_torch,
        ),
        by_pattern(
            ("cannot find dgl c++",),
            r"Cannot find DGL C\+\+ (?P<part>graphbolt|sparse|tensoradapter)\b"
            r"(?![^\n]{0,40} at\s+\S)",
            _without_its_path,
        ),
    )


def _of_one_torch(line: Line, match: re.Match[str]) -> Mention:
    """DGL looks for the file that has torch's release in its name."""
    return missing(line, match.start(), match["library"].replace("\\", "/"), {})


#: ``libgraphbolt_pytorch_2.4.1``: the beginning of DGL's names, by what its message calls them.
_PARTS = {
    "graphbolt": "libgraphbolt",
    "sparse": "libdgl_sparse",
    "tensoradapter": "libtensoradapter",
}
_TORCH_NEAR = lazily(
    r"\b(?:py)?torch[\s=:`'\"v-]{1,6}(?P<torch>[12]\.\d{1,2}\.\d{1,2})(?![\w.]*\d\.)", re.I
)


def _without_its_path(line: Line, match: re.Match[str]) -> Mention:
    """DGL's message without the path behind it: the torch is that of the text."""
    named = (line, *line.below(20), *line.above(20))
    found = next((f for near in named if (f := _TORCH_NEAR.search(near.body))), None)
    stem = _PARTS[match["part"].lower()]
    if found is None:
        detail = {"torch": "", "stem": stem, "tail": ""}
        return line.mention("torch-named-library", match.start(), detail=detail)
    return missing(line, match.start(), f"{stem}_pytorch_{found['torch']}.so", {"of_text": "yes"})
