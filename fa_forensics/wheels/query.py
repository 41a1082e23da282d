"""The official wheels for a situation, and the ways out where there is none."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from fa_forensics.facts.build_machine import jobs, read_build_machine
from fa_forensics.facts.flash_limits import limits_of
from fa_forensics.facts.numbers import release_numbers
from fa_forensics.facts.wheel_matrix import (
    PACKAGE,
    Wanted,
    WheelBuild,
    as_of,
    builds,
    candidates,
    newest_release,
)
from fa_forensics.report import Evidence, Finding
from fa_forensics.report_wheels import (
    CONDA_FORGE,
    OTHER_TORCH,
    SOURCE,
    Candidate,
    Way,
    WheelQuery,
)
from fa_forensics.rules.gpu_remedy import Build, rebuild
from fa_forensics.rules.remedy import rebuild_command, row_of
from fa_forensics.rules.wheel_gpus import gpu_cautions
from fa_forensics.wheels.situation import Situation

#: How many other torch releases are offered.
_OFFERED = 2

#: Wheels that are told one by one where all are ruled out.
_TOLD = 2

#: What a build without isolation needs to be there already (flash-attn's setup.py).
_BUILD_TOOLS = "einops ninja packaging setuptools wheel"


def query(situation: Situation) -> WheelQuery:
    """The wheels for a situation, newest first; findings and ways out where there is none."""
    reason = _no_wheel_for(situation)
    found = () if reason is not None else candidates(situation.wanted)
    offered = tuple(candidate(build, situation) for build in found)
    possible = [one for one in offered if not one.blocked]
    unflawed = [one for one in possible if not one.cautions]
    # In the wrong flavour a wheel does not load: one is not picked where it is not known.
    best = next(iter(unflawed or possible), None) if situation.flavour else None
    findings: tuple[Finding, ...] = ()
    ways: tuple[Way, ...] = ()
    if not possible:
        findings = (_none(situation, reason, offered),)
        ways = tuple(_ways(situation))
    elif best is not None and best.cautions:
        ways = tuple(_ways(situation))
    return WheelQuery(
        package=PACKAGE,
        wanted=_wanted_view(situation),
        candidates=offered,
        best=best,
        as_of=as_of(),
        findings=findings,
        ways=ways,
        notes=tuple(_own_build(situation)),
        unknown=situation.unknown,
    )


def candidate(build: WheelBuild, situation: Situation) -> Candidate:
    """A row of the matrix with what speaks against it here."""
    blocks = tuple(_blocks(build, situation))
    return Candidate(
        release=build.release,
        date=build.date,
        file_name=build.file_name,
        url=build.url,
        torch=build.torch,
        torch_built=build.torch_built,
        cuda=build.cuda,
        cuda_built=build.cuda_built,
        cxx11_abi=build.cxx11_abi,
        python=build.python,
        platform=build.platform,
        nightly=build.nightly,
        glibc=build.glibc,
        blocked=bool(blocks),
        cautions=(*blocks, *_doubts(build)),
        command=f'{shlex.quote(situation.command)} -m pip install "{build.url}"',
    )


def _blocks(build: WheelBuild, situation: Situation) -> Iterator[str]:
    """Why a wheel cannot work here, though it is for this torch."""
    if situation.gpus.source != "all":
        yield from gpu_cautions(build, situation.gpus.gpus)
    needs, here = build.glibc, situation.glibc
    if needs is not None and here is not None and release_numbers(needs) > release_numbers(here):
        yield f"it needs glibc {needs}, this machine has {here}"


def _doubts(build: WheelBuild) -> Iterator[str]:
    """Why a wheel may not load, or may not exist."""
    if build.nightly:
        yield (
            f"it was built on the nightly torch {build.torch_built}, before torch {build.torch} "
            "was released, and may not load on that"
        )
    if build.mislabelled:
        yield (
            f"it is called cxx11abiFALSE, and the file in it is cxx11: it was built on a cxx11 "
            f"torch {build.torch}, and does not load on a pre-cxx11 one"
        )
    if build.unlikely:
        yield (
            f"torch {build.torch} was never published for CUDA {build.cuda_major}, so that this "
            "build most likely failed and the file does not exist"
        )


def _no_wheel_for(situation: Situation) -> str | None:
    """What no official wheel is made for, whatever the versions; None where some may be."""
    if situation.torch is None:
        return "no torch is known to look for"
    if situation.rocm:
        return "official wheels are for CUDA, and this torch is built for ROCm"
    if situation.cuda == "":
        return f"torch {situation.torch_version or situation.torch} is built without CUDA"
    if situation.host.abiflags == "t":
        return "official wheels are not made for the free-threaded Python"
    if situation.host.implementation != "cpython":
        return f"official wheels are made for CPython, not for {situation.host.implementation}"
    if situation.host.libc == "musl":
        return "official wheels are made for glibc, this Python runs on musl"
    return None


def _none(situation: Situation, reason: str | None, offered: tuple[Candidate, ...]) -> Finding:
    """FA849: no official wheel is for this environment, and which part of it is the reason."""
    verb = "works with" if offered else "is for"
    texts = [reason] if reason else _reasons(situation)
    if offered:
        texts = [f"{one.file_name}: {one.cautions[0]}" for one in offered[:_TOLD]]
        if len(offered) > _TOLD:
            texts.append(f"the other {len(offered) - _TOLD} are ruled out too (--all lists them)")
    return Finding(
        code="FA849",
        severity="error",
        confidence="high",
        title=f"no official {PACKAGE} wheel {verb} {_place(situation)}",
        evidence=tuple(Evidence(text) for text in texts),
        notes=(f"The build matrices of all releases until {newest_release()} were looked at.",),
    )


def _place(situation: Situation) -> str:
    parts = [f"torch {situation.torch_version or situation.torch or '(none)'}"]
    parts.append(f"Python {situation.python}{situation.host.abiflags}")
    if situation.cuda:
        parts.append(f"CUDA {situation.cuda}")
    if situation.flavour:
        parts.append(situation.flavour)
    return ", ".join([*parts, situation.platform])


def _reasons(situation: Situation) -> list[str]:
    """Which single part of the situation no wheel goes with, the others given."""
    wanted = situation.wanted
    labels = {"torch": "torch", "python": "Python", "cuda": "CUDA", "cxx11_abi": "the flavour",
              "platform": "the platform"}  # fmt: skip
    reasons = []
    for field, label in labels.items():
        mine = getattr(wanted, field)
        if mine is None:
            continue
        everywhere = candidates(Wanted(None, None, None, None, None)._replace(**{field: mine}))
        others = candidates(wanted._replace(**{field: None}))
        name = "cuda_major" if field == "cuda" else field
        has = sorted({str(getattr(build, name)) for build in others}, key=release_numbers)
        if not everywhere:
            known = sorted({str(getattr(build, name)) for build in builds()}, key=release_numbers)
            reasons.append(f"none is for {label} {mine}: they are for {', '.join(known)}")
        elif has:
            reasons.append(f"with all else the same there are wheels for {label} {', '.join(has)}")
    return reasons or ["no release was built for this combination"]


def _ways(situation: Situation) -> Iterator[Way]:
    """Another torch that has a wheel, the conda-forge build, a build from source."""
    if situation.environment.is_conda and situation.own_python:
        yield Way(
            CONDA_FORGE,
            "this is a conda environment, and conda-forge has builds of its own, for its own torch",
            ("conda may change torch too: it shows what it would do before it does it.",),
            (f"conda install -c conda-forge {PACKAGE} --dry-run",
             f"conda install -c conda-forge {PACKAGE}"),
        )  # fmt: skip
    yield from _other_torches(situation)
    source = _source(situation)
    if source is not None:
        yield source


def _other_torches(situation: Situation) -> Iterator[Way]:
    """The published torch releases nearest to the one at hand that have a wheel."""
    machine = situation.host.machine
    atlas = situation.table.atlas()
    if atlas is None or situation.host.abiflags == "t" or situation.rocm:
        return
    here = release_numbers(situation.minor or "999")
    offers: dict[str, tuple[tuple[int, ...], str, Candidate]] = {}
    for build in atlas.builds(machine):
        minor = ".".join(build.release.split(".")[:2])
        if build.cuda is None or situation.python not in build.pythons:
            continue
        wanted = Wanted(minor, situation.python, build.cuda, build.flavour, situation.platform)
        for row in candidates(wanted):
            offer = candidate(row, situation)
            if not offer.cautions:
                offers[minor] = (release_numbers(minor), build.release, offer)
                break
    if situation.minor in offers and situation.cuda != "":
        del offers[situation.minor]
    nearest = sorted(offers.values(), key=lambda row: (_distance(row[0], here), row[0]))
    for _minor, release, offer in nearest[:_OFFERED]:
        yield _other_torch(situation, release, offer)


def _other_torch(situation: Situation, release: str, offer: Candidate) -> Way:
    python = shlex.quote(situation.command)
    # pip takes 2.8.0+cpu for 2.8.0 and would leave it in place.
    again = "--force-reinstall " if situation.torch == release else ""
    help_ = [f'{python} -m pip install {again}"torch=={release}"', offer.command]
    if situation.environment.torch is not None and situation.own_python:
        help_.insert(0, f"fa-forensics upgrade {release} --python {python}")
    return Way(
        OTHER_TORCH,
        f"torch {release}, as it is published, has one: {PACKAGE} {offer.release} "
        f"({offer.cuda}, {offer.cxx11_abi})",
        ("It changes torch for all other packages too; the first command says which would break."
         if len(help_) > 2 else "It changes torch for all other packages too.",),
        tuple(help_),
    )  # fmt: skip


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    size = max(len(one), len(other))
    pairs = zip(one + (0,) * size, other + (0,) * size, strict=False)
    return tuple(abs(a - b) for a, b in list(pairs)[:size])


def _source(situation: Situation) -> Way | None:
    """The build from source, with the variables that decide what it makes."""
    if situation.torch is None or situation.cuda == "" or situation.rocm:
        return None
    python = situation.command
    tools = f"{shlex.quote(python)} -m pip install {_BUILD_TOOLS}"
    row = row_of(PACKAGE)
    count = jobs(read_build_machine()) or 4
    asked = situation.gpus
    limits = limits_of(PACKAGE, newest_release(), None)
    major = f"CUDA {situation.cuda.partition('.')[0]}" if situation.cuda else "torch's CUDA version"
    notes = [
        f"It takes the nvcc of {major} and an hour or more; MAX_JOBS is what the memory and "
        "the cores of this machine bear."
    ]
    if asked.source == "all":
        variables = f"FLASH_ATTENTION_FORCE_BUILD=TRUE MAX_JOBS={count}"
        command = rebuild_command(python, PACKAGE, "", {**(row or {}), "environment": variables})
        choices = ";".join(limits[-1].arch_choices) if limits else ""
        notes.append(
            "The GPU is not known: name it with --gpu, and the command compiles for that one alone "
            f"(FLASH_ATTN_CUDA_ARCHS, of {choices}). TORCH_CUDA_ARCH_LIST has no effect on it."
        )
    else:
        advice = rebuild(Build(python, None, situation.cuda, count), limits, asked.gpus)
        notes += advice.notes
        if not advice.helps:
            return Way(SOURCE, "a build from source does not help", tuple(notes[1:]), ())
        command = advice.help[0]
    return Way(SOURCE, "a build from source, for this torch", tuple(notes), (tools, command))


def _own_build(situation: Situation) -> Iterator[str]:
    """A nightly or a vendor's torch is not what the wheels were built on."""
    version = situation.torch_version or ""
    if re.search(r"\.dev|a0|git|nv\d", version):
        yield (
            f"torch {version} is no published release: a wheel for torch {situation.minor} may not "
            "load on it; given the wheel's address, this command holds the file itself against it."
        )


def _wanted_view(situation: Situation) -> dict[str, object]:
    return {
        "torch": situation.torch,
        "torch_version": situation.torch_version,
        "python": situation.python + situation.host.abiflags,
        "cuda": situation.cuda,
        "cxx11_abi": situation.flavour,
        "platform": situation.platform,
        "glibc": situation.glibc,
        "sources": dict(situation.sources),
    }
