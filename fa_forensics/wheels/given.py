"""A wheel that was given, judged before it is installed: its name, its metadata, its content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.facts.owner import is_cuda_library, is_torch, owner_of_library
from fa_forensics.facts.package import build_tags, find_distribution
from fa_forensics.facts.remote import file_name_of, is_url, shown_address
from fa_forensics.facts.targets import Targets, find_targets
from fa_forensics.facts.wheel import Wheel, open_wheel, parse_file_name
from fa_forensics.facts.wheel_matrix import build_of
from fa_forensics.pipeline import Options, inspect_found
from fa_forensics.records import dataclass
from fa_forensics.report import FAILS, INCONCLUSIVE, NO_GPU_CODE, TargetReport
from fa_forensics.report_env import COULD_NOT_LOOK, NOTE, OK, WRONG
from fa_forensics.report_wheels import (
    ADDRESS,
    CANNOT_SAY,
    DOES_NOT_FIT,
    FILE,
    FITS,
    NAME,
    Candidate,
    Check,
    JudgedWheel,
)
from fa_forensics.rules.wheel_content import content_checks, settled
from fa_forensics.rules.wheels import Place, WheelClaims, label_checks
from fa_forensics.wheels.query import candidate
from fa_forensics.wheels.situation import Situation


@dataclass(frozen=True, slots=True)
class _Content:
    """What was read of a wheel: its metadata, its extensions, or why not."""

    wheel: Wheel | None = None
    targets: tuple[TargetReport, ...] = ()
    checks: tuple[Check, ...] = ()
    size: int | None = None
    received: int | None = None
    problem: ForensicsError | None = None


def judge_given(
    given: str, situation: Situation, content: bool | None, timeout_s: float
) -> JudgedWheel:
    """Judge one wheel. What cannot be read becomes its ``problem``; nothing is raised for it."""
    place = Place(
        situation.host, situation.torch, situation.cuda, situation.flavour, situation.glibc
    )
    if is_url(given):
        kind, file_name = ADDRESS, file_name_of(given)
        read = _from_address(given, situation, place, content, timeout_s)
        with suppress(UsageError):  # one that is no address is shown as it was given
            given = shown_address(given)
    elif os.path.lexists(given) or "/" in given:
        kind, file_name = FILE, os.path.basename(given)
        read = _from_file(given, situation, content)
    else:
        kind, file_name = NAME, given
        said = "only its name was given, so what is in it could not be looked at"
        read = _Content(checks=(Check("content", COULD_NOT_LOOK, said),))
    claims = _claims(file_name, read.wheel)
    checks = [settled(check, read.targets) for check in label_checks(claims, place)]
    checks += content_checks(claims, place, read.targets)
    checks += [_content_line(target) for target in read.targets]
    checks += read.checks
    verdict, headline = _verdict(checks, read, kind)
    official = candidate(claims.official, situation) if claims.official is not None else None
    return JudgedWheel(
        given=given,
        kind=kind,
        name=claims.name,
        version=claims.version,
        verdict=verdict,
        headline=headline,
        checks=tuple(checks),
        targets=read.targets,
        official=official,
        size=read.size,
        received=read.received,
        help=_help(kind, verdict, official, situation),
        problem=read.problem.message if read.problem is not None else None,
        hint=read.problem.hint if read.problem is not None else None,
    )


def _claims(file_name: str, wheel: Wheel | None) -> WheelClaims:
    name, version, _build, python_tags, abi_tags, platform_tags = parse_file_name(file_name)
    return WheelClaims(
        name=name,
        version=version,
        python_tags=python_tags,
        abi_tags=abi_tags,
        platform_tags=platform_tags,
        labels=build_tags(version),
        official=build_of(file_name),
        metadata_tags=wheel.wheel_tags if wheel is not None else None,
        requires_python=wheel.requires_python if wheel is not None else None,
        requires=wheel.requires if wheel is not None else (),
        metadata_version=wheel.version if wheel is not None else None,
    )


def _from_file(path: str, situation: Situation, content: bool | None) -> _Content:
    try:
        wheel = open_wheel(path)
        size = os.path.getsize(path)
    except ForensicsError as error:
        return _Content(problem=error)
    if content is False:
        return _Content(wheel, checks=(_unread("it was not asked for"),), size=size)
    hollow = tuple(map(_not_elf, wheel.not_elf))
    if not wheel.extensions:
        return _Content(wheel, checks=hollow or (_no_extension(wheel),), size=size)
    try:
        with find_targets(path, situation.environment.site_dirs) as targets:
            reports, checks = _inspected(path, targets, situation)
            return _Content(wheel, reports, (*checks, *hollow), size=size)
    except ForensicsError as error:
        return _Content(wheel, size=size, problem=error)


def _from_address(
    url: str, situation: Situation, place: Place, content: bool | None, timeout_s: float
) -> _Content:
    from fa_forensics.facts.remote_wheel import RemoteWheel

    refused = any(
        check.finding is not None and check.finding.code == "FA840"
        for check in label_checks(_claims(file_name_of(url), None), place)
    )
    with ExitStack() as stack:
        try:
            remote = stack.enter_context(RemoteWheel(url, timeout_s))
        except ForensicsError as error:
            return _Content(problem=error)
        read = _Content(remote.wheel, size=remote.size, received=remote.received)
        if content is False:
            return replace(read, checks=(_unread("it was not asked for"),))
        if not remote.wheel.extensions:
            return replace(read, checks=(_no_extension(remote.wheel),))
        if content is None and refused:
            said = "its tags rule it out already (--content reads it all the same)"
            return replace(read, checks=(_unread(said),))
        try:
            targets = stack.enter_context(remote.targets())
            reports, checks = _inspected(remote.shown, targets, situation)
        except ForensicsError as error:
            return replace(read, received=remote.received, problem=error)
        return replace(read, targets=reports, checks=checks, received=remote.received)


def _inspected(
    name: str, targets: Targets, situation: Situation
) -> tuple[tuple[TargetReport, ...], tuple[Check, ...]]:
    """Its extensions judged as ``inspect`` does, never loaded."""
    if targets.targets:
        # The files of a package are loaded by it, in its own order.
        targets.package = find_distribution(targets.targets[0].path, ())
    options = Options(confirm=False, torch=situation.requests, gpu=situation.gpu_words)
    report = inspect_found([(name, targets)], situation.environment, options)
    notes = tuple(Check("content", NOTE, note) for note in targets.notes)
    return report.targets, notes


def _unread(reason: str) -> Check:
    return Check("content", COULD_NOT_LOOK, f"what is in it was not read: {reason}")


def _not_elf(member: str) -> Check:
    """A file that is named as one that is loaded, and is none."""
    return Check("content", COULD_NOT_LOOK, f"{member} is no ELF file: nothing can load it")


def _no_extension(wheel: Wheel) -> Check:
    if wheel.foreign:
        return Check("content", NOTE, f"it holds libraries of another system ({wheel.foreign[0]})")
    return Check("content", NOTE, "it holds no extension, so that it links with any torch")


def _content_line(target: TargetReport) -> Check:
    """One extension in one line: what ``inspect`` says of it."""
    name = (target.member or target.path).rpartition("/")[2]
    if target.verdict == FAILS and (lacking := _system_libraries(target)):
        text = f"{name} asks for {', '.join(lacking)} of the system, which is not here"
        return Check(_OPTIONAL, NOTE, text)
    text = f"{name}: {target.headline}"
    if target.verdict in (FAILS, NO_GPU_CODE):
        return Check("content", WRONG, text)
    if target.verdict == INCONCLUSIVE:
        return Check("content", COULD_NOT_LOOK, text)
    errors = any(finding.severity == "error" for finding in target.findings)
    return Check("content", WRONG if errors else OK, text)


#: What a wheel's files ask of the system, and is no question of torch, CUDA or Python.
_OPTIONAL = "system"


def _system_libraries(target: TargetReport) -> tuple[str, ...]:
    """The libraries that are missing, where nothing else is wrong and all are the system's."""
    if any(f.severity == "error" and f.code not in ("FA202", "FA207") for f in target.findings):
        return ()
    missing = [str(row["soname"]) for row in _libraries(target) if row["path"] is None]
    if any(is_torch(owner_of_library(name) or "") or is_cuda_library(name) for name in missing):
        return ()
    return tuple(missing)


def _libraries(target: TargetReport) -> list[dict[str, str | None]]:
    rows = (target.elf or {}).get("libraries")
    return list(rows) if isinstance(rows, list) else []


def _verdict(checks: Sequence[Check], read: _Content, kind: str) -> tuple[str, str]:
    """The verdict and one sentence on it."""
    if read.problem is not None and read.wheel is None:
        return CANNOT_SAY, read.problem.message
    wrong = [c for c in checks if c.finding is not None and c.finding.severity == "error"]
    wrong = wrong or [c for c in checks if c.subject == "content" and c.state == WRONG]
    if wrong:
        return DOES_NOT_FIT, f"it does not fit here: {wrong[0].text}"
    if read.problem is not None:
        return CANNOT_SAY, read.problem.message
    unsure = [check for check in checks if check.state == COULD_NOT_LOOK]
    if kind == NAME:
        return CANNOT_SAY, f"nothing in its name speaks against it; {unsure[-1].text}"
    if not read.targets and unsure:
        return CANNOT_SAY, unsure[-1].text
    if any(check.subject == "content" for check in unsure):
        return CANNOT_SAY, next(c.text for c in unsure if c.subject == "content")
    lacking = sum(check.subject == _OPTIONAL for check in checks)
    if read.targets and lacking == len(read.targets):
        return DOES_NOT_FIT, "it does not fit here: each of its files asks for a missing library"
    cautions = sum(check.state == WRONG for check in checks)
    text = "it fits this environment"
    if cautions:
        text += f", with {cautions} caution{'s' if cautions > 1 else ''}"
    if lacking:
        files = f"{lacking} of its files ask" if lacking > 1 else "1 of its files asks"
        text += f"; {files} for libraries of the system that are not here"
    return FITS, text


def _help(
    kind: str, verdict: str, official: Candidate | None, situation: Situation
) -> tuple[str, ...]:
    """What to type next: read what was not read, or find the wheel that does fit."""
    if kind == NAME and official is not None and verdict == CANNOT_SAY:
        return (f'fa-forensics wheels --python {situation.command} "{official.url}"',)
    if verdict == DOES_NOT_FIT and official is not None:
        return (f"fa-forensics wheels --python {situation.command}",)
    return ()
