"""The shipped tables as files: found, measured and checked before anything reads them.

An index (``torch.json``) names its tables with size and CRC-32, and carries a CRC-32 of
itself. The trie library trusts its input, so a table that differs is refused here.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from typing import Any

from fa_forensics.errors import AtlasDamaged

#: The tables that come with this package.
SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")

FORMAT = 1
_CRC_KEY = b'"crc32_of_this_file": "'
_BLANK = b"00000000"
#: An index larger than this (bytes) is none of ours; the shipped ones have about 100 KB.
MAX_INDEX = 16 << 20

HINT = "reinstall fa-forensics: python -m pip install --force-reinstall --no-deps fa-forensics"


def damaged(path: str, what: str) -> AtlasDamaged:
    """The error for one table, as a sentence that names the file."""
    return AtlasDamaged(f"{path}: this table of releases {what}", HINT)


def read_index(directory: str, name: str) -> dict[str, Any]:
    """The checked contents of an index such as ``torch.json``.

    Raises AtlasDamaged when it is missing, altered, or of a format that is not known here.
    """
    path = os.path.join(directory, name)
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_INDEX + 1)
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})") from error
    at = raw.rfind(_CRC_KEY) + len(_CRC_KEY)
    stated, blanked = raw[at : at + 8], raw[:at] + _BLANK + raw[at + 8 :]
    if at < len(_CRC_KEY) or stated != _crc_text(zlib.crc32(blanked)):
        raise damaged(path, "is damaged: its contents do not match its checksum")
    index: dict[str, Any] = json.loads(raw)
    if index["format"] != FORMAT:
        raise damaged(path, f"has format {index['format']}, and this program reads {FORMAT}")
    return index


def write_index(directory: str, name: str, index: dict[str, Any]) -> None:
    """Write an index so that ``read_index`` accepts it: same contents, same bytes."""
    index = {"format": FORMAT, **index, _CRC_KEY.decode().split('"')[1]: _BLANK.decode()}
    raw = json.dumps(index, indent=1, ensure_ascii=True).encode() + b"\n"
    at = raw.rindex(_CRC_KEY) + len(_CRC_KEY)
    raw = raw[:at] + _crc_text(zlib.crc32(raw)) + raw[at + 8 :]
    write_table(directory, name, raw)


def write_table(directory: str, name: str, raw: bytes) -> dict[str, Any]:
    """Write one table in whole or not at all; its size and checksum for the index."""
    path = os.path.join(directory, name)
    partial = f"{path}.{os.getpid()}.part"
    try:
        with open(partial, "wb") as file:
            file.write(raw)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    return {"size": len(raw), "crc32": _crc_text(zlib.crc32(raw)).decode()}


def map_table(directory: str, name: str, index: dict[str, Any]) -> mmap.mmap:
    """A table mapped read-only, after its size and checksum were found as the index says.

    Raises AtlasDamaged otherwise.
    """
    path = os.path.join(directory, name)
    stated = index["tables"][name]
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != stated["size"]:
                raise damaged(
                    path, f"is damaged: it has {size} bytes, and {stated['size']} were written"
                )
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise damaged(path, f"cannot be read ({reason})") from error
    if _crc_text(zlib.crc32(mapped)) != stated["crc32"].encode():
        mapped.close()
        raise damaged(path, "is damaged: its contents do not match its checksum")
    return mapped


def _crc_text(value: int) -> bytes:
    return b"%08x" % value
