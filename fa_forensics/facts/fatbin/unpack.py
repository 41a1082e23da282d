"""Compressed images piece by piece: no more comes out than is asked for.

zstd frames are decompressed as a stream. Raw LZ4 blocks have no stream interface in the lz4
package: those of moderate size are decompressed whole, and without the package a slower
reader decompresses their beginning.
"""

from __future__ import annotations

from mmap import MADV_WILLNEED, PAGESIZE
from typing import TYPE_CHECKING, cast

from fa_forensics.errors import DamagedFile
from fa_forensics.facts.fatbin.decompress import MAX_WINDOW, lz4_pieces

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import IO

    from fa_forensics.facts.fatbin.images import Image

#: Bytes of one image that are held at a time: the beginning of a cubin up to its symbol
#: table, at most 8 MB seen.
MAX_HELD = 64 << 20
#: Bytes that are decompressed from one file; a bomb of zeros takes some seconds to get there.
MAX_TOTAL = 8 << 30
#: LZ4 blocks of more bytes than this are not decompressed at once, for which the package takes
#: twice as much memory. vllm 0.5.4 has a block of 102 MB, other libraries stay below 70.
MAX_WHOLE = 128 << 20
#: Bytes that come out of the slower reader, 10 MB a second.
MAX_TOTAL_SLOW = 64 << 20
#: An LZ4 block cannot grow to more than 255 times its size.
LZ4_MOST = 255
#: A zstd frame's header has at most 18 bytes (RFC 8878, 3.1.1.1).
_ZSTD_HEADER = 18

#: Reads of more bytes than this are announced.
PAGES = 16_384

TEXT_STEP = 1 << 20
FIRST_STEP = 1 << 16


def fetch(data: mmap.mmap | bytes, start: int, end: int) -> bytes:
    """The bytes in [start, end) of a file that is mapped without read-ahead.

    Several pages are asked for at once: cold, one at a time takes ten times as long.
    """
    if end - start > PAGES and not isinstance(data, bytes):
        page = start - start % PAGESIZE
        data.madvise(MADV_WILLNEED, page, end - page)
    return bytes(data[start:end])


class Budget:
    """What may still be decompressed of one file, in bytes."""

    def __init__(self) -> None:
        self.left = MAX_TOTAL
        self.left_slow = MAX_TOTAL_SLOW

    def take(self, size: int, *, slow: bool = False) -> None:
        """Count decompressed bytes. Raises ``DamagedFile`` beyond the limit."""
        if slow:
            self.left_slow -= size
        else:
            self.left -= size
        if self.left_slow < 0 and slow:
            raise DamagedFile(
                f"could not look: {MAX_TOTAL_SLOW >> 20:,} MiB of this file were decompressed "
                "already without the lz4 package, or in very large blocks"
            )
        if self.left < 0:
            raise DamagedFile(
                f"could not look: {MAX_TOTAL >> 20:,} MiB of this file were decompressed already"
            )


class Stream:
    """The decompressed bytes of one payload, from one image in it to the next.

    After ``begin(image)``, ``buffer`` holds the image's first bytes, and ``more`` adds to
    them; or ``chunks`` hands out all of it without holding it. Raises ``DamagedFile`` when the
    data cannot be decompressed, and ``ImportError`` without the package for it.
    """

    def __init__(self, data: mmap.mmap | bytes, first: Image, budget: Budget) -> None:
        self.buffer: bytes | bytearray = b""
        self._data = data
        self._budget = budget
        self._at = first.payload_offset
        self._end = min(first.payload_offset + first.payload_bytes, len(data))
        self._base = 0  # where buffer[0] lies in what is decompressed
        self._limit = self._target = 0
        self._ended = False
        self._source: _Zstd | _Lz4
        if first.compression == "zstd":
            head = bytes(data[self._at : min(self._at + _ZSTD_HEADER, self._end)])
            self._source = _Zstd(self._stored, head, first)
        elif first.compression == "lz4":
            self._source = _Lz4(self._stored, first)
        else:
            raise DamagedFile("could not look: the image is compressed in an unknown way")

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.buffer = b""
        self._source.close()

    def begin(self, image: Image, end: int | None) -> None:
        """Go on to an image; in a shared blob the next one starts at ``end``."""
        start = image.blob_offset or 0
        while start > self._base + len(self.buffer) and not self._ended:
            self._base += len(self.buffer)
            self.buffer = b""
            self._pull(min(TEXT_STEP, start - self._base))
        self.buffer = self.buffer[start - self._base :]
        self._base = start
        self._target = 0
        size = image.uncompressed_bytes
        self._limit = MAX_TOTAL if size is None else size
        if end is not None:
            self._limit = min(self._limit, end - start)

    def more(self) -> bool:
        """Let ``buffer`` grow by a quarter or more; false at the image's end."""
        self._target = self._target * 5 // 4 or FIRST_STEP
        wanted = min(self._target, self._limit)
        if wanted > MAX_HELD:
            raise DamagedFile(
                f"could not look: no symbol table in the first {MAX_HELD >> 20} MiB of the cubin"
            )
        while len(self.buffer) < wanted and not self._ended:
            self._pull(wanted - len(self.buffer))
        if len(self.buffer) > self._limit:
            self.buffer = self.buffer[: self._limit]
        return not self._ended and len(self.buffer) < self._limit

    def chunks(self) -> Iterator[bytes]:
        """All bytes of the image; what was handed out is forgotten."""
        left = self._limit
        while left > 0:
            if not self.buffer and not self._ended:
                self._pull(min(TEXT_STEP, left))
            text, self.buffer = self.buffer[:left], self.buffer[left:]
            if not text:
                return
            self._base += len(text)
            left -= len(text)
            yield bytes(text)

    def _pull(self, size: int) -> None:
        """Decompress about ``size`` further bytes."""
        piece = self._source.pull(size)
        self._ended = not piece
        self._budget.take(len(piece), slow=self._source.slow)
        if not self.buffer:
            self.buffer = piece
        elif isinstance(self.buffer, bytearray):
            self.buffer += piece
        else:
            self.buffer = bytearray(self.buffer) + piece

    def _stored(self, size: int) -> bytes:
        """Up to ``size`` further bytes as they are in the file."""
        block = fetch(self._data, self._at, min(self._at + size, self._end))
        self._at += len(block)
        return block


class _Zstd:
    """A zstd frame."""

    slow = False

    def __init__(self, read: Callable[[int], bytes], head: bytes, image: Image) -> None:
        import zstandard

        said = image.uncompressed_bytes
        try:
            size = zstandard.frame_content_size(head)
        except zstandard.ZstdError as error:
            raise DamagedFile(f"the zstd data cannot be read: {error}") from error
        if image.blob_offset is None and size >= 0 and said is not None and size != said:
            raise DamagedFile(f"the zstd data unpacks to {size:,} bytes, the header says {said:,}")
        self._error: type[Exception] = zstandard.ZstdError
        # Of a file, zstandard asks for nothing but read().
        source = cast("IO[bytes]", _Source(read))
        self._reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(
            source, read_size=FIRST_STEP
        )

    def pull(self, size: int) -> bytes:
        try:
            return self._reader.read(size)
        except self._error as error:
            raise DamagedFile(f"the zstd data cannot be read: {error}") from error

    def close(self) -> None:
        del self._reader  # it holds the source, and so this: a circle that only gc would end


class _Source:
    """A function in the shape of a file."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read


class _Lz4:
    """A raw LZ4 block: whole by the lz4 package, piece by piece without it."""

    def __init__(self, read: Callable[[int], bytes], image: Image) -> None:
        try:
            from lz4.block import decompress
        except ImportError:
            decompress = None
        size = image.uncompressed_bytes or 0
        if size > LZ4_MOST * image.payload_bytes:
            raise DamagedFile(
                f"the header says that {image.payload_bytes:,} bytes of LZ4 unpack to {size:,}, "
                "which they cannot"
            )
        block = read(image.payload_bytes)
        if decompress is None or size > MAX_WHOLE:
            self.slow = True
            pieces = lz4_pieces(block, size)
        else:
            self.slow = False
            pieces = _whole(decompress, block, size)
        self._pieces = _of_size(pieces, size)

    def pull(self, size: int) -> bytes:
        return next(self._pieces, b"")

    def close(self) -> None:
        self._pieces = iter(())


def _whole(decompress: Callable[..., bytes], block: bytes, size: int) -> Iterator[bytes]:
    """What the lz4 package makes of a block, in one piece."""
    from lz4.block import LZ4BlockError

    try:
        text = decompress(block, uncompressed_size=size)
    except LZ4BlockError as error:
        raise DamagedFile(
            f"the LZ4 data does not unpack to the {size:,} bytes that the header says"
        ) from error
    del block
    yield text


def _of_size(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The pieces; raises ``DamagedFile`` at their end when they are fewer bytes than said."""
    total = 0
    for piece in pieces:
        total += len(piece)
        if total < size:
            yield piece
        elif total == size:
            yield piece
            return
    raise DamagedFile(f"the LZ4 data unpacks to {total:,} bytes, the header says {size:,}")
