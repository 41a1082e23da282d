"""The shipped CUDA tables and both readers against nm on NVIDIA's real libraries.

``FA_FORENSICS_REAL_ENVS`` names environments with a CUDA build of torch (make test-real).
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from support.cuda_wheels import nm_exports

from fa_forensics.atlas.build.cuda_wheel import FRONTS, read_file, settings
from fa_forensics.atlas.build.front import read_front
from fa_forensics.atlas.libraries import CudaLibraries
from fa_forensics.facts.elf.dynamic import DynamicObject

pytestmark = pytest.mark.real


class Installed(NamedTuple):
    """A library of an installed nvidia-* wheel."""

    distribution: str
    version: str
    path: Path


def installed() -> list[Installed]:
    """Every library that the installed wheels of the list brought, by their RECORD files."""
    known = {row["name"] for row in settings()["distributions"]}
    found = []
    for environment in filter(None, os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":")):
        for folder in sorted(
            Path(environment).glob("lib/python3*/site-packages/nvidia*.dist-info")
        ):
            name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
            distribution = re.sub(r"[-_.]+", "-", name).lower()
            if distribution in known:
                files = re.findall(
                    r"^([^,\n]*/[^/,]+\.so[.0-9]*),", (folder / "RECORD").read_text(), re.M
                )
                found += [Installed(distribution, version, folder.parent / f) for f in files]
    return found


FOUND = installed()
libraries = pytest.mark.parametrize(
    "library",
    FOUND
    or [pytest.param(None, marks=pytest.mark.skip("FA_FORENSICS_REAL_ENVS names none with CUDA"))],
    ids=lambda found: (
        f"{found.distribution}-{found.version}-{found.path.name}" if found else "none"
    ),
)


@cache
def table() -> dict[tuple[str, str, str], set[tuple[str, str | None, bool]]]:
    """(distribution, version, soname) → (name, symbol version, default) by the shipped tables."""
    wanted = {(found.distribution, found.version) for found in FOUND}
    rows: dict[tuple[str, str, str], set[tuple[str, str | None, bool]]] = {}
    for key, releases in CudaLibraries.open().names():
        name, at, of = key.partition("@")
        export = name, of.removeprefix("@") or None, not at or of.startswith("@")
        for release in releases:
            if (release.distribution, release.version) in wanted:
                place = release.distribution, release.version, release.soname
                rows.setdefault(place, set()).add(export)
    return rows


def soname_of(path: Path) -> str:
    opened = DynamicObject.open(str(path))
    try:
        return opened.soname or path.name
    finally:
        opened.close()


@libraries
def test_the_shipped_tables_say_of_every_name_what_nm_says(library: Installed) -> None:
    tables, soname = CudaLibraries.open(), soname_of(library.path)
    wheel = [
        w for w in tables.wheels()
        if (w.distribution, w.version) == (library.distribution, library.version)
    ]  # fmt: skip
    if not wheel:
        pytest.skip(f"{library.distribution} {library.version} is not in the tables")
    assert soname in tables.sonames_of(library.distribution, library.version)
    place = library.distribution, library.version, soname
    if library.path.name in wheel[0].unread:
        assert place not in table()
        pytest.skip(f"{library.path.name} was left out of the tables: too large")
    assert table().get(place, set()) == nm_exports(library.path)


@libraries
def test_the_front_of_a_real_library_says_what_nm_says_or_nothing(library: Installed) -> None:
    with library.path.open("rb") as file:
        front = read_front(file.read(FRONTS[-1]))
    if front is None:
        pytest.skip("its tables do not lie at its front")
    assert set(map(tuple, front.exports)) == nm_exports(library.path)


@libraries
def test_the_whole_of_a_real_library_says_what_nm_says(library: Installed) -> None:
    assert set(map(tuple, read_file(str(library.path))[1])) == nm_exports(library.path)
