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
        by_pattern(
            ("libcudart.so.", "libcublas.so.", "libcublaslt.so.", "libnvrtc.so.", "libcudnn.so.",
             "libcusparse.so.", "libcufft.so.", "libnccl.so."),
            r"(?:(?:tries|trying|tried|attempts?|attempting|wants|fails?|failing|failed|unable)"
            r" to (?:open|load|find|dlopen)|(?:can ?not|can't|cannot|could not|couldn't|does not|"
            r"doesn't|did not) (?:open|load|find|locate)|looks? for|looking for|requires?|"
            r"is missing|missing|depends on|linked (?:to|with|against)|built against)"
            r"\s(?:the )?(?:library )?[`'\"*]{0,3}(?P<library>lib(?:cudart|cublas(?:Lt)?|nvrtc"
            r"|cudnn|cusparse|cufft|nccl)\.so\.\d{1,2}(?:\.\d)?)(?![\w:]|\.\d)",
            _in_prose,
        ),
        by_pattern(
            ("cannot find dgl c++",),
            r"Cannot find DGL C\+\+ [\w ]{1,40} at\s{1,3}['\"]?(?P<library>[^\s'\"]{1,300}\.so)",
            _of_one_torch,
        ),
        by_pattern(
            ("could not load any common_ops",),
            r"Could not load any (?P<module>common_ops)\b",
            _tries_without_errors,
        ),
    )  # fmt: skip


#: An entry of the list of places, with a file that is there.
_FOUND = re.compile(r"found files: \['(?P<file>[^'\s]{1,300})'")


def _tries_without_errors(line: Line, match: re.Match[str]) -> Mention | None:
    """The list of places that sgl_kernel tried, cut off before the errors that it met there."""
    told = (words for words in _SAID if words not in ("traceback (most", "could not load"))
    if any(words in line.source.lower for words in (*told, "importerror: /")):
        return None
    places = (_FOUND.search(near.body) for near in line.below(12))
    file = next((found["file"] for found in places if found), "")
    detail = {"package": "sgl-kernel", "module": match["module"]}
    return line.mention("tries-without-errors", match.start(), file=file or None, detail=detail)


#: What says in the loader's or the interpreter's own words that something failed.
_SAID = ("cannot open", "could not load", "undefined symbol", "traceback (most", "not found (req",
         "not defined in file", "cuda error", "no kernel image", "error: lib")  # fmt: skip


def _in_prose(line: Line, match: re.Match[str]) -> Mention | None:
    """``vllm tries to open libcudart.so.13``: a sentence is all that the text has."""
    if any(words in line.source.lower for words in _SAID):
        return None
    detail = {"reason": "", "import": importing(line), "shortened": "yes"}
    detail.update(system_around(line))
    return missing(line, match.start(), match["library"], detail)


def _of_one_torch(line: Line, match: re.Match[str]) -> Mention:
    """DGL looks for the file that has torch's release in its name."""
    return missing(line, match.start(), match["library"], {})


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
