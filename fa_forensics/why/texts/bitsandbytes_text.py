"""Answers to the words of bitsandbytes, which looks for its compiled libraries itself."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen


def no_cuda_binary(seen: Seen) -> Answer:
    """bitsandbytes found no library for torch's CUDA version and goes on with its CPU library."""
    if _no_library_at_all(seen):
        return _never_compiled(seen)
    file = (seen.mention.file or "").rpartition("/")[2]
    missing = f" ({file})" if file else ""
    cause = (
        f"bitsandbytes has no library{missing} for the CUDA version of this torch, or did not find "
        "the CUDA runtime, and goes on with its CPU library: what is missing later follows from "
        "that."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="bitsandbytes", direction="none",
        confidence="medium",
        help=(
            f"{seen.python} -m bitsandbytes",
            f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes",
        ),
        notes=("Each release holds libraries for the CUDA versions of its time.",),
    )  # fmt: skip


def _no_library_at_all(seen: Seen) -> bool:
    """Whether the CPU library, which every wheel has, is missing beside the CUDA one."""
    return seen.mention.detail.get("cpu") == "missing"


def _never_compiled(seen: Seen) -> Answer:
    return seen.answer(
        "damaged-file", "FA880",
        "bitsandbytes has neither its CUDA library nor the CPU library that every wheel of it "
        "holds: its Python files were installed from source without compiling, or the installation "
        "is not whole. The CUDA runtime and the driver were not even asked for.",
        owner="bitsandbytes", direction="none", confidence="high",
        help=(
            f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --only-binary "
            "bitsandbytes bitsandbytes",
            f"{seen.python} -m bitsandbytes",
        ),
        notes=(
            "From source, cmake -DCOMPUTE_BACKEND=cuda -S . and make come before pip install; "
            "setup.py alone compiles nothing.",
        ),
    )  # fmt: skip
