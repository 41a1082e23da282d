"""What every torch release exports: the shipped tables, opened and asked.

Nothing is read before ``open``; a query decodes only what it touches. Names that no
release exports are ordinary answers (empty), damage is AtlasDamaged at ``open``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from fa_forensics.atlas.builds import Build, nearest_releases
from fa_forensics.atlas.presence import BINDS, PresenceSets
from fa_forensics.atlas.tables import SHIPPED, damaged, map_table, read_index
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from mmap import mmap

    from fa_forensics.atlas.overloads import Named

#: Most names that one search by prefix returns unless told otherwise.
MAX_FOUND = 2_000


@dataclass(frozen=True, slots=True)
class Export:
    """One library of one release that exports a name: ``bind`` is global, weak or unique."""

    release: str
    library: str
    bind: str


class Atlas:
    """The torch tables. Names are the linker's own (mangled); machines as ``uname -m`` says."""

    def __init__(self, index: Mapping[str, Any], mapped: mmap, sets: PresenceSets) -> None:
        from marisa_trie import BinaryTrie

        self._builds = tuple(Build.from_json(entry) for entry in index["builds"])
        self._libraries: tuple[str, ...] = tuple(index["libraries"])
        self._mapped = mapped  # the trie points into it without holding it
        self._trie = BinaryTrie().map(mapped)
        self._sets = sets
        self._bits: dict[str, list[tuple[int, str]]] = {}
        for bit, build in enumerate(self._builds):
            self._bits.setdefault(build.machine, []).append((bit, build.release))
        self._known: dict[tuple[int, str], tuple[str, ...]] = {}

    @classmethod
    def open(cls, directory: str | None = None) -> Atlas:
        """The tables in ``directory``, by default the shipped ones.

        Raises AtlasDamaged when a table is missing, cut short or altered.
        """
        directory = SHIPPED if directory is None else directory
        index = read_index(directory, "torch.json")
        sets = map_table(directory, "torch.sets", index)
        mapped = map_table(directory, "torch.trie", index)
        try:
            return cls(index, mapped, PresenceSets(memoryview(sets)))
        except ImportError as error:
            raise damaged(directory, f"cannot be read without marisa-trie ({error})") from error

    # -- builds ------------------------------------------------------------------

    def builds(self, machine: str = "x86_64") -> tuple[Build, ...]:
        """The builds for a machine, oldest release first; none for an unknown machine."""
        return tuple(build for build in self._builds if build.machine == machine)

    def machines(self) -> tuple[str, ...]:
        """The machines that builds are known for, sorted."""
        return tuple(sorted(self._bits))

    def releases(self, machine: str = "x86_64") -> tuple[str, ...]:
        """The releases known for a machine, oldest first."""
        return tuple(release for _, release in self._bits.get(machine, ()))

    def build(self, release: str, machine: str = "x86_64") -> Build | None:
        """One build, or ``None`` if the release is not known for that machine."""
        bit = self._bit(release, machine)
        return None if bit is None else self._builds[bit]

    def nearest_releases(self, text: str) -> tuple[str, ...]:
        """Known releases to offer for a text that names none, oldest first; at most three."""
        return nearest_releases(text, (build.release for build in self._builds))

    # -- names -------------------------------------------------------------------

    def exports(self, name: str, machine: str = "x86_64") -> tuple[Export, ...]:
        """Every release and library that exports a name, oldest release first."""
        number = self._set_of(name)
        if number is None:
            return ()
        rows = self._sets.rows(number)
        return tuple(
            Export(release, self._libraries[row.library], BINDS[row.bind])
            for bit, release in self._bits.get(machine, ())
            for row in rows
            if row.mask >> bit & 1
        )

    def releases_of(self, name: str, machine: str = "x86_64") -> tuple[str, ...]:
        """The releases that export a name from any of their libraries, oldest first."""
        number = self._set_of(name)
        return () if number is None else self._releases(self._sets.union(number), machine)

    def exporting_all(
        self, names: Iterable[str], machine: str = "x86_64"
    ) -> tuple[tuple[str, ...], Mapping[str, tuple[str, ...]]]:
        """The releases that export all names; for each of the others, the names it lacks.

        Names keep the order they came in. No names: every release.
        """
        wanted = dict.fromkeys(names)
        masks = []
        for name in wanted:
            number = self._set_of(name)
            masks.append((name, 0 if number is None else self._sets.union(number)))
        complete, lacking = [], {}
        for bit, release in self._bits.get(machine, ()):
            missing = tuple(name for name, mask in masks if not mask >> bit & 1)
            if missing:
                lacking[release] = missing
            else:
                complete.append(release)
        return tuple(complete), lacking

    def starting_with(
        self, prefix: str, machine: str = "x86_64", limit: int = MAX_FOUND
    ) -> list[tuple[str, tuple[str, ...]]]:
        """(name, releases) of exported names that start so, sorted; the first ``limit`` found."""
        raw = _encode(prefix)
        if raw is None:
            return []
        return sorted(
            (name.decode("utf-8", "surrogateescape"), releases)
            for name, releases in islice(self.search(raw, machine), limit)
        )

    def search(self, prefix: bytes, machine: str) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """(name, releases) of every name that starts so and that a build of the machine has."""
        for name, place in self._trie.iteritems(prefix):
            mask = self._sets.union(self._sets.number_of(place))
            releases = self._releases(mask, machine)
            if releases:
                yield name, releases

    def overloads(self, name_or_qualified: str, machine: str = "x86_64") -> tuple[Named, ...]:
        """Every exported function of the same qualified name, with the releases of each.

        Takes a mangled name, or a readable one with or without parameters; without, all
        that is found is "same name". Both std::string flavours, both const forms; the
        two forms of a constructor count as one. Empty where no release exports any.
        """
        from fa_forensics.atlas.overloads import find

        return find(self, name_or_qualified, machine)

    def twin(self, name: str, machine: str = "x86_64") -> Named | None:
        """The same function in the other std::string flavour; ``None`` if no release has it."""
        from fa_forensics.atlas.overloads import find_twin

        return find_twin(self, name, machine)

    # -- two releases ------------------------------------------------------------

    def removed_added(
        self,
        old: str,
        new: str,
        machine: str = "x86_64",
        libraries: Collection[str] | None = None,
        prefixes: Collection[bytes] = (),
    ) -> tuple[list[str], list[str]]:
        """The names that only ``old`` exports, and those that only ``new`` does, sorted.

        ``libraries`` narrows to names that one of these exports (``libc10.so``);
        ``prefixes`` to names with one of these mangled starts. A release that is not
        known raises KeyError.
        """
        before, after = (1 << self._known_bit(release, machine) for release in (old, new))
        removed: set[int] = set()
        added: set[int] = set()
        for number in range(self._sets.sets):
            mask = self._mask(number, libraries)
            if bool(mask & before) != bool(mask & after):
                (removed if mask & before else added).add(number)
        found: tuple[list[str], list[str]] = [], []
        for place, number in self._places(prefixes):
            if number in removed or number in added:
                name = self._trie.restore_key(place).decode("utf-8", "surrogateescape")
                found[number in added].append(name)
        found[0].sort()
        found[1].sort()
        return found

    def _places(self, prefixes: Collection[bytes]) -> Iterable[tuple[int, int]]:
        """(place in the trie, set) of every name with one of these starts, or of all names."""
        if not prefixes:
            return enumerate(self._sets.numbers())
        places = {place for prefix in prefixes for _, place in self._trie.iteritems(prefix)}
        return ((place, self._sets.number_of(place)) for place in places)

    def _mask(self, number: int, libraries: Collection[str] | None) -> int:
        """The builds in which one of these libraries (``None``: any) exports a set's names."""
        if libraries is None:
            return self._sets.union(number)
        mask = 0
        for row in self._sets.rows(number):
            if self._libraries[row.library] in libraries:
                mask |= row.mask
        return mask

    # -- for the compiler of tables ----------------------------------------------

    def all_builds(self) -> tuple[Build, ...]:
        """The builds of every machine, in the order of the bits of ``rows_of_set``."""
        return self._builds

    def names_and_sets(self) -> Iterator[tuple[bytes, int]]:
        """Every name with the number of its presence set."""
        for name, place in self._trie.iteritems(b""):
            yield name, self._sets.number_of(place)

    def rows_of_set(self, number: int) -> tuple[tuple[str, int, int], ...]:
        """(library, number of the bind, bit mask over ``all_builds``) of a presence set."""
        rows = self._sets.rows(number)
        return tuple((self._libraries[row.library], row.bind, row.mask) for row in rows)

    # -- small steps -------------------------------------------------------------

    def _set_of(self, name: str) -> int | None:
        raw = _encode(name)
        place = None if raw is None else self._trie.get(raw)
        return None if place is None else self._sets.number_of(place)

    def _releases(self, mask: int, machine: str) -> tuple[str, ...]:
        key = mask, machine
        found = self._known.get(key)
        if found is None:
            bits = self._bits.get(machine, ())
            found = tuple(release for bit, release in bits if mask >> bit & 1)
            self._known[key] = found
        return found

    def _bit(self, release: str, machine: str) -> int | None:
        bits = self._bits.get(machine, ())
        return next((bit for bit, known in bits if known == release), None)

    def _known_bit(self, release: str, machine: str) -> int:
        bit = self._bit(release, machine)
        if bit is None:
            raise KeyError(f"torch {release} for {machine}")
        return bit


def _encode(name: str) -> bytes | None:
    """A name as its bytes in the file; ``None`` for text that no bytes stand behind."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
