"""Whether an interpreter takes a wheel's tags, as pip decides it, and where they do not fit.

The rules: PEP 425 and PEP 600 (packaging.python.org, "Platform compatibility tags"); the tests
compare them with the library ``packaging``, which pip itself uses.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from fa_forensics.facts.wheel import platform_of_tag

LibcVersion = tuple[int, int]


class TagHost(NamedTuple):
    """The interpreter and the machine that would install a wheel.

    python is "3.11"; abiflags "t" for a free-threaded build; libc "glibc" or "musl" with its
    version, None where that is not known (then no floor is held against a tag).
    """

    python: str
    abiflags: str
    implementation: str
    machine: str
    libc: str
    libc_version: LibcVersion | None

    @property
    def tag(self) -> str:
        """The interpreter's own tag: ``cp311``; ``cp313`` for a free-threaded 3.13 too."""
        return ("cp" if self.implementation == "cpython" else "py") + self.python.replace(".", "")


def misfit(
    host: TagHost,
    python_tags: tuple[str, ...],
    abi_tags: tuple[str, ...],
    platform_tags: tuple[str, ...],
) -> str | None:
    """None where one combination of the tags fits, else what does not, in words.

    Tags that are no tags of a wheel's file name (none at all) fit nothing.
    """
    if not (python_tags and abi_tags and platform_tags):
        return "the file name carries no tags"
    pairs = list(itertools.product(python_tags, abi_tags))
    problems = [_python_misfit(host, python, abi) for python, abi in pairs]
    fitting = [abi for (_, abi), problem in zip(pairs, problems, strict=True) if problem is None]
    if not fitting:
        return problems[0]
    places = [_platform_misfit(host, tag, abi) for tag in platform_tags for abi in fitting]
    return None if None in places else places[0]


def impossible_pair(python_tags: tuple[str, ...], abi_tags: tuple[str, ...]) -> bool:
    """Whether no Python takes any of the pairs: ``py311-cp311``, ``cp310-cp311``.

    A tag cpXY goes with the ABI of that Python, with abi3 or with none, a tag pyXY with none
    (``packaging.tags``: cpython_tags, compatible_tags).
    """
    if not python_tags or not abi_tags:
        return False
    return not any(_can_be(python, abi) for python in python_tags for abi in abi_tags)


def _can_be(python: str, abi: str) -> bool:
    if abi == "none" or python.startswith("pp"):
        return True
    of_python = re.fullmatch(r"cp(\d)(\d{0,3})", python)
    if of_python is None:
        return not (python.startswith("py") and re.match(r"cp\d|abi3", abi))
    if abi == "abi3":
        return True
    of_abi = re.match(r"cp(\d+)[a-z]*$", abi)
    return of_abi is None or of_abi[1] == of_python[1] + of_python[2]


def _python_misfit(host: TagHost, python: str, abi: str) -> str | None:
    here = _here(host)
    major, minor = (int(part) for part in host.python.split(".")[:2])
    found = re.fullmatch(r"(cp|py|pp)(\d)(\d{0,3})", python)
    if found is None:
        return f"{python} is no Python that this program knows; here is {here}"
    kind, wants_major, wants_minor = found[1], int(found[2]), int(found[3] or -1)
    wanted = f"{wants_major}" + (f".{wants_minor}" if wants_minor >= 0 else "")
    if wants_major != major:
        return f"it is for Python {wanted}, here is {here}"
    if kind == "py":
        fits = abi == "none" and wants_minor <= minor
        return None if fits else f"it is for {python}-{abi}, here is {here}"
    if kind == "pp" or host.implementation != "cpython":
        kind_text = "PyPy" if kind == "pp" else "CPython"
        return f"it is for {kind_text} {wanted}, here is {here}"
    if abi == "abi3":
        if host.abiflags == "t":
            return f"an abi3 wheel needs the ordinary build of Python, here is {here}"
        fits = 2 <= wants_minor <= minor
        return None if fits else f"it is for Python {wanted} and later, here is {here}"
    if wants_minor != minor:
        return f"it is for Python {wanted}, here is {here}"
    if abi in ("none", host.tag + host.abiflags):
        return None
    return f"its ABI is {abi}, here is {here} ({host.tag}{host.abiflags})"


def _here(host: TagHost) -> str:
    free = " (free-threaded)" if host.abiflags == "t" else ""
    name = "Python" if host.implementation == "cpython" else host.implementation
    return f"{name} {host.python}{free}"


def _platform_misfit(host: TagHost, tag: str, abi: str) -> str | None:
    platform = platform_of_tag(tag)
    if platform.system == "any":
        return None if abi == "none" else f"it has the ABI {abi} but names no platform"
    if platform.system != "linux":
        known = {"windows": "Windows", "macos": "macOS"}.get(platform.system)
        return f"it is for {known or tag}, here is Linux"
    if platform.machine != host.machine:
        return f"it is for {platform.machine}, this Python is for {host.machine}"
    if platform.libc is None or host.libc not in ("glibc", "musl"):
        return None
    if platform.libc != host.libc:
        return f"it is for {platform.libc}, this Python runs on {host.libc}"
    if platform.floor is None or host.libc_version is None:
        return None
    if platform.floor > host.libc_version:
        floor, here = (".".join(map(str, v)) for v in (platform.floor, host.libc_version))
        return f"it asks for {host.libc} {floor}, here is {here}"
    return None
