"""Which CUDA toolkits made the GPU code: from the cubins themselves and from the PTX version.

A cubin of ELF ABI 7 (CUDA up to 12.9) holds its toolkit in e_version, as 121 for 12.1. One of
ABI 8 has the note ``.note.nv.tkinfo`` with the tool's own version line. PTX states its ISA
version, which tells the toolkit by a table. Source: cubins built with nvcc 11.8 to 13.5.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.errors import DamagedFile
from fa_forensics.facts.fatbin.decompress import CHUNK, lz4_prefix, zstd_chunks
from fa_forensics.facts.fatbin.images import DeviceCode, Image, arch_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fa_forensics.facts.elf.image import ElfImage

NO_ZSTANDARD = "could not look into zstd-compressed cubins: the zstandard package is missing"
FROM_VERSION, FROM_NOTE, FROM_PTX = "cubin e_version", "tkinfo", "PTX ISA"
PTX_ISA_FILE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "data",
    "ptx_isa.json",
)

_HEADER_SIZE = 64
_EM_CUDA = 190
_TOOLS = ("ptxas", "nvlink")
#: Of "Cuda compilation tools, release 12.8, V12.8.93" the part that LZ4 leaves whole: its
#: beginning resembles other text in a cubin, and is then stored as a reference to it.
_TOOL_LINE = b" tools, release "
_NOTE_SECTION = b".note.nv.tkinfo\0"
#: e_version values that are believed: CUDA 6.5 to 13.9. ABI 8 cubins hold 1 there.
_TOOLKIT_NUMBERS = range(65, 140)
#: How far into a decompressed cubin the note is looked for. It lies before the code.
_MAX_DEPTH = 16 << 20
_MAX_LZ4_BLOCK, _MAX_LZ4_DEPTH = 4 << 20, 1 << 19
_MAX_CUBIN_SECTIONS = 65_535


class Toolkit(NamedTuple):
    """A CUDA release that made images of this file.

    release: ``12.1``; ``12.5 or 12.6`` where the source cannot tell them apart.
    tool: ``ptxas`` or ``nvlink`` where the cubin names it, else None.
    source: ``cubin e_version``, ``tkinfo`` or ``PTX ISA``.
    archs: the architectures for which it was seen, in natural order.
    """

    release: str
    tool: str | None
    source: str
    archs: tuple[str, ...]


class Toolkits(NamedTuple):
    """The toolkits of a file; ``problems`` says where it could not be looked, and why."""

    toolkits: tuple[Toolkit, ...]
    problems: tuple[str, ...]


def read_toolkits(image: ElfImage, code: DeviceCode) -> Toolkits:
    """The toolkits that made the code of a file.

    Every uncompressed cubin of ABI 7 is asked. Of compressed ones the first and the last of
    each architecture and section are, which shows most libraries linked in from elsewhere.
    Of ABI 8 the smallest is asked (its note may lie anywhere in it), or else the first. All
    that takes milliseconds; asking every cubin would take seconds.
    """
    seen: dict[tuple[str, str | None, str], set[str]] = {}
    problems: dict[str, set[str]] = {}
    for group in _worth_asking(code.images):
        failed: list[str] = []
        for cubin in group:
            try:
                seen.setdefault(_of_cubin(image, cubin), set()).add(cubin.arch)
                if cubin.abi != 7:
                    break
            except DamagedFile as error:
                failed.append(error.message)
            except ImportError:
                failed.append(NO_ZSTANDARD)
        # Where one of the two that stand for a group has answered, the group has.
        if len(failed) == len(group):
            for message in failed:
                problems.setdefault(message, set()).add(group[0].arch)
    _add_ptx(code.images, seen, problems)
    toolkits = [Toolkit(*key, _in_order(archs)) for key, archs in seen.items()]
    return Toolkits(
        tuple(sorted(toolkits, key=_toolkit_key)),
        tuple(f"{text} ({', '.join(_in_order(archs))})" for text, archs in problems.items()),
    )


def read_ptx_releases() -> dict[str, tuple[str, ...]]:
    """PTX ISA version → the CUDA releases whose nvcc writes it, from the shipped table."""
    import json

    with open(PTX_ISA_FILE, encoding="utf-8") as file:
        table = json.load(file)["isa"]
    return {isa: tuple(releases) for isa, releases in table.items()}


def _worth_asking(images: tuple[Image, ...]) -> Iterator[list[Image]]:
    """The cubins to ask: single ones, and the one or two that stand for a group."""
    groups: dict[tuple[str, int | None, str | None], list[Image]] = {}
    for image in images:
        if image.kind != "cubin":
            continue
        if image.compression is None and image.abi == 7:
            yield [image]
        else:
            groups.setdefault((image.arch, image.abi, image.section), []).append(image)
    for (_arch, abi, _section), group in groups.items():
        pair = [group[0], group[-1]] if abi == 7 else [min(group, key=_full_size), group[0]]
        yield pair if pair[0] is not pair[1] else pair[:1]


def _full_size(image: Image) -> int:
    return image.uncompressed_bytes or image.stored_bytes


def _of_cubin(image: ElfImage, cubin: Image) -> tuple[str, str | None, str]:
    """(release, tool, source) of one cubin; raises ``DamagedFile`` with the reason."""
    header = _prefix(image, cubin, _HEADER_SIZE)
    if header[:4] != b"\x7fELF" or len(header) < _HEADER_SIZE:
        raise DamagedFile("could not look: the image does not start like a cubin")
    machine, version = struct.unpack_from("<HI", header, 18)
    if machine != _EM_CUDA:
        raise DamagedFile(f"could not look: the image is ELF for machine {machine}, not CUDA")
    if header[8] <= 7:
        if version not in _TOOLKIT_NUMBERS:
            raise DamagedFile(f"the cubin's e_version {version} is no CUDA release")
        return f"{version // 10}.{version % 10}", None, FROM_VERSION
    if cubin.compression is None:
        found = _tool_line(_note_section(image, cubin, header))
    else:
        found = _search_note(image, cubin)
    if found is None:
        raise DamagedFile("could not look: no toolkit note in what was read of the cubin")
    return (*found, FROM_NOTE)


def _prefix(image: ElfImage, cubin: Image, size: int) -> bytes:
    """The first bytes of a cubin, decompressed where needed."""
    if cubin.compression is None:
        return image.read(cubin.payload_offset, min(size, cubin.stored_bytes))
    if cubin.compression == "lz4":
        # An LZ4 block grows by one byte in 255 at worst, plus a token.
        stored = min(cubin.payload_bytes, size + size // 255 + 64)
        return lz4_prefix(image.read(cubin.payload_offset, stored), size)
    if cubin.compression == "zstd":
        return b"".join(_zstd_from(image, cubin, size))[:size]
    raise DamagedFile("could not look: the image is compressed in an unknown way")


def _zstd_from(image: ElfImage, cubin: Image, size: int) -> Iterator[bytes]:
    """Up to ``size`` bytes of a zstd image; in a shared blob they start at its own offset."""
    skip = cubin.blob_offset or 0
    if skip > _MAX_DEPTH:
        raise DamagedFile(f"could not look: the cubin lies {skip:,} bytes deep in a shared blob")
    for chunk in zstd_chunks(_reader(image, cubin), skip + size):
        yield chunk[skip:]
        skip = max(0, skip - len(chunk))


def _reader(image: ElfImage, cubin: Image) -> Callable[[int], bytes]:
    position = cubin.payload_offset
    end = position + cubin.payload_bytes

    def read(size: int) -> bytes:
        nonlocal position
        # In small steps: the toolkit stands near the start, and the file may be cold.
        block = image.read(position, min(size, 16_384, end - position))
        position += len(block)
        return block

    return read


def _search_note(image: ElfImage, cubin: Image) -> tuple[str, str | None] | None:
    """The tool line in the decompressed cubin, stopping as soon as it is seen."""
    if cubin.compression == "lz4":
        # LZ4 leaves text that it meets for the first time as it is.
        block = image.read(cubin.payload_offset, min(cubin.payload_bytes, _MAX_LZ4_BLOCK))
        return _tool_line(block) or _tool_line(lz4_prefix(block, _MAX_LZ4_DEPTH))
    tail = b""
    for chunk in _zstd_from(image, cubin, _MAX_DEPTH):
        found = _tool_line(tail + chunk)
        if found is not None:
            return found
        tail = (tail + chunk)[-256:]
    return None


def _tool_line(text: bytes) -> tuple[str, str | None] | None:
    """(release, tool) from the strings of a toolkit note: the tool's name precedes its line.

    ``text`` may be a raw LZ4 block, in which the strings have a few bytes in between.
    """
    start = text.find(_TOOL_LINE)
    if start < 0:
        return None
    release = text[start + len(_TOOL_LINE) : start + len(_TOOL_LINE) + 16].partition(b",")
    if not release[1] or not release[0].replace(b".", b"").isdigit():
        return None
    before = text[max(0, start - 40) : start]
    tool = next((name for name in _TOOLS if name.encode() + b"\0Cuda" in before), None)
    return release[0].decode(), tool


def _note_section(image: ElfImage, cubin: Image, header: bytes) -> bytes:
    """The bytes of ``.note.nv.tkinfo`` of an uncompressed cubin; empty when it has none."""
    base, size = cubin.payload_offset, cubin.stored_bytes
    table: int = struct.unpack_from("<Q", header, 40)[0]
    count, names_index = struct.unpack_from("<HH", header, 60)
    if table + count * 64 > size or names_index >= count or count > _MAX_CUBIN_SECTIONS:
        raise DamagedFile("could not look: the cubin's section headers are damaged")
    raw = image.read(base + table, count * 64)
    if len(raw) < count * 64:
        raise DamagedFile("could not look: the cubin is cut short")
    headers = list(struct.iter_unpack("<IIQQQQIIQQ", raw))
    names_offset, names_size = headers[names_index][4:6]
    names = image.read(base + min(names_offset, size), min(names_size, size, 1 << 20))
    # One offset: linkers that merge names share the tail of a longer one, never repeat it.
    wanted = names.find(_NOTE_SECTION)
    for section in headers:
        if wanted >= 0 and section[0] == wanted and section[4] < size:
            return image.read(base + section[4], min(section[5], size - section[4], CHUNK))
    return b""


def _add_ptx(
    images: tuple[Image, ...],
    seen: dict[tuple[str, str | None, str], set[str]],
    problems: dict[str, set[str]],
) -> None:
    versions = {(image.isa, image.arch) for image in images if image.isa is not None}
    if not versions:
        return
    releases = read_ptx_releases()
    for isa, arch in versions:
        known = releases.get(isa or "")
        if known:
            seen.setdefault((" or ".join(known), None, FROM_PTX), set()).add(arch)
        else:
            problems.setdefault(f"PTX ISA {isa} is in no known CUDA release", set()).add(arch)


def _in_order(archs: set[str]) -> tuple[str, ...]:
    return tuple(sorted(archs, key=arch_key))


def _toolkit_key(toolkit: Toolkit) -> tuple[int, tuple[int, ...], str]:
    order = (FROM_VERSION, FROM_NOTE, FROM_PTX).index(toolkit.source)
    first = toolkit.release.partition(" ")[0]
    return order, tuple(int(part) for part in first.split(".") if part), toolkit.tool or ""
