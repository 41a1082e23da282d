"""What a child's messages and its end come to, without a child."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fa_forensics.confirm.judge import REPORT_LOST, judge, messages
from fa_forensics.confirm.process import REPORT_BYTES, Ending

CHILD = Path(__file__).parent.parent / "fa_forensics" / "confirm" / "child.py"

KILLED = Ending(None, 9, False, b"", b"", b"", 100.0)


def line(step: str, status: str, pid: int = 1, nonce: str = "n", **facts: object) -> bytes:
    message = {"step": step, "status": status, "detail": "", "ms": 1.0, "pid": pid}
    message.update(facts, nonce=nonce)
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
            line("dlopen", "ok", nonce="guessed"),
            line("no-such-step", "ok"),
            line("dlopen", "no-such-status"),
            line("maps", "ok", files=["/lib/a.so", 3]),
            line("done", "ok")[:20],
        ]
    )
    assert [one["step"] for one in messages(report, "n")] == ["start", "maps"]


def test_a_kill_from_outside_hints_at_memory() -> None:
    report = line("start", "ok") + line("import-torch", "not-run") + line("dlopen", "begin")
    result = judge("/x/a.so", replace(KILLED, report=report), 60.0, "n")
    assert (result.status, result.signal) == ("crashed", "SIGKILL")
    assert "crashed with SIGKILL (often the kernel, out of memory) while dlopening a.so" in (
        result.detail
    )


def test_a_signal_without_a_name_has_its_number() -> None:
    report = line("start", "ok") + line("import-torch", "not-run") + line("dlopen", "begin")
    result = judge("/x/a.so", replace(KILLED, report=report, signal=40), 60.0, "n")
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
    result = judge("/x/a.so", replace(KILLED, report=report), 60.0, "n")
    assert (result.status, result.kernel_status) == (status, kernel)


LEFT = replace(KILLED, exit_code=0, signal=None)


def report_with(*steps: str) -> bytes:
    return b"".join(line(*step.split()) for step in ("start ok", "import-torch ok", *steps))


@pytest.mark.parametrize("steps", [("dlopen begin", "maps-after ok", "done ok"), ("done ok",)])
def test_a_whole_report_without_the_load_is_damaged(steps: tuple[str, ...]) -> None:
    result = judge("/x/a.so", replace(LEFT, report=report_with(*steps)), 60.0, "n")
    assert (result.status, result.exit_code) == ("not-run", 0)
    assert "the report was damaged" in result.detail


def test_a_full_report_without_the_load_is_damaged() -> None:
    report = report_with("dlopen begin").ljust(REPORT_BYTES, b"[")
    result = judge("/x/a.so", replace(LEFT, report=report), 60.0, "n")
    assert result.status == "not-run"
    assert "the report was damaged" in result.detail


@pytest.mark.parametrize("load", ["dlopen ok", "dlopen failed"])
def test_a_process_that_says_it_is_done_and_crashes_is_not_believed(load: str) -> None:
    report = report_with("dlopen begin", load, "maps-after ok", "done ok")
    result = judge("/x/a.so", replace(KILLED, report=report, signal=6), 60.0, "n")
    assert (result.status, result.signal, result.kernel_status) == ("crashed", "SIGABRT", "not-run")
    assert result.detail == "The process crashed with SIGABRT after all steps were done."


@pytest.mark.parametrize(
    ("steps", "status", "words"),
    [
        (["import-torch begin"], "not-run", "torch closed the descriptor"),
        (["import-torch failed"], "torch-import-failed", "torch does not import"),
        (["import-torch ok", "dlopen begin"], "not-run", "the file closed the descriptor"),
        (["import-torch ok", "dlopen failed"], "load-failed", "The loader refuses a.so"),
        (["import-torch ok", "dlopen ok"], "loads", "a.so loads under Python"),
    ],
)
def test_a_lost_report_leaves_what_was_said_before(
    steps: list[str], status: str, words: str
) -> None:
    report = line("start", "ok") + b"".join(line(*step.split()) for step in steps)
    lost = replace(LEFT, exit_code=REPORT_LOST, report=report)
    result = judge("/x/a.so", lost, 60.0, "n")
    assert (result.status, result.kernel_status) == (status, "not-run")
    assert words in result.detail


def test_the_child_and_the_judge_have_one_code_for_a_lost_report() -> None:
    assert f"\nREPORT_LOST = {REPORT_LOST} " in CHILD.read_text()
