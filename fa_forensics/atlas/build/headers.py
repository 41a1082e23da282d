"""torch's C++ headers made into a table: which release has which identifier and assertion.

    python -m fa_forensics.atlas.build.headers [RELEASE...]

Reads ``torch/include`` out of the x86_64 wheel of each release (its headers serve every machine;
they lie beside each other in the wheel, so that one request of 10 MB fetches them all) and writes
``headers.json`` and ``headers.trie``. Without a release, all that the torch tables know. What was
read is kept as one record a release. Same records, same bytes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fa_forensics.atlas.build.index import open_wheel
from fa_forensics.atlas.build.torch import wheel_of
from fa_forensics.atlas.builds import release_key
from fa_forensics.atlas.tables import SHIPPED, write_index, write_table
from fa_forensics.errors import EXIT_OK, ForensicsError

FORMAT = 1
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

Record = dict[str, Any]


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


def store_record(directory: str, record: Mapping[str, Any]) -> str:
    """Write a record whole or not at all; returns its path."""
    os.makedirs(directory, exist_ok=True)
    path = record_path(directory, record["release"])
    packed = lzma.compress(json.dumps(record, sort_keys=True).encode(), preset=1)
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
    """Read a record back. Raises ForensicsError when it is damaged or of another format."""
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


# --- table --------------------------------------------------------------------------------------


def compile_headers(records: Iterable[Mapping[str, Any]], directory: str) -> int:
    """Write the table of these releases; returns its size in bytes.

    It holds what some releases have and others have not: the rest tells nothing.
    """
    from marisa_trie import RecordTrie

    ordered = sorted(records, key=lambda record: release_key(record["release"]))
    masks: dict[str, int] = {}
    for bit, record in enumerate(ordered):
        for key in _keys(record):
            masks[key] = masks.get(key, 0) | 1 << bit
    whole = (1 << len(ordered)) - 1
    telling = {key: mask for key, mask in masks.items() if mask != whole}
    sets = sorted(set(telling.values()))
    numbers = {mask: number for number, mask in enumerate(sets)}
    rows = [(key, (numbers[mask],)) for key, mask in sorted(telling.items())]
    raw = RecordTrie("<H", rows).tobytes()
    index = {
        "releases": [record["release"] for record in ordered],
        "wheels": [record["wheel"] for record in ordered],
        "sets": [f"{mask:x}" for mask in sets],
        "tables": {"headers.trie": write_table(directory, "headers.trie", raw)},
    }
    write_index(directory, "headers.json", index)
    return len(raw)


def _keys(record: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a release: ``word``, ``c10/core/Device.h``, ``c10/core/Device.h:177``."""
    yield from record["words"]
    yield from record["headers"]
    for path, lines in record["lines"].items():
        yield from (f"{path}:{line}" for line in lines)


def update(releases: Sequence[str], records: str, data: str) -> None:
    """Read the headers of these releases where no record has them; write the table of all."""
    for release in releases:
        if not os.path.exists(record_path(records, release)):
            print(f"headers of torch {release}", file=sys.stderr)
            store_record(records, read_headers(release))
    names = sorted(name for name in os.listdir(records) if name.endswith(".json.xz"))
    size = compile_headers((load_record(os.path.join(records, n)) for n in names), data)
    print(f"{data}: headers of {len(names)} releases, {size:,} bytes", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    from fa_forensics.atlas.store import Atlas

    parser = argparse.ArgumentParser(
        prog="python -m fa_forensics.atlas.build.headers",
        description="Keep the table of torch's headers up to date.",
    )
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="only these")
    parser.add_argument("--data", metavar="DIR", default=SHIPPED, help="where the tables are")
    parser.add_argument(
        "--records", metavar="DIR", default=os.path.join("build", "atlas"),
        help="where what was read is kept (default: build/atlas)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        releases = options.releases or Atlas.open(options.data).releases(MACHINE)
        update(releases, os.path.join(options.records, "headers"), options.data)
    except ForensicsError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"help: {error.hint}", file=sys.stderr)
        return error.exit_code
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
