"""The store that all ranks share, and torch's TCPStore as one.

The only place beside the confirmation's child that imports torch.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn, Protocol

from fa_forensics.errors import ForensicsError, UsageError


class Store(Protocol):
    """What the ranks need of a store. Every method may raise ``StoreLost``."""

    def set(self, key: str, value: bytes) -> None:
        """Put a value."""

    def get(self, key: str) -> bytes | None:
        """The value of a key, None where nobody has put one yet. Does not wait."""


class StoreLost(ForensicsError):
    """The store is gone: the rank or the launcher that kept it has ended."""


class Launch(NamedTuple):
    """What the launcher says: this rank, how many there are, and where they meet.

    ``launcher_keeps`` is true where torchrun's agent keeps the store, false where rank 0 does.
    ``attempt`` tells the meetings of restarted jobs apart. ``local_size`` is the number of
    ranks on each node, 0 where the launcher does not say it.
    """

    rank: int
    world_size: int
    host: str
    port: int
    launcher_keeps: bool
    attempt: str
    local_size: int = 0


#: How launchers name a rank and the number of ranks: torchrun, Slurm, Open MPI, MPICH.
_NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def launch_of(environ: Mapping[str, str]) -> Launch:
    """What the launcher put into the environment. Raises ``UsageError``."""
    hint = "start it under a launcher: torchrun --nproc-per-node 2 -m fa_forensics.ranks"
    for rank_name, size_name in _NAMES:
        if rank_name in environ and size_name in environ:
            break
    else:
        raise UsageError("no launcher has said which rank this is: RANK and WORLD_SIZE unset", hint)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not environ.get(name):
            raise UsageError(f"{name} is not set: it says where the ranks meet", hint)
    rank, size = _number(environ, rank_name), _number(environ, size_name)
    if not rank < size:
        raise UsageError(f"{rank_name}={rank} is not below {size_name}={size}", hint)
    port = _number(environ, "MASTER_PORT")
    if port >= 1 << 16:
        raise UsageError(f"MASTER_PORT={port} is no port", hint)
    return Launch(
        rank,
        size,
        environ["MASTER_ADDR"],
        port,
        environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        environ.get("TORCHELASTIC_RESTART_COUNT", "0"),
        # torchrun gives the ranks of a node numbers in a row.
        _number(environ, "LOCAL_WORLD_SIZE") if environ.get("LOCAL_WORLD_SIZE") else 0,
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ[name]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{name}={text[:40]} is not a number")
    return int(text)


def connect(launch: Launch, timeout: float) -> TorchStore:
    """The store of the job, kept by the launcher or by rank 0; waits for it to be there.

    Raises ``StoreLost`` where it does not answer within ``timeout`` seconds, or where torch
    cannot be imported.
    """
    try:
        from torch.distributed import TCPStore
    except Exception as error:
        # Whatever a broken torch raises; the person at the job's log needs its words.
        raise StoreLost(f"torch cannot be imported: {type(error).__name__}: {error}") from error
    from datetime import timedelta

    keeps = launch.rank == 0 and not launch.launcher_keeps
    try:
        store = TCPStore(
            launch.host,
            launch.port,
            is_master=keeps,
            timeout=timedelta(seconds=max(timeout, 1)),
            wait_for_workers=False,  # that would hang on a rank that never comes
        )
    except (RuntimeError, ValueError) as error:
        what = "cannot be opened here" if keeps else f"does not answer within {timeout:.0f} s"
        raise StoreLost(
            f"the store of the job at {launch.host}:{launch.port} {what}: {_first_line(error)}"
        ) from error
    return TorchStore(store, f"fa-forensics/{launch.attempt}/")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


class _Torch(Protocol):
    """The part of torch.distributed.Store that is used."""

    def set(self, key: str, value: bytes) -> None: ...
    def get(self, key: str) -> bytes: ...
    def check(self, keys: list[str]) -> bool: ...


class TorchStore:
    """torch's store. One lock, since its client answers one thread at a time."""

    def __init__(self, store: _Torch, prefix: str) -> None:
        self._store, self._prefix, self._lock = store, prefix, threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        """Put a value."""
        self._ask(lambda: self._store.set(self._prefix + key, value))

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        whole = self._prefix + key
        return self._ask(lambda: self._store.get(whole) if self._store.check([whole]) else None)

    def _ask(self, question: Callable[[], bytes | None]) -> bytes | None:
        with self._lock:
            try:
                return question()
            except RuntimeError as error:  # DistNetworkError, DistStoreError and their like
                raise StoreLost(f"the store of the job is gone: {_first_line(error)}") from error


def end_now(code: int) -> NoReturn:
    """Leave without torch's own farewells, which wait for a store that may be gone."""
    import sys

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)
