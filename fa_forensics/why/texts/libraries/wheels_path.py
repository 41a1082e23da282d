"""The command that puts the directories of NVIDIA's wheels first on the loader's path."""

from __future__ import annotations

import re


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
        "os.path.isdir(d)))')${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    )


def torch_lib_on_path(python: str) -> str:
    """Put torch's own directory of libraries first on the loader's path."""
    return (
        f"export LD_LIBRARY_PATH=$({python} -c 'import os, torch; "
        'print(os.path.join(os.path.dirname(torch.__file__), "lib"))\')'
        "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    )


def folder_of_wheel(distribution: str) -> str:
    """The directory below nvidia that a wheel writes its libraries into."""
    plain = re.sub(r"-cu\d\d$", "", distribution)
    own = plain != distribution
    return plain.removeprefix("nvidia-").replace("-", "_") if own else "cu13"
