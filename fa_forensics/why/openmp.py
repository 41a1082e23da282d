"""A name or a version of GCC's OpenMP library that the loaded libgomp.so.1 lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.openmp_releases import gcc_of_openmp, version_of_openmp
from fa_forensics.why.commands import needed_libraries
from fa_forensics.why.judgement import NEWER, UNKNOWN, Judgement

KIND, CODE = "versioned-symbol", "FA204"

_CONDA = re.compile(r"conda|/envs/|mamba|miniforge")
#: Every libgomp that is there, with the newest versions that it defines.
_COPIES = (
    "for f in $(ldconfig -p | grep -o '/.*libgomp.so.1$') $CONDA_PREFIX/lib/libgomp.so.1; do "
    "readlink -f $f; strings $f | grep -E '^G?(OMP|OACC)_[0-9.]+$' | sort -V | tr '\\n' ' '; done"
)
_MUTEX = 'conda install -c conda-forge "_openmp_mutex=*=*_gnu" libgomp'


def openmp_name(name: str, needed_by: Sequence[str]) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) on a name such as ``GOMP_parallel`` that nobody exports."""
    version = version_of_openmp(name)
    gcc = gcc_of_openmp(version) if version else None
    cause = f"{name} belongs to GCC's OpenMP library, libgomp.so.1"
    if gcc is None:
        cause += (
            ": that library is not loaded, because the file was linked without -fopenmp, or "
            "another OpenMP library took its place."
        )
        return Judgement(KIND, CODE, UNKNOWN, cause, (), "medium"), (needed_libraries(needed_by),)
    cause += (
        f", since GCC {gcc} ({version}). Two causes fit: the libgomp.so.1 that is loaded is older "
        "than the compiler that built the file (a system's, or one that came first on "
        "LD_LIBRARY_PATH), or the file was linked without -fopenmp and lists no libgomp at all."
    )
    notes = (
        "The first command shows what each libgomp here has; a newer one comes with the "
        "libgomp package of a newer GCC, which conda has as libgomp.",
    )
    commands = (_COPIES, needed_libraries(needed_by))
    return Judgement(KIND, CODE, NEWER, cause, notes, "medium"), commands


def openmp_version(version: str, library: str, requirer: str) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) on ``libgomp.so.1: version `OACC_2.0' not found``."""
    gcc = gcc_of_openmp(version)
    what = f"{requirer} needs {version}"
    what += f", which GCC's own libgomp has since GCC {gcc}." if gcc else " of GCC's libgomp."
    conda = _CONDA.search(library) is not None
    accelerators = version.startswith(("OACC_", "GOACC_"))
    stand_in = (
        "it is LLVM's OpenMP library under that name, as conda installs it where _openmp_mutex has "
        "an llvm build"
    )
    older = f"it is of a GCC before {gcc}" if gcc else "it is of an older GCC"
    whole = f"The {library} that is loaded lacks it"
    if conda and accelerators:
        cause = f"{what} {whole}: {stand_in}, and that has nothing of OpenACC."
    elif conda:
        cause = f"{what} {whole}. Two causes fit: {stand_in}, or {older}."
    else:
        cause = f"{what} {whole}: {older}, or LLVM's OpenMP library under that name."
    notes = (
        "The file that the first command prints for it tells: libomp.so or libiomp5.so is LLVM's "
        "or Intel's, libgomp.so.1.0.0 is GCC's.",
    )
    commands = (_COPIES, _MUTEX) if conda else (_COPIES,)
    return Judgement(KIND, CODE, UNKNOWN if conda else NEWER, cause, notes, "medium"), commands
