"""The requirements that a distribution's metadata states, held against what is installed.

As ``pip check`` does; what a marker says of other things than this system, an extra's
requirements and versions that are no plain releases are left aside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fa_forensics.facts.package import normalized, satisfies

_PARTS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,200})(?:\[[^\]]{0,200}\])?\(?([^()]{0,500})\)?")
_RELEASE = re.compile(r"\d+(?:\.\d+)*(?:\.post\d+)?")
_CLAUSE = re.compile(r"(\w+)(==|!=|<=|>=|<|>)['\"]([^'\"]{0,50})['\"]")


class Unmet(NamedTuple):
    """A requirement ("triton==3.0.0"), and the version that is installed, None for none."""

    text: str
    installed: str | None


def unmet_requirements(
    requires: Sequence[str], versions: Mapping[str, str], machine: str, python: str
) -> tuple[Unmet, ...]:
    """The requirements that ``versions`` (normalized name → version) does not meet.

    ``machine`` and ``python`` ("3.11") are what markers are held against.
    Those on torch itself are left aside: what is compiled is judged by its symbols.
    """
    found = []
    for requirement in requires:
        text, _, marker = requirement.partition(";")
        parts = _PARTS.fullmatch("".join(text.split()))
        if parts is None or not _applies(marker, machine, python):
            continue
        name, wanted = normalized(parts[1]), parts[2]
        have = versions.get(name)
        if name == "torch" or wanted.startswith("@"):
            continue
        if have is None:
            found.append(Unmet(f"{name}{wanted}", None))
            continue
        public = have.partition("+")[0]
        if wanted and _RELEASE.fullmatch(public) and satisfies(_plain(public), wanted) is False:
            found.append(Unmet(f"{name}{wanted}", have))
    return tuple(found)


def _plain(public: str) -> str:
    return public.partition(".post")[0]


def _applies(marker: str, machine: str, python: str) -> bool:
    """Whether a marker is known to hold on this system."""
    here = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": machine}
    for clause in "".join(marker.split()).split("and") if marker.strip() else ():
        pair = _CLAUSE.fullmatch(clause.strip("()"))
        if pair is None:
            return False
        name, operator, value = pair.groups()
        if name == "python_version":
            if satisfies(python, operator + value) is not True:
                return False
        elif operator != "==" or here.get(name) != value:
            return False
    return True
