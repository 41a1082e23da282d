"""What conda recorded of an environment: one JSON file for each package in ``conda-meta``.

The files' names carry name, version and build (conda's ``PrefixRecord``); that is enough to see
a project that conda and pip both installed.
"""

from __future__ import annotations

import os

from fa_forensics.facts.package import normalized
from fa_forensics.records import dataclass

#: Projects whose conda package has another name than on the Python package index.
_OTHER_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}


@dataclass(frozen=True, slots=True)
class CondaPackage:
    """A package that conda installed; ``project`` is its normalized name on the index."""

    project: str
    name: str
    version: str
    build: str
    path: str


def conda_packages(prefix: str) -> tuple[list[CondaPackage], str | None]:
    """(packages, problem) of a conda environment; no packages and None where it is none."""
    directory = os.path.join(prefix, "conda-meta")
    try:
        names = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return [], None
    except OSError as error:
        return [], f"{directory} cannot be listed: {error.strerror}"
    found = []
    for name in names:
        parts = name.removesuffix(".json").rsplit("-", 2)
        if name.endswith(".json") and len(parts) == 3:
            project = normalized(parts[0])
            path = os.path.join(directory, name)
            project = _OTHER_NAMES.get(project, project)
            found.append(CondaPackage(project, parts[0], parts[1], parts[2], path))
    return found, None
