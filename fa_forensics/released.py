"""Torch releases held against each other, and the names that files use of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fa_forensics import __version__
from fa_forensics.atlas.builds import Build
from fa_forensics.atlas.diff import Difference, Name, Renamed, difference, has_namespace
from fa_forensics.atlas.requested import choose_release, parse_request
from fa_forensics.atlas.store import Atlas
from fa_forensics.errors import UsageError
from fa_forensics.facts.environment import find_environment
from fa_forensics.facts.files import absolute
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.targets import find_targets
from fa_forensics.records import dataclass
from fa_forensics.report_releases import (
    ExportedName,
    ReleaseDifference,
    ReleaseRow,
    ReleaseTableReport,
    Signatures,
)

#: STB_WEAK: a weak reference may stay without a provider.
STB_WEAK = 2


@dataclass(frozen=True, slots=True)
class Used:
    """The names of torch that files need: the files, and symbol → readable name."""

    files: tuple[str, ...]
    names: Mapping[str, str]


def releases(machine: str | None = None, atlas: str | None = None) -> ReleaseTableReport:
    """Every torch release of the table, oldest first, for one machine or for all.

    Raises ``UsageError`` for a machine that the table has nothing of, ``AtlasDamaged``.
    """
    table = Atlas.open(atlas)
    machines = table.machines() if machine is None else (_machine(machine, table),)
    return ReleaseTableReport(
        __version__, tuple(_row(build) for m in machines for build in table.builds(m))
    )


def compare_releases(
    old: str,
    new: str,
    machine: str = "x86_64",
    namespace: str | None = None,
    libraries: Sequence[str] = (),
    used_by: Sequence[str] = (),
    python: str | None = None,
    atlas: str | None = None,
) -> ReleaseDifference:
    """What two releases export differently: ``2.8`` is the newest of its minor release.

    ``used_by`` (files, wheels, directories, installed packages) narrows to the names of
    torch that these need. Raises ``UsageError`` for a release, machine, library or target
    that is not known, the nearest ones offered; ``AtlasDamaged``.
    """
    table = Atlas.open(atlas)
    _machine(machine, table)
    before, after = (_build(text, machine, table) for text in (old, new))
    known = sorted({*before.libraries, *after.libraries})
    for library in libraries:
        if library not in known:
            raise UsageError(
                f"{library} is no library of torch {before.release} or {after.release}",
                f"they have {', '.join(known)}",
            )
    if namespace and not has_namespace(table, namespace, (before.release, after.release), machine):
        raise UsageError(
            f"neither torch {before.release} nor torch {after.release} exports a name in "
            f"{namespace}",
            "name a namespace or a class as C++ writes it: c10::cuda, at::native, torch::autograd",
        )
    used = names_used(used_by, machine, python) if used_by else None
    found = difference(table, before.release, after.release, machine, namespace, libraries or None)
    whole = _as_report(found, before, after, namespace, libraries)
    return whole if used is None else _narrowed(whole, used, table)


def names_used(targets: Sequence[str], machine: str, python: str | None = None) -> Used:
    """The names of torch that files need, weak references aside.

    Raises ``UsageError`` when there is nothing to look at, or nothing for that machine.
    """
    from fa_forensics.reading import read_file

    first = absolute(targets[0]) if os.path.exists(targets[0]) else None
    environment = find_environment(python, first, os.environ)
    files: list[str] = []
    names: dict[str, str] = {}
    for argument in targets:
        with find_targets(argument, environment.site_dirs) as found:
            for target in found:
                file = read_file(target, environment, None, found.package)
                if file.elf.machine != machine:
                    continue
                files.append(target.member or target.path)
                for symbol in file.elf.undefined:
                    text, owner = file.owners[symbol.index]
                    if symbol.bind != STB_WEAK and is_torch(owner):
                        names[symbol.name.decode("utf-8", "surrogateescape")] = text
    if not files:
        raise UsageError(
            f"{', '.join(targets)} holds no file for {machine}", "name its machine: --machine"
        )
    return Used(tuple(dict.fromkeys(files)), names)


def _narrowed(whole: ReleaseDifference, used: Used, table: Atlas) -> ReleaseDifference:
    """What of a difference concerns the names that files use."""
    # The forms of a constructor are one entry, which may bear the symbol of another form.
    texts = set(used.names.values())

    def needed(names: Iterable[ExportedName]) -> tuple[ExportedName, ...]:
        return tuple(n for n in names if n.symbol in used.names or n.demangled in texts)

    def pairs(rows: Iterable[Signatures]) -> tuple[Signatures, ...]:
        return tuple(row for row in rows if needed((*row.before, *row.after)))

    old, new = whole.old, whole.new
    nowhere = (
        ExportedName(symbol, text)
        for symbol, text in used.names.items()
        if not {old.release, new.release} & set(table.releases_of(symbol, old.machine))
    )
    return replace(
        whole,
        removed=needed(whole.removed),
        added=needed(whole.added),
        resigned=pairs(whole.resigned),
        flavour=pairs(whole.flavour),
        generated=pairs(whole.generated),
        used_by=used.files,
        used=len(used.names),
        used_names=frozenset(texts),
        nowhere=tuple(sorted(nowhere, key=lambda name: (name.demangled, name.symbol))),
    )


def _as_report(
    found: Difference,
    old: Build,
    new: Build,
    namespace: str | None,
    libraries: Sequence[str],
) -> ReleaseDifference:
    return ReleaseDifference(
        old=_row(old),
        new=_row(new),
        namespace=namespace,
        libraries=tuple(libraries),
        removed=_names(found.removed),
        added=_names(found.added),
        resigned=tuple(
            Signatures(one.name, _names(one.before), _names(one.after)) for one in found.resigned
        ),
        flavour=_renamed(found.flavour),
        generated=_renamed(found.generated),
    )


def _names(names: Iterable[Name]) -> tuple[ExportedName, ...]:
    return tuple(ExportedName(name.symbol, name.demangled) for name in names)


def _renamed(pairs: Iterable[Renamed]) -> tuple[Signatures, ...]:
    return tuple(
        Signatures(pair.after.demangled, _names([pair.before]), _names([pair.after]))
        for pair in pairs
    )


def _row(build: Build) -> ReleaseRow:
    return ReleaseRow(
        build.release,
        build.machine,
        build.date,
        build.cuda,
        build.flavour,
        build.pythons,
        build.wheel,
    )


def _machine(machine: str, table: Atlas) -> str:
    known = table.machines()
    if machine not in known:
        raise UsageError(f"no torch release for {machine} is known", f"for {' and '.join(known)}")
    return machine


def _build(text: str, machine: str, table: Atlas) -> Build:
    """The build that a release on the command line means. Raises ``UsageError``."""
    request = parse_request(text)
    release = choose_release(request, table.releases(machine))
    build = table.build(release, machine) if release is not None else None
    if build is None:
        near = table.nearest_releases(request.release)
        raise UsageError(
            f"torch {request.text} is no release that this tool knows for {machine}",
            f"the nearest are {', '.join(near)}" if near else None,
        )
    other_cuda = request.cuda is not None and request.cuda != (build.cuda or "")
    other_flavour = request.flavour is not None and request.flavour != build.flavour
    if request.own_build or other_cuda or other_flavour:
        cuda = f"CUDA {build.cuda}" if build.cuda else "no CUDA"
        raise UsageError(
            f"torch {request.text} is another build than the one whose names are known: "
            f"{build.release} with {cuda}, {build.flavour}",
            f"name that one: {build.release}",
        )
    return build
