"""Reading is bounded, and what is no regular file is refused at once instead of waited for."""

from __future__ import annotations

import errno
import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from fa_forensics.facts.files import read_bounded


@pytest.mark.parametrize("size", [0, 1, 4096, (1 << 20) - 1, 1 << 20, (2 << 20) + 7])
@pytest.mark.parametrize("limit", [0, 1, 4096, 1 << 20, 3 << 20])
def test_gives_the_start_of_the_file_up_to_the_limit(tmp_path: Path, size: int, limit: int) -> None:
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(str(tmp_path / "link"), limit) == data[:limit]


@pytest.mark.parametrize("kind", ["pipe", "directory", "device"])
def test_anything_but_a_regular_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="not a regular file") as caught:
        read_bounded(str(path), 10)
    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(path))


def test_socket_and_absent_file_are_refused_in_the_systems_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may have 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(OSError) as caught:
            read_bounded("socket", 10)
    assert caught.value.errno == errno.ENXIO
    with pytest.raises(FileNotFoundError):
        read_bounded(str(tmp_path / "absent"), 10)


def test_high_limit_costs_no_memory_and_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    before = len(os.listdir("/proc/self/fd"))
    tracemalloc.start()
    try:
        assert read_bounded(str(tmp_path / "small"), 1 << 40) == b"x"
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(OSError):
        read_bounded(str(tmp_path), 10)
    assert len(os.listdir("/proc/self/fd")) == before
