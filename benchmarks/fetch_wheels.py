"""Fetch what ``python -m benchmarks.built_on`` reads: ``python -m benchmarks.fetch_wheels DIR``.

Of each wheel in wheels.txt the shared objects and the metadata, by HTTP range, unpacked as
``DIR/NAME`` (about 35 GB in all; ``--below MB`` leaves larger wheels out). What is there already is
kept, and a directory appears whole or not at all. Needs the extra ``real``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from functools import lru_cache

from fa_forensics.atlas.build.index import WheelFile, list_wheels, open_wheel
from fa_forensics.errors import ForensicsError

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wheels.txt")
_WANTED = re.compile(r"\.so(\.\d+)*$|\.dist-info/(METADATA|WHEEL)$")


def wanted_wheels() -> dict[str, str]:
    """The directory of each wheel and its file name on the index."""
    with open(LIST, encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return dict(rows)


@lru_cache(maxsize=64)
def _wheels_of(project: str) -> dict[str, WheelFile]:
    return {wheel.filename: wheel for wheel in list_wheels(project)}


def fetch(name: str, filename: str, folder: str, below: int | None) -> str:
    """Fetch one wheel unless it is there; returns what was done, in words.

    Raises IndexFailure, NoSuchWheel.
    """
    dest = os.path.join(folder, name)
    if os.path.isdir(dest):
        return "is there"
    wheel = _wheels_of(filename.partition("-")[0].replace("_", "-")).get(filename)
    if wheel is None:
        return "is not on the index any more"
    if below is not None and (wheel.size or 0) > below << 20:
        return "is larger than asked for"
    scratch = f"{dest}.part"
    shutil.rmtree(scratch, ignore_errors=True)
    with open_wheel(wheel) as remote:
        for member in remote.names():
            path = os.path.normpath(os.path.join(scratch, member))
            if _WANTED.search(member) and path.startswith(scratch + os.sep):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                remote.save(member, path)
    os.rename(scratch, dest)
    return "fetched"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 3 when the index could not be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fetch_wheels")
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--below", metavar="MB", type=int, help="leave larger wheels out")
    options = parser.parse_args(arguments)
    folder = os.path.abspath(options.directory)
    os.makedirs(folder, exist_ok=True)
    try:
        for name, filename in wanted_wheels().items():
            print(f"{filename}: {fetch(name, filename, folder, options.below)}", flush=True)
    except ForensicsError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
