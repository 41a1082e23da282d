"""Paths of a text as a POSIX shell has to see them."""

from __future__ import annotations

import re


def quoted(path: str) -> str:
    """A path for a shell; ``~/`` and ``${NAME}/`` at its start stay what the shell expands."""
    import shlex

    if re.fullmatch(r"\$\{[A-Z_]{2,40}\}/[\w./+-]*", path):
        return f'"{path}"'
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)
