"""Reading files that anybody may have put there."""

from __future__ import annotations

import errno
import os
import stat

_CHUNK = 1 << 20


def read_bounded(path: str, limit: int) -> bytes:
    """The first ``limit`` bytes of a regular file, links followed.

    Never waits: a pipe, a socket, a device or a directory is not read. Raises ``OSError``:
    what the system says, or EINVAL "not a regular file".
    """
    # A pipe is opened without a writer at the other end, a terminal without becoming ours.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        parts: list[bytes] = []
        while limit > 0:
            # os.read sets aside what it is asked for, however small the file.
            part = os.read(handle, min(limit, _CHUNK))
            if not part:
                break
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def absolute(path: str) -> str:
    """``os.path.abspath``; ``path`` itself where the current directory was removed."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


def is_denied(path: str) -> bool:
    """Whether this user may not even know if ``path`` exists (EACCES on the way to it)."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return False
