"""Run one child process: bounded in time and memory, every way to end it told apart.

The child may crash, hang, print for ever, or leave processes behind. Nothing here knows what the
child does; `parent` gives that its meaning.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fa_forensics.records import dataclass

if TYPE_CHECKING:
    import subprocess

TAIL_BYTES = 64 * 1024  # kept of each of stdout and stderr
REPORT_BYTES = 4 * 1024 * 1024  # a healthy report is some 50 KB
MARK = "FA_FORENSICS_CHILD"  # environment variable: a random text that names one run
POLL_S = 0.05  # how often to look for a dead child whose pipes a grandchild keeps open
KILL_ROUNDS = 5
REAP_S = 5.0  # a process stuck inside a driver does not end even when killed


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child process ended, and what it left."""

    exit_code: int | None  # None: it was ended by a signal, or by the time-out
    signal: int | None  # the number of the signal that ended it; None: it exited or timed out
    timed_out: bool
    report: bytes  # the first REPORT_BYTES that it wrote on the report descriptor
    stdout_tail: bytes  # the last TAIL_BYTES
    stderr_tail: bytes  # the last TAIL_BYTES
    elapsed_ms: float


class Sink:
    """Collects bytes up to a limit: the first ones (`keep_head`) or the last."""

    def __init__(self, limit: int, *, keep_head: bool) -> None:
        self.limit = limit
        self.keep_head = keep_head
        self.data = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take a chunk; what is over the limit is dropped."""
        if self.keep_head:
            self.data += chunk[: self.limit - len(self.data)]
        else:
            self.data += chunk
            if len(self.data) > self.limit:
                del self.data[: -self.limit]


def run(
    make_command: Callable[[int], Sequence[str]], env: Mapping[str, str], timeout_s: float
) -> Ending:
    """Run a command in a session and an empty folder of its own.

    `make_command` gets the number of the report descriptor, which the child inherits.
    At the time-out, and when an exception (KeyboardInterrupt, SystemExit from a signal handler)
    ends the wait, the child's whole process group is killed; so is whatever the child leaves
    behind, even in a session of its own, as long as it keeps the environment variable MARK and
    may be looked at (same user, dumpable). OSError if the command cannot be started.
    """
    import subprocess
    import tempfile
    import time

    mark = os.urandom(16).hex()
    started = time.monotonic()
    report_end, child_end = os.pipe()
    try:
        with tempfile.TemporaryDirectory(prefix="confirm-", ignore_cleanup_errors=True) as folder:
            try:
                child = subprocess.Popen(
                    make_command(child_end),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env={**env, MARK: mark},
                    pass_fds=(child_end,),
                    start_new_session=True,
                )
            except BaseException:  # a signal handler may raise when the child runs already
                kill_marked(mark)
                raise
            finally:
                os.close(child_end)
            return watch(child, report_end, started, timeout_s, mark)
    finally:
        os.close(report_end)


def watch(
    child: subprocess.Popen[bytes], report_end: int, started: float, timeout_s: float, mark: str
) -> Ending:
    """Collect what the child writes until it ends or the time is up; then kill what is left."""
    import time

    assert child.stdout is not None and child.stderr is not None
    report = Sink(REPORT_BYTES, keep_head=True)
    out = Sink(TAIL_BYTES, keep_head=False)
    err = Sink(TAIL_BYTES, keep_head=False)
    pipes = {report_end: report, child.stdout.fileno(): out, child.stderr.fileno(): err}
    try:
        ended = pump(child.pid, pipes, started + timeout_s)
    finally:
        code = kill_group(child, mark)
        child.stdout.close()
        child.stderr.close()
    return Ending(
        exit_code=code if ended and code >= 0 else None,
        signal=-code if ended and code < 0 else None,
        timed_out=not ended,
        report=bytes(report.data),
        stdout_tail=bytes(out.data),
        stderr_tail=bytes(err.data),
        elapsed_ms=(time.monotonic() - started) * 1000,
    )


def kill_group(child: subprocess.Popen[bytes], mark: str) -> int:
    """Kill all that the child left and reap it; its return code as Popen has it."""
    import contextlib
    import signal
    import subprocess

    # A dead child is not reaped yet, so that its number still names its own group alone; unless
    # the calling program ignores SIGCHLD, when there may be no such group any more.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    kill_marked(mark)
    try:
        return child.wait(REAP_S)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL


def kill_marked(mark: str) -> None:
    """Kill the processes with the mark of a run; again, for those started in the meantime."""
    import contextlib
    import signal

    for _ in range(KILL_ROUNDS):
        pids = marked(mark)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """The processes that inherited the mark of a run, whatever session they are in."""
    entry = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environ:
                if entry in environ.read().split(b"\0"):
                    found.append(int(name))
        except OSError:  # it has just ended, or belongs to somebody else
            continue
    return found


def pump(pid: int, pipes: Mapping[int, Sink], deadline: float) -> bool:
    """Read the pipes until the child has ended; False if the deadline (monotonic) came first."""
    import selectors
    import time

    with selectors.DefaultSelector() as selector:
        for fd in pipes:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        while not has_ended(pid):
            if time.monotonic() >= deadline:
                return False
            # With every pipe at its end, the child is about to be gone.
            for key, _ in selector.select(POLL_S if selector.get_map() else POLL_S / 50):
                if not read_once(key.fd, pipes[key.fd]):
                    selector.unregister(key.fd)
    # What the child wrote is in the pipes; no waiting for their end, which may never come: a
    # process that it left behind can hold them open.
    for fd, sink in pipes.items():
        drain(fd, sink)
    return True


def read_once(fd: int, sink: Sink) -> bool:
    """Read what is there, at most 64 KB; False at the end of the pipe."""
    try:
        chunk = os.read(fd, 65536)
    except BlockingIOError:
        return True
    sink.add(chunk)
    return bool(chunk)


def drain(fd: int, sink: Sink) -> None:
    """Take what is left in the pipe of an ended child: never more than a pipe can hold (1 MB)."""
    for _ in range(16):
        if not read_once(fd, sink):
            return


def has_ended(pid: int) -> bool:
    """Whether the child has ended, without reaping it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError as error:
        if error.errno == errno.ECHILD:  # the calling program ignores SIGCHLD: reaped already
            return True
        raise
