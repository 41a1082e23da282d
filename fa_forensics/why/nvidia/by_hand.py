"""Python commands that open a file, or bring a CUDA library into the process before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.why.nvidia.wheels import CudaHistory
from fa_forensics.why.place import Place


def preload(place: Place, history: CudaHistory, needed_by: Sequence[str]) -> tuple[str, ...]:
    """Bring the library into the process by hand, with its names for all, and import the file."""
    python = place.python or "python"
    load = f'ctypes.CDLL("{history.soname}", ctypes.RTLD_GLOBAL)'
    return (f"{python} -c 'import ctypes, torch; {load}; {opened(needed_by)}'",)


def opened(needed_by: Sequence[str]) -> str:
    """Python that loads a file: by its module's name where it is installed, else by its path.

    A module in a source tree or a cache has no name that works from every directory, and a
    library that no import finds (libNAME.so) has none at all.
    """
    from fa_forensics.why.seen import dotted_module
    from fa_forensics.why.ways.builds import is_module

    file = needed_by[0] if needed_by else ""
    plain = re.fullmatch(r"/[\w./+@-]{1,400}", file) is not None and "..." not in file
    if re.fullmatch(r"~/[\w./+@-]{1,400}", file) and "-packages/" not in file:
        return f'ctypes.CDLL(__import__("os").path.expanduser("{file}"))'
    if not plain and "torch_extensions/" in file:
        return 'ctypes.CDLL("/path/to/the/failing.so")'
    library = file.rsplit("/", 1)[-1].startswith("lib") and not is_module(file)
    if plain and (library or "-packages/" not in file):
        return f'ctypes.CDLL("{file}")'
    return f"import {dotted_module(file) or 'MODULE'}"
