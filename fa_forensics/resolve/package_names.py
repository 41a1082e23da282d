"""Names that a file of a package lacks, and the other files of that package that define them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.dependents import extensions_of
from fa_forensics.facts.elf.dynamic import DynamicObject, gnu_hash
from fa_forensics.facts.files import absolute
from fa_forensics.facts.package import Distribution

#: Files of one package that are looked through; the largest has about 30 (torch's own 40).
MAX_FILES = 100


def files_of_package(path: str, distribution: Distribution | None) -> list[str]:
    """The other shared objects of a file's package, nearest first.

    Those of its distribution; where that is not known, those in the file's own directory.
    """
    whole = absolute(path)
    directory = os.path.dirname(whole)
    found = extensions_of(distribution) if distribution is not None else []
    if not found:
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            names = []
        found = [os.path.join(directory, name) for name in names if ".so" in name]
    others = [p for p in found if os.path.realpath(p) != os.path.realpath(whole)]
    others.sort(key=lambda p: (os.path.dirname(p) != directory, p))
    return others[:MAX_FILES]


def defined_in(names: Iterable[str], files: Sequence[str]) -> dict[str, str]:
    """Name → the first of the files that exports it. Files that cannot be read define nothing."""
    wanted = {name: name.encode("utf-8", "surrogateescape") for name in names}
    found: dict[str, str] = {}
    for path in files:
        if len(found) == len(wanted):
            break
        try:
            dynamic = DynamicObject.open(path)
        except ForensicsError:
            continue
        try:
            for name, raw in wanted.items():
                if name not in found and dynamic.lookup(raw, gnu_hash(raw)) is not None:
                    found[name] = path
        finally:
            dynamic.close()
    return found
