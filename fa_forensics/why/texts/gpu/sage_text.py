"""SageAttention: which GPUs its own check refuses, and which of its modules serves which GPU."""

from __future__ import annotations

from fa_forensics.facts.gpus import Capability, Gpu, capability_text, gpu_table
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import called, named
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, TORCH_ARCHS

PACKAGE = "sageattention"
#: SageAttention's README and sageattention/core.py: sm80 is the first that it has a kernel for.
_FIRST: Capability = (8, 0)
#: setup.py and core.py: the module that a GPU's kernels are in, where it is not its own number.
_SERVED: dict[str, tuple[Capability, ...]] = {
    "80": ((8, 0), (8, 6)),
    "89": ((8, 9), (12, 0), (12, 1)),
    "90": ((9, 0),),
}
_WITHOUT = (
    "The program then takes torch's own attention (scaled_dot_product_attention); where it has a "
    "setting for SageAttention (ComfyUI's --use-sage-attention, an attention_mode), that goes too."
)


def refused_by_sage(seen: Seen, gpu: Gpu) -> Answer:
    """``Unsupported CUDA architecture: sm75``, of sageattention/core.py."""
    gone = f"{seen.pip} uninstall -y {PACKAGE}"
    if gpu.capability < _FIRST:
        cause = (
            f"SageAttention's own check refuses {named(gpu)}: that GPU is older than all it has "
            "kernels for, which begin with compute capability 8.0. No driver, CUDA toolkit or "
            "rebuild changes that."
        )
        notes: tuple[str, ...] = (_WITHOUT,)
        helps: tuple[str, ...] = (gone, f"{seen.python} {TORCH_ARCHS}")
    else:
        cause = (
            f"SageAttention's own check refuses {named(gpu)}: the release that is installed does "
            "not have that GPU among those that it chooses a kernel for. No driver and no CUDA "
            "toolkit changes that; a newer state of its source may have it."
        )
        notes = (f"Without SageAttention: {gone}.", _WITHOUT)
        helps = (
            gone,
            f"{seen.pip} install --no-build-isolation --no-cache-dir --no-deps "
            "git+https://github.com/thu-ml/SageAttention",
            f"{seen.python} {TORCH_ARCHS}",
        )
    return seen.answer(
        KIND, "FA507", cause, owner=PACKAGE, direction="none", confidence="high",
        help=helps, notes=notes,
    )  # fmt: skip


def served_by(gpu: Gpu, flag: str) -> str:
    """What a module has to do with the GPU that the text names, as sentences; "" for nothing."""
    if gpu.capability in _SERVED.get(flag, ()):
        return f" {called(gpu)} is served by this very module."
    if gpu.capability < _FIRST:
        return f" SageAttention has no kernel for {called(gpu)} at all: it begins with 8.0."
    return ""


def build_notes(gpu: Gpu) -> tuple[str, ...]:
    """What its build takes for a GPU."""
    family = gpu_table().family(gpu.capability)
    number = capability_text(gpu.capability)
    # setup.py asks for a newer nvcc than the architecture itself does.
    since = {(8, 9): "12.4", (9, 0): "12.3"}.get(gpu.capability)
    since = since or (family.since_cuda if family is not None else None)
    if since is None:
        return ()
    return (
        f"For {number} its build takes the nvcc of CUDA {since} or newer (CUDA_HOME), and that GPU "
        f"in the machine or TORCH_CUDA_ARCH_LIST={number}.",
    )
