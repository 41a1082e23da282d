"""Answers about a compiled module that is there, under the tag of another Python."""

from __future__ import annotations

import os
import re
import shlex

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.files.put_back import newer_release

OTHER_PYTHON = "FA401"

#: The tag in an extension's file name: PEP 3149.
_TAG = lazily(r"^(?P<module>[\w-]+)\.(?P<tag>(?:cpython|pypy|graalpy|cp)[\w-]*|abi3)\.so$")
#: CPython's own part of it: cpython-313t.
_CPYTHON = lazily(r"(?:cpython-|\.cp)(?P<major>[23])(?P<minor>\d{1,2})(?P<flags>[a-z]*)")
#: Files of one directory that are looked at.
_MOST = 5_000
_NOT_ALL_ABI3 = (
    "The tag abi3 in a wheel's name promises that any later Python takes it; each file in it has a "
    "tag of its own, and this module was built without the stable interface: pip installs the "
    "wheel, and the import finds nothing."
)
_RENAMED = "Renaming the file does not help: it was compiled for that other Python."


def by_its_tag(
    seen: Seen, module: str, package: str | None, again: tuple[str, ...]
) -> Answer | None:
    """The module under a name that this Python does not look for; None where none is told."""
    if not (files := files_here(seen, module)):
        return _shown(seen, package, again)
    shown = os.path.basename(files[0])
    cause = (
        f"{files[0]} is here, but Python {seen.python_version} does not look for a file of that "
        f"name: the tag in {shown} is another Python's."
    )
    return seen.answer(
        "python-abi", OTHER_PYTHON, cause, owner=package, direction="none", confidence="high",
        help=(*again, f"fa-forensics inspect {shlex.quote(files[0])}"),
        notes=(_RENAMED,),
    )  # fmt: skip


def _shown(seen: Seen, package: str | None, again: tuple[str, ...]) -> Answer | None:
    """A file that the text itself shows, and a Python that its tag is not for."""
    name = seen.mention.detail.get("shown", "")
    found = _CPYTHON.search(name)
    detail = seen.mention.detail
    told = detail.get("free_python") or detail.get("suffix_python") or seen.python_version or ""
    python = re.match(r"(\d)\.(\d{1,2})", told)
    free = seen.mention.detail.get("free_threaded") == "yes"
    if found is None or (python is None and not free):
        return None
    of = f"{found['major']}.{found['minor']}"
    same = python is None or python[0] == of
    if same and free == ("t" in found["flags"]):
        return None
    flags = "t, the free-threaded build" if "t" in found["flags"] else ""
    runs = (python[0] if python else of) + (" without the GIL (free-threaded)" if free else "")
    cause = (
        f"{name} is there, but its tag says that it was compiled for Python {of}{flags}, and "
        f"Python {runs} does not look for a file of that name."
    )
    notes = [
        _RENAMED,
        "The first command prints the ending that this Python looks for. The wheel for this "
        f"Python, or a build with it, is one way out; Python {of} for the program the other.",
    ]
    if detail.get("abi3"):
        again = _newer(seen, package) or again
        notes[1:] = [_NOT_ALL_ABI3, (
            "The first command prints the endings that this Python looks for. A release whose "
            f"wheel has the module as .abi3.so or for Python {python[0] if python else of}, or a "
            f"build from its source with this Python, is one way out; Python {of} for the program "
            "the other. The same release again is the same file."
        )]  # fmt: skip
    return seen.answer(
        "python-abi", OTHER_PYTHON, cause, owner=package, direction="none",
        confidence="high" if detail.get("suffix_python") else "medium",
        help=(
            f"{seen.python} -c 'import sys, importlib.machinery as m; print(sys.version, "
            "m.EXTENSION_SUFFIXES)'",
            *again,
        ),
        notes=tuple(notes),
    )  # fmt: skip


def _newer(seen: Seen, package: str | None) -> tuple[str, ...]:
    """A newer release, under the name that the package has by then."""
    from fa_forensics.rules.remedy import known_packages

    for row in known_packages():
        if package is not None and row.get("formerly") == package:
            name = str(row["distribution"])
            return (f"{seen.pip} uninstall -y {package}", f"{seen.pip} install --no-deps {name}")
    return newer_release(seen, package)


def files_here(seen: Seen, module: str) -> list[str]:
    """Files of this environment that hold the module under another Python's tag."""
    environment = None if seen.elsewhere else seen.place.environment
    if environment is None:
        return []
    *folders, last = module.split(".")
    own = f"cpython-{environment.version_short.replace('.', '')}{environment.abiflags}"
    found = []
    for site in environment.site_dirs:
        directory = os.path.join(site, *folders)
        try:
            names = sorted(os.listdir(directory))[:_MOST]
        except OSError:
            continue
        for name in names:
            tagged = _TAG.match(name)
            other = tagged is not None and not tagged["tag"].startswith((own, "abi3"))
            if tagged is not None and tagged["module"] == last and other:
                found.append(os.path.join(directory, name))
    return found
