"""A CUDA library over its wheels' versions, and the wheel that a place has it from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fa_forensics.atlas.builds import interval_text, release_key
from fa_forensics.atlas.libraries import CudaLibraries, LibraryRelease
from fa_forensics.facts.cuda_names import cuda_name_since
from fa_forensics.facts.owner import owner_of_library
from fa_forensics.facts.package import info_directories, normalized
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.records import dataclass
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables

#: How a wheel is known that the text itself names.
TOLD = "as the text says"
#: Begins how a wheel is known of which torch names no version.
NEWEST = "the newest one"


@dataclass(frozen=True, slots=True)
class Wheel:
    """The wheel that this place has a library from, and how that is known.

    ``pinned`` is the version that the torch here asks for.
    """

    distribution: str
    version: str
    how: str
    pinned: str | None = None

    @property
    def text(self) -> str:
        """The wheel in messages."""
        other = self.pinned is not None and self.pinned != self.version
        pin = f" (torch asks for {self.pinned})" if other else ""
        return f"{self.distribution} {self.version}, {self.how}{pin},"


@dataclass(frozen=True, slots=True)
class CudaHistory:
    """The versions of one library, and those that export one name, oldest first."""

    soname: str
    known: tuple[LibraryRelease, ...]
    having: tuple[LibraryRelease, ...]

    def has(self, wheel: Wheel) -> bool | None:
        """Whether a wheel's library has the name; None where no version near it is known.

        Of large libraries the table holds one build a minor version: the last one up to
        the asked version speaks for it.
        """
        upto = [
            row
            for row in self.known
            if row.distribution == wheel.distribution
            and release_key(row.version) <= release_key(wheel.version)
        ]
        return None if not upto else max(upto, key=_by_version) in self.having

    def of(self, distribution: str) -> list[LibraryRelease]:
        """The versions of one distribution that have the name."""
        return [row for row in self.having if row.distribution == distribution]


def library_histories(
    symbol: SymbolText, name: str, owner: str, place: Place, table: CudaLibraries
) -> list[CudaHistory]:
    """One history a soname, that of this place's CUDA major version first."""
    rows = table.exported_by(None, name)
    stated = symbol.version if symbol.version in table.sonames() else None
    here = {os.path.basename(one.path) for one in place.loaded_of(owner)}
    if stated is not None:
        sonames = [stated]
    else:
        # Other libraries export some of these names too; the owner's own count.
        sonames = list(dict.fromkeys(row.soname for row in rows))
        sonames = [s for s in sonames if owner_of_library(s) == owner] or sonames
        sonames = sonames or sorted(here & set(table.sonames()))
    cuda = cuda_major(place) or _usual_major(place, cuda_name_since(owner, name))
    sonames.sort(
        key=lambda soname: (
            soname not in here,
            cuda is not None and not _is_of(soname, cuda, table),
            soname,
        )
    )
    return [
        CudaHistory(soname, table.releases(soname), tuple(r for r in rows if r.soname == soname))
        for soname in sonames
    ]


def _usual_major(place: Place, since: str | None) -> str | None:
    """The CUDA that is meant where no text tells one: by the age of its Python and of the name.

    None, the oldest, for names that came with one of the CUDA versions before the wheels.
    """
    if since is not None:
        return None
    python = place.told.python if place.told is not None else None
    return "11" if python is not None and python in ("3.6", "3.7") else "12"


def _is_of(soname: str, cuda: str, table: CudaLibraries) -> bool:
    """Whether wheels of a CUDA major version carry a soname."""
    return any(
        row.distribution.endswith(f"-cu{cuda}") or (cuda == "13" and "-cu1" not in row.distribution)
        for row in table.releases(soname)
    )


def cuda_major(place: Place) -> str | None:
    """The CUDA major version of the torch to answer for; None without one."""
    if place.requested is not None:
        return (place.requested.cuda or "").split(".")[0] or None
    if place.told is not None and (told := place.told.cuda or place.told.index_cuda):
        return told.split(".")[0]
    torch = place.environment.torch if place.environment else None
    return torch.cuda.split(".")[0] if torch is not None and torch.cuda else None


def wheel_here(history: CudaHistory, place: Place, tables: Tables) -> Wheel | None:
    """The wheel that this environment has the library from, or that a named torch pins."""
    told = told_wheels(history, place)
    brought = _brought(history, place, tables)
    if told:
        one = min(told, key=lambda wheel: (history.has(wheel) is not False, wheel.distribution))
        same = brought is not None and brought.distribution == one.distribution
        return replace(one, pinned=brought.version if brought is not None and same else None)
    if place.requested is not None:
        if brought is None:
            return None
        how = f"brought by {place.here}"
        if brought.distribution not in place.requested.build.requires:
            how = f"{NEWEST} ({place.here} names no version of it)"
        return Wheel(brought.distribution, brought.version, how)
    if place.environment is None:
        return None
    installed = _installed(place.environment.site_dirs)
    torch = place.environment.torch
    for distribution in dict.fromkeys(row.distribution for row in history.known):
        if distribution in installed:
            pinned = _pin(distribution, torch.requires if torch is not None else ())
            return Wheel(distribution, installed[distribution], "installed here", pinned)
    return None


def asked_for(history: CudaHistory, place: Place, tables: Tables) -> Wheel | None:
    """The wheel that the torch that was asked for, or that a text names, brings a library with."""
    row = _brought(history, place, tables)
    if row is None or place.told is None:
        return None
    return Wheel(row.distribution, row.version, f"asked for by {place.here}")


def _brought(history: CudaHistory, place: Place, tables: Tables) -> LibraryRelease | None:
    """What the torch that was asked for brings the library with."""
    from fa_forensics.atlas.brought import BroughtLibraries

    requested = place.requested
    if requested is None or tables.libraries is None:
        return None
    return BroughtLibraries(
        requested.build, requested.cuda or "", tables.libraries, requested.folder
    ).release_of(history.soname)


def told_wheels(history: CudaHistory, place: Place) -> tuple[Wheel, ...]:
    """The wheels with this library that the text names itself."""
    named = dict(place.told.wheels) if place.told is not None else {}
    lines = dict.fromkeys(row.distribution for row in history.known)
    return tuple(Wheel(d, named[d], TOLD) for d in lines if d in named)


def in_one_file(history: CudaHistory, place: Place) -> tuple[Wheel, ...]:
    """The wheels, here or in the text, that bring this library to one and the same file.

    Wheels for several CUDA major versions have the directory ``nvidia/NAME/lib`` in common;
    where the soname does not tell the CUDA version, the one that was installed last counts.
    """
    if place.told is not None or place.environment is None:
        found = told_wheels(history, place)
    else:
        installed = _installed(place.environment.site_dirs)
        lines = dict.fromkeys(row.distribution for row in history.known)
        found = tuple(Wheel(d, installed[d], "installed here") for d in lines if d in installed)
    return tuple(wheel for wheel in found if re.search(r"-cu\d\d$", wheel.distribution))


def shared_lines(history: CudaHistory) -> tuple[str, ...]:
    """The distributions that bring this library to one and the same file; none but one: ()."""
    lines = tuple(dict.fromkeys(row.distribution for row in history.known))
    shared = tuple(line for line in lines if re.search(r"-cu\d\d$", line))
    return shared if len(shared) > 1 else ()


def installed_version(place: Place, distribution: str) -> str | None:
    """The version of a wheel that is installed in this environment."""
    if place.environment is None:
        return None
    return _installed(place.environment.site_dirs).get(distribution)


def _pin(distribution: str, requires: Sequence[str]) -> str | None:
    """The version that torch's metadata pins a wheel to: ``nvidia-nccl-cu12==2.20.5; …``."""
    for requirement in requires:
        found = re.match(r"([\w.-]+)\s*\(?==\s*([\w.]+)", requirement)
        if found is not None and normalized(found[1]) == distribution:
            return found[2]
    return None


def _installed(site_dirs: Sequence[str]) -> Mapping[str, str]:
    """The versions of installed nvidia wheels, by the names of their metadata directories."""
    found: dict[str, str] = {}
    for site in site_dirs:
        for info in info_directories(site):
            project, _, rest = os.path.basename(info).partition("-")
            if project.lower().startswith("nvidia") and rest:
                found.setdefault(normalized(project), rest.rpartition(".")[0])
    return found


def interval_words(histories: Sequence[CudaHistory]) -> str:
    """The versions that export a name: ``nvidia-nvjitlink-cu12 12.1.105 and later``."""
    rows = [row for history in histories for row in history.having]
    texts = []
    for distribution in dict.fromkeys(row.distribution for row in rows):
        known = {r.version for h in histories for r in h.known if r.distribution == distribution}
        having = {row.version for row in rows if row.distribution == distribution}
        ordered = sorted(known, key=release_key)
        texts.append(
            f"{distribution} {interval_text([v for v in ordered if v in having], ordered)}"
        )
    return "; ".join(texts)


def _by_version(row: LibraryRelease) -> tuple[tuple[int, ...], str]:
    return release_key(row.version)
