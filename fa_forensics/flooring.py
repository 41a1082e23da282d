"""What a file needs at least, beside what is here: gathered for the rules and for the reports."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.floors import Claim, Floors
from fa_forensics.facts.owner import OWN
from fa_forensics.facts.system_releases import GLIBC, brings, gcc_of, oldest_systems, version_number
from fa_forensics.facts.wheel import Wheel
from fa_forensics.reading import FileFacts
from fa_forensics.resolve.opened import Opened
from fa_forensics.resolve.package_names import defined_in, files_of_package
from fa_forensics.resolve.system import SystemHere, system_here
from fa_forensics.resolve.target import Linked


def claim_of_wheel(wheel: Wheel | None) -> Claim | None:
    """What a wheel's file name promises, which is what pip goes by; None without a wheel."""
    if wheel is None:
        return None
    tags = tuple(platform.tag for platform in wheel.platforms)
    return Claim(wheel.python_tags, wheel.abi_tags, tags, os.path.basename(wheel.path))


def system_for(
    file: FileFacts, linked: Linked, environment: Environment, opened: Opened
) -> SystemHere | None:
    """What the system's libraries here define for a file; ``opened`` keeps them open."""
    return system_here(file.elf, file.floors, environment, linked.resolution, opened)


def own_names_elsewhere(file: FileFacts, linked: Linked) -> dict[str, str]:
    """Missing names of the file's own package → another file of it that exports them."""
    names = [
        item.binding.symbol
        for item in linked.missing
        if item.owner == OWN and item.absent_library is None and item.exported_by is None
    ]
    if not names:
        return {}
    return defined_in(names, files_of_package(file.target.path, file.distribution))


def floors_view(floors: Floors, here: SystemHere | None) -> dict[str, object]:
    """The ``floors`` object of a report."""
    satisfied, python, claim = floors.manylinux, floors.python, floors.claim
    unversioned = None if here is None else here.unversioned
    needs = [row.version for row in floors.versions] + ([unversioned] if unversioned else [])
    return {
        "systems": list(oldest_systems(needs)),
        "versions": [_version(row.family, row.version, row.library, here)
                     for row in floors.versions],
        "unversioned": {
            "count": len(floors.unversioned),
            "needs": unversioned,
            "release": None if unversioned is None else gcc_of(unversioned),
        },
        "manylinux": {
            "tag": satisfied.tag,
            "aliases": list(satisfied.aliases),
            "libraries_outside": list(satisfied.libraries_outside),
            "names_forbidden": list(satisfied.names_forbidden),
        },
        "claimed": None
        if claim is None
        else {
            "python_tags": list(claim.python_tags),
            "abi_tags": list(claim.abi_tags),
            "platform_tags": list(claim.platform_tags),
            "source": claim.source,
        },
        "stable_abi": None
        if python is None
        else {
            "outside": list(python.outside),
            "python": None if python.floor is None else "{}.{}".format(*python.floor),
            "newest": list(python.newest),
        },
    }  # fmt: skip


def _release(family: str, version: str) -> str | None:
    """The glibc, or the GCC, that brought a version: its number."""
    if family != GLIBC:
        return gcc_of(version)
    return ".".join(map(str, version_number(version))) or None


def _version(
    family: str, version: str, library: str, here: SystemHere | None
) -> Mapping[str, object]:
    found = here.newest(family) if here is not None else None
    return {
        "family": family,
        "needs": version,
        "release": _release(family, version),
        "library": library,
        "brought_by": brings(version),
        "here": None if found is None else found[0],
        "met": None if found is None else version_number(found[0]) >= version_number(version),
        "path": None if found is None else found[1],
    }
