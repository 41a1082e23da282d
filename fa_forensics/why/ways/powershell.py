"""Commands for PowerShell, where the prompt in a text is one: ``set NAME=VALUE`` is cmd's."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer

_SET = lazily(r"set (?P<quote>\"?)(?P<name>[A-Za-z_]\w{1,60})=(?P<value>[^\"\n]{0,400})(?P=quote)")
#: What only cmd runs: a batch file sets nothing in PowerShell, and ``&&`` is new to it.
_OF_CMD = lazily(r"vcvars|Native Tools|\.bat\b")


def in_powershell(answer: Answer) -> Answer:
    """The answer with variables set as PowerShell does it, unless it is for cmd's own prompt."""
    if any(_OF_CMD.search(text) for text in (*answer.help, *answer.notes)):
        return answer
    return replace(answer, help=tuple(map(_as_there, answer.help)))


def _as_there(command: str) -> str:
    found = _SET.fullmatch(command)
    if found is None:
        return command
    value = found["value"].replace("'", "''")
    return "".join(("$env:", found["name"], " = '", value, "'"))
