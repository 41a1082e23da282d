"""A name or a version of GCC's OpenMP library that the loaded libgomp.so.1 lacks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fa_forensics.facts.openmp_releases import gcc_of_openmp, version_of_openmp
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import NEWER, UNKNOWN, Judgement
from fa_forensics.why.ways.commands import needed_libraries

KIND, CODE = "versioned-symbol", "FA204"

_CONDA = lazily(r"conda|/envs/|mamba|miniforge")
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


#: The copy that torch's wheels and libtorch bring, as auditwheel renames it or not.
_BUNDLED = lazily(r"(?:^|/)(?:torch|libtorch)/lib/libgomp(?P<hash>-[0-9a-f]{8})?\.so")


def _versions_of(library: str) -> str:
    """The versions of OpenMP that one copy defines."""
    file = shlex.quote(library) if "/" in library else "$(ldconfig -p | grep -o '/.*libgomp.so.1$')"
    return f"strings {file} | grep -E '^G?(OMP|OACC)_[0-9.]+$' | sort -V | tr '\\n' ' '"


def _of_torch(
    what: str, library: str, older: str, requirer: str, hashed: bool
) -> tuple[Judgement, tuple[str, ...]]:
    """The copy in torch's own directory is loaded, and is too old for the file that asks."""
    cause = (
        f"{what} The {library} that is loaded lacks it: it is the copy of GCC's library that torch "
        f"brings along, and {older}. A process has one libgomp, the first that is loaded, and a "
        "newer one serves older files too."
    )
    notes = (
        "The system's or conda's libgomp.so.1 has to be loaded before torch's: in CMake "
        "find_package(OpenMP) and OpenMP::OpenMP_CXX before TORCH_LIBRARIES; in Python the other "
        "package imported before torch.",
    )
    if requirer.startswith(("libTH", "libtorch", "libc10", "libATen", "libcaffe2")):
        notes = (
            "The file that asks is torch's own too, so that its directory holds files of two "
            "builds: uninstall torch until pip finds none, remove what is left of the directory, "
            "and install it again. A build of one's own has to leave the old libgomp out.",
        )
    commands = (_versions_of(library), _COPIES)
    return Judgement(KIND, CODE, NEWER, cause, notes, "high" if hashed else "medium"), commands


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
    elif (bundled := _BUNDLED.search(library)) is not None:
        return _of_torch(what, library, older, requirer, bundled["hash"] is not None)
    else:
        cause = f"{what} {whole}: {older}, or LLVM's OpenMP library under that name."
    notes = (
        "The file that the second command prints for it tells: libomp.so or libiomp5.so is LLVM's "
        "or Intel's, libgomp.so.1.0.0 is GCC's.",
    )
    commands = (_versions_of(library), _COPIES, *((_MUTEX,) if conda else ()))
    return Judgement(KIND, CODE, UNKNOWN if conda else NEWER, cause, notes, "medium"), commands
