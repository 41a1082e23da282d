"""What torch's headers left in a file that was compiled with them.

Inline functions leave their names (weak symbols). Assertions leave the header's path and the
number of their line in a text (``".../torch/include/c10/core/TensorImpl.h":1726``, from
TORCH_INTERNAL_ASSERT in c10/util/Exception.h), other macros the path alone. pybind11 leaves the
name under which extensions share its internals (pybind11/detail/internals.h).
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.facts.elf.dynamic import SHN_UNDEF, STB_GNU_UNIQUE, STB_WEAK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fa_forensics.facts.elf.dynamic import DynamicObject
    from fa_forensics.facts.elf.facts import ElfFacts

#: No more than this is searched for texts (bytes); the largest .rodata seen has 7 MB.
MAX_TEXT = 16 << 20
#: No more names than this are looked at; that many weak ones say all there is to say.
MAX_NAMES = 10_000
MAX_TRACES = 2_000

#: Searched for as they stand: each is rare, and bytes.find is fast.
_INCLUDE, _INTERNALS = b"/include/", b"__pybind11_internals_v"
_HEADER = re.compile(
    rb"/include/((?:ATen|c10|caffe2|torch)/[\w./-]{1,200}\.(?:h|hpp|cuh|inl))"
    rb'(?:":(\d{1,6}))?'
)
_PYBIND11 = re.compile(rb"__pybind11_internals_v[0-9]+_[!-~]{0,200}?__(?=\0)")
#: How far before "/include/" the directory of the Python is looked for (bytes).
_BEFORE = 60
_BUILD_PYTHON = re.compile(rb"/python(3\.\d{1,2}t?)/(?:site|dist)-packages/torch$")

#: A name that begins at the root of one of torch's namespaces, in a mangled name.
_ROOT = re.compile(rb"N[rVKRO]*(?:3c10|2at|5torch|6caffe2)(?=\d)")
_LENGTH = re.compile(rb"([1-9]\d{0,3})(?=[A-Za-z_])")
_WORD = re.compile(rb"[A-Za-z_]\w*")


#: The functions that are told the version, which is 0x020e000000000000 for 2.14.0.
_TOLD = (b"torch_call_dispatcher", b"torch_library_impl")
#: No more code than this is searched for it (bytes); the largest .text of such a file has 29 MB.
MAX_CODE = 32 << 20
_CHUNK = 4 << 20
#: x86-64: MOV r64, imm64 with the two highest bytes and the patch release set.
_MOV = re.compile(rb"\0\0\0\0\0([\0-\x13])([\x09-\x7f])\x02")
#: A64: MOVZ or MOVK Xd, #imm16, LSL #48; the middle bytes of the little-endian word.
_MOVZ = re.compile(rb"\xe0[\xd2\xf2]")


class Traces(NamedTuple):
    """Traces of torch's headers in one file.

    ``words`` are the names of namespaces, classes and functions of torch in the file's own
    weak symbols; ``headers`` the paths, as in ``torch/include``, that its texts name;
    ``lines`` (path, line number) of assertions in them; ``pybind11`` the texts of pybind11's
    internals; ``python`` the ``3.11`` in the directory of the torch that it was compiled
    with; ``compilers`` as .comment has them; ``python_tag`` that of its file name; ``told``
    the torch version ("2.14.0"; "2.14" where the patch release is not seen) that its code
    gives as that of its headers.
    """

    words: frozenset[str]
    headers: frozenset[str]
    lines: frozenset[tuple[str, int]]
    pybind11: tuple[str, ...]
    python: str | None
    compilers: tuple[str, ...]
    python_tag: str | None
    told: str | None = None


def read_traces(dynamic: DynamicObject, elf: ElfFacts) -> Traces:
    """The traces in an open file. Damage shows as their absence."""
    section = dynamic.image.section(".rodata")
    raw = b""
    if section is not None:
        raw = dynamic.image.read(section.offset, min(section.size, MAX_TEXT))
    headers, lines, pythons = _headers_in(raw)
    internals = {m[0] for at in _places(raw, _INTERNALS) if (m := _PYBIND11.match(raw, at))}
    return Traces(
        words_of(
            symbol.name
            for symbol in elf.symbols
            if symbol.shndx != SHN_UNDEF and symbol.bind in (STB_WEAK, STB_GNU_UNIQUE)
        ),
        frozenset(headers),
        frozenset(lines),
        tuple(sorted(text.decode("ascii") for text in internals)),
        pythons.pop() if len(pythons) == 1 else None,
        elf.compilers,
        elf.python_tag,
        _told(dynamic, elf),
    )


def _told(dynamic: DynamicObject, elf: ElfFacts) -> str | None:
    """The newest version in the code of a file that tells torch the version of its headers.

    Its headers compare the running torch with older versions too, never with newer ones.
    """
    if not any(s.name in _TOLD for s in elf.symbols if s.shndx == SHN_UNDEF):
        return None
    section = dynamic.image.section(".text")
    if section is None:
        return None
    read = _READERS.get(elf.machine)
    if read is None:
        return None
    end = section.offset + min(section.size, MAX_CODE)
    for start in range(section.offset, end, _CHUNK):
        # Every call passes it: where one is, no other part of the code says more.
        found = read(dynamic.image.read(start, min(_CHUNK, end - start)))
        if found:
            return max(found, key=_numbers)
    return None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _x86_versions(code: bytes) -> set[str]:
    return {
        f"2.{match[2][0]}.{match[1][0]}"
        for match in _MOV.finditer(code)
        # REX.W with or without REX.B, then B8+r (Intel SDM, volume 2, MOV).
        if code[match.start() - 2 : match.start() - 1] in (b"\x48", b"\x49")
        and code[match.start() - 1] & 0xF8 == 0xB8
    }


def _a64_versions(code: bytes) -> set[str]:
    found = set()
    for match in _MOVZ.finditer(code):
        start = match.start() - 2
        if start >= 0 and start % 4 == 0:
            immediate = int.from_bytes(code[start : start + 4], "little") >> 5 & 0xFFFF
            if immediate >> 8 == 2 and 9 <= immediate & 0xFF < 0x80:
                found.add(f"2.{immediate & 0xFF}")
    return found


def _headers_in(raw: bytes) -> tuple[set[str], set[tuple[str, int]], set[str]]:
    """(headers, assertion lines, Python versions) that the paths in a text speak of."""
    headers: set[str] = set()
    lines: set[tuple[str, int]] = set()
    pythons: set[str] = set()
    for at in _places(raw, _INCLUDE):
        match = _HEADER.match(raw, at)
        if match is None:
            continue
        path = match[1].decode("ascii")
        headers.add(path)
        if match[2]:
            lines.add((path, int(match[2])))
        python = _BUILD_PYTHON.search(raw[max(0, at - _BEFORE) : at])
        if python:
            pythons.add(python[1].decode("ascii"))
    return headers, lines, pythons


def _places(raw: bytes, text: bytes) -> Iterator[int]:
    """The first MAX_TRACES places of a text."""
    at = raw.find(text)
    for _ in range(MAX_TRACES):
        if at < 0:
            return
        yield at
        at = raw.find(text, at + 1)


_READERS: dict[str, Callable[[bytes], set[str]]] = {
    "x86_64": _x86_versions,
    "aarch64": _a64_versions,
}


def words_of(names: Iterable[bytes]) -> frozenset[str]:
    """The identifiers below torch's namespaces in mangled names, parameters included.

    ``_ZN3c104cuda9SetDeviceEa`` has ``cuda`` and ``SetDevice``. Of a name with template
    arguments or substitutions only what comes before them is read: that is plainly torch's.
    """
    found: set[bytes] = set()
    known: set[bytes] = set()
    for name in islice(names, MAX_NAMES):
        if name[:2] != b"_Z":
            continue
        for root in _ROOT.finditer(name):
            at = root.end()
            start = name[at : at + 40]
            # at::Tensor and its like begin thousands of parameters.
            if start in known:
                continue
            known.add(start)
            _add_words(name, at, found)
    return frozenset(word.decode("ascii") for word in found)


def _add_words(name: bytes, at: int, found: set[bytes]) -> None:
    while True:
        length = _LENGTH.match(name, at)
        if length is None:
            return
        end = length.end() + int(length[1])
        word = name[length.end() : end]
        if end > len(name) or not _WORD.fullmatch(word):
            return
        found.add(word)
        at = end
