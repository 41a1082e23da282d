"""``env``: the whole picture of an environment in lines, without importing anything of it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fa_forensics import __version__
from fa_forensics.artefacts import artefact_lines
from fa_forensics.copies import copies_lines
from fa_forensics.facts.environment import find_environment
from fa_forensics.forked import map_forked
from fa_forensics.packages.look import Seen, look_at_packages
from fa_forensics.report_env import EnvReport, Line
from fa_forensics.runtime import runtime_lines
from fa_forensics.views import environment_view


def inspect_environment(
    python: str | None = None,
    environ: Mapping[str, str] | None = None,
    hashes: bool = False,
    jobs: int = 1,
) -> EnvReport:
    """Look at the packages, the extension files, the runtime and the library copies.

    ``python`` is as for ``inspect``; ``hashes`` reads every file that a RECORD lists, which
    takes seconds for each gigabyte. ``jobs`` processes share the work on the extension files;
    more than one only where this process has no threads. Raises ``EnvironmentNotFound``.
    """
    variables = os.environ if environ is None else environ
    environment = find_environment(python, None, variables)

    def look(part: str) -> Seen | tuple[Line, ...]:
        if part == "packages":
            return look_at_packages(environment, variables, hashes)
        return (*runtime_lines(environment, variables), *copies_lines(environment, variables))

    # The second part depends on nothing of the first: another core does it meanwhile.
    parts = ("packages", "below")
    seen, below = map_forked(look, parts) if jobs > 1 else map(look, parts)
    assert isinstance(seen, Seen) and isinstance(below, tuple)
    lines = (
        *seen.lines,
        *artefact_lines(seen.extensions, environment, variables, jobs),
        *below,
    )
    return EnvReport(__version__, environment_view(environment), lines)
