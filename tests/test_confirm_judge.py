"""What a child's messages and its end come to, without a child."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fa_forensics.confirm.judge import judge, messages
from fa_forensics.confirm.process import Ending

KILLED = Ending(None, 9, False, b"", b"", b"", 100.0)


def line(step: str, status: str, pid: int = 1, **facts: object) -> bytes:
    message = {"step": step, "status": status, "detail": "", "ms": 1.0, "pid": pid, **facts}
    return json.dumps(message).encode() + b"\n"


def test_only_whole_messages_of_the_first_process_are_heard() -> None:
    report = b"".join(
        [
            line("start", "ok"),
            b"\n",
            b"INFO: not JSON\n",
            b"[" * 100_000 + b"\n",
            b'{"step": "dlopen"}\n',
            b"[1]\n",
            b"null\n",
            b"\xff\xfe\n",
            line("dlopen", "ok", pid=2),
            line("no-such-step", "ok"),
            line("dlopen", "no-such-status"),
            line("maps", "ok", files=["/lib/a.so", 3]),
            line("done", "ok")[:20],
        ]
    )
    assert [one["step"] for one in messages(report)] == ["start", "maps"]


def test_a_kill_from_outside_hints_at_memory() -> None:
    report = line("start", "ok") + line("import-torch", "not-run") + line("dlopen", "begin")
    result = judge("/x/a.so", replace(KILLED, report=report), 60.0)
    assert (result.status, result.signal) == ("crashed", "SIGKILL")
    assert "crashed with SIGKILL (often the kernel, out of memory) while dlopening a.so" in (
        result.detail
    )


def test_a_signal_without_a_name_has_its_number() -> None:
    report = line("start", "ok") + line("import-torch", "not-run") + line("dlopen", "begin")
    result = judge("/x/a.so", replace(KILLED, report=report, signal=40), 60.0)
    assert result.signal == "signal 40"


@pytest.mark.parametrize(
    ("steps", "status", "kernel"),
    [
        (["dlopen ok"], "crashed", "not-run"),
        (["dlopen ok", "maps-after begin"], "crashed", "not-run"),
        (["dlopen ok", "maps-after ok"], "loads", "crashed"),
        (["dlopen ok", "maps-after failed"], "loads", "crashed"),
        (["dlopen ok", "maps-after ok", "device begin"], "loads", "crashed"),
        (["dlopen ok", "maps-after ok", "device ok", "kernel begin"], "loads", "crashed"),
        (["dlopen ok", "maps-after ok", "device ok", "kernel ok"], "loads", "ok"),
        (["dlopen ok", "maps-after ok", "device not-run", "kernel not-run"], "loads", "not-run"),
        (["dlopen not-run", "done ok"], "not-run", "not-run"),
        (["dlopen failed"], "load-failed", "not-run"),
    ],
)
def test_the_first_step_that_went_wrong_decides(steps: list[str], status: str, kernel: str) -> None:
    report = line("start", "ok") + line("import-torch", "ok")
    for step in steps:
        name, outcome = step.split()
        report += line(name, outcome)
    result = judge("/x/a.so", replace(KILLED, report=report), 60.0)
    assert (result.status, result.kernel_status) == (status, kernel)
