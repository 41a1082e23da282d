"""The dynamic view of an ELF object: what the loader reads, section headers or not.

Tables are found through PT_DYNAMIC, as ld.so finds them, and are read in bulk. A name is
looked up through the hash table (DT_GNU_HASH, else DT_HASH), so that binding the 300
names of an extension never touches the 90,000 of libtorch_cpu.

Sources: gABI chapter 5 (dynamic section, hash table); "Symbol Versioning" in the LSB core
specification; the GNU hash layout as in glibc's ``elf/dl-lookup.c`` and binutils' readelf.
"""

from __future__ import annotations

import struct
from collections import namedtuple
from collections.abc import Container, Iterator

from fa_forensics.facts.elf.hash_table import HashTable
from fa_forensics.facts.elf.hash_table import gnu_hash as gnu_hash
from fa_forensics.facts.elf.image import PT_DYNAMIC, PT_LOAD, ElfImage
from fa_forensics.facts.elf.versions import read_verdef, read_verneed

DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ = 1, 4, 5, 6, 7, 8
DT_STRSZ, DT_SONAME, DT_RPATH, DT_PLTRELSZ, DT_JMPREL = 10, 14, 15, 2, 23
DT_RUNPATH, DT_FLAGS, DT_FLAGS_1, DT_RELACOUNT = 29, 30, 0x6FFFFFFB, 0x6FFFFFF9
DT_GNU_HASH, DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
DT_VERDEF, DT_VERDEFNUM, DT_GNU_PRELINKED = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFDF5
DF_STATIC_TLS, DF_1_NODEFLIB = 0x10, 0x800

STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STT_TLS = 6
#: NOTYPE, OBJECT, FUNC, COMMON, TLS, GNU_IFUNC: the only types the loader binds to.
_BINDABLE_TYPES = frozenset((0, 1, 2, 5, 6, 10))
STV_HIDDEN, STV_INTERNAL = 2, 1
SHN_UNDEF, SHN_ABS = 0, 0xFFF1
SHT_DYNSYM = 11
VERSION_HIDDEN, VERSION_MASK = 0x8000, 0x7FFF

BIND_NAMES = {0: "local", 1: "global", 2: "weak", 10: "unique"}
VISIBILITY_NAMES = {0: "default", 1: "internal", 2: "hidden", 3: "protected"}

#: Entries whose values are addresses: DT_INIT, DT_FINI and their arrays beside the tables.
_POINTERS = (
    DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, 12, 13, DT_JMPREL, 25, 26, DT_GNU_HASH, DT_VERSYM,
    DT_VERNEED, DT_VERDEF,
)  # fmt: skip

#: Limits for damaged and hostile files. libtorch_cpu, the largest real library seen, has
#: 93,000 symbols, 20 MB of names and 700,000 relocations; its longest name has 2 KB.
MAX_DYNAMIC_ENTRIES = 4_096
MAX_SYMBOLS = 500_000
MAX_RELOCATIONS = 4_000_000
MAX_NAME = 16_384
MAX_NAMES = 1 << 26

#: One dynamic symbol. ``name`` is bytes; ``version`` the name in verneed or verdef.
Symbol = namedtuple(
    "Symbol", "index name bind type visibility shndx value version version_file hidden"
)
#: One definition found by name: ``version`` is None in an object without versions.
Definition = namedtuple("Definition", "index bind type version")

_SYM = struct.Struct("<IBBHQQ")
_DYN = struct.Struct("<qQ")
_RELA = struct.Struct("<QQq")
_U16 = struct.Struct("<H")


class DynamicObject:
    """An ELF object as the loader sees it. Holds the mapped file until ``close``.

    Damage is recorded in ``problems``; what cannot be read is empty. Raises what
    ``ElfImage`` raises when the file is no ELF file at all.
    """

    def __init__(self, image: ElfImage) -> None:
        self.image = image
        self.path = image.path
        self.problems = image.problems
        self.entries = self._read_entries()
        self.has_dynamic = bool(self.entries)
        self._first = dict(reversed(self.entries))
        self._starts: list[int] | None = None
        self._strtab = self._table(DT_STRTAB)
        self._strsz = self._bounded_string_size()
        self._symtab = self._table(DT_SYMTAB)
        self._versym = self._table(DT_VERSYM)
        self._hash = HashTable(
            image, *(self._table(tag) if tag in self._first else None
                     for tag in (DT_GNU_HASH, DT_HASH)),
        )  # fmt: skip
        self.soname = self._name_of(DT_SONAME)
        needed = (self._string(value) for tag, value in self.entries if tag == DT_NEEDED)
        self.needed = tuple(name for name in needed if name)
        self.rpath = self._paths(DT_RPATH)
        self.runpath = self._paths(DT_RUNPATH)
        self.static_tls = bool(self._first.get(DT_FLAGS, 0) & DF_STATIC_TLS)
        self.flags_1 = self._first.get(DT_FLAGS_1, 0)
        self.nodeflib = bool(self.flags_1 & DF_1_NODEFLIB)
        self._verneed: dict[int, tuple[str, str, bool]] | None = None
        self._verdef: dict[int, str] | None = None

    @classmethod
    def open(cls, path: str) -> DynamicObject:
        """Map a file and read its dynamic section. Raises what ``ElfImage`` raises."""
        return cls(ElfImage(path))

    def close(self) -> None:
        """Unmap the file."""
        self.image.close()

    # -- tables ------------------------------------------------------------------

    def _read_entries(self) -> list[tuple[int, int]]:
        image = self.image
        span = next(((s.offset, s.file_size) for s in image.segments if s.type == PT_DYNAMIC), None)
        if span is None:
            section = image.section(".dynamic")
            if section is None:
                return []
            span = (section.offset, section.size)
        raw = image.read(span[0], min(span[1], MAX_DYNAMIC_ENTRIES * _DYN.size))
        entries = []
        for tag, value in _DYN.iter_unpack(raw[: len(raw) - len(raw) % _DYN.size]):
            if tag == 0:
                break
            entries.append((tag, value))
        if not entries:
            self.problems.append("the dynamic section lies beyond the end of the file")
        return entries

    def _table(self, tag: int) -> int | None:
        """File offset of the table a dynamic entry points to, or None."""
        address = self._first.get(tag)
        if address is None:
            return None
        offset = self.image.offset_of(address)
        if offset is None:
            self.problems.append(f"dynamic entry {tag:#x} points outside the file")
        return offset

    def _room(self, offset: int) -> int:
        """Bytes from a table's start to the next table, or the end of its segment or file.

        Tables do not overlap, so a size beyond this is damage: it must not make megabytes
        of payload look like symbols.
        """
        if self._starts is None:
            found = (self.image.offset_of(self._first.get(tag, -1)) for tag in _POINTERS)
            self._starts = sorted(start for start in found if start is not None)
        ends = [start for start in self._starts if start > offset][:1]
        ends += [
            s.offset + s.file_size
            for s in self.image.segments
            if s.type == PT_LOAD and 0 <= offset - s.offset < s.file_size
        ]
        return min([*ends, self.image.size]) - offset

    def _bounded_string_size(self) -> int:
        if self._strtab is None:
            return 0
        return max(0, min(self._first.get(DT_STRSZ, 0), self._room(self._strtab)))

    def _string(self, offset: int) -> str:
        raw = self.string_bytes(offset)
        if not 0 <= offset < self._strsz:
            self.problems.append("a name in the dynamic section lies outside its string table")
        return raw.decode("utf-8", "backslashreplace")

    def string_bytes(self, offset: int) -> bytes:
        """The dynamic string at an offset in DT_STRTAB (empty when out of range)."""
        if self._strtab is None or not 0 <= offset < self._strsz:
            return b""
        return self.image.string(self._strtab + offset, min(MAX_NAME, self._strsz - offset))

    def strings(self) -> bytes:
        """A copy of the whole dynamic string table, for searching by prefix."""
        return b"" if self._strtab is None else self.image.read(self._strtab, self._strsz)

    def _name_of(self, tag: int) -> str | None:
        value = self._first.get(tag)
        return None if value is None else self._string(value) or None

    def _paths(self, tag: int) -> tuple[str, ...]:
        text = self._name_of(tag)
        return tuple(text.split(":")) if text else ()

    # -- symbols -----------------------------------------------------------------

    @property
    def verneed(self) -> dict[int, tuple[str, str, bool]]:
        """Version index → (file, version, weak) that this object needs of others."""
        if self._verneed is None:
            self._verneed = read_verneed(
                self.image, self._table(DT_VERNEED), self._first.get(DT_VERNEEDNUM, 0), self._string
            )
        return self._verneed

    @property
    def verdef(self) -> dict[int, str]:
        """Version index → version that this object defines; empty without versions."""
        if self._verdef is None:
            self._verdef = read_verdef(
                self.image, self._table(DT_VERDEF), self._first.get(DT_VERDEFNUM, 0), self._string
            )
        return self._verdef

    def symbol_count(self) -> int:
        """Number of dynamic symbols, from .dynsym, else the hash table and relocations."""
        if self._symtab is None:
            return 0
        room = self._room(self._symtab) // _SYM.size
        for section in self.image.sections:
            if section.type == SHT_DYNSYM and section.offset == self._symtab:
                count = section.size // _SYM.size
                break
        else:
            by_relocation = max((index for index, _ in self.symbol_relocations()), default=-1) + 1
            count = max(self._hash.count(), by_relocation)
        limit = min(room, MAX_SYMBOLS)
        if count > limit:
            self.problems.append(
                f"the symbol table is said to have {count:,} entries, {limit:,} of them were read"
            )
        return int(min(count, limit))

    def symbols(self) -> Iterator[Symbol]:
        """Every dynamic symbol but the null one, in table order."""
        if self._symtab is None:
            return
        raw = self.image.read(self._symtab, self.symbol_count() * _SYM.size)
        strings = self.strings()
        rows = _SYM.iter_unpack(raw[: len(raw) - len(raw) % _SYM.size])
        versions = self._raw_versions(len(raw) // _SYM.size)
        names = 0
        for index, (name, info, other, shndx, value, _size) in enumerate(rows):
            if index == 0:
                continue
            end = strings.find(b"\0", name, name + MAX_NAME)
            text = strings[name : end if end >= 0 else name + MAX_NAME]
            names += len(text)
            if names > MAX_NAMES:
                self.problems.append(f"the names of the symbols exceed {MAX_NAMES:,} bytes")
                return
            number = versions[index] if index < len(versions) else 0
            version, file = self._version_of(number & VERSION_MASK, shndx)
            yield Symbol(
                index, text, info >> 4, info & 15,
                other & 3, shndx, value, version, file, bool(number & VERSION_HIDDEN),
            )  # fmt: skip

    def _raw_versions(self, count: int) -> tuple[int, ...]:
        if self._versym is None:
            return ()
        raw = self.image.read(self._versym, count * 2)
        return struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) - len(raw) % 2])

    def _version_of(self, number: int, shndx: int) -> tuple[str | None, str | None]:
        if number < 2:
            return None, None
        if shndx == SHN_UNDEF and number in self.verneed:
            file, version, _weak = self.verneed[number]
            return version, file
        return self.verdef.get(number), None

    def symbol_relocations(self) -> Iterator[tuple[int, int]]:
        """(symbol index, relocation type) in the order in which the loader binds them.

        glibc (``elf/dynamic-link.h``) works through DT_RELA, then DT_JMPREL.
        """
        first = self._first
        for table, size in ((DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)):
            offset = self._table(table) if table in first else None
            if offset is None:
                continue
            room = min(self._room(offset), MAX_RELOCATIONS * _RELA.size)
            raw = self.image.read(offset, min(first.get(size, 0), room))
            for _where, info, _addend in _RELA.iter_unpack(raw[: len(raw) - len(raw) % 24]):
                if info >> 32:
                    yield info >> 32, info & 0xFFFFFFFF

    # -- look-up by name -----------------------------------------------------------

    def lookup(self, name: bytes, hashed: int, version: str | None = None) -> Definition | None:
        """The exported definition that glibc would bind this name and version to, or None.

        ``hashed`` is ``gnu_hash(name)``, computed once for all objects. The rules are
        those of ``check_match`` and ``do_lookup_x`` in glibc's dl-lookup.c: a versioned
        reference takes that version, or an unversioned definition; an unversioned one
        takes the base or first version, or the only visible one.
        """
        if self._symtab is None:
            return None
        only: Definition | None = None
        visible_versions = 0
        for index in self._hash.candidates(name, hashed):
            found = self._definition_at(index, name)
            if found is None:
                continue
            bind, kind = found
            if self._versym is None:
                return Definition(index, bind, kind, None)
            at = self._versym + 2 * index
            if at + 2 > self.image.size:
                continue
            (number,) = _U16.unpack_from(self.image.data, at)
            plain = number & VERSION_MASK
            named = self.verdef.get(plain) if plain >= 2 else None
            if version is not None:
                if named == version or (plain < 2 and not number & VERSION_HIDDEN):
                    return Definition(index, bind, kind, named)
            elif plain < 3:
                return Definition(index, bind, kind, named)
            elif not number & VERSION_HIDDEN:
                visible_versions += 1
                only = only or Definition(index, bind, kind, named)
        return only if visible_versions == 1 else None

    def span_of(self, name: bytes, hashed: int) -> tuple[int, int] | None:
        """(address, bytes) of what an exported name names, or None where it is not defined."""
        found = self.lookup(name, hashed)
        if found is None or self._symtab is None:
            return None
        row = _SYM.unpack_from(self.image.data, self._symtab + found.index * _SYM.size)
        return row[4], row[5]

    def undefined(
        self, files: Container[str], unversioned: bool
    ) -> Iterator[tuple[bytes, int, str | None, str | None]]:
        """(name, bind, version, version's file) of undefined symbols, in table order.

        Those whose version is of one of ``files``, and with ``unversioned`` those without a
        version. Cheap: of the 90,000 rows of a large library only these are taken apart.
        """
        if self._symtab is None:
            return
        count, hashed = self.symbol_count(), self._hash.first_hashed
        count = count if hashed is None else min(count, hashed)  # what is hashed is defined
        raw = self.image.read(self._symtab, count * _SYM.size)
        versions = self._raw_versions(len(raw) // _SYM.size)
        wanted = {number for number, row in self.verneed.items() if row[0] in files}
        rows = _SYM.iter_unpack(raw[: len(raw) - len(raw) % _SYM.size])
        for index, (name, info, _other, shndx, _value, _size) in enumerate(rows):
            if shndx != SHN_UNDEF or not name:
                continue
            number = versions[index] & VERSION_MASK if index < len(versions) else 0
            if number in wanted or (unversioned and number < 2):
                version, file = self._version_of(number, shndx)
                yield self.string_bytes(name), info >> 4, version, file

    def _definition_at(self, index: int, name: bytes) -> tuple[int, int] | None:
        """(bind, type) of a symbol that defines and exports exactly this name."""
        assert self._symtab is not None
        at = self._symtab + index * _SYM.size
        if at + _SYM.size > self.image.size:
            return None
        offset, info, other, shndx, value, _size = _SYM.unpack_from(self.image.data, at)
        bind, kind = info >> 4, info & 15
        if shndx == SHN_UNDEF or (value == 0 and shndx != SHN_ABS and kind != STT_TLS):
            return None
        if bind not in (STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE) or kind not in _BINDABLE_TYPES:
            return None
        if other & 3 in (STV_HIDDEN, STV_INTERNAL) or not 0 <= offset < self._strsz:
            return None
        start = (self._strtab or 0) + offset
        if self.image.data[start : start + len(name) + 1] != name + b"\0":
            return None
        return bind, kind
