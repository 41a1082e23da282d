"""The kernels inside a file's GPU code, by architecture: ``read_kernels``.

Read are the symbol tables of the cubins and the ``.entry`` directives of the PTX texts. Of a
compressed cubin only the beginning is decompressed, up to the end of its symbol table.
What could not be read is said for each image; then a missing kernel is not a fact.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.errors import DamagedFile
from fa_forensics.facts.fatbin.images import DeviceCode, Image, arch_key
from fa_forensics.facts.fatbin.symbols import FrontTables, cubin_entries, ptx_entries
from fa_forensics.facts.fatbin.unpack import TEXT_STEP, Budget, Stream, fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fa_forensics.facts.elf.image import ElfImage
    from fa_forensics.facts.fatbin.symbols import Entry

CUBIN_KINDS = ("cubin", "unknown-16")
PTX_KINDS = ("ptx", "relocatable-ptx")
#: Kinds whose kernels are listed. LTO-IR of CUDA 13 is encrypted, Tile IR is bytecode.
READ_KINDS = CUBIN_KINDS + PTX_KINDS
MAX_PROBLEMS = 100
#: Bytes of distinct kernel names in one file, with what each costs beside; libtorch_cuda of
#: torch 2.14.1 has 23,000 names of 16 MB in all.
MAX_NAME_BYTES = 64 << 20
PER_KERNEL = 512
MORE = "and {:,} more problems of this sort"
#: FlashAttention's empty kernels have 256 bytes of code, its smallest real one has 2,688.
SMALL = 1024
#: Kinds without kernels of their own: an index, and LTO-IR, which the linker turns into cubins.
NO_KERNELS = ("index", "lto-ir")
NO_ZSTANDARD = "could not look into zstd-compressed images: the zstandard package is missing"


class Kernel(NamedTuple):
    """One kernel: its mangled name, and the architectures for which the file has it.

    archs: ``sm_80`` for machine code, ``compute_80`` for PTX, in natural order.
    small: those of them for which its code has at most ``SMALL`` bytes. Libraries whose
    kernels are written for one architecture compile them for all, empty but for a return.
    """

    name: str
    archs: tuple[str, ...]
    small: tuple[str, ...]


class KernelInventory(NamedTuple):
    """All kernels of a file.

    kernels: sorted by name. ``read`` counts images whose kernels are in it.
    unread: (arch, number of images that could not be read), in natural order; for these
        architectures the list may lack kernels.
    not_linked: the file has only relocatable GPU code (CUDA_SEPARABLE_COMPILATION without the
        device link), whose kernels cannot be launched as they are.
    problems: one sentence an image, or kind of image, that could not be read.
    """

    kernels: tuple[Kernel, ...]
    read: int
    unread: tuple[tuple[str, int], ...]
    not_linked: bool
    problems: tuple[str, ...]

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures for which there is at least one kernel, in natural order."""
        return in_order({arch for kernel in self.kernels for arch in kernel.archs})

    @property
    def complete(self) -> bool:
        """Whether every image was read, so that an absent kernel is a fact."""
        return not self.unread


def in_order(archs: Iterable[str]) -> tuple[str, ...]:
    """Architectures in natural order, machine code before PTX of the same number."""
    return tuple(sorted(archs, key=lambda arch: (*arch_key(arch)[:2], not arch.startswith("sm_"))))


def read_kernels(
    image: ElfImage, code: DeviceCode, progress: Callable[[int, int], None] | None = None
) -> KernelInventory:
    """The kernels of an opened file, whose ``code`` the fatbin reader has listed.

    Relocatable images are read only where there is nothing else, since the device link has
    put their kernels into executable ones. ``progress(done, total)`` counts payload bytes.
    """
    return read_kernels_in(image.data, code, progress)


def read_kernels_in(
    data: mmap.mmap | bytes,
    code: DeviceCode,
    progress: Callable[[int, int], None] | None = None,
) -> KernelInventory:
    """``read_kernels`` for a file of any sort, given its bytes."""
    images = [image for image in code.images if image.kind in READ_KINDS]
    executable = [image for image in images if not image.relocatable]
    run = _Run(data)
    run.leave_out(code.images)
    chosen = executable or images
    total = sum(image.stored_bytes for image in chosen)
    done = 0
    for group in _by_payload(chosen):
        run.group(group)
        done += sum(image.stored_bytes for image in group)
        if progress is not None:
            progress(done, total)
    return run.result(bool(images) and not executable)


def _by_payload(images: list[Image]) -> list[list[Image]]:
    """Images that share a compressed blob, together and in the blob's order."""
    groups: dict[int, list[Image]] = {}
    for image in images:
        groups.setdefault(image.payload_offset, []).append(image)
    for group in groups.values():
        group.sort(key=lambda image: image.blob_offset or 0)
    return list(groups.values())


class _Run:
    """One pass over a file's images."""

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self.data = data
        self.budget = Budget()
        self.kernels: dict[bytes, dict[str, bool]] = {}  # name -> arch -> has little code
        self.room = MAX_NAME_BYTES
        self.read = 0
        self.unread: dict[str, int] = {}
        self.problems: dict[str, int] = {}

    def leave_out(self, images: Iterable[Image]) -> None:
        """Count the images of kinds whose kernels nobody can list."""
        for image in images:
            if image.kind not in READ_KINDS and image.kind not in NO_KERNELS:
                self.failed(image, f"could not look into images of kind {image.kind}")

    def failed(self, image: Image, problem: str) -> None:
        """Note an image whose kernels are not known, and why."""
        self.unread[image.arch] = self.unread.get(image.arch, 0) + 1
        if problem in self.problems or len(self.problems) < MAX_PROBLEMS:
            self.problems[problem] = self.problems.get(problem, 0) + 1
        else:
            self.problems[MORE] = self.problems.get(MORE, 0) + 1

    def group(self, group: list[Image]) -> None:
        """Read the images of one payload."""
        first = group[0]
        try:
            if first.compression is None:
                for image in group:
                    self.one(image, self.plain, ())
            else:
                self.unpack(group)
        finally:
            self.release(first)

    def unpack(self, group: list[Image]) -> None:
        """Read the images of one compressed payload."""
        try:
            stream = Stream(self.data, group[0], self.budget)
        except DamagedFile as error:
            for image in group:
                self.failed(image, f"entry at offset {image.offset:#x}: {error.message}")
            return
        except ImportError:
            for image in group:
                self.failed(image, NO_ZSTANDARD)
            return
        ends = [image.blob_offset for image in group[1:]]
        with stream:
            for image, end in zip(group, [*ends, None], strict=True):
                self.one(image, self.packed, (stream, end))

    def one(
        self, image: Image, reader: Callable[..., list[Entry]], arguments: tuple[object, ...]
    ) -> None:
        """Add the kernels of one image, or say why there are none."""
        try:
            for name, code in reader(image, *arguments):
                self.add(name, image.arch, code)
        except DamagedFile as error:
            self.failed(image, f"entry at offset {image.offset:#x}: {error.message}")
        else:
            self.read += 1

    def add(self, name: bytes, arch: str, code: int) -> None:
        """Add one kernel of an image with its bytes of code."""
        archs = self.kernels.get(name)
        if archs is None:
            self.room -= len(name) + PER_KERNEL
            if self.room < 0:
                raise DamagedFile("could not look: the names of this file's kernels are too many")
            archs = self.kernels[name] = {}
        archs[arch] = code <= SMALL and archs.get(arch, True)

    def plain(self, image: Image) -> list[Entry]:
        """The kernels of an image that is stored as it is."""
        start = image.payload_offset
        end = min(start + image.payload_bytes, len(self.data))
        if image.kind in PTX_KINDS:
            steps = range(start, end, TEXT_STEP)
            return ptx_entries(fetch(self.data, at, min(at + TEXT_STEP, end)) for at in steps)

        def read(offset: int, length: int) -> bytes:
            first = start + min(offset, end - start)
            return fetch(self.data, first, min(first + length, end))

        return cubin_entries(read, end - start)

    def packed(self, image: Image, stream: Stream, end: int | None) -> list[Entry]:
        """The kernels of a compressed image, decompressed no further than needed."""
        stream.begin(image, end)
        if image.kind in PTX_KINDS:
            return ptx_entries(stream.chunks())
        tables, more = FrontTables(), True
        while more:
            more = stream.more()
            found = tables.read(stream.buffer)
            if found is not None:
                return found
        buffer = stream.buffer
        return cubin_entries(lambda offset, n: bytes(buffer[offset : offset + n]), len(buffer))

    def release(self, image: Image) -> None:
        """Give back the file's pages of an image: they count as this process's memory."""
        if isinstance(self.data, mmap.mmap):
            start = image.payload_offset - image.payload_offset % mmap.PAGESIZE
            length = min(image.payload_offset + image.payload_bytes, len(self.data)) - start
            if length > 0:
                self.data.madvise(mmap.MADV_DONTNEED, start, length)

    def result(self, not_linked: bool) -> KernelInventory:
        """What was found, in order."""
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # one tuple for all alike
        kernels = []
        for name in sorted(self.kernels):
            archs = self.kernels[name]
            little = tuple(arch for arch, small in archs.items() if small)
            pair = [
                shared[key] if key in shared else shared.setdefault(key, in_order(key))
                for key in (tuple(archs), little)
            ]
            kernels.append(Kernel(name.decode("utf-8", "backslashreplace"), *pair))
        problems = [
            text.format(count) if text is MORE else text if count == 1 else f"{text} ({count:,} x)"
            for text, count in self.problems.items()
        ]
        unread = tuple((arch, self.unread[arch]) for arch in in_order(self.unread))
        return KernelInventory(tuple(kernels), self.read, unread, not_linked, tuple(problems))
