"""Two frameworks in one process that register one C++ type with pybind11."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen

#: The name that Paddle alone gives to CUDA's cudaDeviceProp (paddle/fluid/pybind/pybind.cc); torch
#: registers the same type as _CudaDeviceProperties (torch/csrc/cuda/Module.cpp).
_PADDLES = "_gpuDeviceProperties"


def torch_beside_paddle(seen: Seen, name: str) -> Answer | None:
    """The answer where the type, or the text, names Paddle; None for others."""
    if name != _PADDLES and not seen.mention.detail.get("paddle"):
        return None
    whose = (
        f"{name} is Paddle's name for a C++ type of CUDA (cudaDeviceProp) that torch registers too"
        if name == _PADDLES
        else f"Most likely torch and Paddle both register the C++ type {name}"
    )
    return seen.answer(
        "python-abi", "FA893",
        f"{whose}: where both are imported in one process and were built with the same pybind11 "
        "internals, they share one table of types, and the second one finds the type registered. "
        "Neither installation is damaged, and each works without the other.",
        owner="paddle", direction="none",
        confidence="high" if name == _PADDLES else "medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__)'",
            f"{seen.python} -c 'import paddle; print(paddle.__version__)'",
        ),
        notes=(
            "Where each of the two commands works alone, a process for each framework "
            "(subprocess, multiprocessing with spawn, or an environment for each) is the way that "
            "lasts.",
            "Where Paddle needs no GPU, its build for the CPU has no such type: "
            f"{seen.pip} uninstall -y paddlepaddle-gpu, then {seen.pip} install paddlepaddle.",
            "Another release of either that was built with another pybind11 gets past it too, as "
            "long as that lasts. Where a package imports the second framework by itself, what "
            "asks for it is to be left out.",
        ),
    )  # fmt: skip


def nccl_of_paddle(answer: Answer, seen: Seen) -> Answer:
    """torch lacks a name of NCCL beside Paddle: a process has one libnccl.so.2, the first."""
    cause = (
        f"{answer.cause} The text is of PaddlePaddle beside torch: a process has one libnccl.so.2, "
        "the one that is loaded first, so most likely Paddle has loaded its own, older one before "
        "torch; or the installation of Paddle put an older wheel of it in the place of torch's."
    )
    pins = [text for text in answer.help if "nvidia-nccl" in text]
    return replace(
        answer, cause=cause, confidence="medium",
        help=(
            f"{seen.python} -c 'import torch; import paddle'",
            f"{seen.pip} list | grep -iE 'nccl|paddle|^torch '",
            *pins,
            *answer.help[-1:],
        ),
        notes=(
            "Where the first command works, the order is what counts: torch is imported before "
            "Paddle, in the first line of the program. Where it does not, the wheel is the older "
            "one: the command that installs it puts torch's back.",
            "An environment for each of the two is what lasts: both ask for one version of NCCL, "
            "each for its own.",
            *answer.notes[:2],
        ),
    )  # fmt: skip
