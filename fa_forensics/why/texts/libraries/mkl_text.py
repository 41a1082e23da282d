"""Answers to what Intel's MKL says of itself at run time."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen


def mkl_stops(seen: Seen) -> Answer:
    """``Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so`` and mkl-service's threading layer."""
    if seen.mention.detail.get("sort") == "threads":
        return _threading(seen)
    library = seen.mention.library or "a library of its own"
    cause = (
        f"MKL's core is loaded, and it does not find {library}, which holds its code for a kind of "
        "processor and lies beside it: the installation of MKL is not whole, or the libmkl_core "
        "that is loaded is of another release than its neighbours (conda's and pip's, or an "
        "environment that was updated in part). No symbol of torch is concerned; pip's torch has "
        "MKL inside and asks for none of it."
    )
    return seen.answer(
        "missing-library", "FA202", cause, owner="mkl", direction="none", confidence="medium",
        help=(
            "conda install --force-reinstall mkl",
            f"{seen.pip} list | grep -i -E 'mkl|numpy|intel'",
        ),
        notes=(
            "In an environment of conda, mkl, mkl-service and numpy belong to one update (conda "
            "update mkl numpy), and numpy of one of the two, conda or pip. Where that does not "
            "help, a new environment does.",
        ),
    )  # fmt: skip


def _threading(seen: Seen) -> Answer:
    cause = (
        "numpy of conda (MKL, with Intel's OpenMP) was imported after something else had loaded "
        "GCC's libgomp, most often torch, and mkl-service stops there: one process, two OpenMP "
        "libraries. Nothing is missing, and no release is wrong."
    )
    return seen.answer(
        "import-order", "FA202", cause, owner="mkl", direction="none", confidence="high",
        help=(
            f"{seen.python} -c 'import numpy, torch'",
            f"MKL_THREADING_LAYER=GNU {seen.python} YOUR_PROGRAM.py",
        ),
        notes=(
            "Either is enough: numpy imported before torch, or MKL told to use GCC's OpenMP; "
            "MKL_SERVICE_FORCE_INTEL=1 only silences the check.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"mkl-stops": mkl_stops}
