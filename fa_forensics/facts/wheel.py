"""What a .whl file says of itself, and its shared objects unpacked within bounds.

A wheel is a zip archive: packaging.python.org, "Binary distribution format" (PEP 427);
platform tags: PEP 425, PEP 513, PEP 600 (manylinux) and PEP 656 (musllinux).
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fa_forensics.errors import BrokenWheel, UnreadableFile
from fa_forensics.facts.elf.image import ELF_MAGIC
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import headers
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable
    from typing import IO

#: Bounds on an archive: entries (torch's wheel has about 12,000) and unpacked bytes (the
#: shared objects of its CUDA 12.8 wheel are 3.3 GB).
MAX_ENTRIES = 200_000
MAX_UNPACKED = 8 << 30
MAX_METADATA = 4 << 20

_SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")
_LIBS_DIRECTORY = re.compile(r"(^|/)[^/]+\.libs/")
_INFO_FILES = ("METADATA", "WHEEL", "RECORD", "top_level.txt")

#: PEP 600: what the older manylinux names mean in glibc versions.
_OLD_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform tag taken apart.

    ``system`` is "linux", "windows", "macos", "any" or "unknown"; ``machine`` as ELF names
    it ("x86_64", "aarch64"), None for "any"; ``libc`` and its ``floor`` only where the tag
    promises one: manylinux_2_28 is ("glibc", (2, 28)).
    """

    tag: str
    system: str
    machine: str | None
    libc: str | None
    floor: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel's own claims. The tags of the file name decide what pip installs.

    ``wheel_tags`` are those of its WHEEL file, which can differ. ``extensions`` are the
    ELF shared objects outside ``*.libs`` folders; ``shared_objects`` all of them;
    ``foreign`` the Windows and macOS libraries; ``not_elf`` what is named *.so and is no ELF
    file. Names are members, sizes in bytes.
    """

    path: str
    name: str
    version: str
    build: str | None
    python_tags: tuple[str, ...]
    abi_tags: tuple[str, ...]
    platforms: tuple[Platform, ...]
    wheel_tags: tuple[str, ...]
    requires: tuple[str, ...]
    requires_python: str | None
    extensions: tuple[str, ...]
    shared_objects: tuple[str, ...]
    foreign: tuple[str, ...]
    info_files: tuple[str, ...]
    unpacked_bytes: int
    not_elf: tuple[str, ...] = ()

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines its platform tags name, sorted; empty for a wheel for any."""
        return tuple(sorted({p.machine for p in self.platforms if p.machine}))


def platform_of_tag(tag: str) -> Platform:
    """Take a platform tag apart: ``manylinux_2_24_aarch64``, ``win_amd64`` or ``any``."""
    if tag == "any":
        return Platform(tag, "any", None, None, None)
    windows = {"win32": "i686", "win_amd64": "x86_64", "win_arm64": "aarch64"}
    if tag in windows:
        return Platform(tag, "windows", windows[tag], None, None)
    mac = re.fullmatch(r"macosx_\d+_\d+_(\w+)", tag)
    if mac:
        machine = {"arm64": "aarch64", "intel": "x86_64"}.get(mac.group(1), mac.group(1))
        return Platform(tag, "macos", machine, None, None)
    old = re.fullmatch(r"(manylinux(?:1|2010|2014))_(\w+)", tag)
    if old:
        return Platform(tag, "linux", old.group(2), "glibc", _OLD_MANYLINUX[old.group(1)])
    new = re.fullmatch(r"(many|musl)linux_(\d+)_(\d+)_(\w+)", tag)
    if new:
        libc = "glibc" if new.group(1) == "many" else "musl"
        return Platform(tag, "linux", new.group(4), libc, (int(new.group(2)), int(new.group(3))))
    plain = re.fullmatch(r"linux_(\w+)", tag)
    if plain:
        return Platform(tag, "linux", plain.group(1), None, None)
    return Platform(tag, "unknown", None, None, None)


def machine_of_tag(tag: str) -> str | None:
    """The machine that a platform tag names, as ELF names it; None for "any"."""
    return platform_of_tag(tag).machine


def open_wheel(path: str, stream: IO[bytes] | None = None) -> Wheel:
    """Read a wheel's name, tags, metadata and the list of its shared objects.

    ``stream`` is read in the place of the file, which then need not exist. Raises
    ``UnreadableFile`` or ``BrokenWheel`` with one sentence.
    """
    name, version, build, python_tags, abi_tags, platform_tags = parse_file_name(path)
    with Archive(path, stream) as archive:
        info_files = archive.info_files()
        metadata = headers(archive.text(info_files.get("METADATA")))
        wheel = headers(archive.text(info_files.get("WHEEL")), whole=True)
        # At an address each look into a member is a request of its own: the name must do.
        objects = archive.shared_objects(look=stream is None)
        sizes = archive.sizes()
    recorded = metadata.get("name", ()), metadata.get("version", ())
    return Wheel(
        path=path,
        name=recorded[0][0] if recorded[0] else name,
        version=recorded[1][0] if recorded[1] else version,
        build=build,
        python_tags=python_tags,
        abi_tags=abi_tags,
        platforms=tuple(platform_of_tag(tag) for tag in platform_tags),
        wheel_tags=wheel.get("tag", ()),
        requires=metadata.get("requires-dist", ()),
        requires_python=next(iter(metadata.get("requires-python", ())), None),
        extensions=tuple(m for m in objects if m.endswith(".so") and not _LIBS_DIRECTORY.search(m)),
        shared_objects=objects,
        foreign=tuple(m for m in sorted(sizes) if m.endswith((".pyd", ".dll", ".dylib"))),
        info_files=tuple(info_files.values()),
        unpacked_bytes=sum(sizes[member] for member in objects),
        not_elf=tuple(m for m in sorted(sizes) if m.endswith(".so") and m not in objects),
    )


def parse_file_name(
    path: str,
) -> tuple[str, str, str | None, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(name, version, build, python tags, ABI tags, platform tags) of a wheel's file name.

    A name that keeps no rule gives what can be had: the whole stem and no tags.
    """
    # A browser appends " (1)", a URL keeps "+" as "%2B".
    stem = os.path.basename(path).removesuffix(".whl").replace("%2B", "+")
    parts = re.sub(r" ?\(\d+\)$", "", stem).split("-")
    if len(parts) not in (5, 6):
        return stem, "", None, (), (), ()
    build = parts[2] if len(parts) == 6 else None
    python, abi, platform = (tuple(part.split(".")) for part in parts[-3:])
    return parts[0], parts[1], build, python, abi, platform


def extract(wheel: Wheel, dest: str, members: Iterable[str] | None = None) -> dict[str, str]:
    """Unpack shared objects below ``dest`` in their own layout; member → path.

    By default all of them, so that siblings which RUNPATH $ORIGIN names are found. The
    metadata goes beside them. Only regular entries that stay below ``dest`` are written,
    and no more bytes than the archive declares. Raises ``BrokenWheel``, ``UnreadableFile``.
    """
    chosen = tuple(members) if members is not None else wheel.shared_objects
    written: dict[str, str] = {}
    with Archive(wheel.path) as archive:
        archive.check_room(chosen, dest)
        for member in (*chosen, *wheel.info_files):
            written[member] = archive.unpack(member, dest)
    return {member: written[member] for member in chosen}


class Archive:
    """An open zip file whose every failure is one of this program's errors."""

    def __init__(self, path: str, stream: IO[bytes] | None = None) -> None:
        import zipfile

        self.path = path
        try:
            if stream is not None:
                self.bytes = stream.seek(0, os.SEEK_END)
            else:
                status = os.stat(path)
                if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for its writer
                    raise UnreadableFile(f"cannot read {path}: not a regular file")
                self.bytes = status.st_size
            self.zip: zipfile.ZipFile = zipfile.ZipFile(stream or path)
        except OSError as error:
            raise UnreadableFile(f"cannot read {path}: {error.strerror or error}") from error
        except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError) as error:
            raise BrokenWheel(
                f"{path} is no whole wheel (a zip archive): {_looks_like(_start_of(path, stream))}",
                "download it again and compare its size",
            ) from error
        self.members = {_plain_name(info.filename): info for info in self.zip.infolist()}
        if len(self.members) > MAX_ENTRIES:
            self.zip.close()
            raise BrokenWheel(f"{path} lists {len(self.members):,} files, more than is believed")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exc: object) -> None:
        self.zip.close()

    def sizes(self) -> dict[str, int]:
        """Unpacked size of each member in bytes, as declared."""
        return {name: info.file_size for name, info in self.members.items()}

    def info_files(self) -> dict[str, str]:
        """METADATA, WHEEL … → the member, of the top-level .dist-info directory."""
        found: dict[str, str] = {}
        for member in self.members:
            directory, _, name = member.rpartition("/")
            if name in _INFO_FILES and re.fullmatch(r"[^/]+\.dist-info", directory):
                found.setdefault(name, member)
        return found

    def shared_objects(self, look: bool = True) -> tuple[str, ...]:
        """Members named like shared objects that start like ELF files, sorted.

        One whose first bytes cannot be unpacked is listed too: it is damaged, not absent.
        Without ``look`` the name alone decides.
        """
        found = []
        for member in sorted(self.members):
            if _SHARED_OBJECT.search(member):
                start = self._start(member) if look else None
                if start is None or start == ELF_MAGIC:
                    found.append(member)
        return tuple(found)

    def text(self, member: str | None) -> str:
        """A small text member; "" for None."""
        if member is None:
            return ""
        return self._read(member, MAX_METADATA).decode("utf-8", "replace")

    def check_room(self, members: Iterable[str], dest: str) -> None:
        """Refuse archives that unpack to more than is believed or than ``dest`` can hold."""
        total = self.unpacked(members)
        space = os.statvfs(dest)
        free = space.f_bavail * space.f_frsize
        if total > free:
            raise UnreadableFile(
                f"unpacking {self.path} takes {total:,} bytes, and {dest} has {free:,} free",
                "set TMPDIR to a directory with more room",
            )

    def unpacked(self, members: Iterable[str]) -> int:
        """The bytes that members unpack to. Raises ``BrokenWheel`` where that is not believed."""
        chosen = [self._member(member) for member in members]
        total = sum(info.file_size for info in chosen)
        if total > MAX_UNPACKED or sum(info.compress_size for info in chosen) > self.bytes:
            raise BrokenWheel(
                f"{self.path} declares {total:,} bytes of shared objects in a file of "
                f"{self.bytes:,} bytes: not unpacked"
            )
        return total

    def in_order(self, members: Iterable[str]) -> list[str]:
        """Members in the order in which they lie in the archive: one pass reads them all."""
        return sorted(members, key=lambda member: self._member(member).header_offset)

    def place(self, member: str, dest: str) -> str:
        """Where a member belongs below ``dest``. Raises ``BrokenWheel`` for one that may not."""
        info = self._member(member)
        parts = member.split("/")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if member.startswith("/") or "\\" in member or {"", ".", ".."} & set(parts):
            raise BrokenWheel(f"{self.path} holds {member!r}, which would leave its directory")
        if kind not in (0, stat.S_IFREG):
            raise BrokenWheel(f"{self.path} holds {member!r}, which is a link or a device")
        return os.path.join(dest, *parts)

    def unpack(self, member: str, dest: str) -> str:
        """Write one member below ``dest`` and return its path."""
        target = self.place(member, dest)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "xb") as output:
                self.copy(member, output.write)
        except OSError as error:
            if error.errno is None:  # bz2 has no other word for damaged data
                raise BrokenWheel(f"{self.path} is damaged: {member} ({error})") from error
            raise UnreadableFile(f"cannot unpack {member} to {dest}: {error.strerror}") from error
        return target

    def _member(self, name: str) -> zipfile.ZipInfo:
        info = self.members.get(name)
        if info is None:
            raise BrokenWheel(f"{self.path} has no {name}")
        if info.flag_bits & 1:
            raise BrokenWheel(f"{self.path} is encrypted, wheels never are")
        return info

    def _start(self, member: str) -> bytes | None:
        try:
            return self._read(member, 4)
        except BrokenWheel:
            return None

    def _read(self, member: str, limit: int) -> bytes:
        chunks: list[bytes] = []
        try:
            self.copy(member, chunks.append, limit)
        except OSError as error:  # an offset outside the file; writing is not at stake here
            raise BrokenWheel(f"{self.path} is damaged: cannot read {member}") from error
        return b"".join(chunks)

    def copy(self, member: str, write: Callable[[bytes], object], limit: int | None = None) -> None:
        """Feed a member to ``write`` in pieces: never more than declared, or than ``limit``."""
        import zipfile
        import zlib
        from lzma import LZMAError

        info = self._member(member)
        left = info.file_size if limit is None else min(limit, info.file_size)
        try:
            with self.zip.open(info) as stream:
                while left > 0:
                    piece = stream.read(min(left, 1 << 20))
                    if not piece:
                        break
                    left -= len(piece)
                    write(piece)
                if limit is None and left == 0:
                    stream.read(1)  # at its end the archive's checksum is compared
        except (
            zipfile.BadZipFile, zlib.error, LZMAError, EOFError, struct.error, ValueError,
            NotImplementedError,
        ) as error:  # fmt: skip
            raise BrokenWheel(
                f"{self.path} is damaged: {member} cannot be unpacked ({error})",
                "download it again",
            ) from error
        if limit is None and left:
            raise BrokenWheel(f"{self.path} is damaged: {member} ends {left:,} bytes early")


def _plain_name(member: str) -> str:
    """A member's name without the parts that name no directory: ``./a//b.so`` is ``a/b.so``.

    The name of a directory, and one that leads outside, stays as it is.
    """
    parts = member.split("/")
    if member.startswith("/") or member.endswith("/") or ".." in parts:
        return member
    return "/".join(part for part in parts if part not in ("", ".")) or member


def _start_of(path: str, stream: IO[bytes] | None) -> bytes:
    if stream is None:
        return read_bounded(path, 64)
    stream.seek(0)
    return stream.read(64)


def _looks_like(start: bytes) -> str:
    if not start:
        return "it is empty (0 bytes)"
    if start.startswith(b"PK"):
        return "its end, with the list of files, is missing or damaged"
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        return "it is an HTML page"
    if start.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer, the real file was not fetched"
    if start.startswith(ELF_MAGIC):
        return "it is an ELF file with the wrong name"
    return f"it starts with the bytes {start[:8].hex(' ')}"
