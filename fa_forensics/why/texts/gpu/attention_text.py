"""Answers where every attention kernel of torch or of xformers refuses what it is given."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import gpus_of, named
from fa_forensics.why.texts.gpu.gpu_limits_text import HALF, KIND
from fa_forensics.why.texts.gpu.gpu_refusals import TORCH_ARCHS


def xformers_refusals(seen: Seen) -> Answer:
    """xformers' list of its operators, each with what keeps it from running."""
    reasons = [part.strip() for part in seen.mention.detail.get("reasons", "").split(";")]
    gpu = next(iter(gpus_of(seen)[:1]), None)
    helps = (f"{seen.python} -m xformers.info", f"{seen.python} {TORCH_ARCHS}")
    text = "\n".join(reasons)
    without_code = re.search(r"wasn't buil[dt] with CUDA", text) is not None
    unbuilt = re.search(r"wasn't build|wasn't built|Operator wasn|device=cpu", text)
    said_more = re.search(r"capability|bf16 is only|dtype=", text)
    if without_code or (unbuilt and not said_more):
        from fa_forensics.why.texts.python.xformers_text import no_operator

        return no_operator(seen)
    by_operator: dict[str, list[str]] = {}
    for reason in reasons:
        name, _, why = reason.partition(": ")
        by_operator.setdefault(name, []).append(why)
    by_type = [name for name, whys in by_operator.items() if whys and all(map(_of_type, whys))]
    which = named(gpu) if gpu else "this GPU"
    cause = (
        f"xformers is whole and has no kernel for what it was given on {which}: each kernel of the "
        "list refuses the GPU, the type, the shape or the device."
    )
    old = gpu is not None and gpu.capability < (8, 0)
    notes = []
    if "bf16 is only" in text and old:
        cause = (
            f"bfloat16 is what keeps xformers' kernels away: {which} has none, and float16 has "
            "kernels in cutlass that serve it."
        )
        notes.append(HALF)
    elif by_type:
        cause = (
            f"The type is what keeps xformers' kernels away: {', '.join(by_type)} would serve "
            f"{which} with float16 or bfloat16 tensors; the others refuse the GPU."
        )
    elif "(too new)" in text:
        notes.append(
            "A kernel that says too new is not made for this GPU in this release: a newer "
            "xformers, or torch's scaled_dot_product_attention, serves it."
        )
    if "(too old)" in text:
        notes.append("FlashAttention's kernels take compute capability 8.0 or newer.")
    notes.append(
        "smallkF is for float32 with a head dimension up to 32: that it refuses says nothing."
        if "smallk" in text
        else "torch's own scaled_dot_product_attention runs without xformers."
    )
    return seen.answer(
        KIND, "FA507", cause, owner="xformers", direction="none",
        confidence="high" if by_type or (old and "bf16 is only" in text) else "medium",
        help=helps, notes=tuple(notes),
    )  # fmt: skip


def _of_type(why: str) -> bool:
    return "dtype=" in why or "bf16 is only" in why


def no_attention_kernel(seen: Seen) -> Answer:
    """torch's ``No available kernel. Aborting execution.``: every attention kernel refuses."""
    cause = (
        "Of torch's own attention kernels the program allows some alone (sdpa_kernel, "
        "enable_flash_sdp), and each of these refuses the GPU, the type, the shape or the mask. "
        "torch warns of each reason above this line."
    )
    return seen.answer(
        KIND, "FA507", cause, owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}",),
        notes=("Allowing the math kernel too (SDPBackend.MATH) always gives one; flash takes "
               "compute capability 8.0 and float16 or bfloat16.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "xformers-refusals": xformers_refusals,
    "sdpa-no-kernel": no_attention_kernel,
}
