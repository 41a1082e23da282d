"""What torch's process would lack: names and versions that the copy taken does not have.

``import torch`` binds its libraries before any extension is opened. Where the copy of a
library that is taken is older than the one a needing library was built with, the import
dies: ``libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import STB_WEAK, DynamicObject, gnu_hash
from fa_forensics.facts.library_version import families
from fa_forensics.records import dataclass
from fa_forensics.resolve.bind import check_versions, find_provider
from fa_forensics.resolve.copies import TORCH, Copies, Copy, Group
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.names_lacking import Name, names_lacking, used_of
from fa_forensics.resolve.process import LoadedObject


@dataclass(frozen=True, slots=True)
class Lacking:
    """Names (or one version) that a library needs of another and the copy taken lacks.

    ``provider`` is the copy taken. ``holders`` are the other copies within reach that have
    all of them, torch's and the wheels' own first. ``is_version`` tells that ``names`` holds
    a symbol version.
    """

    needed_by: str
    soname: str
    provider: str
    names: tuple[str, ...]
    version: str | None
    holders: tuple[Copy, ...]
    is_version: bool = False


def find_lacking(linker: Linker, copies: Copies) -> tuple[Lacking, ...]:
    """Everything that the objects of ``import torch`` lack in the copies that it takes."""
    groups = {group.soname: group for group in copies.groups}
    displaced = {group.soname for group in displaced_torch(copies)}
    found: list[Lacking] = []
    for needing in linker.torch_objects:
        wanted = {o.dynamic.soname or "": o for o in needing.needed}
        rows = {name: one for name, one in wanted.items() if _has_names(groups.get(name))}
        if rows:
            found += _names_lacking(needing, rows, groups, linker)
        lost = {name: one for name, one in wanted.items() if name in displaced}
        if lost:
            found += _torch_names_lacking(needing, lost, groups, linker)
        for miss in check_versions(needing, linker.process.objects):
            group = groups.get(miss.soname)
            holders = () if group is None else _holders_of_version(group, miss.version)
            names = (miss.version,)
            found.append(
                Lacking(miss.needed_by, miss.soname, miss.provider, names, None, holders, True)
            )
    return tuple(found)


def _names_lacking(
    needing: LoadedObject,
    wanted: Mapping[str, LoadedObject],
    groups: Mapping[str, Group],
    linker: Linker,
) -> Iterator[Lacking]:
    prefixes = {
        soname: prefix.encode()
        for soname in wanted
        if (prefix := _prefix(groups[soname])) is not None
    }
    scope = linker.process.scope_for(needing.scope)
    for soname, used in names_lacking(needing, wanted, prefixes, scope).items():
        yield Lacking(
            needed_by=needing.path,
            soname=soname,
            provider=wanted[soname].path,
            names=tuple(name.decode("utf-8", "backslashreplace") for name, _ in used),
            version=used[0][1],
            holders=_holders(groups[soname], used),
        )


def _prefix(group: Group) -> str | None:
    prefix = families()[group.copies[0].name.family.name].row.get("prefix")
    return None if prefix is None else str(prefix)


def _has_names(group: Group | None) -> bool:
    """Whether its names are looked at one by one: those of CUDA's libraries.

    libstdc++'s are checked by their versions; torch's libraries come from one wheel.
    """
    if group is None:
        return False
    family = group.copies[0].name.family
    return not family.torch and "versions" not in family.row


def displaced_torch(copies: Copies) -> tuple[Group, ...]:
    """Torch's own libraries of which a copy from elsewhere is taken."""
    return tuple(
        group
        for group in copies.groups
        if group.copies[0].name.family.torch
        and group.winner is not None
        and group.winner.loaded
        and TORCH not in group.winner.places
        and any(TORCH in copy.places for copy in group.others)
    )


def _torch_names_lacking(
    needing: LoadedObject,
    wanted: Mapping[str, LoadedObject],
    groups: Mapping[str, Group],
    linker: Linker,
) -> Iterator[Lacking]:
    """Names that torch's own copy exports and the one taken does not. They have no versions."""
    scope = linker.process.scope_for(needing.scope)
    names = [
        (name, version)
        for name, bind, version, _file in needing.dynamic.undefined((), True)
        if bind != STB_WEAK and find_provider(name, version, scope) is None
    ]
    used = used_of(needing.dynamic, names) if names else []
    for soname, taken in wanted.items():
        for own in (copy for copy in groups[soname].others if TORCH in copy.places):
            dynamic = _opened(own)
            if dynamic is None:
                continue
            try:
                had = [n for n, v in used if dynamic.lookup(n, gnu_hash(n), v) is not None]
            finally:
                dynamic.close()
            if had:
                texts = tuple(name.decode("utf-8", "backslashreplace") for name in had)
                yield Lacking(needing.path, soname, taken.path, texts, None, (own,))


def _holders(group: Group, names: Sequence[Name]) -> tuple[Copy, ...]:
    found = []
    for copy in group.rivals:
        dynamic = _opened(copy)
        if dynamic is None:
            continue
        try:
            if all(dynamic.lookup(n, gnu_hash(n), v) is not None for n, v in names):
                found.append(copy)
        finally:
            dynamic.close()
    return tuple(found)


def _holders_of_version(group: Group, version: str) -> tuple[Copy, ...]:
    found = []
    for copy in group.rivals:
        dynamic = _opened(copy)
        if dynamic is None:
            continue
        try:
            if version in dynamic.verdef.values():
                found.append(copy)
        finally:
            dynamic.close()
    return tuple(found)


def _opened(copy: Copy) -> DynamicObject | None:
    if copy.problem is not None or not os.path.isfile(copy.path):
        return None
    try:
        return DynamicObject.open(copy.path)
    except ForensicsError:
        return None  # it was there a moment ago; a copy that is gone holds nothing
