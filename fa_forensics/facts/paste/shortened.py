"""The loader's message without its end, as people write it down."""

from __future__ import annotations

import itertools
import re

from fa_forensics.facts.paste import dgl_parts
from fa_forensics.facts.paste.around import importing
from fa_forensics.facts.paste.asking import who_asks
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.loader import missing
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.facts.paste.system_around import shown_number, system_around
from fa_forensics.patterns import lazily

#: Libraries that sentences tell to be missing, and their names in them.
_LIBRARIES = (
    "libcudart.so.", "libcublas.so.", "libcublaslt.so.", "libnvrtc.so.", "libcudnn.so.",
    "libcusparse.so.", "libcufft.so.", "libnccl.so.",
)  # fmt: skip
_NAME = (
    r"lib(?:cudart|cublas(?:Lt)?|nvrtc|cudnn|cusparse|cufft|nccl)\.so\.\d{1,2}(?:\.\d{1,3}){0,2}"
)
#: What a sound library is said to do as well.
_NEEDS = r"requires?|depends on|linked (?:to|with|against)|built against"


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
            _LIBRARIES,
            r"(?:(?:tries|trying|tried|attempts?|attempting|wants|fails?|failing|failed|unable)"
            r" to (?:open|load|find|dlopen)|(?:can ?not|can't|cannot|could not|couldn't|does not|"
            r"doesn't|did not) (?:open|load|find|locate)|looks? for|looking for|"
            rf"is missing|missing|(?P<need>{_NEEDS}))"
            rf"\s(?:the )?(?:library )?[`'\"*]{{0,3}}(?P<library>{_NAME})(?![\w:]|\.\d)",
            _in_prose,
        ),
        by_pattern(
            ("cannot open shared",),
            r"(?<![\w/.])(?P<library>lib[\w+-]{1,60}\.so(?:\.\d{1,3}){0,3}): "
            r"cannot open shared(?: object(?! file)|(?! object))",
            _cut_off,
        ),
        by_pattern(
            _LIBRARIES,
            r"(?:not found:?|no such file(?: or directory)?:?|找不到|缺少|没有找到)"
            rf"\s?[`'\"*]{{0,3}}(?P<library>{_NAME})(?![\w:]|\.\d)",
            _in_prose,
        ),
        by_pattern(
            _LIBRARIES,
            rf"(?<![\w/.])(?P<library>{_NAME})[`'\"*]{{0,3}}\s?(?:(?:is|was|are|were) )?"
            r"(?:not found|missing|not there|找不到|缺失|不存在)",
            _in_prose,
        ),
        by_pattern(
            ("glibc_2.", "glibcxx_3.", "cxxabi_1."),
            r"(?:requires?|needs?|missing|lacks?|wants|no|找不到(?:版本)?|缺少)\s?[`'\"*]{0,3}"
            r"(?P<version>(?:GLIBC|GLIBCXX|CXXABI)_\d[\d.]{1,8}\d)(?![\w.]*\s?[`'\"]?\s?not found)",
            _version_in_prose,
        ),
        by_pattern(
            ("glibc_2.", "glibcxx_3.", "cxxabi_1."),
            r"(?P<version>(?:GLIBC|GLIBCXX|CXXABI)_\d[\d.]{1,8}\d)[`'\"*]{0,3}\s?(?:is )?"
            r"(?:missing|缺失|不存在|找不到)",
            _version_in_prose,
        ),
        *dgl_parts.recognisers(),
        by_pattern(
            ("could not load any common_ops",),
            r"Could not load any (?P<module>common_ops)\b",
            _tries_without_errors,
        ),
    )  # fmt: skip


#: An entry of the list of places, with a file that is there.
_FOUND = lazily(r"found files: \['(?P<file>[^'\s]{1,300})'")


def _tries_without_errors(line: Line, match: re.Match[str]) -> Mention | None:
    """The list of places that sgl_kernel tried, cut off before the errors that it met there."""
    told = (words for words in _SAID if not words.startswith("could not load"))
    if any(words in line.source.lower for words in (*told, "importerror: /")):
        return None
    places = (_FOUND.search(near.body) for near in line.below(12))
    file = next((found["file"] for found in places if found), "")
    detail = {"package": "sgl-kernel", "module": match["module"]}
    return line.mention("tries-without-errors", match.start(), file=file or None, detail=detail)


#: What says in the loader's or the interpreter's own words that something failed.
_SAID = ("cannot open", "could not load library", "could not load dynamic", "could not load any",
         "undefined symbol", "not found (req", "not defined in file", "cuda error",
         "no kernel image", "importerror: lib", "oserror: lib")  # fmt: skip
_TRACEBACK = "traceback (most"
#: The line that a traceback ends with.
_EXCEPTION = lazily(r"[\s|]{0,20}[\w.]{0,80}(?:Error|Exception|Warning): ")


def _is_said(line: Line) -> bool:
    """Whether the loader or the interpreter says itself what failed, elsewhere in the text."""
    lower = line.source.lower
    if any(words in lower for words in _SAID):
        return True
    return _TRACEBACK in lower and _EXCEPTION.match(line.body) is None


#: What makes of a library that something needs one that is missing.
_FAILURE = lazily(
    r"\b(?:\w{0,20}errors?|fail(?:s|ed|ing|ures?)?|missing|not (?:found|there|installed)|no such"
    r"|can ?not|can't|could(?: not|n't)|unable|won't|does(?: not|n't) (?:work|load|start|run)"
    r"|broken|breaks?|broke|crash\w{0,3}|but (?:only|i|we|there|my|mine))\b"
    r"|\b(?:tr(?:ies|y|ying|ied)|attempt(?:s|ed|ing)?) to (?:open|load|find)\b"
    r"|报错|错误|失败|找不到|缺少|缺失|无法|不存在|没有",
    re.IGNORECASE,
)


def _tells_of_failure(line: Line) -> bool:
    found = itertools.islice(_FAILURE.finditer(line.body), 40)
    return any(not is_denied(line.body, match.start()) for match in found)


def _in_prose(line: Line, match: re.Match[str]) -> Mention | None:
    """``vllm tries to open libcudart.so.13``: a sentence is all that the text has."""
    if _is_said(line) or is_denied(line.body, match.start()):
        return None
    if match.groupdict().get("need") and not _tells_of_failure(line):
        return None
    detail = {"reason": "", "import": importing(line), "shortened": "yes"}
    detail.update(system_around(line))
    if not detail["import"]:
        detail.update(who_asks(line))
    return missing(line, match.start(), match["library"], detail)


def _cut_off(line: Line, match: re.Match[str]) -> Mention:
    """The loader's message without its last words."""
    detail = {"reason": "", "import": importing(line), "shortened": "yes"}
    detail.update(system_around(line))
    return missing(line, match.start(), match["library"], detail)


def _version_in_prose(line: Line, match: re.Match[str]) -> Mention | None:
    """``it requires GLIBC_2.32``: a symbol version, and none of the loader's own words."""
    if _is_said(line) or is_denied(line.body, match.start()):
        return None
    return line.mention("version-not-found", match.start(), version=match["version"].upper())


def _named_alone(line: Line, match: re.Match[str]) -> Mention | None:
    """``ImportError: libcudart.so.13``, as people shorten the loader's message."""
    if any("cannot open" in near.lower for near in (line, *line.above(3), *line.below(3))):
        return None
    detail = {"reason": "", "import": importing(line), "shortened": "yes"}
    detail["other_number"] = shown_number(line, match["library"])
    detail.update(system_around(line))
    if not detail["import"]:
        detail.update(who_asks(line))
    return missing(line, match.start(), match["library"], detail)
