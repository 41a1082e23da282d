"""Names of Intel's MKL: which torch takes them from a library outside, and in which environment.

pytorch/pytorch issue 123097 (mkl 2024.1 against conda's torch), intel/ipex-llm issue 12112
(oneAPI 2024.2 against a torch of Intel's).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import OLDER, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.ways.commands import install, needed_libraries

#: An environment that pip alone fills: a venv, the system's Python, a user's own directory.
_OF_PIP = lazily(
    r"/\.?venv[\d.]{0,4}/|/[\w.-]{0,40}[_.-]venv/|/(?:\.?virtualenvs?|\.pyenv|\.local|uv)/"
    r"|/dist-packages/|^/usr/"
)
#: An environment of conda, by its usual directories.
_OF_CONDA = lazily(
    r"/envs/[^/]{1,80}/lib/|/\.?(?:mini|ana|micro)?(?:conda|forge|mamba)\d?(?:/|\b)"
    r"|/installer_files/env/",
    re.IGNORECASE,
)
_CONDA, _PIP = 'conda install "mkl<2024.1"', "mkl==2024.0.0"

#: Said of a torch in an environment of conda that need not be conda's.
_OF_VENDOR = (
    "The command with conda install is for conda's torch. A torch of Intel's (XPU, ipex-llm) takes "
    "the MKL of oneAPI: that has to be the release that it was built with, 2024.0 for names with "
    "iJIT, and conda's MKL does not come before it."
)
#: Said of MKL of the system, which goes before that of an environment.
_ONEAPI = (
    "Where Intel's oneAPI was brought into the shell (source /opt/intel/oneapi/setvars.sh), its "
    "newer MKL goes first by LD_LIBRARY_PATH: a shell without that is the way out."
)


def mkl_name(
    name: str, place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) on a name that MKL has, or had."""
    if not name.startswith(("iJIT_", "__itt_")):
        from fa_forensics.why.other_names.mkl_parts import mkl_part

        return mkl_part(needed_by)
    file = needed_by[0] if needed_by else ""
    of_pip = _OF_PIP.search(file) is not None
    of_pip = of_pip and (_OF_CONDA.search(file) is None or "/.local/" in file)
    if of_pip:
        cause = (
            "It belongs to Intel's ITT notifications, which MKL exported up to 2024.0 and no "
            "longer does: this torch was linked against them, and the MKL that is loaded is newer. "
            "The torch of PyPI has its MKL inside and needs none of that, so that this one is of "
            "another maker: a vendor's wheel, or a build of one's own."
        )
        commands = (install(place, _PIP), needed_libraries(needed_by, "mkl"))
        notes = ("That torch and the newer MKL do not go together: what asked for a newer mkl "
                 "(pip check names it) has to take this one too.", _ONEAPI)  # fmt: skip
        return Judgement("versioned-symbol", "FA204", OLDER, cause, notes), commands
    if file and _OF_CONDA.search(file) is not None:
        cause = (
            "It belongs to Intel's ITT notifications, which MKL exported up to 2024.0 and no "
            "longer does: this torch was linked against them, most likely conda's of that time, "
            "and the MKL that is loaded is newer."
        )
        of_conda = (_OF_VENDOR, _ONEAPI, _OF_PYPI)
        judged = Judgement("versioned-symbol", "FA204", OLDER, cause, of_conda)
        return judged, (
            _CONDA,
            "echo $LD_LIBRARY_PATH; conda list | grep -iE '^mkl|torch'",
            needed_libraries(needed_by, "mkl"),
        )
    cause = (
        "It belongs to Intel's ITT notifications, which MKL exported up to 2024.0 and no longer "
        "does: the torch was linked against them, as conda's of that time and some vendors' are, "
        "and MKL is newer now."
    )
    notes = (
        "The command with conda is for an environment of conda, the one with pip for all others.",
        _OF_PYPI,
    )
    return Judgement("versioned-symbol", "FA204", OLDER, cause, notes), (
        _CONDA,
        install(place, _PIP),
    )


_OF_PYPI = (
    "The torch of PyPI has its MKL inside and is not affected: it is another build of torch that "
    "asks for the name."
)
