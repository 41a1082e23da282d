"""Modules of flash-attention's repository that its wheel does not hold, FlashAttention 3 first."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import gpus_of, jobs_of, named, version_of

#: flash-attention's README: FlashAttention-3 is for Hopper, compute capability 9.0.
_HOPPER = (9, 0)


def separate_extension(seen: Seen, module: str, folder: str) -> Answer:
    """A CUDA extension of flash-attn's repository that its wheel does not hold."""
    unfit = _not_for_this_gpu(seen, module) if folder == "hopper" else None
    if unfit is not None:
        return unfit
    version = version_of(seen, "flash-attn")
    tag = f"@v{version.split('+')[0]}" if version else ""
    cause = (
        f"{module} is a separate CUDA extension of flash-attn's repository ({folder}); neither the "
        "wheel nor the source distribution of flash-attn holds it, so it is to be built by itself."
    )
    url = f"git+https://github.com/Dao-AILab/flash-attention{tag}#subdirectory={folder}"
    return seen.answer(
        "damaged-file", "FA880", cause,
        owner="flash-attn-3" if folder == "hopper" else "flash-attn",
        direction="none", confidence="high",
        help=(f'MAX_JOBS={jobs_of(seen) or 4} {seen.pip} install --no-build-isolation "{url}"',),
        notes=(
            "It is FlashAttention 3, which is made for GPUs of compute capability 9.0 (Hopper)."
            if folder == "hopper"
            else "Newer releases of flash-attn do much of it in Triton, without such an extension: "
            "the release of what imports it decides.",
        ),
    )  # fmt: skip


def _not_for_this_gpu(seen: Seen, module: str) -> Answer | None:
    """The answer for ROCm, or for a GPU that is no Hopper; None where neither is told."""
    rocm = "rocm" in seen.versions or "amd_gpu" in seen.versions
    gpus = () if rocm else gpus_of(seen)[:1]
    if not rocm and (not gpus or gpus[0].capability == _HOPPER):
        return None
    cause = (
        f"{module} belongs to FlashAttention 3 (the hopper directory of flash-attention's "
        "repository), a package of its own that flash-attn does not hold"
    )
    if rocm:
        cause += (
            ". It is for CUDA and Hopper GPUs alone: there is no build of it for ROCm, and "
            "flash-attn 2, in the Composable Kernel or the Triton backend, is what AMD GPUs have."
        )
    else:
        cause += (
            ". It is made for Hopper GPUs (compute capability 9.0), and the GPU is "
            f"{named(gpus[0])}: flash-attn 2 is what its authors offer for that."
        )
    return seen.answer(
        "gpu-arch", "FA507", cause, owner="flash-attn-3", direction="none",
        confidence="high" if rocm else "medium", help=(
            f"{seen.python} -c 'import torch; print(torch.version.cuda, torch.version.hip, "
            "torch.cuda.get_device_capability())'",
            f"{seen.pip} show flash-attn",
        ),
        notes=(
            "The caller has to be told to use FlashAttention 2 (import flash_attn), or another "
            "attention; installing flash-attn again does not bring it.",
        ),
    )  # fmt: skip
