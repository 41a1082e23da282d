"""How the ranks meet: each checks in, gives signs of life, hands in its facts, hears the end.

All of it goes through one store (``Store``): ``here/3`` is who rank 3 is, ``beat/3`` its
signs of life, ``facts/3`` the digest of its facts and ``body/DIGEST`` the facts themselves,
``failed/3`` why it has none, ``verdict`` the exit code of all, ``left/3`` its farewell.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import field

from fa_forensics.ranks.store import Launch, Store, StoreLost
from fa_forensics.records import dataclass
from fa_forensics.report import Evidence, Finding
from fa_forensics.report_compare import ANSWERED, DIED, FAILED, NEVER_ANSWERED, RankState

#: Seconds between two signs of life, and without any until a rank counts as dead. A rank that
#: only waits for a slow disk still gives signs: they come from a thread of their own.
BEAT, SILENT = 1.0, 30.0
#: Seconds between two looks at the store.
POLL = 0.2
#: Seconds that rank 0 keeps its store open for farewells.
FAREWELL = 10.0

_MOST_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class Here:
    """Who a rank is. ``machine`` tells whether its process can be looked for from here."""

    host: str
    pid: int
    machine: str


def this_process() -> Here:
    """The host and the process that this is."""
    node = os.uname().nodename
    return Here(node, os.getpid(), f"{node} {_boot_id()} {_pid_namespace()}")


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(64).strip()
    except OSError:
        return f"unknown to {os.getpid()}"  # then only signs of life count


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return f"unknown to {os.getpid()}"


def process_is_gone(pid: int) -> bool:
    """Whether a process of this machine has ended, though nobody may have collected it yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read(4_096).rpartition(")")[2].split()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return state[:1] in (["Z"], ["X"])


class Beat(threading.Thread):
    """Signs of life of this rank, through a client of the store of its own."""

    def __init__(self, store: Store, rank: int, every: float = BEAT) -> None:
        super().__init__(name="signs of life", daemon=True)
        self._store, self._rank, self._every = store, rank, every
        self._stop = threading.Event()

    def run(self) -> None:
        """Give a sign every second until told to stop or until the store is gone."""
        count = 0
        while not self._stop.is_set():
            count += 1
            try:
                self._store.set(f"beat/{self._rank}", b"%d" % count)
            except StoreLost:
                return  # the main thread meets the same and says so
            self._stop.wait(self._every)

    def end(self) -> None:
        """Stop giving signs."""
        self._stop.set()


@dataclass(slots=True)
class Meeting:
    """One rank's part in the meeting. ``timeout`` is in seconds, ``clock`` only grows."""

    store: Store
    launch: Launch
    timeout: float
    silent: float = SILENT
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    is_gone: Callable[[int], bool] = process_is_gone
    _start: float = 0.0
    _me: Here | None = None
    _here: dict[int, Here] = field(default_factory=dict)
    _beats: dict[int, tuple[bytes | None, float]] = field(default_factory=dict)

    def check_in(self, here: Here) -> None:
        """Say who this rank is; the time-out runs from now."""
        self._start, self._me = self.clock(), here
        row = {"host": here.host, "pid": here.pid, "machine": here.machine}
        self.store.set(f"here/{self.launch.rank}", json.dumps(row).encode())

    def hand_in(self, name: str, packed: bytes) -> None:
        """Hand in this rank's facts under their digest."""
        self.store.set(f"body/{name}", packed)
        self.store.set(f"facts/{self.launch.rank}", name.encode())

    def give_up(self, reason: str) -> None:
        """Say why this rank has no facts to hand in."""
        text = reason[:_MOST_TEXT].encode("utf-8", "backslashreplace")
        self.store.set(f"failed/{self.launch.rank}", text)

    def gather(self, answered: dict[int, str], states: dict[int, RankState]) -> None:
        """Wait until every rank has handed in its facts, has died, or the time is over.

        Fills ``answered`` (rank to the digest of its facts) and ``states``.
        """
        waiting = list(range(self.launch.world_size))
        while True:
            over = self.clock() - self._start >= self.timeout
            waiting = [rank for rank in waiting if not self._look(rank, answered, states)]
            if over or not waiting:
                break
            self.sleep(POLL)
        for rank in waiting:
            states[rank] = self.state_of_absent(rank)

    def look_around(self, answered: dict[int, str], states: dict[int, RankState], why: str) -> None:
        """What is known at this moment, without waiting; ``why`` the wait is over."""
        for rank in range(self.launch.world_size):
            if not self._look(rank, answered, states):
                states[rank] = self.state_of_absent(rank, why)

    def _look(self, rank: int, answered: dict[int, str], states: dict[int, RankState]) -> bool:
        """Whether it is settled what became of a rank."""
        name = self.store.get(f"facts/{rank}")
        death = self._death(rank) if name is None else None
        if death is not None:  # one that handed in its facts and ended meanwhile has answered
            name = self.store.get(f"facts/{rank}")
        if name is not None:
            answered[rank] = name.decode("ascii", "replace")
            states[rank] = RankState(rank, self.host(rank), ANSWERED)
            return True
        reason = self.store.get(f"failed/{rank}")
        if reason is not None:
            text = reason.decode("utf-8", "replace")
            states[rank] = absent(rank, self.host(rank), FAILED, text)
        elif death is not None:
            states[rank] = absent(rank, self.host(rank), DIED, death)
        else:
            return False
        return True

    def state_of_absent(self, rank: int, why: str | None = None) -> RankState:
        """What is known of a rank that has handed in nothing."""
        why = why or f"within {self.timeout:g} s"
        here = self._who(rank)
        if here is None:
            detail = f"it did not check in {why}: not started, or it cannot reach the store at "
            detail += f"{self.launch.host}:{self.launch.port}{self._neighbours(rank)}"
            return absent(rank, "", NEVER_ANSWERED, detail)
        detail = f"it checked in (process {here.pid}) and handed in nothing {why}"
        return absent(rank, here.host, NEVER_ANSWERED, detail)

    def _neighbours(self, rank: int) -> str:
        """Where a rank that never checked in should be, by the ranks of its node."""
        size = self.launch.local_size
        if size < 2:
            return ""
        first = rank - rank % size
        block = range(first, min(first + size, self.launch.world_size))
        for other in block:
            if other != rank and (host := self.host(other)):
                return f"; rank {other} of the same node is on {host}"
        return f"; no rank of its node ({block.start}-{block.stop - 1}) checked in"

    def body(self, name: str) -> bytes | None:
        """The facts of a digest."""
        return self.store.get(f"body/{name}")

    def host(self, rank: int) -> str:
        """The host of a rank, "" where it never said."""
        here = self._who(rank)
        return here.host if here else ""

    def announce(self, code: int) -> None:
        """Let all ranks end with this exit code."""
        self.store.set("verdict", b"%d" % code)

    def verdict(self) -> int | None:
        """The exit code that was announced, None before it was."""
        verdict = self.store.get("verdict")
        if verdict is None:
            return None
        return int(verdict) if verdict.isdigit() and len(verdict) < 4 else 1

    def await_verdict(self) -> int:
        """The exit code that rank 0 announces. Raises ``StoreLost`` where rank 0 is lost."""
        while True:
            death = self._death(0)
            verdict = self.verdict()
            if verdict is not None:
                self.store.set(f"left/{self.launch.rank}", b"1")
                return verdict
            if death is not None:
                raise StoreLost(f"rank 0 on {self.host(0)} ended before it said anything: {death}")
            if self._who(0) is None and self.clock() - self._start >= self.timeout:
                raise StoreLost(f"rank 0 did not check in within {self.timeout:g} s")
            self.sleep(POLL)

    def await_farewells(self, ranks: list[int]) -> None:
        """Keep the store open until all have heard the verdict, for a few seconds at most."""
        end = self.clock() + FAREWELL
        left = [rank for rank in ranks if rank != self.launch.rank]
        while left and self.clock() < end:
            left = [
                rank
                for rank in left
                if self.store.get(f"left/{rank}") is None and self._death(rank) is None
            ]
            self.sleep(POLL / 4)

    def _who(self, rank: int) -> Here | None:
        if rank not in self._here:
            raw = self.store.get(f"here/{rank}")
            if raw is None:
                return None
            self._here[rank] = _here_of(raw)
        return self._here[rank]

    def _death(self, rank: int) -> str | None:
        """How a rank is known to have ended; None where it lives or never checked in."""
        here = self._who(rank)
        if here is None or rank == self.launch.rank:
            return None
        if self._me is not None and here.machine == self._me.machine and self.is_gone(here.pid):
            return f"its process {here.pid} has ended"
        sign, now = self.store.get(f"beat/{rank}"), self.clock()
        last, since = self._beats.get(rank, (None, now))
        if sign != last or rank not in self._beats:
            self._beats[rank] = (sign, now)
        elif now - since >= self.silent:
            return f"no sign of life from its process {here.pid} for {now - since:.0f} s"
        return None


def _here_of(raw: bytes) -> Here:
    try:
        row = json.loads(raw)
        return Here(str(row["host"]), int(row["pid"]), str(row["machine"]))
    except (ValueError, KeyError, TypeError):
        return Here("an unknown host", 0, "")


_TITLES = {
    NEVER_ANSWERED: ("FA860", "never answered"),
    DIED: ("FA861", "died"),
    FAILED: ("FA861", "failed"),
}


def absent(rank: int, host: str, state: str, detail: str) -> RankState:
    """A rank without facts, with its finding."""
    code, word = _TITLES[state]
    where = f" on {host}" if host else ""
    title = f"rank {rank}{where} {word}"
    finding = Finding(code, "error", "high", title, (Evidence(detail),))
    return RankState(rank, host, state, detail, finding)
