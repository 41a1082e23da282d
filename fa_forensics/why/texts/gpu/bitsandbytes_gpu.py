"""bitsandbytes' report of a failed launch, which may be that of a kernel before its own."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.facts.gpus import Gpu
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import what_would_run
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import version_of
from fa_forensics.why.texts.gpu.gpu_code_owner import of_bitsandbytes, shown

#: Attention extensions that start kernels without a look at the outcome, by a package's name.
_BEFORE = {"sageattention": "SageAttention", "spas-sage-attn": "SpargeAttn"}
_ALONE = (
    '-c "import torch, bitsandbytes as bnb; print(bnb.functional.quantize_4bit('
    'torch.ones(64, 64, dtype=torch.float16).cuda())[0].shape)"'
)


def _before(seen: Seen) -> tuple[str, str]:
    """(owner, words) of the attention extension that the text names beside it; "" for none."""
    hub = seen.versions.get("hub_kernel", "")
    if hub:
        words = f"the kernel that the attention backend {hub} fetches from the Hugging Face hub"
        return hub, words
    for name, words in _BEFORE.items():
        if {f"pkg:{name}", f"named:{name}"} & seen.versions.keys():
            return name, words
    return "", ""


def reported(seen: Seen, answer: Answer, gpu: Gpu | None) -> Answer:
    """bitsandbytes' words with both of those who may lack the code; any other answer as it is.

    csrc/ops.cu checks each launch by cudaPeekAtLastError, which has what the last launch that
    nobody looked at left behind, whosever it was.
    """
    if answer.owner != "bitsandbytes" or not of_bitsandbytes(seen):
        return answer
    version = version_of(seen, "bitsandbytes")
    name = " ".join(("bitsandbytes", version)) if version else "bitsandbytes"
    which = f"{shown(seen, gpu)}, which runs {what_would_run(gpu.capability)}" if gpu else (
        "the GPU at hand, which the text does not name"
    )  # fmt: skip
    owner, other = _before(seen)
    who = "an extension that started a kernel before it and did not look has none"
    if other:
        cause = (
            f"bitsandbytes reports that a kernel has no code for {which}. Its check after each "
            "launch takes the last error of the process, whosever it is: either "
            f"{who}, here most likely {other}, or {name} itself has none."
        )
    else:
        cause = (
            f"bitsandbytes reports that a kernel has no code for {which}: {name} itself most "
            "likely. But its check after each launch takes the last error of the process, "
            f"whosever it is: or {who} (an attention extension, in a model that has one)."
        )
    notes = [
        "The command with quantize_4bit runs bitsandbytes alone: where it prints a size, "
        "bitsandbytes has the code and only reported what another extension left behind; that "
        "one is to be built for this GPU then, or the program set to another attention (torch's "
        "own: in diffusers the backend native)."
    ]
    kept = [n for n in answer.notes if not (other and "by CMake" in n)]
    helps = [f"{seen.python} {_ALONE}", *answer.help]
    return replace(
        answer,
        owner=owner or answer.owner,
        cause=cause,
        confidence="medium",
        help=tuple(helps),
        notes=(*notes, *kept),
    )
