"""Answers to cpm_kernels, which loads kernels from files of its own and has words of its own."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Answerer, Seen


def kernels_of_cpm(seen: Seen) -> Answer:
    """``CUDA Error: no kernel image is available``, with a capital E, of cpm_kernels' ctypes."""
    gpu = seen.gpu or "this GPU"
    cause = (
        "cpm_kernels speaks here: it loads the kernels that its wheel has compiled (.fatbin) "
        f"with cuModuleLoadData, and they hold no code that {gpu} runs. Its newest release on "
        "the index (1.0.11) is of February 2022: GPUs that came later are not in it. torch's own "
        "kernels are others, and another torch does not change this."
    )
    return seen.answer(
        "gpu-arch", "FA504", cause, owner="cpm_kernels", direction=NONE, confidence="medium", help=(
            f"{seen.python} -c 'import torch; print(torch.cuda.get_device_name(), "
            "torch.cuda.get_device_capability())'",
            f"{seen.pip} show -f cpm_kernels",
        ), notes=(
            "The way out is to compile its kernels again from its sources (github.com/OpenBMB/"
            "cpm_kernels) for the capability that the first command prints, with a CUDA toolkit "
            "that knows it, and to install that build; or a model without its kernels (ChatGLM "
            "takes them for quantized weights alone).",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"cpm-kernels": kernels_of_cpm}
