"""The words of ``upgrade`` and ``atlas``: what two torch releases mean to files, and to names.

Plain values, as in ``report``: what the renderers show and JSON schema v1 describes.
"""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.records import dataclass
from fa_forensics.report import FAILS, INCONCLUSIVE, LINKS, LOADS, JudgedTorch, TargetReport


@dataclass(frozen=True, slots=True)
class FileChange:
    """One extension file, judged with the torch that is installed and with another one.

    ``replaced_by`` is the name of the file beside it that the package loads then in its stead.
    """

    now: TargetReport
    then: TargetReport
    replaced_by: str | None = None

    @property
    def path(self) -> str:
        """The file's path."""
        return self.then.path

    @property
    def breaks(self) -> bool:
        """Whether it would stop loading: a file that fails already is not broken by it.

        Nor is one of several builds that the package no longer chooses then.
        """
        if self.replaced_by is not None:
            return False
        return self.then.verdict == FAILS and self.now.verdict != FAILS

    @property
    def replaced(self) -> bool:
        """Whether it loads now and would not then, and another build of it is taken instead."""
        lost = self.then.verdict == FAILS and self.now.verdict != FAILS
        return lost and self.replaced_by is not None

    @property
    def mended(self) -> bool:
        """Whether it fails now and would not then."""
        return self.now.verdict == FAILS and self.then.verdict != FAILS

    @property
    def only_links(self) -> bool:
        """Whether it was at home in its torch, and then all its names are there and no more."""
        return self.then.verdict == LINKS and self.now.verdict == LOADS

    @property
    def unsure(self) -> bool:
        """Whether it could not be judged with the other torch."""
        return self.then.verdict == INCONCLUSIVE

    @property
    def failure(self) -> str | None:
        """What the loader would stumble over first then, in its own words; else None."""
        if self.then.verdict != FAILS:
            return None
        first = (self.then.elf or {}).get("first_failure")
        return first if isinstance(first, str) else self.then.headline


@dataclass(frozen=True, slots=True)
class PackageChange:
    """One installed package with its extension files.

    ``requires`` is what its metadata puts on torch ("==2.4.0", "" for any, None for nothing
    said). ``links`` is what all its files link with, in words. ``notes`` and ``help`` say
    what to do where a file breaks.
    """

    name: str
    version: str
    requires: str | None
    files: tuple[FileChange, ...]
    links: str = ""
    notes: tuple[str, ...] = ()
    help: tuple[str, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether any of its files would stop loading."""
        return any(file.breaks for file in self.files)


@dataclass(frozen=True, slots=True)
class Pin:
    """A package whose metadata does not allow a torch release: it is not proof of anything.

    ``requires`` are the specifiers on torch, ``file`` the metadata that they stand in;
    ``already`` is true when it does not allow the installed torch either.
    """

    name: str
    version: str
    requires: str
    file: str
    already: bool = False


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """One run of ``upgrade``.

    ``pins`` are all installed packages, with extensions or without, that exclude the
    release. ``notes`` concern the torch itself: a Python that it is not published for.
    ``unread`` are places of metadata that may not be read: what is installed there is not
    in the answer.
    """

    tool_version: str
    environment: Mapping[str, object]
    torch: JudgedTorch
    packages: tuple[PackageChange, ...]
    pins: tuple[Pin, ...] = ()
    notes: tuple[str, ...] = ()
    help: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportedName:
    """A name as the linker knows it, and readable."""

    symbol: str
    demangled: str


@dataclass(frozen=True, slots=True)
class Signatures:
    """One function under the names that only the older and only the newer release has."""

    name: str
    before: tuple[ExportedName, ...]
    after: tuple[ExportedName, ...]


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """One release of torch for one machine, as the table knows it."""

    release: str
    machine: str
    date: str
    cuda: str | None
    flavour: str
    pythons: tuple[str, ...]
    wheel: str


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """What tells two releases apart, each name in one list.

    ``flavour`` are the functions that only changed their std::string flavour; ``generated``
    those that nvcc names anew in each build. ``used_by`` are the files whose needs the lists
    were narrowed to, ``used`` how many of torch's names these need (None: not narrowed);
    ``used_names`` these in readable form, ``nowhere`` those that neither release exports.
    """

    old: ReleaseRow
    new: ReleaseRow
    namespace: str | None
    libraries: tuple[str, ...]
    removed: tuple[ExportedName, ...]
    added: tuple[ExportedName, ...]
    resigned: tuple[Signatures, ...]
    flavour: tuple[Signatures, ...]
    generated: tuple[Signatures, ...]
    used_by: tuple[str, ...] = ()
    used: int | None = None
    used_names: frozenset[str] = frozenset()
    nowhere: tuple[ExportedName, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseTableReport:
    """One run of ``atlas releases``."""

    tool_version: str
    rows: tuple[ReleaseRow, ...]
