"""The answer for a name of a CUDA library: first version that has it, and the one that is here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fa_forensics.atlas.builds import interval_text, release_key
from fa_forensics.atlas.libraries import CudaLibraries, LibraryRelease
from fa_forensics.facts.owner import owner_of_library, title_of
from fa_forensics.facts.package import info_directories, normalized
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.report import Answer
from fa_forensics.resolve.process import LoadedObject
from fa_forensics.why.cause import NEWER, NONE, OLDER, UNKNOWN, Judgement
from fa_forensics.why.commands import inspect_command, install, without_path
from fa_forensics.why.history import order_key
from fa_forensics.why.other import another_major, provided
from fa_forensics.why.place import Place, other_soname
from fa_forensics.why.tables import Tables

KIND, CODE = "versioned-symbol", "FA204"

_OLDER_COPY = (
    "Where an error names it, an older copy of the library was loaded first, most often one of a "
    "CUDA toolkit on LD_LIBRARY_PATH, which goes before the wheels' own search path."
)
_NO_TOOLKIT = "torch's wheels need no CUDA toolkit of the system."


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


def cuda_answer(
    symbol: SymbolText,
    name: str,
    owner: str,
    provider: str | None,
    place: Place,
    tables: Tables,
    needed_by: Sequence[str],
) -> Answer:
    """Judge a name that a CUDA library owns."""
    table = tables.libraries
    histories = [] if table is None else _histories(symbol, name, owner, place, table)
    history = next((h for h in histories if h.having), histories[0] if histories else None)
    wheel = None if history is None else _wheel_here(history, place, tables)
    loaded = place.loaded_of(owner)
    judgement = _judge(symbol, owner, provider, place, history, wheel, loaded)
    torches = _torches(history, tables, place) if provider is None else ()
    notes = [*judgement.notes]
    if name.startswith("_Z") and provider is None:
        notes.append(
            f"Such inner names are meant for the libraries of one and the same {title_of(owner)}: "
            "two copies of it are mixed, and the one that was added is to be removed."
        )
    if torches and tables.atlas is not None:
        span = interval_text(torches, tables.atlas.releases(place.machine))
        verb = "brings" if len(torches) == 1 else "bring"
        notes.append(f"torch {span} {verb} a version that has it.")
    return Answer(
        kind=judgement.kind,
        code=judgement.code,
        symbol=name,
        demangled=symbol.demangled,
        owner=owner,
        provider=provider,
        cause=judgement.cause,
        direction=judgement.direction,
        confidence=judgement.confidence,
        exported_by=tuple(
            dict.fromkeys(
                f"{row.distribution} {row.version}" for h in histories for row in h.having
            )
        ),
        interval=_intervals(histories),
        help=_help(judgement, place, history, wheel, loaded, torches, needed_by),
        notes=tuple(notes),
        releases_looked_up=table is not None,
    )


def _histories(
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
    cuda = _cuda_major(place)
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


def _is_of(soname: str, cuda: str, table: CudaLibraries) -> bool:
    """Whether wheels of a CUDA major version carry a soname."""
    return any(
        row.distribution.endswith(f"-cu{cuda}") or (cuda == "13" and "-cu1" not in row.distribution)
        for row in table.releases(soname)
    )


def _cuda_major(place: Place) -> str | None:
    if place.requested is not None:
        return (place.requested.cuda or "").split(".")[0] or None
    torch = place.environment.torch if place.environment else None
    return torch.cuda.split(".")[0] if torch is not None and torch.cuda else None


def _wheel_here(history: CudaHistory, place: Place, tables: Tables) -> Wheel | None:
    """The wheel that this environment has the library from, or that a named torch pins."""
    if place.requested is not None:
        from fa_forensics.atlas.brought import BroughtLibraries

        if tables.libraries is None:
            return None
        requested = place.requested
        brought = BroughtLibraries(
            requested.build, requested.cuda or "", tables.libraries, requested.folder
        ).release_of(history.soname)
        if brought is None:
            return None
        return Wheel(brought.distribution, brought.version, f"brought by {place.here}")
    if place.environment is None:
        return None
    installed = _installed(place.environment.site_dirs)
    torch = place.environment.torch
    for distribution in dict.fromkeys(row.distribution for row in history.known):
        if distribution in installed:
            pinned = _pin(distribution, torch.requires if torch is not None else ())
            return Wheel(distribution, installed[distribution], "installed here", pinned)
    return None


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


def _judge(
    symbol: SymbolText,
    owner: str,
    provider: str | None,
    place: Place,
    history: CudaHistory | None,
    wheel: Wheel | None,
    loaded: Sequence[LoadedObject],
) -> Judgement:
    title = title_of(owner)
    if provider is not None:
        return replace(provided(KIND, CODE, provider), notes=(_OLDER_COPY, _NO_TOOLKIT))
    other_major = other_soname(symbol, loaded)
    if other_major is not None:
        return another_major(other_major, symbol.version or "", place)
    if history is None or not history.having:
        return _without_history(title, place, loaded, history)
    having = _of_this_cuda(history, wheel, place)
    first, last = having[0], having[-1]
    since = f"{history.soname} has it since {first.distribution} {first.version}"
    if wheel is None and loaded:
        cause = f"{since}; {loaded[0].path} (found by {loaded[0].found_by}) is older than that."
        return Judgement(KIND, CODE, NEWER, cause)
    if wheel is None:
        where = f"; none is loaded with {place.here}" if place.present else ""
        cause = f"{since}{where}: what lacks it is older than that."
        dropped = last != [r for r in history.known if r.distribution == last.distribution][-1]
        if dropped:
            cause = f"{since}, up to {last.distribution} {last.version}: it was dropped then."
        return Judgement(KIND, CODE, UNKNOWN if dropped else NEWER, cause)
    if history.has(wheel):
        return _another_copy(wheel, since, loaded, place)
    direction = _direction(history, wheel)
    words = {
        NEWER: "older than that: the file was built for a newer one",
        OLDER: "newer than the last that has it: the file was built for an older one",
    }.get(direction, "one that lacks it")
    cause = f"{since}; {wheel.text} is {words}."
    return Judgement(KIND, CODE, direction, cause)


def _of_this_cuda(
    history: CudaHistory, wheel: Wheel | None, place: Place
) -> Sequence[LibraryRelease]:
    """The versions with the name in one line of wheels: the one here, else the newest."""
    lines = list(dict.fromkeys(row.distribution for row in history.having))
    if wheel is not None and wheel.distribution in lines:
        return history.of(wheel.distribution)
    suffix = f"-cu{_cuda_major(place) or '12'}"
    line = next((name for name in lines if name.endswith(suffix)), lines[-1])
    return history.of(line)


def _direction(history: CudaHistory, wheel: Wheel) -> str:
    own = release_key(wheel.version)
    having = history.of(wheel.distribution)
    if not having:
        return UNKNOWN
    if own < release_key(having[0].version):
        return NEWER
    return OLDER if own > release_key(having[-1].version) else UNKNOWN


def _without_history(
    title: str, place: Place, loaded: Sequence[LoadedObject], history: CudaHistory | None
) -> Judgement:
    if history is not None:
        first, last = history.known[0], history.known[-1]
        cause = (
            f"No {history.soname} on record exports it ({first.distribution} {first.version} to "
            f"{last.distribution} {last.version})."
        )
        return Judgement(KIND, CODE, UNKNOWN, cause, (), "medium")
    if loaded:
        cause = f"{title} is here ({loaded[0].path}) but does not export it: it is another release."
        return Judgement(KIND, CODE, UNKNOWN, cause)
    cause = f"It belongs to {title}, which is not loaded with {place.here}."
    return Judgement(KIND, CODE, UNKNOWN, cause, (), "high" if place.linker else "medium")


def _another_copy(
    wheel: Wheel, since: str, loaded: Sequence[LoadedObject], place: Place
) -> Judgement:
    """The wheel has the name, and yet it is missing: another file comes first."""
    cause = f"{since}, and {wheel.text} has it"
    outside = [one for one in loaded if not _in_sites(one.path, place)]
    if outside:
        one = outside[0]
        cause += (
            f"; but the loader takes {one.path} instead (found by {one.found_by}), which is older."
        )
    else:
        cause += (
            ": where it is missing, another copy of the library was loaded first, most often one "
            "of a CUDA toolkit on LD_LIBRARY_PATH."
        )
    return Judgement(KIND, CODE, NEWER if outside else NONE, cause, (_NO_TOOLKIT,))


def _in_sites(path: str, place: Place) -> bool:
    sites = place.environment.site_dirs if place.environment else ()
    return any(path.startswith(site + os.sep) for site in sites)


def _torches(history: CudaHistory | None, tables: Tables, place: Place) -> tuple[str, ...]:
    """The torch releases that bring a version of the library with the name."""
    if history is None or not history.having or tables.atlas is None or tables.libraries is None:
        return ()
    from fa_forensics.atlas.brought import BroughtLibraries

    found = []
    for build in tables.atlas.builds(place.machine):
        if build.cuda is not None:
            brought = BroughtLibraries(build, build.cuda, tables.libraries, "")
            if brought.release_of(history.soname) in history.having:
                found.append(build.release)
    return tuple(found)


def _help(
    judgement: Judgement,
    place: Place,
    history: CudaHistory | None,
    wheel: Wheel | None,
    loaded: Sequence[LoadedObject],
    torches: Sequence[str],
    needed_by: Sequence[str],
) -> tuple[str, ...]:
    look = inspect_command(place, needed_by)
    if history is None or not history.having or judgement.kind != KIND:
        return (look,)
    if wheel is not None and history.has(wheel):
        return (without_path(place), look)
    commands = list(_wheel_command(place, history, wheel))
    if place.present is not None and torches and not commands:
        own = order_key(place.present.release)
        nearest = min(
            torches, key=lambda r: (order_key(r) < own, abs(torches.index(r) - _at(own, torches)))
        )
        commands.append(install(place, f"torch=={nearest}"))
    elif place.present is None:
        commands.append(without_path(place))
    return (*commands, look)


def _wheel_command(place: Place, history: CudaHistory, wheel: Wheel | None) -> tuple[str, ...]:
    """Put one wheel right: the version that torch asks for, or a newer nvJitLink.

    nvJitLink serves older callers of its major version too; the other libraries are what
    torch was tested with, and change with it.
    """
    if wheel is None or place.requested is not None:
        return ()
    pinned = None if wheel.pinned is None else Wheel(wheel.distribution, wheel.pinned, "")
    if pinned is not None and pinned.version != wheel.version and history.has(pinned):
        return (install(place, f"{wheel.distribution}=={pinned.version}"),)
    having = history.of(wheel.distribution)
    if "nvjitlink" in wheel.distribution and having:
        return (install(place, f"{wheel.distribution}>={having[0].version}"),)
    return ()


def _at(own: tuple[int, int, int, bool], releases: Sequence[str]) -> int:
    return next((i for i, r in enumerate(releases) if order_key(r) >= own), len(releases))


def _intervals(histories: Sequence[CudaHistory]) -> str:
    """The versions that export a name: ``nvidia-nvjitlink-cu12 12.1.105 and later``."""
    texts = []
    for history in histories:
        for distribution in dict.fromkeys(row.distribution for row in history.having):
            known = [row.version for row in history.known if row.distribution == distribution]
            having = [row.version for row in history.of(distribution)]
            texts.append(f"{distribution} {interval_text(having, known)}")
    return "; ".join(dict.fromkeys(texts))


def _by_version(row: LibraryRelease) -> tuple[tuple[int, ...], str]:
    return release_key(row.version)
