"""The kernels of one image: entry symbols of a cubin, ``.entry`` directives of PTX.

A kernel is an STT_FUNC symbol whose st_other carries STO_CUDA_ENTRY, as ``cuobjdump
--dump-elf-symbols`` shows it. Source of the flag: cubins by nvcc 11.8 to 13.5; NVIDIA publishes
no description of its ELF flavour.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from fa_forensics.errors import DamagedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

EM_CUDA = 190
STT_FUNC = 2
STO_CUDA_ENTRY = 0x10
SHT_SYMTAB = 2

#: Bounds for damaged or hostile images, in bytes. The largest tables seen take 5 MB.
MAX_TABLE = 64 << 20
MAX_NAME = 16_384
#: Stands for the unknown size of a PTX kernel's machine code, in bytes.
PTX_CODE = 1 << 20

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
#: How .shstrtab and .strtab of every cubin begin.
_FIRST_NAMES = b"\0.shstrtab\0.strtab\0.symtab\0"
_TEXT = b".text."
_GAP = bytes(1 + _SYMBOL.size)
_MAX_GAPS = 16
_NOT_NUL = re.compile(rb"[^\0]")
_NO_TABLE = "could not look: the cubin has no symbol table"


Entry = tuple[bytes, int]  # a kernel's mangled name, and the bytes of its code


def cubin_entries(read: Callable[[int, int], bytes], size: int) -> list[Entry]:
    """The kernels of a cubin of ``size`` bytes, by its section headers.

    ``read(offset, n)`` returns n bytes of the cubin, fewer where it ends. Raises
    ``DamagedFile`` when the tables cannot be read.
    """
    table, count, _names = _section_table(read(0, _HEADER.size))
    raw = read(table, count * _SECTION.size)
    if not count or table + count * _SECTION.size > size or len(raw) < count * _SECTION.size:
        raise DamagedFile("could not look: the cubin's section headers are missing or cut off")
    sections = list(_SECTION.iter_unpack(raw))
    for section in sections:
        if section[1] == SHT_SYMTAB:
            break
    else:
        raise DamagedFile(_NO_TABLE)
    offset, length, link = section[4], section[5], section[6]
    if link >= count:
        raise DamagedFile("could not look: the cubin's symbol names are missing")
    names_offset, names_length = sections[link][4:6]
    if max(offset + length, names_offset + names_length) > size:
        raise DamagedFile("could not look: the cubin's symbol table leaves the cubin")
    if max(length, names_length) > MAX_TABLE:
        raise DamagedFile(f"could not look: a symbol table of more than {MAX_TABLE:,} bytes")
    return _entries(read(offset, length), read(names_offset, names_length), count)


def _section_table(header: bytes) -> tuple[int, int, int]:
    """Offset of a cubin's section headers, their number, and which one holds their names."""
    if len(header) < _HEADER.size or header[:4] != b"\x7fELF":
        raise DamagedFile("could not look: the image does not start like a cubin")
    fields = _HEADER.unpack_from(header)
    if fields[2] != EM_CUDA:
        raise DamagedFile(f"could not look: the image is ELF for machine {fields[2]}, not CUDA")
    if fields[11] != _SECTION.size:
        raise DamagedFile(f"could not look: the cubin's section headers have {fields[11]} bytes")
    return fields[6], fields[12], fields[13]


def _entries(symbols: bytes, names: bytes, sections: int) -> list[Entry]:
    """The kernels among raw symbols."""
    whole = len(symbols) - len(symbols) % _SYMBOL.size
    codes = {
        start: code
        for start, info, other, section, _value, code in _SYMBOL.iter_unpack(symbols[:whole])
        if other & STO_CUDA_ENTRY and info & 15 == STT_FUNC and 0 < section < sections
    }
    entries = []
    room = len(names)
    for start, code in codes.items():
        end = names.find(b"\0", start, start + MAX_NAME)
        room -= end - start
        if start >= len(names) or end < 0 or room < 0:
            raise DamagedFile("could not look: the names of the cubin's symbols are damaged")
        entries.append((names[start:end], code))
    return entries


class FrontTables:
    """The kernels of a cubin from its beginning alone, as far as that is there.

    Section headers lie at the end of a cubin, and to decompress all of it for them costs ten
    times what the tables cost. ptxas and nvlink put ``.shstrtab``, ``.strtab`` and ``.symtab``
    first, in this order. That this cubin has it so is checked: there are as many section names
    as sections, and each ``.text.NAME`` among them, which every function has, is found as a
    function symbol. Where it has not, ``read`` returns None to the end.
    """

    def __init__(self) -> None:
        self._searched = _HEADER.size + 1
        self._names = 0  # where .strtab starts, once that is known
        self._sections = 0
        self._wanted: frozenset[bytes] = frozenset()
        self._gap = 0  # where the next search for the end of .strtab starts
        self._gaps = 0
        self._text = b""  # .strtab, once its end is known
        self._symbol = 0  # the next symbol to look at
        self._missing: set[bytes] = set()
        self._entries: dict[bytes, int] = {}
        self._other_layout = False

    def read(self, buffer: bytes | bytearray) -> list[Entry] | None:
        """The kernels, given the cubin's first bytes; None while these are too few.

        Raises ``DamagedFile`` when the image is no cubin.
        """
        if not self._names and not self._other_layout:
            self._read_sections(buffer)
        while self._names and not self._other_layout:
            if not self._text and not self._read_names(buffer):
                return None
            if not self._wanted or self._read_symbols(buffer):
                return list(self._entries.items())
            if self._text:
                return None  # more symbols are to come
        return None

    def _read_sections(self, buffer: bytes | bytearray) -> None:
        _table, self._sections, _names = _section_table(bytes(buffer[: _HEADER.size]))
        at = _HEADER.size
        if bytes(buffer[at : at + len(_FIRST_NAMES)]) != _FIRST_NAMES:
            self._other_layout = True
            return
        start = buffer.find(_FIRST_NAMES, self._searched)
        if start < 0:
            self._searched = max(self._searched, len(buffer) - len(_FIRST_NAMES))
            return
        # ptxas 13 leaves empty names where it has dropped a section.
        names = [name for name in bytes(buffer[at:start]).split(b"\0") if name]
        if len(names) + 1 < self._sections:
            self._other_layout = True
            return
        self._wanted = frozenset(n[len(_TEXT) :] for n in names if n.startswith(_TEXT))
        self._names = self._gap = start

    def _read_names(self, buffer: bytes | bytearray) -> bool:
        """Find a place where .strtab may end and .symtab begin; false when there is none yet.

        The last name's NUL and the first symbol are zeros, the first 8 bytes of the second
        symbol are not all.
        """
        gap = buffer.find(_GAP, self._gap)
        following = _NOT_NUL.search(buffer, gap + len(_GAP)) if gap >= 0 else None
        if following is None:
            self._gap = gap if gap >= 0 else max(self._gap, len(buffer) - len(_GAP))
            return False
        self._gaps += 1
        self._other_layout = self._gaps > _MAX_GAPS
        self._text = bytes(buffer[self._names : gap + 1])
        self._gap = following.start()
        self._symbol = following.start() & ~7
        self._missing = set(self._wanted)
        self._entries = {}
        return not self._other_layout

    def _read_symbols(self, buffer: bytes | bytearray) -> bool:
        """Go on through the symbols; true once they have named all wanted functions.

        At what cannot be a symbol of this table, ``_text`` is emptied: its end was elsewhere.
        """
        names = self._text
        count = (len(buffer) - self._symbol) // _SYMBOL.size
        end = self._symbol + count * _SYMBOL.size
        with memoryview(buffer) as view, view[self._symbol : end] as symbols:
            for start, info, other, section, _value, code in _SYMBOL.iter_unpack(symbols):
                if start >= len(names):
                    self._text = b""
                    return False
                if info & 15 != STT_FUNC:
                    continue
                name = names[start : names.find(b"\0", start)]
                if name in self._wanted:
                    self._missing.discard(name)
                    if other & STO_CUDA_ENTRY and 0 < section < self._sections:
                        self._entries[name] = code
                    if not self._missing:
                        return True
                elif other & STO_CUDA_ENTRY and section:
                    # A kernel always has its own section. Helpers of ptxas lie in their
                    # caller's, so that other functions tell nothing.
                    self._text = b""
                    return False
        self._symbol = end
        return False


#: PTX ISA, "Kernel and Function Directives: .entry"; identifiers as in "Identifiers".
_PTX_ENTRY = re.compile(rb"\.entry[ \t\r\n]+([A-Za-z_$%][\w$]*)")
_PTX_EMPTY = re.compile(rb"[^{}]{0,65536}\{\s*ret;\s*\}")
_OVERLAP = 2 * MAX_NAME


def ptx_entries(chunks: Iterable[bytes]) -> list[Entry]:
    """The kernels of a PTX text that comes in chunks, of which one is held at a time.

    The code size of one that only returns is 0, of all others ``PTX_CODE``.
    """
    found: dict[bytes, int] = {}
    tail = b""
    for chunk, last in _with_last(chunks):
        text = tail + chunk if tail else chunk
        for match in _PTX_ENTRY.finditer(text):
            if match.end() == len(text) and not last:
                continue  # may go on; seen again with the next chunk
            line = text.rfind(b"\n", 0, match.start()) + 1
            if b"//" not in text[line : match.start()]:
                found[match[1]] = 0 if _PTX_EMPTY.match(text, match.end()) else PTX_CODE
        tail = text[-_OVERLAP:]
    return list(found.items())


def _with_last(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk, and whether it is the last."""
    before: bytes | None = None
    for chunk in chunks:
        if before is not None:
            yield before, False
        before = chunk
    if before is not None:
        yield before, True
