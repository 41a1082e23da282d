"""The torch that a traceback is of, by the line numbers of torch's own Python files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from fa_forensics.facts.paste.lines import Places, Source
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily

#: The word that such lines are found by, and how many of them are read.
SIGN = ("torch/_ops.py", "torch/utils/cpp_extension.py")
_MOST = 20

_FRAME = lazily(
    r"(?P<file>torch/(?:_ops|utils/cpp_extension)\.py)['\"]?,? line (?P<line>\d{1,5}),? in "
    r"(?P<function>\w{1,60})"
)


@lru_cache(maxsize=1)
def _rows() -> Mapping[tuple[str, str], Mapping[str, Sequence[int]]]:
    return {
        (row["file"], row["function"]): row["lines"]
        for row in read_table("torch_lines.json")["rows"]
    }


def traced_torch(source: Source, places: Places) -> tuple[str, int] | None:
    """(the newest release of the one minor release that has such lines, the text's line number).

    None without such a line, and where the lines of several minor releases stand there.
    """
    left: list[str] | None = None
    number = 0
    for sign in SIGN:
        for place in places(sign)[:_MOST]:
            line = source.line_at(place)
            found = _FRAME.search(line.body)
            lines = _rows().get((found["file"], found["function"])) if found else None
            if found is None or lines is None:
                continue
            at = int(found["line"])
            having = [r for r, (first, last) in lines.items() if first <= at <= last]
            left = having if left is None else [r for r in left if r in having]
            number = number or line.number
    if not left or len({release.rpartition(".")[0] for release in left}) != 1:
        return None
    return left[-1], number
