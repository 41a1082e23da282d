"""Answers to errors of the CUDA runtime that are of the run: every file was found and loaded."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import flash_rows, gpus_of, inspect_package, package_by_words

#: What an error of a sort is about.
_MEANS = {
    "kernel": (
        "A kernel went wrong while it ran, by an address or an instruction of its own: every "
        "library was found and the code runs on this GPU. CUDA reports that at a later call, so "
        "that the line of the traceback need not be the one."
    ),
    "launch": (
        "The GPU refuses the launch of a kernel as it was asked for: by its arguments, its sizes, "
        "or for want of registers and shared memory. Every library was found."
    ),
    "handle": (
        "A stream, an event, an address or a context was used that is not one of this device or is "
        "gone already: another device than the current one, or another thread or process (after "
        "fork)."
    ),
    "device": (
        "The program asks for a GPU by a number that this process does not have: "
        "CUDA_VISIBLE_DEVICES, the scheduler or the container gives it fewer."
    ),
    "hardware": (
        "The GPU's memory or its links report an error of the hardware: no build and no version "
        "plays a part."
    ),
    "capture": (
        "The call is not allowed while a CUDA graph is captured: something in the captured part "
        "synchronises, allocates or uses another stream."
    ),
    "support": "The device, the driver or the system does not support what the program asked for.",
    "peer": "The GPUs cannot reach each other's memory, or are asked to twice.",
    "timeout": (
        "The system ended a kernel that ran too long: the GPU drives a display, where a kernel has "
        "a few seconds."
    ),
    "unknown": (
        "CUDA could not be started in this process, or its driver lost the device: after suspend, "
        "after fork, after an error of the driver."
    ),
    "ptx": (
        "The driver could not compile the PTX that a kernel comes as: it is damaged or asks for "
        "what this GPU or driver has not."
    ),
    "jit-disabled": (
        "The kernel comes as PTX alone for this GPU, and compiling PTX is switched off "
        "(CUDA_DISABLE_PTX_JIT)."
    ),
    "mps": "The MPS service that shares the GPU between processes is not there or is full.",
    "lib": (
        "The CUDA runtime could not load a kernel's module into the device: the file is not "
        "whole, or was linked in another way than its runtime."
    ),
}
_LOOK = {
    "device": ("nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES",),
    "hardware": ("nvidia-smi -q -d ECC,PAGE_RETIREMENT; dmesg | grep -i xid",),
    "peer": ("nvidia-smi topo -m",),
    "unknown": ("nvidia-smi; dmesg | grep -iE 'xid|nvrm' | tail",),
    "jit-disabled": ("env | grep CUDA_",),
    "mps": ("nvidia-smi; ps aux | grep mps",),
}
_BLOCKING = "CUDA_LAUNCH_BLOCKING=1 python SCRIPT.py"
#: The sorts that a kernel itself causes: its own tools find it.
_OF_KERNELS = ("kernel", "launch", "handle", "ptx", "lib")
_LAYOUT = (
    "Where the kernel is that package's, one question of files is left: a build for another torch "
    "minor release loads, and reads torch's classes at other places than they are laid out. The "
    "last command tells which torch it was built for."
)


def cuda_error(seen: Seen) -> Answer:
    """``CUDA error: an illegal memory access was encountered``, and its like."""
    detail = seen.mention.detail
    sort = detail["sort"]
    words = f"{detail.get('place', '')} {detail.get('frames', '')} {seen.mention.line}"
    package = package_by_words(words.replace("-", "_"))
    if sort == "launch" and (hopper := _of_hopper(seen)) is not None:
        return hopper
    helps = list(_LOOK.get(sort, (_BLOCKING,)))
    notes = []
    if sort == "kernel":
        helps.append("compute-sanitizer python SCRIPT.py")
        notes.append(
            "compute-sanitizer comes with the CUDA toolkit and names the kernel and the address."
        )
    if sort in _OF_KERNELS and package is not None:
        helps.append(inspect_package(seen, package))
        notes.append(_LAYOUT)
    cause = (
        f'{_MEANS[sort]} This is {detail["error"]} ("{detail["text"]}"), an error of the run and '
        "no question of which file was loaded."
    )
    return seen.answer(
        "unrecognised", "FA897", cause, owner=package, direction="unknown",
        confidence="medium", help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _of_hopper(seen: Seen) -> Answer | None:
    """FlashAttention 3's launch on a GPU that is no Hopper: its kernels are of 9.0a alone."""
    place = seen.mention.detail.get("place", "")
    gpus = gpus_of(seen)[:1]
    if "hopper" not in place or (gpus and gpus[0].capability[0] == 9):
        return None
    rows = flash_rows(seen, None)
    if not rows:
        return None
    from fa_forensics.why.texts.gpu.gpu_text import no_kernel

    return no_kernel(seen)


ANSWERERS: dict[str, Answerer] = {"cuda-error": cuda_error}
