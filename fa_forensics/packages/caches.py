"""Caches of locally built code that can outlive the torch they were built against."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping

from fa_forensics.facts.build_caches import (
    CachedWheel,
    JitBuild,
    pip_wheels,
    read_jit_cache,
)
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.targets import Target, Targets
from fa_forensics.pipeline import Options, inspect_found
from fa_forensics.report import FAILS, Evidence, Finding, TargetReport
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, PACKAGE, WRONG, Line

#: A build holds its lock for minutes at most; one this old (seconds) was left by a dead one.
STALE_LOCK_S = 3_600.0

#: How many built libraries are inspected; the rest is counted.
MAX_INSPECTED = 12


def cache_lines(
    environment: Environment, environ: Mapping[str, str], names: set[str]
) -> list[Line]:
    """torch's JIT cache, and the wheels of the projects ``names`` that pip built itself."""
    return [*_jit_lines(environment, environ), *_pip_lines(environment, environ, names)]


def _jit_lines(environment: Environment, environ: Mapping[str, str]) -> list[Line]:
    cache = read_jit_cache(environment, environ, time.time())
    if cache.problem is not None:
        lines = [Line(PACKAGE, "torch_extensions", COULD_NOT_LOOK, cache.problem)]
    else:
        lines = []
    if not cache.builds:
        return lines
    built = [build for build in cache.builds if build.library is not None]
    reports = _inspected(built[:MAX_INSPECTED], environment)
    wrong = []
    for build in cache.builds:
        report = reports.get(build.library or "")
        if report is not None and report.verdict == FAILS:
            wrong.append(_stale_build(build, report))
        if build.lock is not None:
            wrong.append(_lock_line(build))
    count = len(cache.builds)
    text = f"{count} {'build' if count == 1 else 'builds'} of torch's JIT cache in "
    text += cache.directory
    if len(built) > MAX_INSPECTED:
        text += f", {MAX_INSPECTED} of them inspected"
    facts = {
        "directory": cache.directory,
        "builds": [build.name for build in cache.builds],
        "others": list(cache.others),
    }
    details = tuple(f"for another Python or CUDA: {path}" for path in cache.others)
    state = NOTE if wrong or len(built) > MAX_INSPECTED else OK
    return [*lines, Line(PACKAGE, "torch_extensions", state, text, None, details, facts), *wrong]


def _inspected(builds: list[JitBuild], environment: Environment) -> dict[str, TargetReport]:
    paths = [build.library for build in builds if build.library is not None]
    if not paths:
        return {}
    found = [("torch_extensions", Targets([Target(path, None, path) for path in paths]))]
    report = inspect_found(found, environment, Options(confirm=False, gpu=None))
    return {target.path: target for target in report.targets}


def _stale_build(build: JitBuild, report: TargetReport) -> Line:
    finding = Finding(
        "FA812",
        "warning",
        "high",
        f"the JIT build {build.name} in torch's cache does not load here: {report.headline}",
        (Evidence("was built against another torch, Python or CUDA", file=build.library),),
        (
            "The directory's name carries Python and CUDA but not torch's version, so a build "
            "for another torch is found there again. torch rebuilds it once it is gone.",
        ),
        (f"rm -r -- {shlex.quote(build.directory)}",),
    )
    return Line(PACKAGE, build.name, WRONG, finding.title, finding)


def _lock_line(build: JitBuild) -> Line:
    age = build.lock_age_s or 0.0
    if age < STALE_LOCK_S:
        text = f"{build.name} is being built, or a build of it ended {int(age)} seconds ago"
        return Line(PACKAGE, build.name, NOTE, text, None, (f"lock file: {build.lock}",))
    finding = Finding(
        "FA813",
        "warning",
        "medium",
        f"a lock file of {int(age // 3600)} hours ago makes every build of {build.name} wait "
        "for ever",
        (Evidence("is waited for as long as it is there", file=build.lock),),
        ("The build that made it was killed; nothing else removes it.",),
        (f"rm -- {shlex.quote(build.lock or '')}",),
    )
    return Line(PACKAGE, build.name, WRONG, finding.title, finding)


def _pip_lines(environment: Environment, environ: Mapping[str, str], names: set[str]) -> list[Line]:
    torch = environment.torch
    installed = None
    if torch is not None:
        try:
            installed = os.stat(os.path.join(torch.path, "version.py")).st_mtime
        except OSError:
            installed = None
    return [_wheel_line(wheel, installed, environment) for wheel in pip_wheels(environ, names)]


def _wheel_line(wheel: CachedWheel, torch_since: float | None, environment: Environment) -> Line:
    name = os.path.basename(wheel.path)
    facts: dict[str, object] = {"path": wheel.path, "size_bytes": wheel.size}
    day = _day(wheel.mtime)
    older = torch_since is not None and wheel.mtime < torch_since
    if not older or environment.torch is None or torch_since is None:
        text = f"pip keeps {name}, which it built on this machine on {day}"
        return Line(PACKAGE, wheel.name, NOTE, text, None, (wheel.path,), facts)
    torch = environment.torch.version
    finding = Finding(
        "FA814",
        "warning",
        "medium",
        f"pip keeps {name}, which was built before torch {torch} came here, and would install "
        "it again",
        (
            Evidence(f"was written on {day}", file=wheel.path),
            Evidence(f"torch {torch} was written on {_day(torch_since)}"),
        ),
        ("pip knows such a wheel by its version alone, not by the torch that it was built with.",),
        (f"{shlex.quote(environment.python)} -m pip cache remove {shlex.quote(wheel.name)}",),
    )
    return Line(PACKAGE, wheel.name, WRONG, finding.title, finding, (), facts)


def _day(mtime: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(mtime)) + " UTC"
