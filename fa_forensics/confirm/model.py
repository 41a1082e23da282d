"""The words of a confirmation: what happened when the file was really loaded."""

from __future__ import annotations

from typing import Literal

from fa_forensics.records import dataclass

Status = Literal[
    "loads", "load-failed", "torch-import-failed", "crashed", "exited", "hung", "not-run"
]
StepStatus = Literal["ok", "failed", "not-run", "unfinished"]
Fatal = Literal["crashed", "exited", "hung"]
KernelStatus = Literal["ok", "failed", "crashed", "exited", "hung", "not-run"]

# What the child is doing in each step, to follow "crashed with SIGSEGV".
DOING = {
    "start": "while starting Python",
    "import-torch": "while importing torch, before the file was touched",
    "maps": "while listing the mapped libraries, after importing torch",
    "dlopen": "while dlopening {name}, in a static initialiser of it or of a library it needs",
    "maps-after": "while listing the mapped libraries, after {name} was loaded",
    "device": "while asking torch for a CUDA device",
    "kernel": "while launching a kernel",
    "done": "after all steps were done",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the child. `unfinished`: begun, and never came back."""

    name: str
    status: StepStatus
    detail: str
    ms: float


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What really happened when the file was loaded.

    status: `loads`: dlopen bound every symbol and every static initialiser came back, whatever
        the kernel did; `load-failed`: the loader refused, `loader_text` says why;
        `torch-import-failed`: torch itself did not import (error, crash, exit or time-out), so
        that the file was not reached; `crashed`, `exited`, `hung`: the process died by a signal,
        left by exit(), or did not come back, with the file being loaded; `not-run`: the child
        could not be started or is no usable Python.
    """

    status: Status
    detail: str  # one sentence
    loader_text: str | None = None  # verbatim
    signal: str | None = None  # such as "SIGSEGV"; None for the time-out's own SIGKILL
    exit_code: int | None = None  # None: ended by a signal or by the time-out, or never started
    steps: tuple[Step, ...] = ()
    mapped: tuple[str, ...] = ()  # real paths of the shared objects mapped before the dlopen
    mapped_after: tuple[str, ...] = ()  # and after it
    torch_version: str | None = None
    device: str | None = None
    kernel_status: KernelStatus = "not-run"
    kernel_detail: str = "the file was not loaded"
    elapsed_ms: float = 0.0
    stdout_tail: str = ""  # at most the last 64 KB
    stderr_tail: str = ""  # at most the last 64 KB
