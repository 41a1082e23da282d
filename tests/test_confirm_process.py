"""Running a child within bounds, whatever the child is."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from fa_forensics.confirm.process import Sink, has_ended, pump, run


def test_a_sink_keeps_its_end_or_its_beginning() -> None:
    head, tail = Sink(5, keep_head=True), Sink(5, keep_head=False)
    for chunk in (b"abc", b"defg", b"hi"):
        head.add(chunk)
        tail.add(chunk)
    assert (bytes(head.data), bytes(tail.data)) == (b"abcde", b"efghi")


def test_what_a_child_wrote_before_it_ended_is_read() -> None:
    read_end, write_end = os.pipe()
    child = subprocess.Popen(["sh", "-c", "printf last; kill -9 $$"], stdout=write_end)
    os.close(write_end)
    while not has_ended(child.pid):
        time.sleep(0.01)
    sink = Sink(100, keep_head=True)
    assert pump(child.pid, {read_end: sink}, time.monotonic() + 60)
    os.close(read_end)
    assert (bytes(sink.data), child.wait()) == (b"last", -9)


def test_a_report_without_end_is_cut_and_does_not_block() -> None:
    script = "import os, sys\nfor _ in range(500): os.write(int(sys.argv[1]), b'x' * 65536)"
    ending = run(lambda fd: [sys.executable, "-c", script, str(fd)], os.environ, 60.0)
    assert (ending.exit_code, ending.timed_out) == (0, False)
    assert len(ending.report) == 4 * 1024 * 1024


def test_a_command_that_cannot_start_leaves_no_descriptor_open() -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        try:
            run(lambda fd: ["/no/such/program"], os.environ, 60.0)
        except FileNotFoundError:
            continue
        raise AssertionError("a program that is not there was started")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_run_leaves_no_descriptor_and_no_child_behind() -> None:
    before = os.listdir("/proc/self/fd")
    assert run(lambda fd: ["true"], os.environ, 60.0).exit_code == 0
    assert run(lambda fd: ["sleep", "60"], os.environ, 0.2).timed_out
    assert len(os.listdir("/proc/self/fd")) == len(before)
    children = f"/proc/self/task/{os.getpid()}/children"
    if os.path.exists(children):
        with open(children) as text:
            assert text.read().split() == []
