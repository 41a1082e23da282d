"""What a library exports instead of a missing name: other parameters, or the other flavour.

A mangled name cannot be searched by its folded form (substitutions shift when
``std::string`` changes its length), so candidates are taken by the mangled prefix of the
qualified name and compared in demangled form.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fa_forensics.facts.demangle import demangle, fold_flavour, qualified_name
from fa_forensics.facts.elf.dynamic import gnu_hash
from fa_forensics.facts.mangled import OTHER_FLAVOUR as OTHER_FLAVOUR
from fa_forensics.facts.mangled import OTHER_PARAMETERS as OTHER_PARAMETERS
from fa_forensics.facts.mangled import SAME_NAME as SAME_NAME
from fa_forensics.facts.mangled import const_spellings, mangled_prefix, shared_start
from fa_forensics.records import dataclass
from fa_forensics.resolve.process import LoadedObject

#: Candidates looked at for one name; the widest real overload set (at::Tensor methods by
#: prefix) has a few hundred.
MAX_CANDIDATES = 2_000


@dataclass(frozen=True, slots=True)
class Near:
    """An exported name close to a missing one, and the library that exports it."""

    symbol: str
    demangled: str
    library: str
    relation: str


class NameIndex:
    """The exported names of some objects, searchable by mangled prefix.

    String tables are copied once per object (about 20 MB for all of torch's libraries)
    and searched as bytes, which is faster than any table of names built for it.
    """

    def __init__(self, objects: Sequence[LoadedObject]) -> None:
        self._objects = objects
        self._strings: dict[str, bytes] = {}

    def starting_with(
        self, prefix: bytes, objects: Sequence[LoadedObject]
    ) -> list[tuple[bytes, LoadedObject]]:
        """(name, object) of every exported name with that start, at most MAX_CANDIDATES."""
        found: dict[bytes, LoadedObject] = {}
        for loaded in objects:
            strings = self._strings.get(loaded.path)
            if strings is None:
                strings = self._strings[loaded.path] = loaded.dynamic.strings()
            at = strings.find(b"\0" + prefix)
            while at >= 0 and len(found) < MAX_CANDIDATES:
                end = strings.find(b"\0", at + 1)
                name = strings[at + 1 : end if end >= 0 else len(strings)]
                if name not in found and loaded.dynamic.lookup(name, gnu_hash(name)) is not None:
                    found[name] = loaded
                at = strings.find(b"\0" + prefix, at + 1)
        return list(found.items())

    def nearest(self, symbol: str, likely: Sequence[str] = ()) -> tuple[Near, ...]:
        """Exported names with the same qualified name, the twin of the other flavour first.

        ``likely`` names the libraries to look in first (file names); the others are
        searched only when those have nothing.
        """
        first = [o for o in self._objects if os.path.basename(o.path) in likely]
        rest = [o for o in self._objects if o not in first]
        for objects in (first, rest):
            rows = self._nearest_in(symbol, objects)
            if rows:
                return rows
        return ()

    def with_scope(self, prefix: bytes, demangled: str) -> tuple[Near, ...]:
        """Exported names with a readable name's qualified name, whatever their parameters.

        ``prefix`` is the mangled start of that qualified name.
        """
        scope = qualified_name(fold_flavour(demangled))
        rows: dict[str, Near] = {}
        for spelling in const_spellings(prefix):
            for name, loaded in self.starting_with(spelling, self._objects):
                symbol = name.decode("utf-8", "backslashreplace")
                text = demangle(symbol)
                if qualified_name(fold_flavour(text)) == scope:
                    rows.setdefault(text, Near(symbol, text, loaded.path, OTHER_PARAMETERS))
        return tuple(rows[text] for text in sorted(rows))

    def _nearest_in(self, symbol: str, objects: Sequence[LoadedObject]) -> tuple[Near, ...]:
        name = symbol.encode("utf-8", "surrogateescape")
        if not name.startswith(b"_Z"):
            return ()
        own_text = demangle(symbol)
        own_folded = fold_flavour(own_text)
        own_scope = qualified_name(own_folded)
        rows: list[Near] = []
        for prefix in const_spellings(mangled_prefix(name)):
            if len(prefix) < 6:
                continue  # no plain scope to search by
            for candidate, loaded in self.starting_with(prefix, objects):
                text = demangle(candidate.decode("utf-8", "backslashreplace"))
                folded = fold_flavour(text)
                if qualified_name(folded) != own_scope:
                    continue
                relation = OTHER_PARAMETERS
                if candidate == name:
                    relation = SAME_NAME
                elif folded == own_folded:
                    relation = OTHER_FLAVOUR if text != own_text else SAME_NAME
                rows.append(Near(candidate.decode("utf-8", "replace"), text, loaded.path, relation))
        order = {SAME_NAME: 0, OTHER_FLAVOUR: 1, OTHER_PARAMETERS: 2}
        # C1 and C2 (complete and base constructor) read alike: one of them is enough.
        unique = {(row.demangled, row.relation): row for row in reversed(rows)}
        return tuple(
            sorted(
                unique.values(),
                # The overload that reads alike for longest is the one people look for.
                key=lambda r: (
                    order[r.relation],
                    -shared_start(fold_flavour(r.demangled), own_folded),
                    r.demangled,
                ),
            )
        )
