"""FA6xx: the environment's libraries: which torch, which CUDA."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_FILE, Context, Judged
from fa_forensics.rules.groups import cuda_major_of, library_causes
from fa_forensics.rules.link import library_rank, needed_by
from fa_forensics.rules.remedy import (
    build_for_this_torch,
    built_for_torch,
    metadata_note,
    pip,
    torch_for_the_file,
)


def cpu_only_torch(ctx: Context) -> Sequence[Judged]:
    """FA601: torch here was built without CUDA, the file needs torch's CUDA libraries."""
    libraries = library_causes(ctx).cpu_only
    torch = ctx.environment.torch if ctx.environment else None
    if not libraries or torch is None:
        return ()
    other = f" (it was built for ROCm {torch.hip})" if torch.hip else ""
    wanted = built_for_torch(ctx)
    release = wanted[0] if wanted and wanted[0].count(".") >= 2 else torch.release
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
            *metadata_note(ctx),
        ),
        help=(*torch_for_the_file(ctx), *build_for_this_torch(ctx)),
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
    what = f"it needs {misses[0].soname}, which is not found" if misses else problems[0]
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
        help=(pip(ctx, f'install --force-reinstall --no-cache-dir "torch=={torch.release}"'),),
    )
    return (Judged(RANK_FILE + 1, finding),)
