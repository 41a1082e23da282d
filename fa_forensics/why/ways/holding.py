"""A wheel that has a build of its module for each of several torches: which release has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fa_forensics.atlas.builds import minor_of
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import order_key


def release_holding(
    pip: str, name: str, row: Mapping[str, Any] | None, place: Place
) -> tuple[str, str] | None:
    """(command, what it does) with the newest release that has a build for the torch there.

    None for other packages, and where no release on record has one for that torch.
    """
    spans = (row or {}).get("holds")
    if not spans:
        return None
    first, last = spans[-1]["torch"]
    if place.present is None:
        return f"{pip} install --upgrade --no-cache-dir {name}", (
            f"gets the newest release of {name}, whose wheel has a build for each torch of a few "
            f"minor versions ({spans[-1]['release']}: torch {first} to {last}), and leaves torch "
            "as it is"
        )
    there = place.present.release
    minor = order_key(f"{minor_of(there)}.0")
    for span in reversed(spans):
        first, last = span["torch"]
        if order_key(f"{first}.0") <= minor <= order_key(f"{last}.0"):
            # Its parts are named as well: with what they ask for, torch would be exchanged too.
            names = (name, *(row or {}).get("brings", ()))
            pins = " ".join(f"{one}=={span['release']}" for one in names)
            return f"{pip} install --force-reinstall --no-deps --no-cache-dir {pins}", (
                f"installs {name} {span['release']}, whose wheel has a build for each torch from "
                f"{first} to {last}"
            )
    return None
