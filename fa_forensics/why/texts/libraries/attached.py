"""Wheels for another CUDA than the package index has, attached to a project's releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fa_forensics.why.seen import Seen
from fa_forensics.why.torch_names.history import order_key


def attached_wheel(seen: Seen, version: str, row: Mapping[str, object]) -> str:
    """The command for the wheel of this release that fits torch's CUDA; "" where there is none.

    ``--no-deps``: what the wheel asks for would bring the torch of the package index.
    """
    given = row.get("attached")
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    public = version.partition("+")[0]
    if not own or not public or (seen.torch_cuda or "").partition(".")[0] != own["cuda"]:
        return ""
    if seen.place.machine != "x86_64" or not (
        order_key(own["first"]) <= order_key(public) <= order_key(own["last"])
    ):
        return ""
    install = f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir"
    parts = (seen.python_version or "").split(".")[:2]
    if len(parts) == 2:
        return f"{install} {own['address'].format(version=public, python=''.join(parts))}"
    ask = f"$({seen.python} -c 'import sys; print(\"%d%d\" % sys.version_info[:2])')"
    return f"PY={ask}; {install} {own['address'].format(version=public, python='$PY')}"


def installed_release(seen: Seen, name: str) -> str:
    """``NAME==RELEASE`` for a shell, with the release that is installed.

    The newest one of a package that asks for one torch is for another than the one that is there.
    """
    ask = (
        f"{seen.python} -c 'import importlib.metadata as m; "
        f'print(m.version("{name}").partition(chr(43))[0])\''
    )
    return f'"{name}==$({ask})"'
