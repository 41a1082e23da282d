"""torch's C++ headers made into a table: which release has which identifier and assertion.

Reads ``torch/include`` out of the x86_64 wheel of each release (its headers serve every machine;
they lie beside each other in the wheel, so that one request of 10 MB fetches them all) and writes
``headers.json`` and ``headers.trie``. What was read is kept as one record a release. Same records,
same bytes; a table and the record of one more release give what all the records give.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fa_forensics.atlas.build.index import open_wheel
from fa_forensics.atlas.build.records import FORMAT, Record, load_record, store_record
from fa_forensics.atlas.build.torch import wheel_of
from fa_forensics.atlas.builds import release_key
from fa_forensics.atlas.headers import Headers
from fa_forensics.atlas.tables import write_index, write_table
from fa_forensics.errors import ForensicsError

MACHINE = "x86_64"
_PREFIX = "torch/include/"
#: What is torch's own there; pybind11, protobuf, sleef and the like lie beside it.
_OWN = re.compile(r"torch/include/((?:ATen|c10|caffe2|torch)/.+\.(?:h|hpp|cuh|inl))$")
_WORD = re.compile(r"[A-Za-z_]\w*")
#: The macros whose text carries the line; the oldest releases have the AT_ ones.
_ASSERTION = re.compile(r"\b(?:TORCH_INTERNAL_ASSERT(?:_DEBUG_ONLY)?|AT_ASSERTM?)\s*\(")
_COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL
)
#: Lines that one use of a macro may span. Compilers differ in which of them they number by.
_MAX_SPAN = 40


def read_headers(release: str) -> Record:
    """The record of one release's headers. Raises IndexFailure, NoSuchWheel."""
    file = wheel_of(release, MACHINE)
    words: set[str] = set()
    headers: list[str] = []
    lines: dict[str, list[int]] = {}
    with open_wheel(file) as wheel:
        own = [name for name in wheel.names() if _OWN.match(name)]
        for name, raw in wheel.neighbours(own):
            path = name[len(_PREFIX) :]
            text = _without_comments(raw.decode("utf-8", "replace"))
            headers.append(path)
            words.update(_WORD.findall(text))
            found = sorted(_assertions(text))
            if found:
                lines[path] = found
    if not headers:
        raise ForensicsError(f"{file.filename} has no headers in {_PREFIX}")
    return {
        "format": FORMAT,
        "release": release,
        "wheel": file.filename,
        "words": sorted(words),
        "headers": sorted(headers),
        "lines": dict(sorted(lines.items())),
    }


def _without_comments(text: str) -> str:
    """The text with comments and the contents of strings blanked, its lines kept."""

    def blank(match: re.Match[str]) -> str:
        fill = " " if match[0].startswith("/") else '"'
        return re.sub(r"[^\n]", fill, match[0])

    return _COMMENT_OR_TEXT.sub(blank, text)


def _assertions(text: str) -> set[int]:
    """The lines of a header that belong to an assertion."""
    found: set[int] = set()
    for match in _ASSERTION.finditer(text):
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        first = text.count("\n", 0, match.start()) + 1
        last = first + text.count("\n", match.start(), end)
        found.update(range(first, min(last, first + _MAX_SPAN) + 1))
    return found


# --- records ------------------------------------------------------------------------------------


def record_path(directory: str, release: str) -> str:
    """Where the record of a release is kept."""
    return os.path.join(directory, f"{release}.json.xz")


# --- table --------------------------------------------------------------------------------------


def compile_headers(
    records: Iterable[Mapping[str, Any]], directory: str, previous: str | None = None
) -> int:
    """Write the table of these releases into ``directory``; returns its size in bytes.

    ``previous`` is a directory with a table whose other releases are kept. Raises AtlasDamaged
    for one that is damaged.
    """
    from marisa_trie import RecordTrie

    keys: dict[str, set[str]] = {}
    wheels: dict[str, str] = {}
    for record in records:
        wheels[record["release"]] = record["wheel"]
        for key in _keys(record):
            keys.setdefault(key, set()).add(record["release"])
    if previous is not None:
        _take_over(previous, keys, wheels)
    releases = sorted(wheels, key=release_key)
    bits = {release: 1 << bit for bit, release in enumerate(releases)}
    masks = {key: sum(bits[release] for release in having) for key, having in keys.items()}
    sets = sorted(set(masks.values()))
    numbers = {mask: number for number, mask in enumerate(sets)}
    rows = [(key, (numbers[mask],)) for key, mask in sorted(masks.items())]
    raw = RecordTrie("<H", rows).tobytes()
    index = {
        "releases": releases,
        "wheels": [wheels[release] for release in releases],
        "sets": [f"{mask:x}" for mask in sets],
        "tables": {"headers.trie": write_table(directory, "headers.trie", raw)},
    }
    write_index(directory, "headers.json", index)
    return len(raw)


def _take_over(previous: str, keys: dict[str, set[str]], wheels: dict[str, str]) -> None:
    """Add what a table says of the releases that are not there yet."""
    table = Headers.open(previous)
    kept = [release for release in table.releases if release not in wheels]
    wheels.update({release: table.wheels[release] for release in kept})
    wanted = frozenset(kept)
    for key, having in table.rows():
        if having & wanted:
            keys.setdefault(key, set()).update(having & wanted)


def _keys(record: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a release: ``word``, ``c10/core/Device.h``, ``c10/core/Device.h:177``."""
    yield from record["words"]
    yield from record["headers"]
    for path, lines in record["lines"].items():
        yield from (f"{path}:{line}" for line in lines)


def update(wanted: Sequence[str], named: Sequence[str], records: str, data: str) -> int:
    """Bring the table up to date; returns its size in bytes.

    ``wanted`` are the releases that it should have, ``named`` those to take from their records
    even if it has them. What has no record is read. Raises IndexFailure, NoSuchWheel.
    """
    kept = os.path.exists(os.path.join(data, "headers.json"))
    there = Headers.open(data).releases if kept else ()
    paths = []
    for release in wanted:
        if release in there and release not in named:
            continue
        path = record_path(records, release)
        if not os.path.exists(path):
            print(f"headers of torch {release}", file=sys.stderr)
            store_record(path, read_headers(release))
        paths.append(path)
    return compile_headers(map(load_record, paths), data, data if kept else None)


def compile_at_hand(records: str, data: str, fresh: bool) -> int | None:
    """Write the table from the records at hand; None where there are none.

    With ``fresh`` of these releases alone; else what the table has already is kept.
    """
    if not os.path.isdir(records):
        return None
    names = sorted(name for name in os.listdir(records) if name.endswith(".json.xz"))
    if not names:
        return None
    keep = not fresh and os.path.exists(os.path.join(data, "headers.json"))
    paths = (os.path.join(records, name) for name in names)
    return compile_headers(map(load_record, paths), data, data if keep else None)
