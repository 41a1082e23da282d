"""Failures that a person tells of in words of their own: read where a text has no message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from fa_forensics.facts.paste.broken_since import broken_since
from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.msvc_names import lacked_by_link
from fa_forensics.facts.python_names import names_followed
from fa_forensics.patterns import lazily

#: Longer texts (characters) are logs: what they say in passing is no report.
_SHORT = 8_000
#: What a name is said to be when it is missing; the word "symbol" stands near.
_LACKED = lazily(
    r"\b(?:undefined|unresolved|missing|lacks?|lacking|(?:does not|doesn't|do not|don't|didn't)"
    r" (?:have|contain|export|define|provide)|(?:can ?not|can't|could not|couldn't) (?:find|resolve"
    r"|be (?:found|resolved))|not found)\b",
    re.IGNORECASE,
)
_SYMBOL = lazily(r"(?<![\w-])symbols?\b(?! (?:file|table|server|info|version|path))", re.IGNORECASE)
#: ``c10::ValueError``, ``c10::cuda::CUDACachingAllocator::allocator``
_SCOPED = lazily(
    r"(?<![\w:.])(?P<name>(?:[A-Za-z_]\w{0,60}::){1,6}~?[A-Za-z_]\w{0,80})(?P<rest>\([^()\n`]{0,300}\))?"
)
#: A function of C in quotes: ```ncclCommWindowRegister```.
_QUOTED = lazily(r"[`'\"]\s?(?P<name>[a-z_]{2,20}[A-Z_][A-Za-z0-9_]{3,80})\s?[`'\"]")
#: Whose names are missing, where none is told: ``undefined HIP/c10 symbols``.
_FAMILY = lazily(
    r"(?<![\w/.-])(?:c10|libc10|torch|libtorch|pytorch|aten|HIP|ROCm|CUDA)(?![\w.-])", re.IGNORECASE
)
_OF_TORCH = frozenset(("c10", "libc10", "torch", "libtorch", "pytorch", "aten"))
#: Of no failure: one that is over, feared, looked for or only allowed.
_NOT_NOW = lazily(
    r"\b(?:fix(?:es|ed)?|resolve[sd]?|remove[sd]?|eliminate[sd]?|solve[sd]?|avoid(?:s|ed|ing)?"
    r"|prevent(?:s|ed|ing)?|clear(?:s|ed)|if|whether|would|could|might|may|to avoid|in case"
    r"|check(?:s|ed|ing)?|look(?:s|ed|ing)? for|scan\w{0,4}|allow\w{0,4}|ignor\w{1,4}|debug"
    r"|no more|used to|previously|until|zero|0|free of)\b[^.;\n]{0,80}\Z",
    re.IGNORECASE,
)
_OVER = lazily(
    r"\A[^.;\n]{0,80}?(?:\b(?:no longer|any ?more|(?:is|are|was|were) (?:gone|fixed|resolved|not)"
    r"|went away|disappear\w{0,3})\b|:\s?(?:none|0)\b)",
    re.IGNORECASE,
)
_ASKED = lazily(
    r"(?:is|are|does|do|can|could|should|what|how|which|any)\b[^.!?]{0,400}\?", re.IGNORECASE
)
_FAILS = lazily(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|can ?not|can't|crash\w{0,3}|broken|breaks?|won't|dies"
    r"|ImportError|unable|weird)\b",
    re.IGNORECASE,
)
_IMPORTED = lazily(
    r"\b(?:import(?:ing|s)?|load(?:ing|s)?)(?: of)?\s{1,3}[`'\"]?"
    r"(?P<module>[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,6})(?![\w/])"
)
_NO_MODULES = frozenset(("it", "the", "a", "an", "this", "of", "error", "errors", "fails", "failed",
                         "with", "in", "and", "from", "time"))  # fmt: skip


def in_words(source: Source) -> Iterator[Mention]:
    """What a text without any message of a program says to have failed."""
    if len(source.text) > _SHORT:
        return
    for read in (lacked_by_link, _lacked, _gone_from_python, _present_not_imported, _no_storage,
                 broken_since):  # fmt: skip
        found = read(source)
        if found is not None:
            yield found
            return


def _lacked(source: Source) -> Mention | None:
    """``importing x._C failed with an undefined `c10::ValueError` symbol``."""
    text = source.text.replace("\n", " ")
    for said in itertools.islice(_SYMBOL.finditer(text), 40):
        floor, roof = max(0, said.start() - 90), said.end() + 90
        lacked = [*itertools.islice(_LACKED.finditer(text, floor, roof), 6)]
        if not lacked:
            continue
        start, end = min(lacked[0].start(), said.start()), max(lacked[0].end(), said.end())
        if _is_no_report(text, start, end):
            continue
        names = [*_SCOPED.finditer(text, floor, roof)] or [*_QUOTED.finditer(text, floor, roof)]
        line = source.line_at(said.start())
        detail = {"import": _module(text[max(0, start - 200) : start])}
        if len({name["name"] for name in names}) == 1:
            name = names[0]["name"] + (names[0].groupdict().get("rest") or "")
            return line.mention("symbol-in-words", 0, symbol=name, detail=detail)
        near = text[max(0, said.start() - 40) : said.end() + 20]
        families = {found[0].lower() for found in itertools.islice(_FAMILY.finditer(near), 8)}
        if families and not names and _FAILS.search(text, max(0, start - 200), roof + 100):
            detail["of_torch"] = "yes" if families & _OF_TORCH else ""
            detail["family"] = "rocm" if families & {"hip", "rocm"} else "cuda"
            if detail["of_torch"] or detail["family"] == "rocm":
                return line.mention("symbol-in-words", 0, detail=detail)
    return None


def _is_no_report(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 90) : start]
    if is_denied(text, start) or text[max(0, start - 1) : start] == "-":
        return True
    if _NOT_NOW.search(before) or _OVER.search(text[end : end + 120]):
        return True
    first = max(text.rfind(mark, max(0, start - 300), start) for mark in (". ", "! ", "? ")) + 1
    return _ASKED.match(text[first : end + 200].lstrip()) is not None


def _module(before: str) -> str:
    found = [m["module"] for m in _IMPORTED.finditer(before)]
    kept = [name for name in found if name.lower() not in _NO_MODULES]
    return kept[-1] if kept else ""


#: What calls CPython's private functions in the code that a build makes.
_MAKES_CODE = ("pybind11", "cython", "python 3.", "python3.", "cpython")


_UNUSED = lazily(
    r"\b(?:not|no longer) (?:used|called|needed)|\bany ?more\b|\bfix(?:es|ed)\b",
    re.IGNORECASE,
)


def _gone_from_python(source: Source) -> Mention | None:
    """A private function of CPython's beside the generator of code, and nothing more."""
    told = [word for word in _MAKES_CODE if word in source.lower]
    for name in names_followed() if told else ():
        at = source.text.find(name)
        while at >= 0:
            whole = not re.match(r"\w", source.text[at + len(name) :]) and (
                not at or not re.match(r"\w", source.text[at - 1])
            )
            line = source.line_at(at)
            if whole and not is_denied(source.text, at) and not _UNUSED.search(line.body):
                by = told[0] if told[0] in ("pybind11", "cython") else ""
                return line.mention("python-name-gone", 0, symbol=name, detail={"by": by})
            at = source.text.find(name, at + 1)
    return None


_NOT_IMPORTED = lazily(
    r"\b(?:(?:can ?not|can't|could not|couldn't|not) be (?:found|imported)|not importable"
    r"|module not found|fails? to import|(?:can ?not|can't) (?:find|import))\b",
    re.IGNORECASE,
)
_IS_THERE = lazily(
    r"\b(?:see|seeing|find|found|have|there is|there's|there are|contains?|ls shows?|shows?) "
    r"(?:a |an |the |its |one )?(?:[`'\"][^`'\"\n]{1,60}[`'\"] |compiled |built |shared )?"
    r"[`'\"]?(?:\w{0,60}(?:\.[\w-]{1,50}){0,2})?\.so\b",
    re.IGNORECASE,
)
_DENIED = lazily(r"(?:n't|not|\bno|\bnever)\s{1,3}(?:even\s)?\Z", re.IGNORECASE)
_DOTTED = lazily(r"[`'\"](?P<name>[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,6})[`'\"]")
_BUILT_WITH = lazily(
    r"\b(?:built|compiled|build)(?: (?:with|for|on|under|by|using))? (?:C?Python |cp)"
    r"(?P<minor>3\.?\d{1,2})\b",
    re.IGNORECASE,
)


def _present_not_imported(source: Source) -> Mention | None:
    """``cannot be found (import error) ... i do see a .so file for the extension``."""
    text = source.text.replace("\n", " ")
    fails = _NOT_IMPORTED.search(text)
    there = _IS_THERE.search(text) if fails is not None else None
    if fails is None or there is None or _is_no_report(text, fails.start(), fails.end()):
        return None
    if is_denied(text, there.start()) or _DENIED.search(text[: there.start()][-12:]):
        return None
    module = _DOTTED.search(text, max(0, fails.start() - 200), fails.end() + 200)
    built = _BUILT_WITH.search(text)
    line = source.line_at(fails.start())
    minor = built["minor"] if built is not None else ""
    if minor and "." not in minor:
        minor = f"3.{minor[1:]}"
    return line.mention(
        "file-not-taken",
        0,
        detail={"module": module["name"] if module is not None else "", "built": minor},
    )


_STORAGE = lazily(
    r"Cannot access data pointer of (?:Tensor|Storage) that (?:doesn't have|is invalid)"
)
#: ``deep_gemm.bf16_gemm_nt(a, b, d)``
_CALL = lazily(r"(?:^|[\s=(])(?P<package>[A-Za-z_]\w{1,40})(?:\.\w{1,60}){1,4}\(")
_OF_PYTHON = frozenset(("torch", "self", "np", "numpy", "os", "sys", "model", "F", "nn"))


def _no_storage(source: Source) -> Mention | None:
    """torch's refusal to give the address of a tensor without memory, at an extension's call."""
    found = _STORAGE.search(source.text)
    if found is None:
        return None
    line = source.line_at(found.start())
    for above in line.above(3):
        call = _CALL.search(above.body)
        if call is not None and call["package"] not in _OF_PYTHON:
            return line.mention("no-storage", 0, detail={"call": call["package"]})
    return None
