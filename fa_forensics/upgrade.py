"""What another torch would do to the extensions that are installed: each file judged twice."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fa_forensics.asked import asked_for, read_requests
from fa_forensics.errors import ForensicsError
from fa_forensics.facts.dependents import comes_with_torch, cuda_extensions
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.extension_use import chosen_for_cuda
from fa_forensics.facts.package import (
    Distribution,
    info_directories,
    normalized,
    read_distribution,
    satisfies,
    torch_pin,
    torch_requirement,
)
from fa_forensics.facts.targets import Target, Targets
from fa_forensics.facts.torch_install import release_of
from fa_forensics.pipeline import Options, inspect_found
from fa_forensics.placing import ReleaseTable
from fa_forensics.report import FAILS, JudgedTorch, TargetReport
from fa_forensics.report_releases import FileChange, PackageChange, Pin, UpgradeReport
from fa_forensics.rules.remedy import excludes, rebuild_command, rebuild_does, row_of

#: A marker that holds on another system only (PEP 508), in the spellings that wheels use.
_ELSEWHERE = re.compile(
    r"""\b(sys_platform|platform_system|os_name)\s*==\s*["'](darwin|win32|windows|nt)["']""",
    re.IGNORECASE,
)


def upgrade(
    release: str,
    python: str | None = None,
    environ: Mapping[str, str] | None = None,
    atlas: str | None = None,
) -> UpgradeReport:
    """Judge every CUDA extension of an environment with its own torch and with ``release``.

    ``python`` and ``release`` are as for ``inspect``. Nothing is loaded or started. Raises
    ``UsageError`` for a text that names no release, ``EnvironmentNotFound``, and
    ``ForensicsError`` for a release that cannot be judged (newer than the table, a build
    of its own).
    """
    variables = os.environ if environ is None else environ
    environment = find_environment(python, None, variables)
    table = ReleaseTable(atlas)
    (request,) = read_requests((release,), table, environment)
    asked = asked_for(request, table, environment, environment.machine)
    if asked.judged.judged_by == "nothing":
        raise ForensicsError(asked.problem or f"torch {release} cannot be judged")
    installed = list(installed_distributions(environment.site_dirs))
    with_torch = comes_with_torch(environment.torch)
    found = [
        (distribution, files)
        for distribution in installed
        if normalized(distribution.name) not in with_torch
        and (files := cuda_extensions(distribution, environment.site_dirs))
    ]
    # Another torch runs on the same GPUs: they decide nothing here.
    options = Options(confirm=False, torch=(release,), installed_too=True, atlas=atlas, gpu=None)
    report = inspect_found(
        (
            (distribution.name, Targets([Target(f, None, f) for f in files], package=distribution))
            for distribution, files in found
        ),
        environment,
        options,
    )
    pairs = _pairs(report.targets)
    packages = []
    for distribution, files in found:
        own, pairs = pairs[: len(files)], pairs[len(files) :]
        own = _with_choices(distribution.name, own, asked.judged.cuda, variables)
        packages.append(_package(distribution, own, asked.judged, environment))
    here = environment.torch.release if environment.torch else None
    pins = tuple(pin for d in installed if (pin := _pin(d, asked.judged.release, here)))
    return UpgradeReport(
        report.tool_version,
        report.environment or {},
        asked.judged,
        tuple(packages),
        pins,
        _python_notes(asked.torch.build.pythons if asked.torch else (), asked.judged, environment),
        _together(pins, asked.judged, environment),
        _unread(environment.site_dirs),
    )


def _pairs(targets: Sequence[TargetReport]) -> list[FileChange]:
    """The two reports of each file; what could not be read has but one, for both."""
    changes: list[FileChange] = []
    for target in targets:
        if target.torch is not None and changes:
            changes[-1] = FileChange(changes[-1].now, target)
        else:
            changes.append(FileChange(target, target))
    return changes


def _unread(site_dirs: Sequence[str]) -> tuple[str, ...]:
    """Site directories, and metadata in them, that this user may not read."""
    barred = []
    for site in site_dirs:
        if os.path.isdir(site) and not os.access(site, os.R_OK | os.X_OK):
            barred.append(site)
            continue
        for info in info_directories(site):
            files = [os.path.join(info, name) for name in ("METADATA", "PKG-INFO", "RECORD")]
            if not os.access(info, os.R_OK | (os.X_OK if os.path.isdir(info) else 0)):
                barred += [info] if os.path.lexists(info) and not os.path.islink(info) else []
            else:
                barred += [f for f in files if os.path.isfile(f) and not os.access(f, os.R_OK)]
    return tuple(barred)


def _with_choices(
    package: str, files: Sequence[FileChange], cuda: str | None, environ: Mapping[str, str]
) -> list[FileChange]:
    """Where a package loads one of several builds by torch's CUDA, the one that it takes then.

    Only a build that loads then stands in for another.
    """
    loading = {file.path for file in files if file.then.verdict != FAILS}
    paths = [file.path for file in files]
    out = []
    for file in files:
        name = chosen_for_cuda(package, file.path, paths, cuda, environ)
        place = os.path.join(os.path.dirname(file.path), name or "")
        other = name is not None and place != file.path and place in loading
        out.append(replace(file, replaced_by=name) if other else file)
    return out


def installed_distributions(site_dirs: Sequence[str]) -> Iterator[Distribution]:
    """Every installed distribution once, as Python would find it; torch itself aside.

    Requirements that hold on other systems only are left out.
    """
    seen = {"torch"}
    for site in site_dirs:
        for info in info_directories(site):
            found = read_distribution(info)
            if found is not None and normalized(found.name) not in seen:
                seen.add(normalized(found.name))
                held = tuple(text for text in found.requires if not _ELSEWHERE.search(text))
                yield replace(found, requires=held)


def _package(
    distribution: Distribution,
    files: Sequence[FileChange],
    torch: JudgedTorch,
    environment: Environment,
) -> PackageChange:
    facts = next((f.then.releases for f in files if f.then.releases is not None), None)
    requires = torch_requirement(distribution.requires)
    change = PackageChange(
        name=distribution.name,
        version=distribution.version,
        requires=requires,
        files=tuple(files),
        links="" if facts is None else facts.package_text,
    )
    if not change.breaks:
        return change
    notes, commands = _remedy(distribution, torch, environment)
    return PackageChange(
        change.name, change.version, requires, change.files, change.links, notes, commands
    )


def _remedy(
    distribution: Distribution, torch: JudgedTorch, environment: Environment
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the metadata says, and how to get a build for the other torch."""
    name, version = distribution.name, distribution.version
    row = row_of(name)
    wanted = torch_requirement(distribution.requires)
    notes = []
    if wanted:
        notes.append(f"Its metadata asks for torch{wanted}.")
    if excludes(distribution.requires, torch.release or ""):
        # Its other releases ask for other torches: pip finds the one that goes with the new torch.
        pinned = torch_pin(distribution.requires) is not None
        if pinned:
            notes.append(f"Each release of {name} goes with one torch; pip chooses by that pin.")
        else:
            notes.append(f"Asked for both, pip takes a release of {name} that allows this torch.")
        return tuple(notes), (_pip(environment, f'install "torch=={_pinnable(torch)}" {name}'),)
    does = rebuild_does(name, row, f"torch {torch.version}")
    notes.append(f"Once torch {torch.version} is installed, the command {does}.")
    return tuple(notes), (rebuild_command(environment.python, name, version, row),)


def _together(pins: Sequence[Pin], torch: JudgedTorch, environment: Environment) -> tuple[str, ...]:
    """One command that asks pip for releases of all that exclude a torch, to go with it."""
    if not pins or torch.judged_by == "installed":
        return ()
    names = " ".join(shlex.quote(pin.name) for pin in pins)
    return (_pip(environment, f'install --dry-run "torch=={_pinnable(torch)}" {names}'),)


def _pip(environment: Environment, arguments: str) -> str:
    return f"{shlex.quote(environment.python)} -m pip {arguments}"


def _pinnable(torch: JudgedTorch) -> str:
    """The version as pip finds it on the package index: without the local part."""
    return torch.release or torch.version.partition("+")[0]


def _pin(distribution: Distribution, release: str | None, here: str | None) -> Pin | None:
    """The metadata's own word against a release, where it is clear."""
    wanted = torch_requirement(distribution.requires)
    if not wanted or release is None or _allows(distribution, wanted, release) is not False:
        return None
    return Pin(
        distribution.name,
        distribution.version,
        wanted,
        distribution.metadata_path,
        already=here is not None and _allows(distribution, wanted, here) is False,
    )


def _allows(distribution: Distribution, wanted: str, release: str) -> bool | None:
    pinned = torch_pin(distribution.requires)
    if pinned is not None and "+" in pinned:  # a local version: its release decides
        return release_of(pinned) == release
    return satisfies(release, wanted)


def _python_notes(
    pythons: Sequence[str], torch: JudgedTorch, environment: Environment
) -> tuple[str, ...]:
    """One sentence where no wheel of that torch is for the environment's Python."""
    if not pythons or environment.version_short in pythons:
        return ()
    return (
        f"torch {torch.release} was not published for Python {environment.version_short}, only "
        f"for {', '.join(pythons)}: pip will not install it here.",
    )
