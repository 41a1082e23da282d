"""The part of the maintainer's command that reads nvidia-* wheels and writes their tables.

python -m fa_forensics.atlas.build cuda                              whatever is missing
python -m fa_forensics.atlas.build cuda nvidia-nccl-cu12             of one project
python -m fa_forensics.atlas.build cuda nvidia-nccl-cu12==2.32.3     one wheel
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fa_forensics.atlas.build import cuda_wheel
from fa_forensics.atlas.build.cuda_wheel import newest_of_each_minor, published, settings
from fa_forensics.atlas.build.index import IndexFailure, WheelFile, choose_wheel, list_wheels
from fa_forensics.atlas.build.progress import Progress, concurrently
from fa_forensics.atlas.build.records import load_record, store_record
from fa_forensics.errors import EXIT_NOT_ANALYSED, EXIT_OK, ForensicsError, UsageError


class Job(NamedTuple):
    """One wheel to read; ``sample``: without its large members (``cuda.wheels.json``)."""

    file: WheelFile
    sample: bool

    @property
    def name(self) -> str:
        """The way pip writes it, ``nvidia-nccl-cu12==2.20.5``."""
        return f"{self.file.project}=={self.file.version}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the sub-command ``cuda`` takes beside the common options."""
    parser.add_argument(
        "wheels", nargs="*", metavar="PROJECT[==VERSION]", help="only these, large members too"
    )


def run(options: argparse.Namespace) -> int:
    """Read the wheels that are wanted and not there yet, then write the tables.

    Exit code 3 when some wheel could not be understood; the others are in the tables.
    """
    jobs = _plan(tuple(options.wheels), options.data)
    folder = os.path.join(options.records, "cuda")
    failed = _read([job for job in jobs if not _at_hand(folder, job)], folder)
    for name, reason in failed:
        print(f"error: {name} was left out: {reason}", file=sys.stderr)
    wanted = [cuda_wheel.record_path(folder, j.file.project, j.file.version) for j in jobs]
    _compile([path for path in wanted if os.path.exists(path)], options.data, keep=True)
    return EXIT_NOT_ANALYSED if failed else EXIT_OK


def compile_all(options: argparse.Namespace) -> int:
    """Write the tables from all records at hand; returns how many there are."""
    folder = os.path.join(options.records, "cuda")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names if name.endswith(".json.xz")]
    if paths:
        _compile(paths, options.data, keep=not options.fresh)
    return len(paths)


def missing(data: str) -> list[str]:
    """One line for each published wheel that the tables in ``data`` lack. Raises IndexFailure."""
    return [f"{job.name}: missing" for job in _plan((), data)]


def _plan(wanted: Sequence[str], data: str) -> list[Job]:
    """The wheels to read: the wanted ones, or all that the tables lack, by importance."""
    known = {row["name"]: row for row in settings()["distributions"]}
    if wanted:
        return [job for text in wanted for job in _asked_for(text, known)]
    shipped, pinned = _shipped(data), _pinned(data)
    jobs = []
    for name, row in known.items():
        there = published(name)
        whole = newest_of_each_minor(there) if row.get("sample") else set(there)
        for version, file in reversed(there.items()):
            sample = version not in whole and (name, version) not in pinned
            if not shipped.get((name, version), False) and not (
                sample and (name, version) in shipped
            ):
                jobs.append(Job(file, sample))
    return jobs


def _asked_for(text: str, known: Iterable[str]) -> list[Job]:
    name, _, version = text.partition("==")
    if name not in known:
        raise UsageError(
            f"{name} is none of the projects in cuda.wheels.json",
            "Add it there first, with its CUDA line.",
        )
    if version:
        return [Job(choose_wheel(list_wheels(name, cuda_wheel.MACHINE), version), False)]
    return [Job(file, False) for file in published(name).values()]


def _at_hand(folder: str, job: Job) -> bool:
    path = cuda_wheel.record_path(folder, job.file.project, job.file.version)
    if not os.path.exists(path):
        return False
    return job.sample or bool(load_record(path)["complete"])


def _read(jobs: Sequence[Job], folder: str) -> list[tuple[str, str]]:
    """Write the record of each wheel; returns (name, reason) of those that make no sense.

    Raises IndexFailure when the index fails; what was finished is kept.
    """
    rules: dict[str, Any] = settings()
    progress, failed = Progress(len(jobs)), []

    def work(job: Job) -> None:
        progress.start(job.name)
        try:
            record = cuda_wheel.read_wheel(
                job.file,
                rules["never"],
                rules["sample_above"] if job.sample else None,
                lambda count: progress.add(job.name, count),
            )
            path = cuda_wheel.record_path(folder, record["distribution"], record["version"])
            store_record(path, record)
        except IndexFailure:
            raise
        except ForensicsError as error:
            failed.append((job.name, error.message))
        progress.done(job.name)

    concurrently(jobs, work, progress)
    return failed


def _compile(paths: Sequence[str], data: str, keep: bool) -> None:
    from fa_forensics.atlas.build.compile_cuda import compile_cuda

    made = compile_cuda(map(load_record, paths), data, keep)
    print(
        f"{data}: {made.wheels} wheels of NVIDIA, {made.names:,} names, {made.size:,} bytes",
        file=sys.stderr,
    )


def _shipped(data: str) -> dict[tuple[str, str], bool]:
    """(project, version) → complete, of each wheel in the tables; empty without tables."""
    from fa_forensics.atlas.libraries import CudaLibraries

    if not os.path.exists(os.path.join(data, "cuda.json")):
        return {}
    return {(w.distribution, w.version): w.complete for w in CudaLibraries.open(data).wheels()}


def _pinned(data: str) -> set[tuple[str, str]]:
    """(project, version) of what the torch releases in the tables require."""
    from fa_forensics.atlas.store import Atlas

    if not os.path.exists(os.path.join(data, "torch.json")):
        return set()
    builds = Atlas.open(data).all_builds()
    return {pin for build in builds for pin in build.requires.items()}
