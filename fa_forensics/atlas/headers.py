"""Which torch releases have a header, an identifier in a header, an assertion on a line of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fa_forensics.atlas.tables import SHIPPED, damaged, map_table, read_index

if TYPE_CHECKING:
    from mmap import mmap


class Headers:
    """The table of torch's headers; ``wheels`` says which wheel each release was read from."""

    def __init__(self, index: Mapping[str, Any], mapped: mmap) -> None:
        from marisa_trie import RecordTrie

        self.releases: tuple[str, ...] = tuple(index["releases"])
        self.wheels: dict[str, str] = dict(zip(index["releases"], index["wheels"], strict=True))
        self._sets = [int(text, 16) for text in index["sets"]]
        self._mapped = mapped  # the trie points into it without holding it
        self._trie = RecordTrie("<H").map(mapped)
        self._known: dict[int, frozenset[str]] = {}

    @classmethod
    def open(cls, directory: str | None = None) -> Headers:
        """The table in ``directory``, by default the shipped one. Raises AtlasDamaged."""
        directory = SHIPPED if directory is None else directory
        index = read_index(directory, "headers.json")
        mapped = map_table(directory, "headers.trie", index)
        try:
            return cls(index, mapped)
        except ImportError as error:
            raise damaged(directory, f"cannot be read without marisa-trie ({error})") from error

    def without(self, key: str) -> Collection[str]:
        """The releases whose headers lack a key that others have; empty where it tells nothing.

        A key is an identifier (``SymBool``), the path of a header below ``torch/include``
        (``c10/core/Device.h``), or that and a line with an assertion (``...Device.h:177``).
        """
        found = self._trie.get(key)
        if not found:
            return ()
        number = found[0][0]
        lacking = self._known.get(number)
        if lacking is None:
            mask = self._sets[number]
            lacking = frozenset(r for bit, r in enumerate(self.releases) if not mask >> bit & 1)
            self._known[number] = lacking
        return lacking

    def has(self, key: str) -> bool:
        """Whether the headers of any release on record have a key."""
        return key in self._trie

    def rows(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Every key and the releases that have it."""
        everything = frozenset(self.releases)
        for key, _ in self._trie.iteritems():
            yield key, everything.difference(self.without(key))
