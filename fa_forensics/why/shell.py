"""Paths of a text as a POSIX shell has to see them."""

from __future__ import annotations

import re


def quoted(path: str) -> str:
    """A path for a shell; ``~/`` and ``${NAME}/`` at its start stay what the shell expands."""
    import shlex

    if re.fullmatch(r"\$\{[A-Z_]{2,40}\}/[\w./+-]*", path):
        return f'"{path}"'
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)


def import_of(file: str) -> str:
    """``; import torch_int`` for a file of that package; "" for torch's, NVIDIA's and system's."""
    from fa_forensics.facts.owner import is_cuda, is_torch, owner_of_library

    owner = owner_of_library(file.rsplit("/", 1)[-1])
    if owner is not None and (is_torch(owner) or is_cuda(owner)):
        return ""
    found = re.search(r"(?:-packages/|^\.\.\./)(?P<top>[A-Za-z_]\w{0,60})/[^\s]{1,300}", file)
    own = found is not None and not re.match(r"(?:torch|nvidia|lib\d{0,2}|site)$", found["top"])
    return f"; import {found['top']}" if own and found is not None else ""
