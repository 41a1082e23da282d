"""The build artefact layer of ``env``: every CUDA extension inspected, one line each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.package import Distribution
from fa_forensics.facts.targets import Target, Targets
from fa_forensics.pipeline import Options, inspect_found
from fa_forensics.report import (
    FAILS,
    INCONCLUSIVE,
    LINKS,
    LOADS,
    NO_GPU_CODE,
    SEVERITIES,
    Finding,
    TargetReport,
)
from fa_forensics.report_env import ARTEFACT, COULD_NOT_LOOK, NOTE, OK, WRONG, Line

#: What a verdict is as the state of a line. A file that ``links`` has all it needs; whether it
#: behaves is told by its findings.
_STATES = {
    LOADS: OK,
    LINKS: OK,
    FAILS: WRONG,
    NO_GPU_CODE: WRONG,
    INCONCLUSIVE: COULD_NOT_LOOK,
}

#: The part of a file's name that tells builds of one library apart: libbitsandbytes_cuda121.so,
#: libtorio_ffmpeg6.so.
_VARIANT = re.compile(r"(?<=[a-z])(\d{1,4})(?=\.|_|$)")


def artefact_lines(
    packages: Iterable[tuple[str, Distribution | None, Sequence[str]]], environment: Environment
) -> tuple[Line, ...]:
    """One line for each extension file: its verdict and headline.

    ``packages`` are (name, distribution, paths of its extension files). Nothing is loaded.
    """
    found = [
        (name, Targets([Target(path, None, path) for path in paths], package=distribution))
        for name, distribution, paths in packages
        if paths
    ]
    report = inspect_found(found, environment, Options(confirm=False))
    verdicts = {target.path: target.verdict for target in report.targets}
    return tuple(_line(target, environment, verdicts) for target in report.targets)


def _line(target: TargetReport, environment: Environment, verdicts: dict[str, str]) -> Line:
    name = _short(target.path, environment.site_dirs)
    state = _STATES[target.verdict]
    text = f"{_WORDS[target.verdict]}: {target.headline}"
    worst = _worst(target.findings)
    shown = worst
    spared = _spared(target.path, verdicts) if state == WRONG else None
    if spared is not None:
        # The package loads another build of the same library.
        state, shown = NOTE, None
        text = f"not the build that is used here ({spared} is): {target.headline}"
    elif state == OK and worst is not None and worst.severity == "error":
        state = WRONG
    details = [f"{f.severity}[{f.code}] {f.title}" for f in target.findings if f is not shown]
    details += [f"not looked at: {skip.rule}: {skip.reason}" for skip in target.skipped]
    return Line(
        ARTEFACT, name, state, text, shown, tuple(details), _facts(target)
    )  # fmt: skip


_WORDS = {
    LOADS: "loads",
    LINKS: "links",
    FAILS: "fails",
    NO_GPU_CODE: "no GPU code for here",
    INCONCLUSIVE: "inconclusive",
}


def _worst(findings: Sequence[Finding]) -> Finding | None:
    """The finding to show: the first of the gravest, notes aside."""
    grave = [finding for finding in findings if finding.severity != "note"]
    return min(grave, key=lambda finding: SEVERITIES.index(finding.severity), default=None)


def _spared(path: str, verdicts: dict[str, str]) -> str | None:
    """The name of another build of the same library, in the same directory, that loads."""
    directory, name = os.path.split(path)
    family = _VARIANT.sub("*", name)
    if family == name:
        return None
    return next(
        (
            os.path.basename(other)
            for other, verdict in verdicts.items()
            if other != path
            and os.path.dirname(other) == directory
            and _VARIANT.sub("*", os.path.basename(other)) == family
            and verdict in (LOADS, LINKS)
        ),
        None,
    )


def _short(path: str, site_dirs: Sequence[str]) -> str:
    """The path as it stands below its directory of packages."""
    for site in site_dirs:
        if path.startswith(site + os.sep):
            return path[len(site) + 1 :]
    return path


def _facts(target: TargetReport) -> dict[str, object]:
    """What programs compare: identity, flavour, GPU code, place among the releases."""
    elf = target.elf or {}
    return {
        "path": target.path,
        "verdict": target.verdict,
        "build_id": elf.get("build_id"),
        "size_bytes": elf.get("size_bytes"),
        "python_tag": elf.get("python_tag"),
        "cxx11_abi": target.cxx11_abi,
        "stable_abi": target.stable_abi,
        "missing": sorted(set(target.missing)),
        "missing_count": len(target.missing),
        "links_with": list(target.links_with),
        "built_on": list(target.built_on),
        "gpu_code": [f"{code.kind} {code.arch}" for code in target.gpu_code],
        "toolkits": list(target.toolkits),
        "findings": [
            {"code": f.code, "severity": f.severity, "title": f.title} for f in target.findings
        ],
        "problem": target.problem,
    }
