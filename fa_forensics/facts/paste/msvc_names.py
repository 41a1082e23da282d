"""A name that Microsoft's linker did not find, as its messages have it, without their number."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Source
from fa_forensics.facts.paste.model import Mention
from fa_forensics.patterns import lazily

#: ``"class at::Tensor __cdecl f(float,class at::Tensor &)" (?f@@YA?AVTensor@at@@MAEAV12@@Z)``
_DECORATED = lazily(
    r"\"(?P<readable>[^\"\n]{3,1000})\"\s{1,3}\((?P<name>\?[\w?$]{1,200}@[\w@?$]{2,1000})\)"
)
#: What stands in no name of another compiler's: the sort of a type, and how a function is called.
_SORTS = lazily(r"\b(?:class|struct|enum|union|__cdecl|__ptr64|__thiscall|__vectorcall) ?")
#: What stands before a function's name, up to its last blank outside brackets.
_RESULT = lazily(r"__cdecl (?P<function>[^\n]{1,900})")
_OTHERS = ("at", "c10", "torch", "caffe2", "std", "pybind11", "cub", "thrust")


def lacked_by_link(source: Source) -> Mention | None:
    """The first name of the project's own in a link that Microsoft's linker ended."""
    if "lnk1120" not in source.lower and "fatal error" not in source.lower:
        return None
    found = _DECORATED.search(source.text)
    if found is None:
        return None
    line = source.line_at(found.start())
    function = _RESULT.search(found["readable"])
    scopes = re.sub(r"\(.*", "", function["function"]) if function is not None else ""
    if function is None or (scopes.partition("::")[0] in _OTHERS and "::" in scopes):
        return line.mention("windows-build", 0, detail={"sort": "link", "code": "LNK1120"})
    symbol = re.sub(r",(?=\S)", ", ", _SORTS.sub("", function["function"])).strip()
    return line.mention(
        "linker-undefined", 0, symbol=symbol, detail={"linker": "link.exe", "os": "Windows"}
    )
