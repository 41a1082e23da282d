"""What every release of NVIDIA's CUDA libraries exports: the shipped table, opened and asked.

A library is named by its soname (``libcudart.so.12``), a release of it by the wheel that
brings it (``nvidia-cuda-runtime-cu12`` 12.1.105). Linux x86_64; which wheels were read, and
which of their members were not, is in the table too. Nothing is read before ``open``.

The table (``cuda.trie``, a ``marisa_trie.RecordTrie``) maps ``name``, ``name@VERSION`` or
``name@@VERSION`` (the default version), spelled as ``nm -D --with-symbol-versions`` does, to
the number of a set of rows; a row is one library of one wheel. ``cuda.json`` has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fa_forensics.atlas.tables import SHIPPED, damaged, map_table, read_index

if TYPE_CHECKING:
    from mmap import mmap

INDEX, TRIE = "cuda.json", "cuda.trie"
#: A set of rows has a 16-bit number.
SET_NUMBER = "<H"


class CudaWheel(NamedTuple):
    """A wheel that was read. ``line`` is its CUDA major version, ``date`` the day of its upload.

    ``unread`` names its members that were left out; ``complete`` is false when one of them
    was left out only because a newer wheel of the same minor version was read.
    """

    distribution: str
    version: str
    line: int
    date: str
    wheel: str
    unread: tuple[str, ...]
    complete: bool


class LibraryRelease(NamedTuple):
    """A library as one wheel brings it."""

    soname: str
    distribution: str
    version: str


class CudaLibraries:
    """The CUDA tables. Versions of symbols are those of the library's own version script."""

    def __init__(self, index: Mapping[str, Any], mapped: mmap) -> None:
        from marisa_trie import RecordTrie

        lines: dict[str, int] = index["distributions"]
        self._wheels = tuple(
            CudaWheel(name, version, lines[name], date, wheel, tuple(unread), complete)
            for name, version, date, wheel, unread, complete in map(_wheel_fields, index["wheels"])
        )
        self._first_row: dict[str, int] = {}
        #: The wheel of each row; rows are numbered by soname, then by version and line.
        self._wheel_of_row: list[int] = []
        self._sonames: tuple[str, ...] = tuple(index["libraries"])
        self._soname_of_row: list[int] = []
        for number, (soname, wheels) in enumerate(index["libraries"].items()):
            self._first_row[soname] = len(self._wheel_of_row)
            self._wheel_of_row += map(int, wheels.split())
            missing = len(self._wheel_of_row) - len(self._soname_of_row)
            self._soname_of_row += [number] * missing
        self._sets: list[str] = index["sets"]
        self._mapped = mapped  # the trie points into it without holding it
        self._trie = RecordTrie(SET_NUMBER).map(mapped)

    @classmethod
    def open(cls, directory: str | None = None) -> CudaLibraries:
        """The tables in ``directory``, by default the shipped ones.

        Raises AtlasDamaged when a table is missing, cut short or altered.
        """
        directory = SHIPPED if directory is None else directory
        index = read_index(directory, INDEX)
        mapped = map_table(directory, TRIE, index)
        try:
            return cls(index, mapped)
        except ImportError as error:
            raise damaged(directory, f"cannot be read without marisa-trie ({error})") from error

    # -- libraries and wheels ------------------------------------------------------

    def wheels(self) -> tuple[CudaWheel, ...]:
        """All wheels, by distribution and then oldest first."""
        return self._wheels

    def sonames(self) -> tuple[str, ...]:
        """All libraries, sorted."""
        return self._sonames

    def releases(self, soname: str) -> tuple[LibraryRelease, ...]:
        """Every release of a library that was read, oldest first; none for an unknown one."""
        return tuple(self._release(row) for row in self._rows_of(soname))

    def versions(self, soname: str) -> tuple[str, ...]:
        """The versions of the wheels that carry a library, oldest first.

        One version may stand for a wheel of each CUDA line (cuDNN, NCCL).
        """
        return tuple(dict.fromkeys(release.version for release in self.releases(soname)))

    def sonames_of(self, distribution: str, version: str) -> tuple[str, ...]:
        """The libraries that a pinned wheel brings; none for an unknown wheel.

        Members that were not read are named by their file, which is their soname too.
        """
        for number, wheel in enumerate(self._wheels):
            if (wheel.distribution, wheel.version) == (distribution, version):
                rows = (row for row, of in enumerate(self._wheel_of_row) if of == number)
                read = {self._sonames[self._soname_of_row[row]] for row in rows}
                return tuple(sorted(read | set(wheel.unread)))
        return ()

    # -- names -----------------------------------------------------------------------

    def exported_by(
        self, soname: str | None, name: str, version: str | None = None
    ) -> tuple[LibraryRelease, ...]:
        """The releases that export a name: of one library, or (``None``) of any, oldest first.

        ``version`` is the symbol's version (``libnvJitLink.so.12``); ``None`` takes any, and
        none at all.
        """
        return tuple(map(self._release, self._rows(soname, name, version)))

    def first_with(
        self, soname: str | None, name: str, version: str | None = None
    ) -> LibraryRelease | None:
        """The oldest release that exports a name; of several libraries that of the oldest line."""
        firsts = [
            (self._wheels[self._wheel_of_row[row]].line, row)
            for row in self._firsts(self._rows(soname, name, version))
        ]
        return self._release(min(firsts)[1]) if firsts else None

    def first_of_each(self, name: str, version: str | None = None) -> tuple[LibraryRelease, ...]:
        """For every library that has ever exported a name, the oldest release that does."""
        return tuple(map(self._release, self._firsts(self._rows(None, name, version))))

    def symbol_versions(self, soname: str, name: str) -> tuple[str | None, ...]:
        """The versions under which any release of a library exports a name, sorted.

        ``None`` (first) stands for no version; empty when no release exports it.
        """
        mine = self._rows_of(soname)
        found = {
            version
            for version, number in self._entries(name)
            if any(first < mine.stop and mine.start <= last for first, last in self._runs(number))
        }
        return tuple(sorted(found, key=lambda version: version or ""))

    def names(self) -> Iterator[tuple[str, tuple[LibraryRelease, ...]]]:
        """Every name as ``nm -D --with-symbol-versions`` spells it, and the releases with it."""
        for key, (number,) in self._trie.items():
            yield key, tuple(map(self._release, self._expand(number)))

    # -- rows ------------------------------------------------------------------------

    def _release(self, row: int) -> LibraryRelease:
        wheel = self._wheels[self._wheel_of_row[row]]
        soname = self._sonames[self._soname_of_row[row]]
        return LibraryRelease(soname, wheel.distribution, wheel.version)

    def _rows_of(self, soname: str) -> range:
        first = self._first_row.get(soname)
        if first is None:
            return range(0)
        last = first
        number = self._soname_of_row[first]
        while last < len(self._soname_of_row) and self._soname_of_row[last] == number:
            last += 1
        return range(first, last)

    def _rows(self, soname: str | None, name: str, version: str | None) -> list[int]:
        within = range(len(self._wheel_of_row)) if soname is None else self._rows_of(soname)
        numbers = [n for of, n in self._entries(name) if version is None or of == version]
        if len(numbers) == 1:
            return [row for row in self._expand(numbers[0]) if row in within]
        rows = {row for number in numbers for row in self._expand(number)}
        return sorted(row for row in rows if row in within)

    def _firsts(self, rows: list[int]) -> list[int]:
        """Of sorted rows the first of each soname."""
        found: dict[int, int] = {}
        for row in rows:
            found.setdefault(self._soname_of_row[row], row)
        return list(found.values())

    def _entries(self, name: str) -> Iterator[tuple[str | None, int]]:
        """(symbol version, set of rows) of each spelling of a name."""
        for (number,) in self._trie.get(name, ()):
            yield None, number
        for key, (number,) in self._trie.items(name + "@"):
            yield key[len(name) :].lstrip("@"), number

    def _expand(self, number: int) -> Iterator[int]:
        for first, last in self._runs(number):
            yield from range(first, last + 1)

    def _runs(self, number: int) -> Iterator[tuple[int, int]]:
        for run in self._sets[number].split():
            first, _, last = run.partition("-")
            yield int(first), int(last or first)


def _wheel_fields(entry: Mapping[str, Any]) -> tuple[str, str, str, str, list[str], bool]:
    return (
        entry["distribution"], entry["version"], entry["date"], entry["wheel"],
        entry.get("unread", []), entry.get("complete", True),
    )  # fmt: skip
