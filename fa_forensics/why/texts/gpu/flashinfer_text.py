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
#: FlashInfer says so of each of its kernels, named in capitals: "RMSNorm failed with error code".
_FAILED = lazily(
    r"\b(?!C[uU]|G[pP][uU])[A-Z](?=\w{0,58}[a-z])(?=\w{0,58}[A-Z])\w{2,59} failed with error"
    r"(?: code)?:? (?:no kernel image|invalid device function)"
)
FLASHINFER = ("flashinfer", "flashinfer-python")
_OTHER_BACKEND = (
    "Without FlashInfer: SGLang takes --attention-backend triton (or torch_native), vLLM another "
    "one by --attention-backend or VLLM_ATTENTION_BACKEND; for fused MoE both have Triton's."
)


#: A wheel of before July 2025: the kernels compiled beforehand, for one CUDA and one torch.
_LABELLED = lazily(
    r"flashinfer[-_a-z ]{0,8}(?P<version>0\.[0-2]\.\d{1,2})(?:\.?post\d)?\+(?P<cuda>cu\d{3})"
    r"(?P<torch>torch\d\.\d{1,2})"
)
#: The first release whose wheels have code for 7.5 (FlashInfer's README of August 2024), and the
#: first one under the name flashinfer-python.
_TURING, _RENAMED = (0, 1, 6), (0, 2, 1)
_AS_IT_RUNS = (
    "flashinfer-python compiles its kernels where it runs, for the GPUs that it sees, and "
    "keeps them in ~/.cache/flashinfer: the list is read by FLASHINFER_CUDA_ARCH_LIST, and in "
    "older releases by TORCH_CUDA_ARCH_LIST, which is to be unset or to have this GPU."
)
_THEN = (
    "Without FlashInfer: SGLang of that time takes --disable-flashinfer (0.2 and 0.3), newer ones "
    "--attention-backend triton; vLLM reads VLLM_ATTENTION_BACKEND."
)


def _labelled(seen: Seen) -> tuple[tuple[int, ...], str] | None:
    """(release, address of its index) of a wheel +cuNNNtorchX.Y under the name flashinfer."""
    told = "\n".join(
        (words_of(seen), "".join(("flashinfer-", seen.versions.get("pkg:flashinfer", ""))))
    )
    found = _LABELLED.search(told)
    if found is None:
        return None
    release = tuple(int(part) for part in found["version"].split("."))
    if release >= _RENAMED:
        return None
    return release, f"https://flashinfer.ai/whl/{found['cuda']}/{found['torch']}/"


def without_flashinfer(seen: Seen) -> str:
    """How the programs that call it are set to do without, by the time of the text's release."""
    early = re.match(r"0\.[0-3]\.", seen.versions.get("pkg:sglang", "")) is not None
    return _THEN if early or _labelled(seen) is not None else _OTHER_BACKEND


def _newer(seen: Seen, gpu: Gpu | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes) to take a newer FlashInfer, under the name that is installed."""
    here = _labelled(seen)
    gone = "rm -rf ~/.cache/flashinfer"
    plain = f"{seen.pip} install --upgrade --no-cache-dir flashinfer-python && {gone}"
    if here is None:
        return (plain,), ()
    release, index = here
    if (gpu is None or gpu.capability == _FIRST) and release < _TURING:
        wanted = ".".join(map(str, _TURING))
        return (
            f"{seen.pip} install --no-cache-dir --no-deps flashinfer=={wanted} -i {index}",
        ), (
            f"The wheels of flashinfer have code for 7.5 (T4, RTX 20) since {wanted}, and those "
            "before begin with 8.0: the command takes that release for the same CUDA and torch.",
            "flashinfer-python, the name since 0.2.1, fills the same directory: not over it, but "
            "after pip uninstall -y flashinfer, and with the release of the program (SGLang, "
            "vLLM) that is written for it.",
            _THEN,
        )  # fmt: skip
    return (f"{seen.pip} uninstall -y flashinfer && {plain}",), (
        "flashinfer-python is the name of FlashInfer since 0.2.1 and fills the same directory, so "
        "that the old one goes first; the program that calls it (SGLang, vLLM) has to be of a "
        "release that is written for it, and is upgraded with it.",
        _THEN,
    )  # fmt: skip


def in_its_words(seen: Seen) -> bool:
    """Whether a message is in the words of FlashInfer's kernels, which sgl-kernel has too."""
    return _FAILED.search(seen.mention.line) is not None


#: FlashInfer's words for its kernels are those of sgl-kernel too, which has them from there.
EITHER = "FlashInfer, or sgl-kernel, which has FlashInfer's kernels too,"


def either_lacks(which: str) -> str:
    """The cause where only the words of the message tell that it is one of the two."""
    return (
        f"{EITHER} holds no code for {which}: the words are those of its kernels. What was "
        "compiled leaves that GPU out; torch and the driver play no part."
    )


def _named(seen: Seen, names: tuple[str, ...]) -> bool:
    return any(f"{key}:{one}" in seen.versions for key in ("pkg", "named") for one in names)


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
    beside = mention.detail.get("project") == _NAME or _named(seen, FLASHINFER)
    if in_its_words(seen) and beside and not _named(seen, ("sgl-kernel",)):
        return True
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
    old = _labelled(seen) is not None
    notes = [] if gpu or old else [
        "X.Y is the GPU's compute capability, as the first command prints it; before 7.5 there is "
        "no attention of FlashInfer's at all."
    ]  # fmt: skip
    first = built_for(seen, gpu) if gpu else None
    again, more = _newer(seen, gpu)
    notes += [*([first] if first else []), *more]
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
    notes += [] if old else [_AS_IT_RUNS, without_flashinfer(seen)]
    fixed = gpu is not None and gpu.capability[0] == 12 and prebuilt
    return seen.answer(
        KIND, "FA504", cause, owner=_NAME, direction="none",
        confidence="high" if gpu is not None and _by_itself(seen) else "medium",
        help=(
            f"{seen.python} {TORCH_ARCHS}",
            *again,
            *(() if fixed or old else (
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
            without_flashinfer(seen),
        ),
    )  # fmt: skip
