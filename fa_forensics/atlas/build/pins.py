"""The nvidia-* wheels that a torch wheel brings, from its Requires-Dist lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from packaging.requirements import Requirement

from fa_forensics.atlas.build.index import NoSuchWheel

#: Versions of a project on the index, in any order.
Versions = Callable[[str], Iterable[str]]
#: The Requires-Dist lines of one version of a project.
RequiresDist = Callable[[str, str], Iterable[str]]

#: A wheel without files, whose extras name the libraries of one toolkit (torch 2.11 and later).
BUNDLE = "cuda-toolkit"


def requires_dist(metadata: str) -> list[str]:
    """The Requires-Dist lines of a METADATA text."""
    head = metadata.replace("\r\n", "\n").partition("\n\n")[0]
    return re.findall(r"^Requires-Dist: *(.*)$", head, re.MULTILINE)


def nvidia_pins(
    lines: Iterable[str], machine: str, python: str, versions: Versions, lines_of: RequiresDist
) -> dict[str, str]:
    """Project name to version of each nvidia-* wheel that holds on Linux, as pip would choose.

    Of a range the newest fitting version on the index counts. ``python`` is a minor version
    such as "3.11". torch's own line stands before what cuda-toolkit asks for. Raises what
    ``versions`` and ``lines_of`` raise, and NoSuchWheel when nothing on the index fits a range.
    """
    host = {
        "platform_system": "Linux",
        "platform_machine": machine,
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "python_version": python,
        "python_full_version": f"{python}.0",
    }
    found: dict[str, str] = {}
    queue = [(Requirement(line), frozenset({""})) for line in lines]
    while queue:
        need, extras = queue.pop(0)
        name = re.sub(r"[-_.]+", "-", need.name).lower()
        if not (name.startswith("nvidia-") or name == BUNDLE):
            continue
        if need.marker is not None and not any(
            need.marker.evaluate(host | {"extra": extra}) for extra in extras
        ):
            continue
        version = _version_for(need, name, versions)
        if name == BUNDLE:
            wanted = frozenset(need.extras)
            queue += [(Requirement(line), wanted) for line in lines_of(name, version)]
        else:
            found.setdefault(name, version)
    return dict(sorted(found.items()))


def _version_for(need: Requirement, name: str, versions: Versions) -> str:
    """The newest version on the index that satisfies a requirement, as the index writes it."""
    from packaging.version import Version

    fitting = list(need.specifier.filter(versions(name), prereleases=False))
    if fitting:
        return max(fitting, key=Version)
    for specifier in need.specifier:
        if specifier.operator == "==" and "*" not in specifier.version:
            return specifier.version  # withdrawn since, or never published on this index
    raise NoSuchWheel(f"no version of {name} on the index satisfies {need.specifier}")
