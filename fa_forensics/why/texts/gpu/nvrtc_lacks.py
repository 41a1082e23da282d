"""NVRTC, CUDA's compiler at run time, that is older than the GPU: it comes with torch."""

from __future__ import annotations

import re

from fa_forensics.facts.drivers import CudaVersion, cuda_text, parse_cuda
from fa_forensics.facts.gpus import gpu_table
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_minors
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import with_variable
from fa_forensics.why.texts.clues import called, cuda_version, gpus_of
from fa_forensics.why.texts.gpu.torch_for_gpu import same_for, served, torch_index

#: Torch's own kernels that are compiled when they are first called: the fusers of TorchScript,
#: and since 1.11 operations on complex numbers (aten/src/ATen/native/cuda/jit_utils.cpp).
_FUSED = lazily(r"TorchScript|torch\.jit|jit_", re.IGNORECASE)
_NO_PART = (
    "NVRTC compiles torch's own kernels as the program runs (those that TorchScript fuses, for "
    "one) and comes with torch, for torch's CUDA version: the system's toolkit, the driver and "
    "the program's code play no part."
)


def _of_torch(seen: Seen) -> CudaVersion | None:
    """The CUDA of torch, where the text tells it."""
    told = "+cu" in (seen.torch or "") or "torch_cuda" in seen.versions
    return cuda_version(seen.torch_cuda) if told else None


def nvrtc_lacks(seen: Seen) -> Answer:
    """``nvrtc: error: invalid value for --gpu-architecture (-arch)``."""
    gpus, mine = gpus_of(seen)[:1], _of_torch(seen)
    family = gpu_table().family(gpus[0].capability) if gpus else None
    since = parse_cuda(family.since_cuda) if family is not None else None
    release = f"{seen.torch} (CUDA {cuda_text(mine)})" if mine else seen.torch
    name = f"The NVRTC of torch {release}" if release else "The NVRTC that torch brings"
    if since is None:
        cause = f"{name} does not know the architecture of the GPU: it is older than the GPU."
    else:
        cause = (
            f"{name} does not compile for {called(gpus[0])}: that takes CUDA {cuda_text(since)} "
            "or newer."
        )
    if since is not None and mine is not None and mine >= since:
        cause = (
            f"NVRTC does not compile for {called(gpus[0])}, which takes CUDA {cuda_text(since)} or "
            f"newer: that of torch {seen.torch} would, so that an older one is loaded in its place "
            "or another torch runs."
        )
        since = None
    commands, notes = _torch_with(seen, since) if since is not None else ((), ())
    if _FUSED.search(seen.mention.line):
        again = with_variable(seen, "PYTORCH_JIT=0", " ".join((seen.python, "YOUR_PROGRAM.py")))
        commands = (*commands, *again)
        notes = (
            *notes,
            "PYTORCH_JIT=0 has functions under @torch.jit.script run as plain Python, slower and "
            "without NVRTC; a model that torch.jit.load reads stays as it is.",
        )
    ask = (
        f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
        "torch.cuda.get_device_capability())'"
    )
    return seen.answer(
        "gpu-arch", "FA510", cause, owner="nvrtc", direction="none",
        confidence="high" if since is not None else "medium",
        help=(*commands, ask), notes=(_NO_PART, *notes),
    )  # fmt: skip


def _torch_with(seen: Seen, since: CudaVersion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, notes): the torch in use for a CUDA that is new enough, else the next that is."""
    own = re.match(r"(\d{1,2})\.(\d{1,2})", seen.torch or "")
    least = (int(own[1]), int(own[2])) if own else (0, 0)
    machine = seen.place.machine
    for minor in torch_minors(machine):
        if parse_cuda(minor) < least or not served(seen, minor):
            continue
        fitting = [one for one in cuda_of_minor(minor, machine) if parse_cuda(one) >= since]
        if not fitting:
            continue
        cuda = min(fitting, key=parse_cuda)
        if own is not None and parse_cuda(minor) == least and (same := same_for(seen, cuda)):
            return (same,), (_AGAIN,)
        return (torch_index(seen, f"torch=={minor}.*", cuda),), (
            f"torch {minor} is the first from there on that has a wheel for CUDA {cuda_text(since)}"
            f" or newer (CUDA {cuda}); newer ones do as well.",
            _AGAIN,
        )
    return (), ()


_AGAIN = (
    "torchvision, torchaudio and extensions that are compiled for the torch of now have to be "
    "installed or built again for the new one."
)
