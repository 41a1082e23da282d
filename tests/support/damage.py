"""Copies of files with something taken away or overwritten; holes stay holes."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path


def sparse_copy(source: Path, target: Path) -> Path:
    """Copy a file, its holes included, so that a husk of 300 MB costs its few kilobytes."""
    with source.open("rb") as reader, target.open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        at = 0
        while at < size:
            try:
                start = os.lseek(reader.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # only a hole follows
                    break
                raise
            end = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            reader.seek(start)
            writer.seek(start)
            writer.write(reader.read(end - start))
            at = end
    return target


def overwrite(path: Path, offset: int, data: bytes) -> Path:
    """Write bytes at an offset of a file that exists."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
    return path


def without_section_headers(source: Path, target: Path) -> Path:
    """A copy of a 64-bit ELF file that says it has no section headers."""
    sparse_copy(source, target)
    overwrite(target, 40, struct.pack("<Q", 0))  # e_shoff
    return overwrite(target, 58, struct.pack("<HHH", 0, 0, 0))  # e_shentsize, e_shnum, e_shstrndx


def cut(source: Path, target: Path, size: int) -> Path:
    """The first ``size`` bytes of a file."""
    sparse_copy(source, target)
    os.truncate(target, size)
    return target
