"""The layer put together: every distribution looked at, CUDA extension packages closely."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fa_forensics.facts.conda import conda_packages
from fa_forensics.facts.dependents import comes_with_torch, cuda_extensions
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.installed import Installed, read_installed
from fa_forensics.facts.package import Distribution, normalized, torch_requirement
from fa_forensics.facts.package_state import listed_paths
from fa_forensics.packages.caches import cache_lines
from fa_forensics.packages.gather import (
    imported_extensions,
    package_state,
    strays,
    torch_state,
)
from fa_forensics.packages.lines import other_lines, package_lines, path_lines, stray_line
from fa_forensics.packages.needs import needs_lines
from fa_forensics.records import dataclass
from fa_forensics.report_env import Line
from fa_forensics.rules.remedy import row_of

#: (name, distribution or None, paths of extension files) of what is inspected.
Extensions = list[tuple[str, Distribution | None, list[str]]]


@dataclass(frozen=True, slots=True)
class Seen:
    """The lines of the layer, and the extension files that the next layer inspects."""

    lines: tuple[Line, ...]
    extensions: Extensions


def look_at_packages(
    environment: Environment, environ: Mapping[str, str], hashes: bool = False
) -> Seen:
    """Look at every installed distribution, at CUDA extension packages closely.

    ``hashes`` reads every file that a RECORD lists; without it the Python sources of
    extension packages and what was written after the installation.
    """
    installed = read_installed(environment.site_dirs)
    conda, conda_problem = conda_packages(environment.prefix)
    lines: list[Line] = []
    extensions: Extensions = []
    states = []
    listed = {
        site: listed_paths([i.record for i in installed if i.site == site and i.record is not None])
        for site in environment.site_dirs
    }
    torch = torch_state(installed, environment, hashes)
    if torch is not None:
        lines += package_lines(torch)
    for item in _extension_projects(installed, environment):
        state = package_state(item, installed, conda, environment, hashes, listed[item.site])
        states.append(state)
        lines += package_lines(state)
        extensions.append((state.name, item.distribution, imported_extensions(state)))
    for stray in strays(installed, states, environment):
        lines.append(stray_line(stray))
        extensions.append((os.path.basename(stray.path), None, list(stray.extensions)))
    lines += needs_lines([*([torch] if torch else []), *states], installed, environment)
    known = {normalized(state.name) for state in states}
    lines += other_lines(installed, known | {"torch"}, environment, hashes)
    lines += path_lines(environment, conda_problem)
    lines += cache_lines(environment, environ, known)
    return Seen(tuple(lines), extensions)


def _extension_projects(
    installed: Sequence[Installed], environment: Environment
) -> list[Installed]:
    """The first metadata of each project with files that use torch or CUDA.

    Also of each that should have some: those of the table of packages, and editable installs
    that ask for torch, whose source tree may be gone.
    """
    with_torch = comes_with_torch(environment.torch)
    chosen: dict[str, Installed] = {}
    for item in installed:
        if item.name in with_torch or item.name in chosen or item.distribution is None:
            continue
        known = row_of(item.name) is not None
        if item.distribution.editable:
            known = known or torch_requirement(item.distribution.requires) is not None
        if known or cuda_extensions(item.distribution, environment.site_dirs):
            chosen[item.name] = item
    return list(chosen.values())
