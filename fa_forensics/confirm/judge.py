"""From what the child reported and how it ended to a Confirmation. Pure: nothing is run here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fa_forensics.confirm.model import (
    DOING,
    Confirmation,
    Fatal,
    KernelStatus,
    Status,
    Step,
    StepStatus,
)
from fa_forensics.confirm.process import REPORT_BYTES, Ending

Message = dict[str, Any]
REPORT_LOST = 193  # exit code of a child that cannot write its report; child.py has the same
DAMAGED = "the report was damaged: something wrote on the descriptor that it goes through"
CLOSED = "the file closed the descriptor that the report goes through"
CLOSED_BEFORE = "torch closed the descriptor that the report goes through"
END_STATUS: dict[str, StepStatus] = {"ok": "ok", "failed": "failed", "not-run": "not-run"}


def messages(report: bytes, nonce: str) -> list[Message]:
    """The child's messages in order.

    Lines that are not its own (cut by a crash, or written by a library on a descriptor it
    guessed, without the nonce of the job) are left out: what they say cannot be trusted.
    """
    import json

    found: list[Message] = []
    for line in report.split(b"\n"):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if is_message(message, nonce) and (not found or message["pid"] == found[0]["pid"]):
            found.append(message)
    return found


def is_message(message: object, nonce: str) -> bool:
    """Whether a JSON value has the nonce and the shape of the child's messages."""
    if not isinstance(message, dict) or message.get("nonce") != nonce:
        return False
    return (
        message.get("step") in DOING
        and message.get("status") in (*END_STATUS, "begin")
        and isinstance(message.get("detail"), str)
        and isinstance(message.get("ms"), (int, float))
        and isinstance(message.get("pid"), int)
    )


def steps_of(found: Sequence[Message], elapsed_ms: float) -> tuple[Step, ...]:
    """One Step a step: begun and ended are paired, and the one that never ended is unfinished."""
    steps: dict[str, Step] = {}
    for one in found:
        name, detail = one["step"], one["detail"]
        status = END_STATUS.get(one["status"], "unfinished")
        steps[name] = Step(name, status, detail, float(one["ms"]))
    last = found[-1]
    if last["status"] == "begin":
        spent = sum(step.ms for step in steps.values() if step.status != "unfinished")
        open_step = steps[last["step"]]
        steps[last["step"]] = Step(
            open_step.name, "unfinished", open_step.detail, round(max(elapsed_ms - spent, 0.0), 3)
        )
    steps.pop("done", None)
    return tuple(steps.values())


def signal_name(number: int | None) -> str | None:
    """SIGSEGV for 11; "signal 40" for one without a name."""
    import signal

    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def tail_text(data: bytes) -> str:
    """Captured bytes as text; what is not UTF-8 is replaced."""
    return data.decode("utf-8", "replace")


def how_it_ended(ending: Ending) -> str:
    """The end of the process, to stand after a subject."""
    if ending.timed_out:
        return "did not finish in time"
    if ending.signal is not None:
        name = signal_name(ending.signal)
        hint = " (often the kernel, out of memory)" if name == "SIGKILL" else ""
        return f"crashed with {name}{hint}"
    return f"exited with code {ending.exit_code}"


def fatal_kind(ending: Ending) -> Fatal:
    """Which of the three ways to be cut short this ending is."""
    if ending.timed_out:
        return "hung"
    return "crashed" if ending.signal is not None else "exited"


def under_way(found: Sequence[Message]) -> str:
    """The step the child was in when its messages stopped.

    Between two steps the next one was under way, or the child was held up by a thread that the
    step before had started: the last one reported is all that is known.
    """
    return str(found[-1]["step"])


def judge(path: str, ending: Ending, timeout_s: float, nonce: str) -> Confirmation:
    """The Confirmation of a child that reported at least one message with the nonce."""
    found = messages(ending.report, nonce)
    results = {one["step"]: one for one in found if one["status"] != "begin"}
    name = os.path.basename(path)
    # The child leaves with code 0 right after "done". Whoever said it and ended otherwise was
    # somebody else, or something in the process was still running and brought it down.
    complete = "done" in results and ending.exit_code == 0
    doing = DOING[under_way(found)].format(name=name)
    fatal = how_it_ended(ending)
    if ending.timed_out:
        fatal = f"did not finish within {timeout_s:g} s"
    cut_short = f"The process {fatal} {doing}."

    status, detail = outcome(results, name, complete, cut_short, ending)
    kernel_status, kernel_detail = kernel_outcome(results, status, complete, cut_short, ending)
    torch = results.get("import-torch", {})
    device = results.get("device", {})
    failed_load = results.get("dlopen", {}).get("status") == "failed"
    return Confirmation(
        status=status,
        detail=detail,
        loader_text=results["dlopen"]["detail"] if failed_load else None,
        signal=signal_name(ending.signal),
        exit_code=ending.exit_code,
        steps=steps_of(found, ending.elapsed_ms),
        mapped=file_list(results.get("maps")),
        mapped_after=file_list(results.get("maps-after")),
        torch_version=text_or_none(torch.get("version")),
        device=device["detail"] if device.get("status") == "ok" else None,
        kernel_status=kernel_status,
        kernel_detail=kernel_detail,
        elapsed_ms=round(ending.elapsed_ms, 3),
        stdout_tail=tail_text(ending.stdout_tail),
        stderr_tail=tail_text(ending.stderr_tail),
    )


def outcome(
    results: dict[str, Message], name: str, complete: bool, cut_short: str, ending: Ending
) -> tuple[Status, str]:
    """Status and sentence: the first step that did not come back well decides."""
    start, torch, load = (results.get(step) for step in ("start", "import-torch", "dlopen"))
    if start is not None and start["status"] == "failed":
        return "not-run", f"The file was not loaded: {start['detail']}."
    lost = why_lost(results, ending)
    if lost is not None and load is None and (torch is None or torch["status"] != "failed"):
        return "not-run", f"What became of {name} is not known: {lost}."
    if start is None:
        return "not-run", f"The file was not loaded: {cut_short}"
    if torch is None:
        return "torch-import-failed", cut_short
    if torch["status"] == "failed":
        return "torch-import-failed", f"torch does not import: {first_line(torch['detail'])}"
    if load is None:
        return fatal_kind(ending), cut_short
    if load["status"] == "not-run":
        return "not-run", f"The file was not loaded: {load['detail']}."
    if "done" in results and not complete:
        return fatal_kind(ending), cut_short
    if load["status"] == "failed":
        return "load-failed", f"The loader refuses {name}: {first_line(load['detail'])}"
    # The maps after the load come at once: a process that dies there dies of what was loaded.
    if not complete and lost is None and "maps-after" not in results:
        return fatal_kind(ending), cut_short
    company = f" with {torch['detail']}" if torch["status"] == "ok" else " without torch"
    return "loads", f"{name} loads under {python_of(start)}{company}."


def why_lost(results: dict[str, Message], ending: Ending) -> str | None:
    """Why a result can be missing from the report of a child that left as it should.

    None if the child was cut short: that is then the reason.
    """
    if ending.exit_code == REPORT_LOST:
        return CLOSED if "import-torch" in results else CLOSED_BEFORE
    if ending.exit_code == 0 and ("done" in results or len(ending.report) >= REPORT_BYTES):
        return DAMAGED
    return None


def kernel_outcome(
    results: dict[str, Message], status: Status, complete: bool, cut_short: str, ending: Ending
) -> tuple[KernelStatus, str]:
    """Status and sentence of the kernel launch."""
    if status != "loads":
        return "not-run", "the file was not loaded"
    kernel, device = results.get("kernel"), results.get("device")
    lost = why_lost(results, ending)
    if kernel is None and lost is not None and (device is None or device["status"] == "ok"):
        return "not-run", lost
    if kernel is None and not complete and lost is None:
        return fatal_kind(ending), cut_short
    if device is not None and device["status"] != "ok":
        return "not-run", str(device["detail"])
    assert kernel is not None  # every way to be without it was taken above
    statuses: dict[str, KernelStatus] = {"ok": "ok", "failed": "failed", "not-run": "not-run"}
    return statuses[kernel["status"]], str(kernel["detail"])


def python_of(start: Message) -> str:
    """Such as "Python 3.11.7"."""
    return f"Python {start.get('version')}"


def first_line(text: str) -> str:
    """The first line of a text, and a hint that there was more."""
    head, _, rest = text.partition("\n")
    return head + (" ..." if rest.strip() else "")


def text_or_none(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def file_list(message: Message | None) -> tuple[str, ...]:
    """The files of a `maps` message."""
    files = message.get("files") if message else None
    if not isinstance(files, list):
        return ()
    return tuple(one for one in files if isinstance(one, str))
