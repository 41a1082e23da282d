"""Work shared out to copies of this process, for a machine with more than one core."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_forked(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """``[work(part) for part in parts]``, each part but the first in a copy of this process.

    The copies hand their results back through pipes, pickled. What a copy could not do (it
    died, or its work raised) is done here, so that an error shows as it would without copies.
    Only for a process without threads: a copy has none of them, but all of their locks.
    """
    running = [_start(work, part) for part in parts[1:]]
    try:
        results = [work(part) for part in parts[:1]]
        for part, copy in zip(parts[1:], running, strict=True):
            found: tuple[Result] | None = None if copy is None else _finish(*copy)
            results.append(work(part) if found is None else found[0])
    except BaseException:
        _end(running)
        raise
    return results


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _start(work: Callable[[Part], Result], part: Part) -> tuple[int, int] | None:
    """(process, pipe) of a copy at work, None where the system gives no further process."""
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later, of threads
            child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return None
    if child == 0:
        try:
            os.close(reader)
            with open(writer, "wb") as pipe:
                pickle.dump((work(part),), pipe)
        finally:
            # Nothing of the parent's is flushed or removed twice.
            os._exit(0)
    os.close(writer)
    return child, reader


def _finish(child: int, reader: int) -> tuple[Result] | None:
    """What a copy found, None where it came to no end."""
    with open(reader, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    try:
        found: tuple[Result] = pickle.loads(raw)
    except (EOFError, pickle.UnpicklingError):
        return None
    return found


def _end(running: Sequence[tuple[int, int] | None]) -> None:
    """End the copies that are still at work."""
    import contextlib
    import signal

    for copy in running:
        if copy is not None:
            with contextlib.suppress(OSError):
                os.kill(copy[0], signal.SIGKILL)
                os.waitpid(copy[0], 0)
            with contextlib.suppress(OSError):
                os.close(copy[1])
