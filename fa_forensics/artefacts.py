"""The build artefact layer of ``env``: every CUDA extension inspected, one line each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fa_forensics.facts.environment import Environment
from fa_forensics.facts.extension_use import other_build, why_unused
from fa_forensics.facts.nvml import read_machine
from fa_forensics.facts.package import Distribution
from fa_forensics.facts.targets import Target, Targets
from fa_forensics.forked import map_forked
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

#: What a verdict is as the state of a line, if no finding above a note says otherwise.
_STATES = {
    LOADS: OK,
    LINKS: OK,
    FAILS: WRONG,
    NO_GPU_CODE: WRONG,
    INCONCLUSIVE: COULD_NOT_LOOK,
}


#: The finding that is about torch and not about the file.
TORCH_ITSELF = "FA603"


#: Fewer files than this are not worth another process (it opens torch's libraries anew).
MIN_SHARED = 6

Group = tuple[str, "Distribution | None", Sequence[str]]


def artefact_lines(
    packages: Iterable[Group],
    environment: Environment,
    environ: Mapping[str, str],
    jobs: int = 1,
) -> tuple[Line, ...]:
    """One line for each extension file: its verdict and headline.

    ``packages`` are (name, distribution, paths of its extension files). Nothing is loaded.
    ``jobs`` processes share the work; more than one only where this one has no threads.
    """
    groups = [(name, distribution, paths) for name, distribution, paths in packages if paths]
    targets = _inspected(groups, environment, jobs)
    package_of = {path: (name, paths) for name, _, paths in groups for path in paths}
    loading = [t.path for t in targets if t.verdict in (LOADS, LINKS)]
    cuda = environment.torch.cuda if environment.torch else None
    lines = []
    for target in targets:
        name, paths = package_of.get(target.path, ("", ()))
        spared = why_unused(name, target.path, paths, cuda, environ)
        if spared is None and (other := other_build(target.path, loading)) is not None:
            spared = f"{other} beside it, a build for another version, is used"
        lines.append(_line(name, target, environment, spared))
    return tuple(lines)


def _inspected(
    groups: Sequence[Group], environment: Environment, jobs: int
) -> Sequence[TargetReport]:
    """The reports on all files, in their order."""
    # Without a GPU here there is none to judge for; which GPUs a file serves, inspect tells.
    options = Options(confirm=False, gpu=() if read_machine().gpus else None)

    def inspect(numbers: Sequence[int]) -> tuple[TargetReport, ...]:
        report = inspect_found(map(_named, [groups[n] for n in numbers]), environment, options)
        # The names of all symbols are of no use for a line, and are most of a report.
        return tuple(replace(target, undefined=()) for target in report.targets)

    shares = _shares([len(paths) for _, _, paths in groups], jobs)
    found = {target.path: target for reports in map_forked(inspect, shares) for target in reports}
    return [found[path] for _, _, paths in groups for path in paths if path in found]


def _named(group: Group) -> tuple[str, Targets]:
    name, distribution, paths = group
    return name, Targets([Target(path, None, path) for path in paths], package=distribution)


def _shares(sizes: Sequence[int], jobs: int) -> list[list[int]]:
    """Numbers of groups in shares of like size, the larger groups given out first."""
    if sum(sizes) < MIN_SHARED:
        jobs = 1
    shares: list[list[int]] = [[] for _ in range(max(1, min(jobs, len(sizes))))]
    for number in sorted(range(len(sizes)), key=lambda n: -sizes[n]):
        smallest = min(shares, key=lambda share: sum(sizes[n] for n in share))
        smallest.append(number)
    return shares


def _line(package: str, target: TargetReport, environment: Environment, spared: str | None) -> Line:
    """The line of one file; ``spared`` says why it is no matter if it does not load."""
    name = _short(target.path, environment.site_dirs)
    state = _STATES[target.verdict]
    text = f"{_WORDS[target.verdict]}: {_headline(target)}"
    shown = _worst(target.findings)
    if state == WRONG and spared is not None:
        state, shown = NOTE, None
        text = f"{text} (no matter: {spared})"
    elif state == OK and shown is not None:
        state = WRONG  # the loader takes it, and there is a warning
        text = f"{_WORDS[target.verdict]}, but {shown.title}"
    details = [f"{f.severity}[{f.code}] {f.title}" for f in target.findings if f is not shown]
    details += [f"not looked at: {skip.rule}: {skip.reason}" for skip in target.skipped]
    return Line(ARTEFACT, name, state, text, shown, tuple(details), _facts(package, target))


_WORDS = {
    LOADS: "loads",
    LINKS: "links",
    FAILS: "fails",
    NO_GPU_CODE: "no GPU code for here",
    INCONCLUSIVE: "inconclusive",
}


def _headline(target: TargetReport) -> str:
    """The headline, short where it would repeat for every file what is wrong with torch."""
    first = target.findings[0] if target.findings else None
    if first is not None and first.code == TORCH_ITSELF and first.title in target.headline:
        return "torch itself cannot be imported here (see runtime)"
    return target.headline


def _worst(findings: Sequence[Finding]) -> Finding | None:
    """The finding to show: the first of the gravest, notes aside.

    That torch itself cannot be imported is told once, where its libraries are.
    """
    grave = [f for f in findings if f.severity != "note" and f.code != TORCH_ITSELF]
    return min(grave, key=lambda finding: SEVERITIES.index(finding.severity), default=None)


def _short(path: str, site_dirs: Sequence[str]) -> str:
    """The path as it stands below its directory of packages."""
    for site in site_dirs:
        if path.startswith(site + os.sep):
            return path[len(site) + 1 :]
    return path


def _facts(package: str, target: TargetReport) -> dict[str, object]:
    """What programs compare: identity, flavour, GPU code, place among the releases."""
    elf = target.elf or {}
    return {
        "package": package,
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
