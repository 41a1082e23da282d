"""A CUDA library that lies beside one of torch's and that torch itself does not load."""

from __future__ import annotations

import shlex

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.brought_text import there_already, wheels_of
from fa_forensics.why.texts.libraries.needing import needing
from fa_forensics.why.texts.libraries.wheels_path import wheels_on_path

#: Parts of cuDNN, which its head opens at run time; what torch lists is libcudnn.so.N alone
#: (readelf -d of libtorch_cuda.so, torch 2.4.0+cu121 and 2.14.1+cu130).
_CUDNN_PART = lazily(r"libcudnn_\w{1,40}\.so\.(?P<major>\d{1,2})")
#: Libraries of the same wheels as those that torch lists, and in no list of torch's.
_BESIDE = lazily(r"lib(?:cufftw|cusolverMg|nvblas)\.so\.\d{1,2}")


def part_answer(seen: Seen, soname: str, owner: str | None) -> Answer | None:
    """The answer for a library that is not in the process after ``import torch``; else None."""
    part = _CUDNN_PART.fullmatch(soname)
    if part is None and not _BESIDE.fullmatch(soname):
        return None
    wheels = wheels_of(seen, soname)
    if part is not None:
        cause = (
            f"{soname} is a part of cuDNN {part['major']}. torch lists libcudnn.so.{part['major']} "
            "alone, and that opens its parts when it first needs them, so that importing torch "
            f"before does not bring it: {needing(seen)} needs it by its name."
        )
    else:
        cause = (
            f"{soname} comes in the same wheel as a library of torch's, and torch itself does not "
            "load it, so that importing torch before does not bring it: "
            f"{needing(seen)} needs it by its name."
        )
    told = dict(seen.place.told.wheels) if seen.place.told is not None else {}
    there = next((f"{name} {told[name]}" for name in wheels.split(" or ") if name in told), "")
    if there:
        cause += (
            f" The text has {there}, which brings it: it is installed, in site-packages/nvidia, "
            "where the loader does not look by itself."
        )
    else:
        cause += (
            f" It comes with {wheels}, in site-packages/nvidia, where the loader does not look by "
            "itself."
        )
    folder = "cudnn" if part is not None else _folder(soname)
    return seen.answer(
        "missing-library", "FA202", cause, owner=owner, direction=NONE, confidence="medium",
        help=(
            f"{seen.pip} list | grep -iE '^torch |{folder}'",
            f"find / -name {shlex.quote(soname)} -not -path '/proc/*' 2>/dev/null",
            wheels_on_path(seen.python, *((folder,) if part is not None else (folder, "cu13"))),
        ),
        notes=(
            "One process has one cuDNN: the directory has to be that of the cuDNN that torch "
            "brings, and no second one is to be installed beside it."
            if part is not None
            else "The directory has to be that of the library that torch brings.",
            *there_already(seen),
        ),
    )  # fmt: skip


def _folder(soname: str) -> str:
    """The directory of a wheel: ``site-packages/nvidia/cufft/lib``."""
    stem = soname.removeprefix("lib").split(".so")[0]
    return {"cufftw": "cufft", "cusolverMg": "cusolver", "nvblas": "cublas"}.get(stem, stem)
