"""A wheel at an address: its own claims, and its shared objects in memory.

Only what is looked at is fetched. The unpacked objects are anonymous memory (memfd_create(2));
a temporary directory holds links to them in the wheel's own layout, so that they are read like
any other file, and nothing of their content is on a disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import IO, cast

from fa_forensics.errors import BrokenWheel, UnreadableFile
from fa_forensics.facts.build_machine import read_build_machine
from fa_forensics.facts.remote import RemoteFile, file_name_of
from fa_forensics.facts.targets import Target, Targets, concerns
from fa_forensics.facts.wheel import Archive, Wheel, open_wheel

#: What of the free memory the unpacked objects may take.
_SHARE = 0.8


class RemoteWheel:
    """An open connection to a wheel; a context manager.

    ``wheel`` is what it says of itself. Raises ``UnreadableFile`` or ``BrokenWheel``.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self.name = file_name_of(url)
        self._file = RemoteFile(url, timeout_s)
        self.shown = self._file.shown
        try:
            self.wheel: Wheel = open_wheel(self.shown, self._stream)
        except BaseException:
            self._file.close()
            raise

    @property
    def _stream(self) -> IO[bytes]:
        return cast("IO[bytes]", self._file)

    @property
    def received(self) -> int:
        """Bytes that came over the network until now."""
        return self._file.received

    @property
    def size(self) -> int:
        """The wheel's size in bytes."""
        return self._file.size

    def __enter__(self) -> RemoteWheel:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def targets(self) -> Targets:
        """Its extensions, unpacked into memory until the targets are closed.

        Raises ``UnreadableFile`` where they do not fit into the free memory.
        """
        scratch = tempfile.mkdtemp(prefix="fa-forensics-")
        memory: list[int] = []

        def forget() -> None:
            shutil.rmtree(scratch, ignore_errors=True)
            for descriptor in memory:
                os.close(descriptor)

        try:
            with Archive(self.shown, self._stream) as archive:
                self._check_memory(archive)
                members = (*self.wheel.info_files, *self.wheel.shared_objects)
                for member in archive.in_order(members):
                    memory.append(_unpack(archive, member, scratch))
            chosen = [
                Target(os.path.join(scratch, member), member, f"{self.shown}: {member}")
                for member in self.wheel.extensions
                if concerns(os.path.join(scratch, member))
            ]
        except BaseException:
            forget()
            raise
        return _InMemory(chosen, self.wheel, forget)

    def _check_memory(self, archive: Archive) -> None:
        total = archive.unpacked(self.wheel.shared_objects)
        free = read_build_machine().free_bytes
        if free is not None and total > free * _SHARE:
            raise UnreadableFile(
                f"the libraries of {self.shown} unpack to {total:,} bytes, and this machine has "
                f"{free:,} bytes of free memory",
                "download the wheel and give its path",
            )


class _InMemory(Targets):
    """Targets whose closing gives the memory back."""

    def __init__(self, targets: list[Target], wheel: Wheel, forget: Callable[[], None]) -> None:
        super().__init__(targets, wheel=wheel)
        self._forget: Callable[[], None] | None = forget

    def close(self) -> None:
        """Remove the links and free the memory."""
        if self._forget is not None:
            self._forget()
            self._forget = None


def _unpack(archive: Archive, member: str, scratch: str) -> int:
    """A member in memory, with a link to it below ``scratch``; its descriptor."""
    place = archive.place(member, scratch)
    try:
        descriptor = os.memfd_create(os.path.basename(member)[:200], os.MFD_CLOEXEC)
    except OSError as error:
        raise UnreadableFile(f"no memory for {member}: {error.strerror}") from error
    try:
        with open(descriptor, "wb", closefd=False) as memory:
            archive.copy(member, memory.write)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(f"/proc/{os.getpid()}/fd/{descriptor}", place)
    except OSError as error:
        os.close(descriptor)
        if error.errno is None:
            raise BrokenWheel(f"{archive.path} is damaged: {member} ({error})") from error
        raise UnreadableFile(f"cannot hold {member} in memory: {error.strerror}") from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
