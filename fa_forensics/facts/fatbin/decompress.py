"""The beginning of a compressed image, with a bound on what comes out.

Images are stored as a raw LZ4 block (CUDA 11 and 12, and 13 in "speed" mode) or as one zstd
frame (CUDA 13). To tell who made a cubin its first bytes are enough, so the LZ4 side is a
small decoder that stops early, which the LZ4 library cannot do for a raw block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fa_forensics.errors import DamagedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

#: Bytes handed out at a time.
CHUNK = 65_536
#: A frame that asks for a larger window (bytes of memory) is refused. 128 MiB is the limit
#: of the zstd command itself.
MAX_WINDOW = 1 << 27
#: An LZ4 reference goes back at most 65,535 bytes.
_LZ4_REACH = 65_536


def lz4_prefix(block: bytes, limit: int) -> bytes:
    """The first ``limit`` bytes that a raw LZ4 block, or the beginning of one, expands to.

    Fewer when the block ends before. Raises ``DamagedFile`` on a reference to before the
    start.
    """
    return b"".join(lz4_pieces(block, limit, limit))


def lz4_pieces(block: bytes, limit: int, step: int = CHUNK) -> Iterator[bytes]:
    """What a raw LZ4 block expands to, at most ``limit`` bytes, in pieces of about ``step``.

    Raises ``DamagedFile`` on a reference to before the start. Format: "LZ4 Block Format
    Description" of the LZ4 project, version 1.6.3.
    """
    out = bytearray()  # what is not handed out yet, after up to 64 KiB that references reach
    given, total = 0, 0  # bytes of ``out`` handed out; bytes produced before ``out``
    position, size = 0, len(block)
    while position < size and total + len(out) < limit:
        token = block[position]
        literals, position = _lz4_length(block, position + 1, token >> 4)
        out += block[position : min(position + literals, position + limit - total - len(out))]
        position += literals
        if position + 2 > size or total + len(out) >= limit:
            break
        distance = block[position] | block[position + 1] << 8
        length, position = _lz4_length(block, position + 2, token & 15)
        length = min(length + 4, limit - total - len(out))
        if not 0 < distance <= len(out):
            raise DamagedFile("the LZ4 data refers to bytes before its start")
        while length:
            # A match may be as long as it likes; it is written out piece by piece.
            part = min(length, CHUNK)
            start = len(out) - distance
            pattern = out[start : start + part]
            out += (pattern * -(-part // len(pattern)))[:part]
            length -= part
            if len(out) - given >= step:
                yield bytes(out[given:])
                total += max(0, len(out) - _LZ4_REACH)
                del out[: max(0, len(out) - _LZ4_REACH)]
                given = len(out)
    if len(out) > given:
        yield bytes(out[given:])


def _lz4_length(block: bytes, position: int, nibble: int) -> tuple[int, int]:
    """A length that starts with ``nibble`` and may go on in bytes of 255; and where it ends."""
    length = nibble
    if nibble == 15:
        while position < len(block):
            length += block[position]
            position += 1
            if block[position - 1] != 255:
                break
    return length, position


def zstd_chunks(read: Callable[[int], bytes], limit: int) -> Iterator[bytes]:
    """The content of a zstd frame in chunks, until its end or ``limit`` bytes.

    ``read(n)`` returns up to n further compressed bytes. Raises ``DamagedFile`` when the data
    is no zstd, and ``ImportError`` without the ``zstandard`` package.
    """
    import zstandard

    # Of a file, zstandard asks for nothing but read().
    source = cast("IO[bytes]", _Source(read))
    total = 0
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(source)
        while total < limit:
            chunk = reader.read(min(CHUNK, limit - total))
            if not chunk:
                return
            total += len(chunk)
            yield chunk
    except zstandard.ZstdError as error:
        raise DamagedFile(f"the zstd data cannot be read: {error}") from error


class _Source:
    """A function in the shape of a file."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read
