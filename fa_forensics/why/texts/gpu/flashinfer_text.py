"""Answers about FlashInfer's kernels: which GPUs it serves, and how it comes to their code."""

from __future__ import annotations

import re

from fa_forensics.facts.gpus import Gpu, capability_text
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import what_would_run
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.build_targets import the_list
from fa_forensics.why.texts.clues import called, gpus_of, words_of
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, TORCH_ARCHS
from fa_forensics.why.texts.gpu.gpu_suspects import built_for, suspects
from fa_forensics.why.texts.gpu.gpu_torch_text import beliefs

_NAME = "flashinfer"
#: FlashInfer's README: "Support for SM75 (Turing) and later".
_FIRST = (7, 5)
#: A file that was compiled beforehand, and not on the machine that runs it.
_PREBUILT = lazily(r"prebuilt|pre-?compiled|jit[_-]cache|\bcubin|\+cu\d{3}torch", re.IGNORECASE)
#: Its name, and words of its kernels: ``SingleDecodeWithKVCache kernel launch failed``.
_OWN = lazily(r"flashinfer|With(?:Paged|Ragged)?KVCache|\bmoe_utils\b", re.IGNORECASE)
_OTHER_BACKEND = (
    "Without FlashInfer: SGLang takes --attention-backend triton (or torch_native), vLLM another "
    "one by --attention-backend or VLLM_ATTENTION_BACKEND; for fused MoE both have Triton's."
)


def of_flashinfer(seen: Seen) -> bool:
    """Whether a message is FlashInfer's, by its path, its words or the lines beside it."""
    detail = seen.mention.detail
    if _by_itself(seen):
        return True
    return detail.get("project") == _NAME and not suspects(seen)


def _by_itself(seen: Seen) -> bool:
    """Whether the message itself shows it, and not the lines around it alone."""
    mention = seen.mention
    said = f"{mention.line} {mention.file or ''} {mention.detail.get('part', '')}"
    return _OWN.search(said) is not None


def flashinfer_lacks(seen: Seen) -> Answer:
    """No code of FlashInfer's for the GPU: too old for it, or not in what was compiled."""
    gpu = next(iter(gpus_of(seen)[:1]), None)
    if gpu is not None and gpu.capability < _FIRST:
        return _never(seen, gpu)
    version = seen.versions.get("pkg:flashinfer-python") or seen.versions.get("pkg:flashinfer")
    name = " ".join(("FlashInfer", version)) if version else "FlashInfer"
    which = f"{called(gpu)}, which runs {what_would_run(gpu.capability)}" if gpu else "this GPU"
    cause = (
        f"The kernel is FlashInfer's: {name} holds no code for {which}, in the file that was "
        "started. Torch and the driver play no part."
    )
    if not _by_itself(seen):
        cause = (
            f"The kernel is most likely FlashInfer's, which the text names: {name} then holds no "
            f"code for {which}, in the file that was started. Torch and the driver play no part."
        )
    value = _target(gpu) if gpu else "X.Y"
    notes = [] if gpu else [
        "X.Y is the GPU's compute capability, as the first command prints it; before 7.5 there is "
        "no attention of FlashInfer's at all."
    ]  # fmt: skip
    first = built_for(seen, gpu) if gpu else None
    notes += [first] if first else []
    prebuilt = _PREBUILT.search(words_of(seen)) is not None
    if prebuilt:
        notes.append(
            "What is compiled beforehand (a wheel with +cuNNNtorchX.Y in its number, "
            "flashinfer-jit-cache, flashinfer-cubin) holds the GPUs that its makers chose: no "
            "variable changes that, a newer one, or kernels compiled here, may."
        )
    if gpu is not None and gpu.capability[0] == 12:
        notes.append(
            "Kernels that are written for compute capability 10.0 and 10.3 use instructions that "
            "12.x does not have: for these no build and no list of targets helps, only another "
            "backend, or a release of FlashInfer with kernels of its own for 12.x."
        )
    elif gpu is not None and gpu.capability >= (9, 0):
        notes += beliefs(gpu)[:1]
    notes.append(
        "flashinfer-python compiles its kernels where it runs, for the GPUs that it sees, and "
        "keeps them in ~/.cache/flashinfer: the list is read by FLASHINFER_CUDA_ARCH_LIST, and in "
        "older releases by TORCH_CUDA_ARCH_LIST, which is to be unset or to have this GPU."
    )
    notes.append(_OTHER_BACKEND)
    fixed = gpu is not None and gpu.capability[0] == 12 and prebuilt
    return seen.answer(
        KIND, "FA504", cause, owner=_NAME, direction="none",
        confidence="high" if gpu is not None and _by_itself(seen) else "medium",
        help=(
            f"{seen.python} {TORCH_ARCHS}",
            f"{seen.pip} install --upgrade --no-cache-dir flashinfer-python && "
            "rm -rf ~/.cache/flashinfer",
            *(() if fixed else (
                f'export FLASHINFER_CUDA_ARCH_LIST="{value}" TORCH_CUDA_ARCH_LIST="{value}"',
            )),
        ),
        notes=tuple(notes),
    )  # fmt: skip


def _target(gpu: Gpu) -> str:
    """The entry of FlashInfer's list: its kernels from 9.0 on take the form with an a."""
    return capability_text(gpu.capability) + ("a" if gpu.capability >= (9, 0) else "")


def _never(seen: Seen, gpu: Gpu) -> Answer:
    told = the_list(seen)
    cause = (
        f"The kernel is FlashInfer's, whose attention is made for compute capability 7.5 (Turing) "
        f"and newer: it has nothing for {called(gpu)}, and neither a rebuild nor another list of "
        "targets changes that. Torch and the driver play no part."
    )
    notes = [one for one in (built_for(seen, gpu),) if one] if told else []
    return seen.answer(
        KIND, "FA504", cause, owner=_NAME, direction="none",
        confidence="high" if _by_itself(seen) else "medium",
        help=(f"{seen.python} {TORCH_ARCHS}",),
        notes=(
            *notes,
            "Two ways out: a program that is set to another attention, or a GPU of compute "
            "capability 7.5 or newer.",
            _OTHER_BACKEND,
        ),
    )  # fmt: skip
