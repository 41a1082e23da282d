"""Which version of a CUDA library, or of libstdc++, a file is, and how that is known.

What the file itself says counts: the number that its version function returns, a name or a
text in it. The version in its file name and in its wheel's metadata is longer ("12.1.105"),
and is taken where the file does not contradict it. Nothing is executed: the number is read
from the bytes of the code. Table: ``data/library_families.json``.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject, gnu_hash
from fa_forensics.facts.elf.image import EM_X86_64, PF_X, PT_LOAD
from fa_forensics.facts.package import find_distribution
from fa_forensics.facts.tables import read_table

#: No more code than this (bytes) is searched: a libcudart has half a megabyte of it, a
#: version function a few hundred bytes.
MAX_CODE = 8 << 20
MAX_FUNCTION = 2_048
#: No more of the file than this (bytes) is searched for a text.
MAX_TEXT = 64 << 20

#: "libcudart.so.12", "libcudart.7ec1eba6.so.12" and "libcudart-9335f6a2.so.12.1.105": the
#: forms of auditwheel's and delvewheel's own copies carry a part of the file's hash.
_FILE_NAME = re.compile(r"(lib[A-Za-z0-9_+]+)(?:[-.]([0-9a-f]{8}))?\.so((?:\.\d{1,9}){0,5})")

#: x86_64: mov r32, imm32 and mov dword ptr [register (+ 8 bits)], imm32.
_LOADS = re.compile(
    rb"(?=(?:[\xb8-\xbf]|\xc7(?:[\x00-\x03\x06\x07]|[\x40-\x43\x45-\x47].|\x04\x24|\x44\x24.))"
    rb"(....))",
    re.DOTALL,
)
#: mov dword ptr [rdi], imm32: a result stored through the first argument.
_STORES = re.compile(rb"\xc7\x07(....)", re.DOTALL)


class Family(NamedTuple):
    """One library of the table."""

    name: str
    title: str
    distribution: str | None
    torch: bool
    row: dict[str, Any]


class LibraryName(NamedTuple):
    """A file name taken apart: ``libcudart.7ec1eba6.so.12`` is libcudart, 7ec1eba6, 12."""

    family: Family
    hash: str | None
    version: str

    @property
    def major(self) -> str:
        """The major version, "" for a library that has none in its name."""
        return self.version.split(".")[0]


class LibraryVersion(NamedTuple):
    """``version`` is None where nothing tells; ``how`` says what told it, in a few words.

    ``contradicts`` is what the metadata says where the file itself says otherwise.
    """

    version: str | None
    how: str
    contradicts: str | None = None


@lru_cache(maxsize=1)
def families() -> dict[str, Family]:
    """The table, by name."""
    rows: list[dict[str, Any]] = read_table("library_families.json")["families"]
    return {
        row["name"]: Family(
            row["name"], row["title"], row.get("distribution"), row.get("torch", False), row
        )
        for row in rows
    }


def parse_name(file_name: str) -> LibraryName | None:
    """What a file name says, None where it is no library of the table."""
    found = _FILE_NAME.fullmatch(file_name)
    family = families().get(found[1]) if found else None
    if found is None or family is None:
        return None
    return LibraryName(family, found[2], found[3].lstrip("."))


def library_version(
    path: str, dynamic: DynamicObject, site_dirs: Sequence[str], torch_version: str | None = None
) -> LibraryVersion:
    """The version of the library in an opened file.

    ``site_dirs`` are searched for the wheel that owns it; ``torch_version`` is that of the
    torch installation the file lies in, where it does.
    """
    real = os.path.realpath(path)
    name = parse_name(os.path.basename(real)) or parse_name(os.path.basename(path))
    if name is None:
        return LibraryVersion(None, "it is no library that this tool knows")
    if name.family.torch and torch_version is not None:
        return LibraryVersion(torch_version, "torch/version.py beside it")
    own = _own_version(real, name, dynamic)
    # libstdc++.so.6.0.30 counts otherwise than the interface that it defines.
    labels = [] if "versions" in name.family.row else _labels(path, real, name, site_dirs)
    for version, how in labels:
        if own is None:
            return LibraryVersion(version, how)
        if _agree(version, own[0]):
            return LibraryVersion(version, f"{how}; {own[1]}")
    if own is not None:
        return LibraryVersion(own[0], own[1], labels[0][0] if labels else None)
    said = f"its name says no more than {name.major}" if name.major else "nothing in it says"
    return LibraryVersion(None, said)


def _labels(
    path: str, real: str, name: LibraryName, site_dirs: Sequence[str]
) -> list[tuple[str, str]]:
    """(version, where it stands) of what is written about the file, not in it."""
    found = []
    if name.version.count(".") >= 2:
        found.append((name.version, f"its file name {os.path.basename(real)}"))
    family = name.family.distribution
    owner = find_distribution(path, site_dirs) if family is not None and not name.hash else None
    if owner is not None and family is not None and _brings(owner.name, family):
        found.append((owner.version, f"its wheel {owner.name}"))
    return found


def _brings(distribution: str, family: str) -> bool:
    plain = distribution.replace("_", "-").lower()
    return re.fullmatch(re.escape(family) + r"(-cu\d+)?", plain) is not None


def _agree(label: str, own: str) -> bool:
    """Whether one version is the other with more or fewer parts: 12.1.105 and 12.1."""
    parts = list(zip(label.split("."), own.split("."), strict=False))
    return all(one == other for one, other in parts[:2])


def _own_version(real: str, name: LibraryName, dynamic: DynamicObject) -> tuple[str, str] | None:
    """(version, how) by what is in the file itself."""
    row = name.family.row
    if "versions" in row:
        newest = newest_version(dynamic, row["versions"])
        return None if newest is None else (newest, f"it defines {row['versions']}{newest}")
    if "exports" in row:
        found = _newest_export(dynamic, row["exports"])
        if found is not None:
            return found, f"it exports {row['exports']}{found.replace('.', '_')}"
    if "text" in row:
        found = _text_version(dynamic, row["text"])
        if found is not None:
            return found, f"it says {row['text'].strip()} {found}"
    if "number" in row and dynamic.image.machine == EM_X86_64:
        found = _number_version(dynamic, row["number"], name.major)
        if found is not None:
            function = row["number"].get("function")
            what = f"what its {function} returns" if function else "the number in its code"
            return found, what
    if "beside" in row and not name.hash:
        return _beside(real, name, row["beside"])
    return None


def newest_version(dynamic: DynamicObject, prefix: str) -> str | None:
    """The newest symbol version an object defines: "3.4.30" of GLIBCXX_3.4.1 to 3.4.30."""
    found = [
        version[len(prefix) :]
        for version in dynamic.verdef.values()
        if re.fullmatch(re.escape(prefix) + r"\d{1,4}(\.\d{1,4}){0,3}", version)
    ]
    return max(found, key=version_key, default=None)


def version_key(version: str) -> tuple[int, ...]:
    """What versions compare by: (12, 1, 105) for "12.1.105"; parts that are no number end it."""
    key = []
    for part in version.split("."):
        if not re.fullmatch(r"[0-9]{1,9}", part):
            break
        key.append(int(part))
    return tuple(key)


def _newest_export(dynamic: DynamicObject, prefix: str) -> str | None:
    pattern = re.compile(b"\0" + re.escape(prefix.encode()) + rb"(\d{1,3})_(\d{1,3})(?=\0)")
    found = {(int(m[1]), int(m[2])) for m in pattern.finditer(dynamic.strings())}
    newest = max(found, default=None)
    return None if newest is None else f"{newest[0]}.{newest[1]}"


def _text_version(dynamic: DynamicObject, text: str) -> str | None:
    """The version after a text in the read-only data, where only one stands there."""
    section = dynamic.image.section(".rodata")
    if section is None:
        return None
    raw = dynamic.image.read(section.offset, min(section.size, MAX_TEXT))
    pattern = re.compile(re.escape(text.encode()) + rb"(\d{1,4}(?:\.\d{1,4}){1,3})(?![\d.])")
    found = {match[1].decode() for match in pattern.finditer(raw)}
    return found.pop() if len(found) == 1 else None


def _number_version(dynamic: DynamicObject, row: dict[str, Any], major: str) -> str | None:
    if "function" in row:
        code = _function(dynamic, row["function"])
        pattern = _LOADS
    else:
        code, pattern = _code(dynamic), _STORES
    numbers = {struct.unpack("<I", match[1])[0] for match in pattern.finditer(code)}
    for scales in row["scales"]:
        found = {text for n in numbers if (text := _decoded(n, scales, major)) is not None}
        if len(found) == 1:
            return found.pop()
    return None


def _decoded(number: int, scales: Sequence[int], major: str) -> str | None:
    """A version by its number: 12010 with (1000, 10) is "12.1"; None for another major."""
    parts = []
    for scale in scales:
        parts.append(number // scale)
        number %= scale
    # 100,000 and more minor versions are no version, and neither is a remainder.
    if number or str(parts[0]) != major or any(part > 99 for part in parts[1:]):
        return None
    return ".".join(map(str, parts))


def _function(dynamic: DynamicObject, name: str) -> bytes:
    span = dynamic.span_of(name.encode(), gnu_hash(name.encode()))
    if span is None:
        return b""
    offset = dynamic.image.offset_of(span[0])
    return b"" if offset is None else dynamic.image.read(offset, min(span[1], MAX_FUNCTION))


def _code(dynamic: DynamicObject) -> bytes:
    for segment in dynamic.image.segments:
        if segment.type == PT_LOAD and segment.flags & PF_X:
            return dynamic.image.read(segment.offset, min(segment.file_size, MAX_CODE))
    return b""


def _beside(real: str, name: LibraryName, other: str) -> tuple[str, str] | None:
    """What the library of the same build says that lies in the same directory."""
    path = os.path.join(os.path.dirname(real), f"{other}.so.{name.major}")
    family = families().get(other)
    if family is None or not os.path.isfile(path):
        return None
    try:
        dynamic = DynamicObject.open(path)
    except ForensicsError:
        return None  # a damaged neighbour says nothing; the library itself is judged elsewhere
    try:
        found = _own_version(path, LibraryName(family, None, name.version), dynamic)
    finally:
        dynamic.close()
    return None if found is None else (found[0], f"{other} beside it: {found[1]}")
