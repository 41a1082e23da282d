"""``env``: the whole picture of an environment in lines, without importing anything of it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fa_forensics import __version__
from fa_forensics.artefacts import artefact_lines
from fa_forensics.copies import copies_lines
from fa_forensics.facts.environment import find_environment
from fa_forensics.packages.look import look_at_packages
from fa_forensics.report_env import EnvReport
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
    seen = look_at_packages(environment, variables, hashes)
    lines = (
        *seen.lines,
        *artefact_lines(seen.extensions, environment, variables, jobs),
        *runtime_lines(environment, variables),
        *copies_lines(environment, variables),
    )
    return EnvReport(__version__, environment_view(environment), lines)
