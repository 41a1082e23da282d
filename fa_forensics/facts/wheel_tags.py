"""Whether a wheel's tags are for an interpreter: PEP 425, and PEP 656 and 600 for platforms.

pip decides by the tags of the file's name; an installed distribution keeps them in WHEEL. The
glibc that a platform tag promises to need is another question (``facts.wheel.Platform``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.wheel import platform_of_tag


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a tag is not for an interpreter: ``part`` is "python", "abi" or "platform"."""

    tag: str
    part: str
    reason: str


def misfit(tags: Iterable[str], environment: Environment) -> Misfit | None:
    """None if one of the tags is for the environment's interpreter, else why the best is not.

    Each tag is ``python-abi-platform``, its parts perhaps several with dots between. Without
    any tag nothing is known, and None is returned.
    """
    first: Misfit | None = None
    order = {"python": 0, "abi": 1, "platform": 2}
    for text in tags:
        for tag in _single_tags(text):
            found = _one(tag, environment)
            if found is None:
                return None
            if first is None or order[found.part] > order[first.part]:
                first = found
    return first


def _single_tags(text: str) -> list[str]:
    parts = text.strip().split("-")
    if len(parts) != 3:
        return []
    return ["-".join(chosen) for chosen in product(*(part.split(".") for part in parts))]


def _one(tag: str, environment: Environment) -> Misfit | None:
    python, abi, platform = tag.split("-")
    here = f"Python {environment.version_short}{environment.abiflags}"
    have = _minor(environment.version_short)
    known = re.fullmatch(r"(py|cp|pp)(\d)(\d*)", python)
    if known is None or have is None:
        return Misfit(tag, "python", f"{python} is not for {here}")
    kind, wanted = known.group(1), (int(known.group(2)), _number(known.group(3)))
    cpython = environment.implementation == "cpython"
    if (kind == "cp" and not cpython) or (kind == "pp" and environment.implementation != "pypy"):
        return Misfit(tag, "python", f"{python} is not for {environment.implementation}")
    if wanted[0] != have[0] or (wanted[1] is not None and wanted[1] > have[1]):
        return Misfit(tag, "python", f"{python} is not for {here}")
    if kind != "py" and abi != "abi3" and abi != "none" and wanted[1] != have[1]:
        return Misfit(tag, "python", f"{python} is not for {here}")
    if abi == "abi3" and "t" in environment.abiflags:
        return Misfit(tag, "abi", f"abi3 is not for the free-threaded {here}")
    own = f"cp{have[0]}{have[1]}{environment.abiflags}"
    if abi not in ("none", "abi3") and cpython and abi != own:
        return Misfit(tag, "abi", f"{abi} is not {own}, the ABI of {here}")
    place = platform_of_tag(platform)
    if place.system not in ("any", "linux"):
        return Misfit(tag, "platform", f"{platform} is not for Linux")
    if place.machine is not None and place.machine != environment.machine:
        return Misfit(tag, "platform", f"{platform} is not for {environment.machine}")
    if place.libc is not None and "unknown" != environment.libc != place.libc:
        return Misfit(tag, "platform", f"{platform} is not for {environment.libc}")
    return None


def _minor(short: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d+)\.(\d+)", short)
    return (int(found.group(1)), int(found.group(2))) if found else None


def _number(digits: str) -> int | None:
    return int(digits) if digits else None
