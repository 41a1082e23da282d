"""Names of BLAS, LAPACK and OpenMP that a file takes from a library of the system.

NVIDIA's torch for Jetson takes OpenBLAS from the system (NVIDIA, Installing PyTorch for Jetson
Platform, names libopenblas); libmkl_intel_thread and libmkl_gnu_thread leave OpenMP to the program
(Intel, oneMKL link line advisor). pytorch/pytorch issues 51092, 71228 and 116576,
intel/intel-extension-for-pytorch issue 136. MKL_THREADING: pytorch's cmake/Modules/FindMKL.cmake.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import UNKNOWN, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.ways.builds import pip_of

Known = tuple[Judgement, tuple[str, ...]]

_OF_TORCH = lazily(
    r"(?:^|/)(?:libtorch(?!audio|vision|codec|text)\w{0,30}|libc10|libcaffe2\w{0,20}|libATen\w{0,20})"
    r"\.so|(?:^|/)torch/(?:lib/|_C\.)"
)
_THREADS = lazily(r"(?:^|/)libmkl_(?P<layer>intel|gnu)_thread\.so")

_JETSON = (
    "NVIDIA's torch for Jetson takes BLAS from the system: there the command with apt-get is all "
    "that is needed. A torch of one's own build, of conda or of a distribution takes the BLAS that "
    "it was built with: that one has to be there, or torch is built again with one that is."
)
_LINK = (
    "A file of one's own is built again with the library among what it links "
    "(libraries=['openblas'] or ['mkl_rt'] in setup.py, from an empty build directory). Until then "
    'ctypes.CDLL("libopenblas.so.0", ctypes.RTLD_GLOBAL) before the import serves the file that '
    "lists none."
)
_NO_TORCH = (
    "PyTorch's own wheels have their BLAS inside and keep its names to themselves, so that no "
    "release of torch brings them for another file."
)


def _ldd(needed_by: Sequence[str], words: str) -> str:
    file = shlex.quote(needed_by[0]) if needed_by and needed_by[0].startswith("/") else ""
    return f"ldd {file or '/path/to/the/failing.so'} | grep -iE '{words}'"


def blas_name(name: str, place: Place, needed_by: Sequence[str]) -> Known:
    """(judgement, commands) on a routine of BLAS or LAPACK that nobody exports."""
    lapack = name.startswith("LAPACKE_")
    cause = (
        "It is a routine of BLAS or LAPACK (OpenBLAS, Intel MKL or the reference libraries), which "
        "torch does not give to other files."
    )
    copies = "ldconfig -p | grep -iE 'blas|lapack|mkl_rt'"
    look = _ldd(needed_by, "blas|lapack|mkl|not found")
    if needed_by and needed_by[0].endswith(".dylib"):
        return _on_macos(needed_by[0])
    install = "apt-get install libopenblas-dev" + (" liblapacke-dev" if lapack else "")
    if needed_by and _OF_TORCH.search(needed_by[0]):
        cause = (
            "It is a routine of BLAS or LAPACK (OpenBLAS, Intel MKL or the reference libraries), "
            f"and {needed_by[0].rsplit('/', 1)[-1]}, which asks for it, is torch's own. PyTorch's "
            "wheels have theirs inside: this torch is another maker's, or built on a system, and "
            "takes it from there. That library is not installed, or another BLAS, without this "
            "routine, was found in its place."
        )
        judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, (_JETSON,), "medium")
        return judged, (install, look, copies)
    cause += (
        " The file was linked without one (it lists none, and counted on torch or on another "
        "package to bring it along), or the one that it lists is another BLAS, without this "
        "routine. The way out is a BLAS that is installed and linked."
    )
    judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, (_LINK, _NO_TORCH), "medium")
    return judged, (look, copies, install)


def _on_macos(file: str) -> Known:
    """The same on a Mac, whose system has its own BLAS."""
    cause = (
        "It is a routine of BLAS or LAPACK, which macOS has in its Accelerate framework and conda "
        "in OpenBLAS: the file was linked without it, or for a newer macOS than this one."
    )
    judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, (), "medium")
    return judged, (f"otool -L {shlex.quote(file)}", "sw_vers")


def omp_name(name: str, place: Place, needed_by: Sequence[str]) -> Known | None:
    """(judgement, commands) on a name of OpenMP without a version; None where no more is known."""
    file = needed_by[0] if needed_by else ""
    layer = _THREADS.search(file)
    if layer is not None:
        return _of_thread_layer(file.rsplit("/", 1)[-1], layer["layer"] == "gnu", place, needed_by)
    if name.startswith(("__kmp", "kmp")):
        own = _OF_TORCH.search(file) is not None and not file.endswith(".dylib")
        return _of_own_torch(place, needed_by) if own else None
    if not name.startswith("omp_"):
        return None
    cause = (
        "It is a function of OpenMP, which GCC's libgomp, LLVM's libomp and Intel's libiomp5 all "
        "have: none of them is loaded where the file sees it. The file was compiled with calls of "
        "OpenMP and linked without -fopenmp."
    )
    notes = (
        "It is built again with -fopenmp for the compiler and for the linker "
        "(extra_compile_args and extra_link_args=['-fopenmp'] in setup.py). Until then "
        'ctypes.CDLL("libgomp.so.1", ctypes.RTLD_GLOBAL) before the import brings the name.',
    )
    judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, notes, "medium")
    return judged, (
        _ldd(needed_by, "gomp|libomp|iomp"),
        "ldconfig -p | grep -iE 'gomp|omp5|libomp'",
    )


def _of_thread_layer(own: str, gnu: bool, place: Place, needed_by: Sequence[str]) -> Known:
    """MKL's layer for threads, which takes OpenMP from whoever loads it."""
    runtime = "GCC's libgomp.so.1" if gnu else "Intel's libiomp5.so"
    soname = "libgomp.so.1" if gnu else "libiomp5.so"
    cause = (
        f"It belongs to the OpenMP runtime. {own} is MKL's layer for threads, which lists no such "
        f"library and takes the names from the process: {runtime} has to be loaded there, and the "
        "torch (libtorch_global_deps.so) or the extension that is linked with MKL was linked with "
        "none. PyTorch's own wheels have MKL inside: this torch is built on a system, or conda's."
    )
    notes = [
        f"Until the build links it (-l{'gomp' if gnu else 'iomp5'} behind MKL's libraries), "
        f'ctypes.CDLL("{soname}", ctypes.RTLD_GLOBAL) before the import brings the names; the full '
        "path where the loader does not find it.",
        _OTHER_LAYER,
    ]
    judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, tuple(notes), "medium")
    commands: tuple[str, ...] = (
        "ldconfig -p | grep -iE 'gomp|omp5'",
        _ldd(needed_by, "omp|mkl"),
    )
    if not gnu:
        commands = (f"{pip_of(place)} install intel-openmp", _ONEAPI, *commands)
    return judged, commands


_ONEAPI = ". /opt/intel/oneapi/setvars.sh"
_OTHER_LAYER = (
    "The other way is another layer of MKL at the build: mkl_gnu_thread with -lgomp, which goes "
    "with GCC, or mkl_sequential, which needs no OpenMP (MKL_THREADING=SEQ for torch)."
)


def _of_own_torch(place: Place, needed_by: Sequence[str]) -> Known:
    """torch's own file calls Intel's or LLVM's runtime: a build with GCC and MKL's Intel layer."""
    own = needed_by[0].rsplit("/", 1)[-1]
    cause = (
        f"It belongs to Intel's and LLVM's OpenMP runtime (libiomp5, libomp), and {own}, which "
        "asks for it, is torch's own: import torch fails, and no extension plays a part. GCC's "
        "libgomp has no such names, and PyTorch's own wheels for Linux need none: this torch is "
        "another build. Most likely MKL's layer mkl_intel_thread, or code of clang or of Intel's "
        "compiler, came into it, and it was linked with libgomp alone."
    )
    notes = (
        "It is built again with -liomp5 among what it links, from an empty build directory. Until "
        'then ctypes.CDLL("libiomp5.so", ctypes.RTLD_GLOBAL) before import torch brings the names; '
        "the full path where the loader does not find it.",
        _OTHER_LAYER,
    )
    judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, notes, "medium")
    return judged, (
        _ldd(needed_by, "omp|mkl"),
        f"{pip_of(place)} install intel-openmp",
        _ONEAPI,
    )
