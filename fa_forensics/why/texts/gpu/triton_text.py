"""Answers about Triton's compiler, and about the code that it made and kept."""

from __future__ import annotations

import re

from fa_forensics.facts.drivers import cuda_text
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.triton_ptxas import oldest, wheel_of
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import called, driver_of, gpus_of, version_of
from fa_forensics.why.texts.gpu.driver_ill import SMI
from fa_forensics.why.texts.gpu.gpu_refusals import TORCH_ARCHS
from fa_forensics.why.texts.gpu.ptxas_text import own_ptxas

KIND, OWNER = "gpu-arch", "triton"

_OTHER_TYPE = (
    "Another type is the way out on such a GPU: float16 or float32 in place of bfloat16 (--dtype "
    "half, fp16=True, torch_dtype=torch.float16, as the program calls it), and no FP8; or the "
    "package's path without Triton's kernel."
)


def made_by_triton(seen: Seen) -> Answer:
    """``Triton Error [CUDA]: device kernel image is invalid``: code that was made at run time.

    Triton compiles with a ptxas of its own and keeps the result in its cache; releases of 2.0's
    time and before leave the GPU out of the cache's key (triton-lang/triton issue 1323).
    """
    driver = driver_of(seen)
    cause = (
        "Triton makes this code at run time and keeps it in its cache, and the driver refuses it. "
        "Two causes fit: the cache has code that was made for another GPU or by another release (a "
        "home directory that several machines share; the key of old releases leaves the GPU out), "
        "or Triton's ptxas is of a newer CUDA than the driver knows."
    )
    wheel = wheel_of(version_of(seen, "triton"), seen.torch)
    if driver is not None and driver.cuda is not None and driver.cuda < oldest():
        which = f"driver {driver.version}" if driver.version else "the driver"
        brings = "Triton 2.0 and newer bring one of CUDA 12.0 or newer"
        if wheel:
            brings = f"Triton {wheel.release} brings that of CUDA {cuda_text(wheel.ptxas)}"
        cause = (
            "Triton makes this code at run time with a ptxas of its own, and the driver refuses "
            f"it: {which} supports CUDA {cuda_text(driver.cuda)}, and {brings}, which is "
            "newer than the driver knows. Where another GPU or another release made the "
            "code, emptying Triton's cache helps instead."
        )
    elif driver is not None and driver.cuda is not None:
        which = f"Driver {driver.version}" if driver.version else "The driver"
        cause += f" {which} supports CUDA {cuda_text(driver.cuda)}."
    old = driver is not None and driver.cuda is not None and driver.cuda < (12, 0)
    return seen.answer(
        "gpu-driver" if old else KIND, "FA506" if old else "FA504", cause,
        owner="cuda-driver" if old else OWNER, direction="none", confidence="medium",
        help=(
            "rm -r ~/.triton/cache",
            SMI,
            own_ptxas(seen),
        ),
        notes=(
            "The first command empties the cache (TRITON_CACHE_DIR names another directory, one "
            "for each kind of GPU for instance): where it works then, it was the cache.",
            "Else compare the CUDA version of ptxas with the driver's: a newer driver, the Triton "
            "that torch asks for, or TRITON_PTXAS_PATH with the ptxas of a toolkit that the driver "
            "supports is the way out.",
        ),
    )  # fmt: skip


def no_conversion(seen: Seen) -> Answer:
    """``Unsupported conversion from bf16 to f16``, ``Unsupported rounding mode for conversion``.

    ElementwiseOpToLLVM.cpp has a table of conversions for each architecture. f16 to f16 is a
    fault of Triton 3.3 before Ampere: vllm issue 19203, triton issue 6698.
    """
    detail = seen.mention.detail
    source, target = detail.get("source", ""), detail.get("target", "")
    what = f"from {source} to {target}" if source and target else "between two types"
    gpu = next(iter(gpus_of(seen)[:1]), None)
    old = gpu is not None and gpu.capability < (8, 0)
    which = "most likely a GPU older than compute capability 8.0"
    if gpu is not None and old:
        which = f"here {called(gpu)}"
    cause = f"Triton's compiler has no conversion {what} for the GPU that it compiles for"
    release = version_of(seen, "triton")
    same = bool(source) and source == target
    fp8 = "8" in f"{source}{target}".lower().replace("f8", "8") and "f8" in f"{source}{target}"
    if fp8:
        cause += (
            ": FP8 takes compute capability 8.9 or newer as a rule, and each form of FP8 has its "
            "own GPUs."
        )
    elif same:
        cause += (
            f", {which}: a step that changes nothing is a fault of Triton 3.3 there, "
            "and 3.2 and 3.4 are reported without it."
        )
    else:
        cause += (
            f", {which}: bfloat16 is in the hardware from 8.0 (Ampere) on, and Triton "
            "serves older GPUs less and less."
        )
    cause += " The driver and the C++ ABI play no part."
    notes = [_OTHER_TYPE]
    if release:
        notes.append(
            f"The text names Triton {release}; torch asks for one release of Triton, so that "
            "another one comes with another torch."
        )
    else:
        notes.append(
            "torch asks for one release of Triton, so that another one comes with another torch."
        )
    return seen.answer(
        KIND, "FA509", cause, owner=OWNER, direction="none",
        confidence="medium" if old or fp8 else "low",
        help=(f"{seen.python} {TORCH_ARCHS}", f"{seen.pip} show triton"), notes=tuple(notes),
    )  # fmt: skip


#: Of triton's AccelerateMatmul.cpp: 3.2 has limits up to below 11.0; 12.x came with 3.3.1
#: (pull requests 6131 and 6771), which torch 2.7.1 asks for.
_SINCE_12 = ("3.3.1", "2.7.1")


def gpu_not_known(seen: Seen) -> Answer:
    """``computeCapability not supported``: an assertion of Triton about the GPU's number."""
    gpu: Gpu | None = next(iter(gpus_of(seen)[:1]), None)
    which = called(gpu) if gpu is not None else "the GPU"
    cause = (
        f"Triton's compiler stops at the compute capability of {which}: its table ends before it, "
        "so that this Triton is older than the GPU."
    )
    limit = re.search(r"computeCapability > (\d)(\d)", seen.mention.line)
    if limit:
        cause += f" It knows GPUs up to {limit[1]}.{limit[2]}."
    if gpu is None:
        cause += " Most often the GPU is of compute capability 12.x (RTX 50xx, RTX PRO Blackwell)."
    cause += " Neither the driver nor the C++ ABI plays a part."
    triton, torch = _SINCE_12
    return seen.answer(
        KIND, "FA510", cause, owner=OWNER, direction="none",
        confidence="medium",
        help=(f"{seen.pip} show triton", f"{seen.python} {TORCH_ARCHS}"),
        notes=(
            f"Triton {triton}, which torch {torch} asks for, is the first that compiles "
            "matrix products (tl.dot) for 12.x: a newer torch brings a newer Triton. Extensions "
            "that are compiled for the torch of now have to be installed or built again then.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "triton-no-conversion": no_conversion,
    "triton-gpu-not-known": gpu_not_known,
}
