"""What the directory of a CUDA library tells: a toolkit's, the system's, a wheel's."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily

#: Directories of a CUDA toolkit or of the system: what lies there is no wheel's.
SYSTEM = lazily(r"/usr/(?:local/cuda|lib|lib64)|/opt/(?:cuda|nvidia)|/lib(?:64)?/")

#: Where the loader looks last of all, whatever the variable says (ld.so(8)).
_DEFAULT_PATH = lazily(r"(?:/usr)?/lib(?:64|/[\w-]{3,20}-linux-gnu)?/[^/]{1,200}")


def in_default_path(file: str) -> bool:
    """Whether a library lies in a directory that the loader searches without LD_LIBRARY_PATH."""
    return _DEFAULT_PATH.fullmatch(file) is not None


#: The lib directory beside the bin of a conda installation or environment.
_OF_PYTHON = lazily(
    r"/[^\s:]{0,300}(?:/envs/[^/\s:]{1,80}|(?:conda|forge|mamba)\d{0,2})/bin/\.\./lib/[^/\s]{1,80}"
)


def through_python(file: str) -> bool:
    """Whether conda's Python found a library by its own search path ($ORIGIN/../lib, DT_RPATH).

    That one goes before LD_LIBRARY_PATH (ld.so(8)), so that the variable has no part in it.
    """
    return _OF_PYTHON.fullmatch(file) is not None


#: The search path of conda's own torch, which goes from torch/lib up to the environment's lib.
_BY_CONDAS_TORCH = lazily(r"/torch/lib/(?:\.\./){4}lib\w")
_IN_CONDA = lazily(
    r"/envs/[^/]{1,80}/lib/|/\.?(?:mini|ana|micro)?(?:conda|forge|mamba)\d?/", re.IGNORECASE
)


def of_condas_torch(file: str) -> bool:
    """Whether a library was found as conda's own torch finds CUDA's (readelf -d of its parts)."""
    return _BY_CONDAS_TORCH.search(file) is not None


def in_conda(file: str) -> bool:
    """Whether a path is one of an environment of conda, whose torch can be conda's or pip's."""
    return _IN_CONDA.search(file) is not None


def found_last(folder: str) -> str:
    """How a copy is found that lies where the loader looks last; with a blank before it."""
    return (
        f" It lies in {folder}, where the loader looks last, and without LD_LIBRARY_PATH: what "
        "opened it has no search path of its own to a wheel's. The directory of the wheel on "
        "LD_LIBRARY_PATH goes before it; or the system's package has to become as new, or to go."
    )


def outside_wheels(file: str) -> bool:
    """Whether a library's whole path is that of a toolkit or the system, and of no wheel."""
    return SYSTEM.match(file) is not None and "-packages/" not in file


#: The toolkit in the path of its directory: ``/usr/local/cuda-11.1/lib64``, ``/opt/cuda/8.0``.
_TOOLKIT = lazily(r"/cuda(?:[-_]?toolkit)?[-/_]v?(?P<version>\d{1,2}\.\d)(?![\d])", re.IGNORECASE)


def toolkit_of_path(path: str) -> str | None:
    """The CUDA toolkit ("8.0") that a path names; None for none."""
    found = _TOOLKIT.search(path)
    return None if found is None else found["version"]
