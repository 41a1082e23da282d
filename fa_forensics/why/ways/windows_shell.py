"""Commands as a prompt of Windows takes them: cmd knows no NAME=VALUE before a program.

cmd takes ' for a letter of its own, so that ``python -c '...'`` is cut at the first blank;
double quotes serve cmd and PowerShell alike.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer

_SETTINGS = lazily(r"^(?P<all>(?:[A-Z][A-Z0-9_]{1,60}=[\w.;,+:/-]{1,200} ){1,12})(?=\S)")
_CODE = lazily(r" -c '(?P<code>[^'$%!`]{1,2000})'")
_REMOVE = lazily(r"^rm\s-rf\sbuild\s\*\.egg-info\s&&\s")
_GREP = lazily(r"\| grep -i(?:E)? '?(?P<words>[\w-]{1,60}(?:\|[\w-]{1,60}){0,12})'?$")


def on_windows_prompt(answer: Answer, powershell: bool) -> Answer:
    """The answer with its commands as cmd, or PowerShell, takes them."""
    typed = tuple(_typed(command, powershell) for command in answer.help)
    return answer if typed == answer.help else replace(answer, help=typed)


def _typed(command: str, powershell: bool) -> str:
    """One command; what is not known to fail there stays as it is."""
    removed = _REMOVE.match(command)
    rest = command[removed.end() :] if removed else command
    settings = _SETTINGS.match(rest)
    before: list[str] = []
    if removed:
        gone = ("Remove-Item", "-Recurse", "build") if powershell else ("rmdir", "/s /q", "build")
        before.append(" ".join(gone))
    if settings is not None:
        rest = rest[settings.end() :]
        for one in settings["all"].split():
            name, _, value = one.partition("=")
            before.append(f"$env:{name}='{value}'" if powershell else _set(name, value))
    rest = _CODE.sub(_in_double_quotes, rest)
    rest = _GREP.sub(_by_findstr, rest)
    return ("; " if powershell else " & ").join((*before, rest))


def _set(name: str, value: str) -> str:
    return " ".join(("set", f'"{name}={value}"'))


def _in_double_quotes(found: re.Match[str]) -> str:
    return ' -c "' + found["code"].replace('"', "'") + '"'


def _by_findstr(found: re.Match[str]) -> str:
    return " ".join(("|", "findstr", "/i", '"' + found["words"].replace("|", " ") + '"'))
