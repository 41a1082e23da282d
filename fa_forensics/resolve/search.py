"""Where ld.so looks for a library: search paths, the cache, the default directories.

Rules: glibc 2.36, ``elf/dl-load.c`` (``_dl_map_object``, ``open_path``) and ld.so(8).
Nothing is executed: the cache is read from its file, the default directories from the
loader's own bytes.
"""

from __future__ import annotations

import errno
import os
import re
import struct
from collections.abc import Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.image import EM_AARCH64, EM_X86_64, ElfImage
from fa_forensics.facts.files import read_bounded

CACHE_FILE = "/etc/ld.so.cache"
#: Used only when the loader's own list cannot be read; glibc's built-in default.
DEFAULT_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_PLATFORM = {EM_X86_64: "x86_64", EM_AARCH64: "aarch64"}
#: glibc ``sysdeps/generic/ldconfig.h``: FLAG_ELF_LIBC6 with the 64-bit ABI of each machine.
_CACHE_FLAGS = {EM_X86_64: 0x0303, EM_AARCH64: 0x0A03}
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_CACHE_MAGIC = b"ld.so-1.7.0\0"
_CACHE_ENTRY = struct.Struct("<iIIIQ")
_SYSTEM_DIRECTORIES = re.compile(rb"(?:/[\w./+-]{2,200}/\0){2,}")

#: CPU flags (as in /proc/cpuinfo) that make a machine x86-64-v2, v3, v4: x86-64 psABI,
#: "Micro-Architecture Levels", the flags that tell the levels apart.
_X86_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)


def split_path(text: str) -> list[str]:
    """The elements of LD_LIBRARY_PATH, which are separated by colons or semicolons."""
    return re.split(r"[:;]", text) if text else []


class Searcher:
    """ld.so's search for one process: machine, LD_LIBRARY_PATH, cache, default directories.

    ``loader`` is the PT_INTERP of the process; its bytes name the default directories.
    """

    def __init__(
        self,
        machine: int,
        loader: str | None,
        library_path: Sequence[str],
        cache_file: str = CACHE_FILE,
    ) -> None:
        self.machine = machine
        self.library_path = tuple(library_path)
        self.defaults = _default_directories(loader)
        self.problems: list[str] = []
        #: Directories that are taken for empty: what is installed there is not asked about.
        self.hidden: tuple[str, ...] = ()
        self._cache_file = cache_file
        self._cache: dict[str, list[str]] | None = None
        self._levels: tuple[str, ...] | None = None
        self._hwcaps: dict[str, tuple[str, ...]] = {}
        self._probed: dict[str, bool] = {}

    def expand(self, element: str, origin: str) -> str:
        """An element of a search path with $ORIGIN, $LIB and $PLATFORM put in."""
        if "$" not in element:
            return element or "."
        lib = next((d.lstrip("/") for d in self.defaults if not d.startswith("/usr")), "lib")
        values = {"ORIGIN": origin, "LIB": lib, "PLATFORM": _PLATFORM.get(self.machine, "")}
        return re.sub(
            r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)\b)",
            lambda match: values[match[1] or match[2]],
            element,
        )

    def in_directory(self, directory: str, soname: str) -> str | None:
        """The file that a directory gives for a name, hardware subdirectories first."""
        for place in (*self._hwcap_directories(directory), directory):
            path = os.path.join(place, soname)
            if self.fits(path):
                return path
        return None

    def in_cache(self, soname: str) -> str | None:
        """The file that the loader's cache gives for a name, or None."""
        if self._cache is None:
            self._cache = self._read_cache()
        for path in self._cache.get(soname, ()):
            if self.fits(path):
                return path
        return None

    def cached_paths(self) -> list[str]:
        """Every file that the loader's cache lists for this machine."""
        if self._cache is None:
            self._cache = self._read_cache()
        return [path for paths in self._cache.values() for path in paths]

    def fits(self, path: str) -> bool:
        """Whether the loader would stop its search at this file.

        It passes over ELF files of another class or machine; a file that is no ELF file
        at all ends the search with an error, so it "fits" here.
        """
        known = self._probed.get(path)
        if known is None:
            known = self._probed[path] = self._probe(path)
        return known

    def _probe(self, path: str) -> bool:
        if self.hidden and os.path.realpath(path).startswith(self.hidden):
            return False
        try:
            head = read_bounded(path, 20)
        except OSError as error:
            # A directory or a pipe of that name ends the search; what is absent, or may not
            # be read, is passed over.
            return error.errno == errno.EINVAL
        if head[:4] != b"\x7fELF" or len(head) < 20:
            return True
        return head[4] == 2 and int.from_bytes(head[18:20], "little") == self.machine

    def _hwcap_directories(self, directory: str) -> tuple[str, ...]:
        known = self._hwcaps.get(directory)
        if known is None:
            base = os.path.join(directory, "glibc-hwcaps")
            known = ()
            if os.path.isdir(base):
                known = tuple(os.path.join(base, level) for level in self._cpu_levels())
            self._hwcaps[directory] = known
        return known

    def _cpu_levels(self) -> tuple[str, ...]:
        if self._levels is None:
            flags: set[str] = set()
            if self.machine == EM_X86_64:
                try:
                    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
                        line = next((row for row in file if row.startswith("flags")), "")
                    flags = set(line.split(":")[-1].split())
                except OSError as error:
                    self.problems.append(f"cannot read the CPU's features: {error.strerror}")
            levels: list[str] = []
            needed: set[str] = set()
            for level, own in reversed(_X86_LEVELS):
                needed |= own
                if needed <= flags:
                    levels.insert(0, level)
            self._levels = tuple(levels)
        return self._levels

    def _read_cache(self) -> dict[str, list[str]]:
        try:
            data = read_bounded(self._cache_file, 64 << 20)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.problems.append(f"cannot read {self._cache_file}: {error.strerror}")
            return {}
        try:
            return self._parse_cache(data)
        except (struct.error, ValueError) as error:
            self.problems.append(f"{self._cache_file} is damaged: {error}")
            return {}

    def _parse_cache(self, data: bytes) -> dict[str, list[str]]:
        """Name → paths in cache order. Layout: glibc ``sysdeps/generic/dl-cache.h``."""
        start = 0
        if data.startswith(_OLD_CACHE_MAGIC):
            (old_count,) = struct.unpack_from("<I", data, 12)
            start = (16 + old_count * 12 + 7) & ~7
        if not data.startswith(_CACHE_MAGIC, start):
            raise ValueError("it has no glibc-ld.so.cache1.1 table")
        (count,) = struct.unpack_from("<I", data, start + 20)
        wanted = _CACHE_FLAGS.get(self.machine)
        found: dict[str, list[str]] = {}
        for index in range(min(count, len(data) // _CACHE_ENTRY.size)):
            flags, key, value, _osversion, hwcap = _CACHE_ENTRY.unpack_from(
                data, start + 48 + index * _CACHE_ENTRY.size
            )
            if flags != wanted:
                continue
            path = _c_string(data, start + value)
            if hwcap and not any(f"/{level}/" in path for level in self._cpu_levels()):
                continue
            name = _c_string(data, start + key)
            # ldconfig sorts the better hardware variants to the front.
            found.setdefault(name, []).append(path)
        return found


def _c_string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    if end < 0:
        raise ValueError("a string leaves the file")
    return os.fsdecode(data[at:end])


def _default_directories(loader: str | None) -> tuple[str, ...]:
    """The directories compiled into a loader, in its order (its ``system_dirs`` table)."""
    if loader is None:
        return DEFAULT_DIRECTORIES
    try:
        with ElfImage(os.path.realpath(loader)) as image:
            section = image.section(".rodata")
            raw = image.read(section.offset, section.size) if section else image.read(0, 1 << 22)
    except ForensicsError:
        return DEFAULT_DIRECTORIES
    for match in _SYSTEM_DIRECTORIES.finditer(raw):
        directories = [part.decode("ascii") for part in match[0].split(b"\0") if part]
        if all("lib" in directory for directory in directories):
            return tuple(directory.rstrip("/") for directory in directories)
    return DEFAULT_DIRECTORIES
