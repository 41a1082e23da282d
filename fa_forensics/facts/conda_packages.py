"""What conda installed into an environment: the records in ``conda-meta``."""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from fa_forensics.facts.files import read_bounded

#: A record is no larger than this (bytes): it lists every file of its package.
MAX_RECORD = 1 << 26


class CondaPackage(NamedTuple):
    """One package of conda; channel is its name ("conda-forge") where one is recorded."""

    name: str
    version: str
    build: str
    channel: str


def read_conda(prefix: str) -> tuple[tuple[CondaPackage, ...], tuple[str, ...]]:
    """(packages by name, one sentence for each record that could not be read)."""
    folder = os.path.join(prefix, "conda-meta")
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError as error:
        if not os.path.lexists(folder):
            return (), ()
        return (), (f"{folder} cannot be listed: {error.strerror}",)
    packages, problems = [], []
    for name in names:
        path = os.path.join(folder, name)
        try:
            record = json.loads(read_bounded(path, MAX_RECORD))
            packages.append(
                CondaPackage(
                    str(record["name"]),
                    str(record["version"]),
                    str(record["build"]),
                    _channel(str(record.get("channel", ""))),
                )
            )
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror or error}")
        except (ValueError, KeyError, TypeError, RecursionError):
            problems.append(f"{path} is no record of conda")
    return tuple(sorted(packages)), tuple(problems)


def _channel(text: str) -> str:
    """``https://host/conda-forge/linux-64`` → ``conda-forge``; a plain name as it is."""
    bare = re.sub(r"/(?:linux|osx|win)-\w+$|/noarch$", "", text.rstrip("/"))
    return bare.rpartition("/")[2]
