"""FA6xx: the environment's libraries: which torch, which CUDA."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.package import satisfies, torch_requirement
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_FILE, RANK_NONE, Context, Judged
from fa_forensics.rules.evidence import needed_by
from fa_forensics.rules.groups import cuda_major_of, library_causes
from fa_forensics.rules.link import library_rank
from fa_forensics.rules.remedy import (
    built_for_torch,
    metadata_note,
    pip,
    remedies,
    remedy_notes,
    wanted_torch,
)


def cpu_only_torch(ctx: Context) -> Sequence[Judged]:
    """FA601: torch here was built without CUDA, the file needs torch's CUDA libraries."""
    libraries = library_causes(ctx).cpu_only
    torch = ctx.environment.torch if ctx.environment else None
    if not libraries or torch is None:
        return ()
    other = f" (it was built for ROCm {torch.hip})" if torch.hip else ""
    wanted = wanted_torch(ctx)
    release = wanted[0] if wanted and wanted[0].count(".") >= 2 else torch.release
    links = (ctx.releases.package_links or ctx.releases.links_with) if ctx.releases else ()
    if torch.release in links and built_for_torch(ctx) is None:
        release = torch.release  # the same one with CUDA serves it, and all other packages
    finding = Finding(
        code="FA601",
        severity="error",
        confidence="high",
        title=f"torch {torch.version} has no CUDA{other}; the file needs a CUDA build of torch",
        evidence=(
            *(needed_by(library) for library in libraries),
            Evidence("no libc10_cuda.so, no libtorch_cuda.so", torch.lib_dir),
        ),
        notes=(
            "The GPU driver plays no part in this: the libraries would come with a CUDA build "
            "of torch.",
            *metadata_note(ctx),
        ),
        help=(pip(ctx, f'install --force-reinstall --no-cache-dir "torch=={release}"'),),
    )
    return (Judged(library_rank(ctx, libraries[0]), finding),)


def other_cuda_major(ctx: Context) -> Sequence[Judged]:
    """FA602: the file needs the CUDA runtime of another major version than torch brings."""
    libraries = library_causes(ctx).cuda_major
    torch = ctx.environment.torch if ctx.environment else None
    if not libraries or torch is None:
        return ()
    major = cuda_major_of(libraries[0].soname)
    finding = Finding(
        code="FA602",
        severity="error",
        confidence="high",
        title=f"the file was built with CUDA {major}, "
        f"torch {torch.version} brings CUDA {torch.cuda}",
        evidence=tuple(needed_by(library) for library in libraries),
        notes=(
            "A library's major version is in its name, so one major cannot stand in for another; "
            "a torch and its extensions must be built with the same one.",
            *remedy_notes(ctx),
        ),
        help=remedies(ctx),
    )
    return (Judged(library_rank(ctx, libraries[0]), finding),)


def broken_torch(ctx: Context) -> Sequence[Judged]:
    """FA603: torch itself would not import: libraries that it needs are not found."""
    if ctx.resolution is None or ctx.environment is None or ctx.environment.torch is None:
        return ()
    misses = ctx.resolution.torch_misses
    problems = ctx.resolution.problems
    if not misses and not problems:
        return ()
    torch = ctx.environment.torch
    what = problems[0] if not misses else f"it needs {misses[0].soname}, which is not found"
    if misses and misses[0].problem is not None:
        what = misses[0].problem
    finding = Finding(
        code="FA603",
        severity="error",
        confidence="high" if misses else "medium",
        title=f"torch {torch.version} here cannot be imported itself: {what}",
        evidence=(
            *(needed_by(miss) for miss in misses),
            *(Evidence(problem, torch.path) for problem in problems),
        ),
        notes=("Until torch imports, no extension of it can.",),
        help=_torch_cure(ctx, what, torch.release),
    )
    return (Judged(RANK_FILE + 1, finding),)


def _torch_cure(ctx: Context, what: str, release: str) -> tuple[str, ...]:
    """Take away the variable that puts a library in front, else torch again, whole."""
    for variable in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        if f"({variable})" in what:
            return (f"unset {variable}", f"{ctx.python_command} -c 'import torch'")
    return (pip(ctx, f'install --force-reinstall --no-cache-dir "torch=={release}"'),)


def second_cuda_runtime(ctx: Context) -> Sequence[Judged]:
    """FA605: the file would load another CUDA major version's runtime beside torch's."""
    torch = ctx.environment.torch if ctx.environment else None
    if torch is None or torch.cuda is None or ctx.resolution is None:
        return ()
    major = torch.cuda.split(".")[0]
    others = [
        library
        for library in ctx.resolution.libraries
        if library.path is not None and cuda_major_of(library.soname) not in (None, major)
    ]
    if not others:
        return ()
    finding = Finding(
        code="FA605",
        severity="warning",
        confidence="medium",
        title=f"the file was built with CUDA {cuda_major_of(others[0].soname)} and would load its "
        f"libraries beside those of torch's CUDA {torch.cuda}",
        evidence=tuple(
            Evidence(f"found {lib.soname} by {lib.found_by}", lib.path) for lib in others
        ),
        notes=(
            "Each CUDA runtime in a process keeps its own state; a build for torch's CUDA is the "
            "safe one.",
        ),
    )
    return (Judged(RANK_NONE, finding),)


def unmet_requirement(ctx: Context) -> Sequence[Judged]:
    """FA606: the file's own package asks for another torch than the one installed."""
    torch = ctx.environment.torch if ctx.environment else None
    if torch is None or ctx.distribution is None or ctx.missing or ctx.missing_libraries:
        return ()  # where something is missing, the findings on that say it all
    wanted = torch_requirement(ctx.distribution.requires)
    if not wanted or satisfies(torch.release, wanted) is not False:
        return ()
    finding = Finding(
        code="FA606",
        severity="note",
        confidence="high",
        title=f"{ctx.distribution.name} {ctx.distribution.version} asks for torch{wanted}, "
        f"{'this environment has' if ctx.asked is None else 'it is judged against'} "
        f"{torch.version}",
        evidence=(Evidence(f"Requires-Dist: torch{wanted}", ctx.distribution.metadata_path),),
        notes=("The symbols decide whether the file loads; its package is not tested with this.",),
    )
    return (Judged(RANK_NONE, finding),)
