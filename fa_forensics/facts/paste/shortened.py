"""The loader's message without its end, as people write it down."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import importing
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.loader import missing
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.facts.paste.system_around import package_of_frame, shown_number, system_around


def recognisers() -> tuple[Recogniser, ...]:
    """A library's name behind the kind of the error, and nothing more."""
    return (
        by_pattern(
            ("importerror: lib", "oserror: lib"),
            r"(?:ImportError|OSError): (?P<library>lib(?:cu|nv|nccl|torch|c10)[\w+]{0,30}"
            r"\.so(?:\.\d{1,3}){0,2})(?!\.?[\w/:]|\s?:)"
            r"(?! (?:file|invalid|undefined|symbol|version))",
            _named_alone,
        ),
    )


def _named_alone(line: Line, match: re.Match[str]) -> Mention | None:
    """``ImportError: libcudart.so.13``, as people shorten the loader's message."""
    if any("cannot open" in near.lower for near in (line, *line.above(3), *line.below(3))):
        return None
    detail = {"reason": "", "import": importing(line), "shortened": "yes"}
    detail["other_number"] = shown_number(line, match["library"])
    detail.update(system_around(line))
    if not detail["import"]:
        detail["by"] = package_of_frame(line)
    return missing(line, match.start(), match["library"], detail)
