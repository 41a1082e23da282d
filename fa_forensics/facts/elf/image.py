"""One ELF file, mapped and never read whole: header, section table, segments, addresses.

Everything here is bounded: a table that leaves the file is reported in ``problems`` and
treated as absent, so that a damaged file costs no more than a healthy one.

Source of the layouts: System V ABI, "Object Files" (gABI chapters 4 and 5), and
``/usr/include/elf.h`` of glibc 2.36.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections import namedtuple

from fa_forensics.errors import (
    DamagedFile,
    ForensicsError,
    NotAnElfFile,
    OutOfResources,
    UnreadableFile,
)

ELF_MAGIC = b"\x7fELF"
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_X86_64, EM_AARCH64 = 62, 183
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_TLS = 1, 2, 3, 4, 7
PT_GNU_STACK = 0x6474E551
PF_X = 1
SHT_NOBITS = 8

#: A section header table longer than this is not believed (the largest real one seen has
#: about 60 entries; linkers with -ffunction-sections stay below it for shared objects).
MAX_SECTIONS = 65_535
MAX_SEGMENTS = 4_096

# Named tuples rather than dataclasses: a resolution opens about fifty libraries, and
# importing dataclasses alone costs 12 ms of start-up.
Section = namedtuple("Section", "name type flags address offset size link info entry_size")
Segment = namedtuple("Segment", "type flags offset address file_size memory_size align")

_EHDR = struct.Struct("<HHIQQQIHHHHHH")  # after e_ident, 64-bit little-endian
_SHDR = struct.Struct("<IIQQQQIIQQ")
_PHDR = struct.Struct("<IIQQQQQQ")

#: First bytes of files that people hand over by mistake.
_LOOKALIKES = (
    (b"MZ", "a Windows program or DLL (PE)"),
    (b"\xcf\xfa\xed\xfe", "a macOS library (Mach-O)"),
    (b"\xca\xfe\xba\xbe", "a macOS universal library (Mach-O)"),
    (b"PK\x03\x04", "a zip archive"),
    (b"!<arch>\n", "a static library (ar archive)"),
    (b"version https://git-lfs", "a Git LFS pointer, the real file was not fetched"),
    (b"/* GNU ld script", "a linker script"),
    (b"#!", "a script"),
    (b"<!DOCTYPE", "an HTML page"),
    (b"<html", "an HTML page"),
)


class ElfImage:
    """A mapped ELF file: identification, section table, segments, address translation.

    Only 64-bit little-endian files have their tables read (``supported`` is true): every
    platform that torch ships CUDA builds for is one. For others the header fields are
    there and the tables are empty.

    Raises, on construction: ``UnreadableFile``, ``NotAnElfFile``, ``DamagedFile``.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[str] = []
        self.data, self.size = _map_file(path)
        self._read_header()
        self.segments: tuple[Segment, ...] = ()
        self._sections: tuple[Section, ...] | None = None
        self._section_problem: str | None = None
        if self.supported:
            self.segments = self._read_segments()

    def close(self) -> None:
        """Unmap the file. Views handed out before must not be used afterwards."""
        if isinstance(self.data, mmap.mmap):
            self.data.close()

    def __enter__(self) -> ElfImage:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def sections(self) -> tuple[Section, ...]:
        """The section table, read at first use: binding a symbol never needs it."""
        if self._sections is None:
            self._sections = self._read_sections() if self.supported else ()
        return self._sections

    @property
    def section_problem(self) -> str | None:
        """Why there is no section table, in a few words, or None when there is one."""
        return self._section_problem if self.sections == () else None

    def section(self, name: str) -> Section | None:
        """The first section of that name that has bytes in this file, or None."""
        for section in self.sections:
            if section.name == name and section.type != SHT_NOBITS:
                return section
        return None

    def offset_of(self, address: int) -> int | None:
        """File offset (bytes) of a virtual address, or None when no segment holds it."""
        for segment in self.segments:
            if segment.type == PT_LOAD and 0 <= address - segment.address < segment.file_size:
                offset: int = segment.offset + (address - segment.address)
                return offset if offset < self.size else None
        return None

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes at ``offset``; fewer, or none, where the file ends."""
        if offset < 0 or size <= 0 or offset >= self.size:
            return b""
        return self.data[offset : offset + size]

    def string(self, offset: int, limit: int = 65_536) -> bytes:
        """The NUL-terminated string at a file offset, at most ``limit`` bytes long."""
        if offset < 0 or offset >= self.size:
            return b""
        end = self.data.find(b"\0", offset, min(self.size, offset + limit))
        return self.data[offset : end if end >= 0 else min(self.size, offset + limit)]

    def _read_header(self) -> None:
        ident = self.read(0, 16)
        if ident[:4] != ELF_MAGIC:
            raise NotAnElfFile(f"{self.path} is not an ELF file: {_looks_like(self)}")
        if self.size < 52 or len(ident) < 16:
            raise DamagedFile(f"{self.path} ends inside its ELF header ({self.size} bytes)")
        self.is_64bit = ident[4] == 2
        self.little_endian = ident[5] != 2
        self.osabi, self.abi_version = ident[7], ident[8]
        order = "<" if self.little_endian else ">"
        self.type, self.machine = struct.unpack_from(order + "HH", self.data, 16)
        self.supported = self.is_64bit and self.little_endian and self.size >= 64
        if self.is_64bit and self.size < 64:
            raise DamagedFile(f"{self.path} ends inside its ELF header ({self.size} bytes)")
        self.flags = self._shoff = self._phoff = 0
        self._phnum = self._shnum = self._shstrndx = self._phentsize = self._shentsize = 0
        if self.supported:
            (
                _type, _machine, _version, self.entry, self._phoff, self._shoff, self.flags,
                _ehsize, self._phentsize, self._phnum, self._shentsize, self._shnum,
                self._shstrndx,
            ) = _EHDR.unpack_from(self.data, 16)  # fmt: skip

    def _read_segments(self) -> tuple[Segment, ...]:
        if not self._phnum:
            return ()
        if self._phentsize != _PHDR.size:
            self.problems.append(f"program header entries of {self._phentsize} bytes, not 56")
            return ()
        count = min(self._phnum, MAX_SEGMENTS)
        raw = self.read(self._phoff, count * _PHDR.size)
        if len(raw) < count * _PHDR.size:
            self.problems.append("the program header table leaves the file")
        whole = len(raw) - len(raw) % _PHDR.size
        return tuple(
            Segment(kind, flags, offset, address, file_size, memory_size, align)
            for kind, flags, offset, address, _paddr, file_size, memory_size, align in (
                _PHDR.iter_unpack(raw[:whole])
            )
        )

    def _read_sections(self) -> tuple[Section, ...]:
        if not self._shoff:
            self._section_problem = "the section headers were removed"
            return ()
        if self._shentsize != _SHDR.size:
            self._section_problem = f"section header entries of {self._shentsize} bytes, not 64"
            return ()
        count, strings_index = self._shnum, self._shstrndx
        first = self.read(self._shoff, _SHDR.size)
        if len(first) < _SHDR.size:
            self._section_problem = "the section headers lie beyond the end of the file"
            return ()
        # gABI: with 0xff00 sections or more the real numbers are in the first header.
        if count == 0:
            count = _SHDR.unpack(first)[5]
        if strings_index == 0xFFFF:
            strings_index = _SHDR.unpack(first)[6]
        raw = self.read(self._shoff, min(count, MAX_SECTIONS) * _SHDR.size)
        if not count or count > MAX_SECTIONS or len(raw) < count * _SHDR.size:
            self._section_problem = "the section header table leaves the file"
            return ()
        headers = list(_SHDR.iter_unpack(raw))
        if strings_index >= count or headers[strings_index][1] == SHT_NOBITS:
            self._section_problem = "the section names are missing"
            return ()
        return self._name_sections(headers, strings_index)

    def _name_sections(
        self, headers: list[tuple[int, ...]], strings_index: int
    ) -> tuple[Section, ...]:
        names = self.read(headers[strings_index][4], min(headers[strings_index][5], 1 << 20))
        if not names:
            self._section_problem = "the section names lie beyond the end of the file"
            return ()
        sections = []
        for header in headers:
            name, kind, flags, address, offset, size, link, info, _align, entry_size = header
            end = names.find(b"\0", name) if name < len(names) else name
            text = names[name : end if end >= 0 else len(names)].decode("utf-8", "replace")
            sections.append(
                Section(text, kind, flags, address, offset, size, link, info, entry_size)
            )
        return tuple(sections)

    @property
    def executable_stack(self) -> bool | None:
        """Whether PT_GNU_STACK asks for an executable stack; None where there is no such header."""
        stack = next((s for s in self.segments if s.type == PT_GNU_STACK), None)
        return None if stack is None else bool(stack.flags & PF_X)

    @property
    def program_header_size(self) -> int:
        """e_phentsize, the bytes of one program header."""
        return self._phentsize

    def loaded_size(self) -> int:
        """The size (bytes) up to which the loader maps the file; beyond ``size`` it dies."""
        return max((s.offset + s.file_size for s in self.segments if s.type == PT_LOAD), default=0)

    def expected_size(self) -> int:
        """The size (bytes) that the headers speak of; more than ``size`` when cut short."""
        ends = [self.loaded_size()]
        ends += [s.offset + s.size for s in self.sections if s.type not in (0, SHT_NOBITS)]
        if self._shoff and self._shnum:
            ends.append(self._shoff + self._shnum * _SHDR.size)
        return max(ends, default=0)


def _map_file(path: str) -> tuple[mmap.mmap | bytes, int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _os_problem(path, error) from error
    try:
        import stat

        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotAnElfFile(f"{path} is not a regular file")
        if status.st_size == 0:
            raise NotAnElfFile(f"{path} is empty (0 bytes)")
        data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        # Tables lie far apart: read-ahead of a 300 MB file would cost seconds cold.
        data.madvise(mmap.MADV_RANDOM)
        return data, status.st_size
    except OSError as error:
        raise _os_problem(path, error) from error
    finally:
        os.close(descriptor)


def _os_problem(path: str, error: OSError) -> ForensicsError:
    text = f"cannot read {path}: {error.strerror}"
    if error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return OutOfResources(text)
    return UnreadableFile(text)


def _looks_like(image: ElfImage) -> str:
    start = image.read(0, 64)
    for magic, meaning in _LOOKALIKES:
        if start.startswith(magic):
            return f"it looks like {meaning}"
    return f"it starts with the bytes {start[:8].hex(' ')}"
