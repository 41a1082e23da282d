"""A name of MKL that MKL's own libraries, or what is linked with them, do not find.

MKL comes in layers (libmkl_intel_lp64 or libmkl_gf_lp64, libmkl_*_thread, libmkl_core) that do
not list one another, and in parts for processors (libmkl_def, libmkl_avx2), which libmkl_core opens
by itself: they take their names from what is in the process. pytorch/pytorch issues 5099, 7758
and 50211, intel/intel-extension-for-pytorch issue 561.
"""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import UNKNOWN, Judgement
from fa_forensics.why.ways.commands import needed_libraries

_OWN = lazily(r"(?:^|/)libmkl_\w{1,40}\.(?:so|\d+\.dylib|dylib)(?:\.\d{1,2})?$")
_FOR_PROCESSOR = lazily(r"(?:^|/)libmkl_(?:def|mc|mc3|avx\w{0,10}|vml_\w{1,20})\.")
#: MKL of the system: Parallel Studio, oneAPI, a distribution's package.
_OF_SYSTEM = lazily(
    r"^/opt/intel/|/(?:intel/)?(?:oneapi|parallel_studio\w{0,40}|compilers_and_libraries\w{0,20}"
    r"|composer_xe\w{0,30})[/._]|^/usr/"
)

_COPIES = (
    "echo $LD_LIBRARY_PATH; ldconfig -p | grep libmkl_core",
    "conda list | grep -iE '^mkl|^numpy'; python -m pip list | grep -iE '^mkl|^numpy|^intel'",
)
_ONE = (
    "One MKL is the way out: a shell without mklvars.sh, compilervars.sh and setvars.sh, and "
    "without MKL's directories in LD_LIBRARY_PATH, leaves the environment's own; where both copies "
    "are of the environment (conda's and pip's), all parts have to be of one release, or a new "
    "environment is made. torch of PyPI has its MKL inside and takes part in none of this."
)
_RELINK = (
    "Where torch, or the extension, was built on this machine: conda's compilers put "
    "-Wl,--as-needed into LDFLAGS, which drops libmkl_core and the thread layer from the link. It "
    "is built again, from an empty build directory, after the command with export."
)
#: mkl-devel has libmkl_rt.so and the headers; mkl alone has the library under its number.
_DEVEL = "python -m pip install mkl-devel"
_WITH_RT = (
    "For a file of one's own that is libraries=['mkl_rt'] in setup.py, with the library_dirs of "
    "MKL (lib below sys.prefix, after the command with pip or conda install mkl-devel). Until then "
    'ctypes.CDLL("libmkl_rt.so.2", ctypes.RTLD_GLOBAL) before the import brings the names '
    "(.so.3 since MKL 2026, .so.1 in 2021). No torch does: PyTorch's keeps its MKL to itself."
)
_KEEP_ALL = 'export LDFLAGS="${LDFLAGS//-Wl,--as-needed/-Wl,--no-as-needed}"'


def mkl_part(needed_by: Sequence[str]) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) on a name of MKL, by the file that does not find it."""
    file = needed_by[0] if needed_by else ""
    own = file.rsplit("/", 1)[-1]
    if _FOR_PROCESSOR.search(file):
        cause = (
            f"It belongs to Intel MKL, as {own} does, which MKL's core opens by itself and which "
            "takes its names from libmkl_core and the thread layer. Two causes fit: these are not "
            "in the process for all to see (the link of torch or of the extension left them out, "
            "as -Wl,--as-needed does, or Python loaded them for one module alone), or they are of "
            "another release of MKL than this file."
        )
        judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, (_RELINK, _ONE), "medium")
        return judged, (*_COPIES, _KEEP_ALL)
    if _OWN.search(file):
        cause = (
            f"It belongs to Intel MKL, and {own}, which asks for it, is MKL's own: most likely the "
            "parts of two releases of MKL are in one process, and MKL's libraries fit those of "
            "their own release alone. Else the part that has the name (libmkl_core, or the thread "
            "layer) is not loaded, because the link left it out. torch's release has no part in it."
        )
        if _OF_SYSTEM.search(file):
            cause += (
                f" {own} is the system's, by its path, which LD_LIBRARY_PATH or the file's own "
                "RPATH leads to, and the others are most likely those of Python's environment."
            )
        judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, (_ONE,), "medium")
        return judged, (*_COPIES, "unset LD_LIBRARY_PATH")
    cause = (
        "It belongs to Intel MKL, which is not loaded, or in another version than the file was "
        "built with."
    )
    notes = (
        "Where the file lists a libmkl library, another release of it is found first, of the "
        "system's oneAPI or of the environment. Where it lists none, it was linked without it, and "
        "is to be built again with MKL among what it links.",
        _WITH_RT,
        _ONE,
    )
    judged = Judgement("versioned-symbol", "FA204", UNKNOWN, cause, notes, "medium")
    return judged, (needed_libraries(needed_by), *_COPIES, _DEVEL)
