"""What a file carries for GPUs: one ``Image`` for each cubin, PTX text or other entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The container kinds by their number. 4 is the binary format before ELF (CUDA 2.x). Names
#: are those of the JSON contract; any other number is shown as ``unknown-N``.
KIND_NAMES = {
    1: "ptx",
    2: "cubin",
    4: "old-cubin",
    8: "lto-ir",
    32: "index",
    64: "relocatable-ptx",
    128: "tile-ir",
}
#: The order in which kinds of one architecture are listed.
_KIND_ORDER = ("cubin", "ptx", "relocatable-ptx", "lto-ir", "tile-ir", "index", "old-cubin")


class Image(NamedTuple):
    """One image of GPU code, as its entry header describes it. Sizes and offsets are bytes.

    kind: cubin, ptx, lto-ir, relocatable-ptx, tile-ir, index, old-cubin or unknown-N.
    arch: ``sm_90a`` for machine code, ``compute_90a`` for PTX, ``lto_90`` for LTO-IR.
    stored_bytes: what the image takes in the file, without its header. Images that share one
        compressed blob (``blob_offset`` is set) each get their share of it by size.
    uncompressed_bytes: its size once decompressed; None when the header does not say.
    compression: None, ``lz4`` (a raw block), ``zstd`` (a frame) or ``unknown``.
    isa: PTX ISA version, ``8.4``; None for all but PTX.
    identifier, options: source name and compiler options, where they were recorded.
    section: name of the ELF section; None when found otherwise.
    container: index of the container, from 0, over the whole file.
    offset, payload_offset: where the entry header and its payload start in the file.
    payload_bytes: the payload's size as a decompressor needs it, without the padding that
        stored_bytes includes; of a shared blob, the whole.
    blob_offset: where the image starts in the decompressed payload when several images
        share one; else None.
    relocatable: true for device code that must be linked first, None when not known.
    cuobjdump_name_arch: the architecture in the name under which cuobjdump 13 lists the
        image; None for kinds that ``-lelf -lptx`` leaves out.
    abi: CUDA ELF ABI of a cubin: 7 (until CUDA 12.9), 8 (13.0, and sm_100 on since 12.8).
    flags: the entry's flag bits, unchanged.
    """

    kind: str
    arch: str
    stored_bytes: int
    uncompressed_bytes: int | None
    compression: str | None
    isa: str | None
    identifier: str | None
    options: str | None
    section: str | None
    container: int
    offset: int
    payload_offset: int
    payload_bytes: int
    blob_offset: int | None
    relocatable: bool | None
    cuobjdump_name_arch: str | None
    abi: int | None
    flags: int


class DeviceCode(NamedTuple):
    """All GPU code of one file.

    found_by: ``sections`` (by the section headers), ``scan`` (a search for containers, when
    the section headers are gone or damaged), ``whole-file`` (a bare .fatbin or .cubin) or
    ``none``. ``problems`` has one sentence for each thing that could not be read as written.
    """

    images: tuple[Image, ...]
    containers: int
    found_by: str
    problems: tuple[str, ...]


def arch_key(arch: str) -> tuple[int, str, str]:
    """Sort key of an architecture name in natural order: sm_86, sm_90, sm_90a, sm_100."""
    prefix, _, rest = arch.partition("_")
    digits = rest.rstrip("abcdefghijklmnopqrstuvwxyz")
    return (int(digits) if digits.isdecimal() else 0, rest[len(digits) :], prefix)


def summary(images: Iterable[Image]) -> tuple[tuple[str, str, int, int], ...]:
    """(kind, arch, number of images, their stored bytes), in natural order of the archs."""
    totals: dict[tuple[str, str], list[int]] = {}
    for image in images:
        total = totals.setdefault((image.kind, image.arch), [0, 0])
        total[0] += 1
        total[1] += image.stored_bytes
    rows = [(kind, arch, total[0], total[1]) for (kind, arch), total in totals.items()]
    return tuple(sorted(rows, key=_summary_key))


def _summary_key(row: tuple[str, str, int, int]) -> tuple[int, str, int, str]:
    kind = row[0]
    number, suffix, _prefix = arch_key(row[1])
    rank = _KIND_ORDER.index(kind) if kind in _KIND_ORDER else len(_KIND_ORDER)
    return number, suffix, rank, kind
