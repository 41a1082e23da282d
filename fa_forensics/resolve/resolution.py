"""The result of resolving one file in one environment, as plain values."""

from __future__ import annotations

from fa_forensics.records import dataclass


@dataclass(frozen=True, slots=True)
class Library:
    """One library of the file's closure: where it was found and how, or where it was sought.

    ``needed_by`` is the path of the object whose DT_NEEDED names it. ``path`` is None for
    a miss; ``problem`` says why a file that was found cannot be used, ``refusal`` says the
    same in the loader's words.
    """

    soname: str
    needed_by: str
    path: str | None
    found_by: str
    tried: tuple[str, ...] = ()
    problem: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """One undefined symbol: what it binds to, or that nothing provides it.

    ``referenced`` is false when no relocation uses the symbol: the loader never looks
    such a name up, so it cannot fail. ``order`` is its place in the loader's work (the
    first failing relocation is the one the loader reports), -1 when not referenced.
    """

    index: int
    symbol: str
    version: str | None
    version_file: str | None
    bind: str
    order: int
    provider: str | None
    provider_soname: str | None
    table: str

    @property
    def referenced(self) -> bool:
        """Whether a relocation uses the symbol."""
        return self.order >= 0

    @property
    def missing(self) -> bool:
        """Whether the loader would stop here: strong, used, and provided by nothing."""
        return self.provider is None and self.referenced and self.bind != "weak"


@dataclass(frozen=True, slots=True)
class VersionMiss:
    """A symbol version that an object needs and the loaded library does not define."""

    needed_by: str
    soname: str
    version: str
    provider: str
    provided: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DependencyMiss:
    """An undefined symbol of a library that the file would newly load."""

    path: str
    symbol: str
    version: str | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """One file resolved in one environment.

    ``scope`` lists the paths in symbol look-up order. ``loaded_with_torch`` is the paths
    that ``import torch`` would have mapped before the file is opened. ``torch_problems``
    are misses while doing that. ``first_failure`` is the text the loader would give.
    """

    libraries: tuple[Library, ...]
    bindings: tuple[Binding, ...]
    version_misses: tuple[VersionMiss, ...]
    dependency_misses: tuple[DependencyMiss, ...]
    scope: tuple[str, ...]
    loaded_with_torch: tuple[str, ...]
    torch_misses: tuple[Library, ...]
    problems: tuple[str, ...]
    first_failure: str | None

    @property
    def missing_libraries(self) -> tuple[Library, ...]:
        """The needed libraries that were not found or cannot be used."""
        return tuple(library for library in self.libraries if library.path is None)

    @property
    def missing(self) -> tuple[Binding, ...]:
        """The bindings at which the loader would stop, in the loader's own order."""
        return tuple(sorted((b for b in self.bindings if b.missing), key=lambda b: b.order))
