"""Extensions for a torch that is no wheel: NVIDIA's for Jetson, a container's, one from source."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from fa_forensics.facts.package import normalized
from fa_forensics.facts.python_api import partner_of


def partner_from_source(
    python: str, name: str, torch: str, row: Mapping[str, object] | None
) -> tuple[str, str] | None:
    """(command, what it does): the release of a package that belongs to a torch, from its source.

    A wheel that names its torch would put that in the place of the one that is there.
    ``torch`` is the release that it calls itself, ``row`` what is known of the package;
    None where that has no release for the torch, or no public source on record.
    """
    release = partner_of(normalized(name), torch)
    if row is None or not row.get("repository") or release is None:
        return None
    command = (
        f"{shlex.quote(python)} -m pip install --no-build-isolation --no-deps --force-reinstall "
        f"git+{row['repository']}@v{release}"
    )
    does = (
        f"compiles {name} {release}, which belongs to torch {torch}, for the torch that is there: "
        f"that is a build of its own, and wheels of {name} on the package index are for other "
        "torches and put those in its place"
    )
    return command, does
