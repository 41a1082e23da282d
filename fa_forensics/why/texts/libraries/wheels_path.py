"""The commands that put a directory first on the loader's path: a wheel's, torch's, any other."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.why.shell import quoted

#: What stays behind a directory; an empty entry, as a colon at the end makes it, would be the
#: current directory (ld.so(8)).
_REST = "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
#: A directory from its root, or from the user's own, with nothing left out or to be filled in.
_WHOLE = lazily(r"(?:~?/(?!.*(?:\.\.\.|[\u2026<>{}$*])).*)")
_OF_WHEELS = lazily(r"(?:^|/)nvidia/(?P<folder>[\w/-]{1,60})/lib/?\Z")


def wheels_on_path(python: str, *folders: str) -> str:
    """Put the wheels' directories first, those of ``folders`` below nvidia that are there.

    The wheels for CUDA 13 have one directory for most of their libraries, nvidia/cu13, where
    those for CUDA 12 have one for each (nvidia/cublas); cuDNN's and NCCL's have their own in
    both. What the variable held stays behind them.
    """
    names = ", ".join(f'"{folder}"' for folder in folders) + ","
    return (
        f'export LD_LIBRARY_PATH=$({python} -c \'import nvidia, os; print(":".join(d for r in '
        f'nvidia.__path__ for n in ({names}) for d in [os.path.join(r, n, "lib")] if '
        f"os.path.isdir(d)))'){_REST}"
    )


def torch_lib_on_path(python: str) -> str:
    """Put torch's own directory of libraries first on the loader's path."""
    return (
        f"export LD_LIBRARY_PATH=$({python} -c 'import os, torch; "
        'print(os.path.join(os.path.dirname(torch.__file__), "lib"))\')'
        f"{_REST}"
    )


def toolkit_on_path(cuda: str) -> str:
    """Put the libraries of the CUDA toolkit of one release first on the loader's path."""
    return _typed(f"/usr/local/cuda-{cuda}/lib64")


def folder_on_path(python: str, *folders: str) -> str:
    """Put directories that a text shows first on the loader's path.

    Of one that the text has the end alone of (``.../site-packages/nvidia/cublas/lib``), Python
    knows the rest; where it is neither a wheel's nor torch's, DIRECTORY stands for it.
    """
    if all(_WHOLE.fullmatch(folder) for folder in folders):
        return _typed(*folders)
    wheels = [found["folder"] for one in folders if (found := _OF_WHEELS.search(one))]
    if len(wheels) == len(folders):
        return wheels_on_path(python, *wheels)
    if folders[0].rstrip("/").endswith("/torch/lib"):
        return torch_lib_on_path(python)
    return f'export LD_LIBRARY_PATH="DIRECTORY{_REST}"'


def _typed(*folders: str) -> str:
    return f"export LD_LIBRARY_PATH={':'.join(quoted(one) for one in folders)}{_REST}"


def folder_of_wheel(distribution: str) -> str:
    """The directory below nvidia that a wheel writes its libraries into."""
    plain = re.sub(r"-cu\d\d$", "", distribution)
    own = plain != distribution
    return plain.removeprefix("nvidia-").replace("-", "_") if own else "cu13"
