"""Which module a text imports first: torch before what fails, or one that puts it right."""

from __future__ import annotations

from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

#: A command or a program's line that imports torch and then another package.
_THEN = lazily(r"\bimport torch\b(?!\.)\s{0,3};\s{0,3}(?:import|from)\s")
#: "if I do `import cv2` first", "importing scipy before torch".
_FIRST = lazily(
    r"\bimport(?:ing|ed)? ['\"`]?(?P<module>[A-Za-z_]\w{0,60})(?:\.[\w.]{1,60})?['\"`]? ?"
    r"(?:\bfirst\b|\bbefore (?:importing |the import of )?['\"`]?\w)"
)
_RIGHT = lazily(
    r"(?:\bnot|n't) (?:happen|occur|appear|show)|\bdisappear|\bgo(?:es)? away|\bwent away"
    r"|\bno (?:more |such )?(?:error|problem|issue)|\b(?:works?|worked|fix(?:es|ed)?|solve[sd]?"
    r"|resolve[sd]?|cure[sd]?|helps|helped)\b"
)
_WRONG = lazily(
    r"(?:\bnot|n't|\bnever|\blonger) (?:\w{1,12} )?(?:work|fix|solve|resolve|help|cure)"
    r"|\bstill\b|\bfails?\b|\bno effect\b|\bcrash|\bbreaks?\b|\bsegfault"
)
#: What turns the sense of one of two clauses round, and a sentence's end.
_TURNED = lazily(
    r"\b(?:unless|without|until|except|but|although|though|however|otherwise|whereas|yet)\b"
    r"|\bonly (?:when|if|with|after)\b|\bas soon as\b"
)
_ENDED = lazily(r"[.;!?](?:\s|$)")
#: Around a failure, words of this many characters are its own.
_NEAR = 1_500


def torch_before(line: Line) -> str:
    """Whether the text shows that torch was imported before what fails, and torch was done."""
    for above in line.above(12):
        if "/torch/__init__.py" in above.body:
            return ""
        if _THEN.search(above.body):
            return "yes"
    return ""


#: At Python's prompt, or given to it by -c: nothing but the import of what fails.
_AT_THE_PROMPT = lazily(r">>> import (?P<module>[A-Za-z_][\w.]{0,80})\s*$")
_BY_COMMAND = lazily(r"\bpython[\d.]{0,4}\s-c\s[\"']import (?P<module>[A-Za-z_][\w.]{0,80})[\"']")


def imported_alone(line: Line) -> dict[str, str]:
    """The module that a text imports as the first thing, or that needs torch before it.

    ``alone`` is the module; ``cured`` tells that the text itself says so.
    """
    if not line.source.holds(("import",)):
        return {}
    if cured_by_import(line) == "torch":
        return {"alone": "yes", "cured": "yes"}
    shown = ""
    for above in line.above(12):
        if "import torch" in above.raw or "from torch" in above.raw or "/torch/" in above.raw:
            return {}
        found = _AT_THE_PROMPT.search(above.raw) or _BY_COMMAND.search(above.raw)
        shown = found["module"] if found is not None else shown
    return {"alone": shown} if shown and not shown.startswith("torch") else {}


def cured_by_import(line: Line) -> str:
    """The module whose import before all others puts it right, as the text tells; "" for none."""
    source = line.source
    if not source.holds(("import",)) or not source.holds(("first", "before")):
        return ""
    near = source.text[max(0, line.start - _NEAR) : line.start + _NEAR]
    words = " ".join(near.split())
    for found in _FIRST.finditer(words):
        before = words[max(0, found.start() - 90) : found.start()]
        behind = words[found.end() : found.end() + 60]
        if _WRONG.search(before) or _WRONG.search(behind):
            continue
        ends = [right.end() for right in _RIGHT.finditer(before)]
        right = _RIGHT.search(behind)
        gap = before[ends[-1] :] if ends else ""
        if ends and not _TURNED.search(gap) and not _ENDED.search(gap):
            return str(found["module"])
        if right is not None and not _TURNED.search(behind[: right.start()]):
            return str(found["module"])
    return ""


def order_told(line: Line, version: str) -> dict[str, str]:
    """What the text tells of the order of imports, beside a symbol version of libstdc++."""
    if "CXX" not in version.upper():
        return {}
    return {"torch_first": torch_before(line), "cured_by": cured_by_import(line)}


#: PaddlePaddle, by its own name or its distribution's.
_PADDLE = lazily(r"(?i)(?<![a-z])paddle(?:paddle)?(?![a-z])")


def beside_paddle(line: Line, name: str | None) -> dict[str, str]:
    """``paddle``, where a text of PaddlePaddle misses a name of NCCL, of which both bring one."""
    if not (name or "").startswith("nccl") or "paddle" not in line.source.lower:
        return {}
    near = line.source.text[max(0, line.start - _NEAR) : line.start + _NEAR]
    return {"paddle": "yes"} if _PADDLE.search(near) else {}
