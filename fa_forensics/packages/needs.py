"""FA817: what a package asks for, and what is installed in its place."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.installed import Installed
from fa_forensics.facts.package_state import PackageState
from fa_forensics.facts.requirements import Unmet, unmet_requirements
from fa_forensics.report import Evidence, Finding
from fa_forensics.report_env import PACKAGE, WRONG, Line


def needs_lines(
    states: Sequence[PackageState], installed: Sequence[Installed], environment: Environment
) -> list[Line]:
    """A line for each of these packages whose requirements are not met."""
    versions: dict[str, str] = {}
    for item in installed:  # the first on sys.path counts
        if item.distribution is not None:
            versions.setdefault(item.name, item.version)
    lines = []
    for state in states:
        first = state.installed[0]
        if first.distribution is None or first.repackaged_by is not None:
            continue  # conda names packages its own way
        unmet = unmet_requirements(
            first.distribution.requires, versions, environment.machine, environment.version_short
        )
        if unmet:
            finding = _finding(state, unmet, environment)
            lines.append(Line(PACKAGE, state.name, WRONG, finding.title, finding))
    return lines


def _finding(state: PackageState, unmet: Sequence[Unmet], environment: Environment) -> Finding:
    # A wrong version is stranger than a lack, which the import names by itself.
    ordered = sorted(unmet, key=lambda need: need.installed is None)
    first = ordered[0]
    has = f"{first.installed} is installed" if first.installed else "it is not installed"
    others = len(ordered) - 1
    more = f", and {others} more" if others else ""
    wanted = " ".join(shlex.quote(need.text) for need in ordered)
    return Finding(
        "FA817",
        "warning",
        "high",
        f"{state.name} {state.version} asks for {first.text}, {has}{more}",
        tuple(
            Evidence(f"asks for {need.text}, installed: {need.installed or 'none'}")
            for need in ordered
        ),
        ("pip warns of this once, while it installs; `pip check` repeats it.",),
        (f"{shlex.quote(environment.python)} -m pip install {wanted}",),
    )
