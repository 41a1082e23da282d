"""What is known of each missing symbol: whose it is, what stands in its place, why it is gone."""

from __future__ import annotations

from fa_forensics.records import dataclass
from fa_forensics.resolve.nearest import Near
from fa_forensics.resolve.resolution import Binding


@dataclass(frozen=True, slots=True)
class Missing:
    """A strong undefined symbol with no provider, with all that is known of it.

    ``absent_library`` is the soname that would provide it but is itself not found, or is
    too old: the symbol is then a consequence, not a cause. ``nearest`` is empty when
    nothing close is exported, or when it was not looked for (``nearest_sought`` is false
    then). ``exported_by`` is a library that is loaded and exports the symbol, but not to
    this file, which does not list it among its needs.
    """

    binding: Binding
    demangled: str
    owner: str
    absent_library: str | None
    nearest: tuple[Near, ...] = ()
    nearest_sought: bool = False
    exported_by: str | None = None


@dataclass(frozen=True, slots=True)
class Sibling:
    """A library of the file's own package that the loader would not find by itself."""

    soname: str
    path: str
