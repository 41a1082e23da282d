"""A Windows file that takes CUDA's libraries from a toolkit, not from torch's directory."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import package_in


def dll_of_toolkit(seen: Seen, cause: str) -> Answer | None:
    """lmdeploy/turbomind/turbomind.py adds CUDA_PATH's bin to the directories of DLLs; else None.

    The wheels of LMDeploy are for CUDA 12 since 0.4.0 (InternLM/lmdeploy issue 1146, its page on
    installation); its releases have others for CUDA 11 ("+cu118") beside them.
    """
    if package_in(seen) != "lmdeploy":
        return None
    return seen.answer(
        "windows", "FA889", f"{cause} LMDeploy's _turbomind takes the CUDA runtime and cuBLAS from "
        "the CUDA toolkit that CUDA_PATH names, of the CUDA major version that its wheel is built "
        "for (12 since 0.4.0, 11 before): most likely that toolkit is not installed, or is of "
        "another major version.",
        owner="lmdeploy", direction="unknown", confidence="medium",
        help=(
            f"{seen.pip} show lmdeploy",
            f"{seen.python} -c \"import os; print(os.environ.get('CUDA_PATH'))\"",
            "nvcc --version",
        ),
        notes=(
            "Where CUDA_PATH names no CUDA 12 toolkit: the toolkit is installed and CUDA_PATH set "
            "to it, in a new window. For CUDA 11 it is the wheel with +cu118 in its name, from the "
            "page of LMDeploy's releases. torch's own directory has no part in it.",
        ),
    )  # fmt: skip
