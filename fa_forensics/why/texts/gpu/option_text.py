"""An attention package that a program's own option switches on: ``--xformers``."""

from __future__ import annotations

import shlex

from fa_forensics.facts.gpus import Gpu, capability_text
from fa_forensics.facts.python_api import partner_of
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import what_would_run
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import called
from fa_forensics.why.texts.gpu.gpu_code_owner import in_every_torch
from fa_forensics.why.texts.gpu.gpu_refusals import KIND

_PACKAGE = "xformers"


def by_its_option(seen: Seen, gpu: Gpu) -> Answer | None:
    """xformers lacks the code, where the program runs with --xformers and torch has it.

    None where the option is not in the text, or torch itself may lack the code.
    """
    if "flag:xformers-option" not in seen.versions or not in_every_torch(gpu):
        return None
    cause = (
        f"Most likely the xformers that is installed holds no code for {called(gpu)}, which runs "
        f"{what_would_run(gpu.capability)}: the program is started with --xformers, and all of "
        "torch's own wheels have code for that GPU."
    )
    release = partner_of(_PACKAGE, (seen.torch or "").partition("+")[0]) if seen.torch else None
    wanted = shlex.quote(f"{_PACKAGE}=={release}") if release else _PACKAGE
    how = "--force-reinstall" if release else "--upgrade"
    command = f"{seen.pip} install {how} --no-deps --no-cache-dir {wanted}"
    notes = [
        "Without --xformers the program takes torch's own attention, and needs no xformers: if it "
        "runs so, it is xformers. With torch 2 stable-diffusion-webui has --opt-sdp-attention in "
        "its place.",
        "The first command prints for which GPUs that xformers was compiled "
        "(build.env.TORCH_CUDA_ARCH_LIST).",
    ]
    if release is None:
        notes.append(
            "Each release of xformers is for one torch, and --no-deps leaves the torch that is "
            "there: 0.0.16 is for torch 1.13.1 (the first with wheels for Windows), 0.0.20 for "
            "2.0.1, 0.0.23.post1 for 2.1.2; the newest, which the command takes, for the newest "
            "torch."
        )
    notes.append(
        f"From source, TORCH_CUDA_ARCH_LIST={capability_text(gpu.capability)} gives it code for "
        "this GPU, with a compiler and the nvcc of torch's CUDA version."
    )
    return seen.answer(
        KIND, "FA504", cause, owner=_PACKAGE, direction="none", confidence="medium",
        help=(f"{seen.python} -m xformers.info", command), notes=tuple(notes),
    )  # fmt: skip
