"""Symbol → provider, as glibc binds it, and what the loader would complain about first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fa_forensics.facts.elf.dynamic import BIND_NAMES, SHN_UNDEF, DynamicObject, Symbol, gnu_hash
from fa_forensics.resolve.process import LoadedObject, Scope
from fa_forensics.resolve.resolution import Binding, DependencyMiss, VersionMiss


def bind_symbols(
    dynamic: DynamicObject, symbols: Sequence[Symbol], scope: Sequence[LoadedObject]
) -> tuple[Binding, ...]:
    """Bind every undefined symbol of an object in a scope (look-up order)."""
    order: dict[int, int] = {}
    for place, (index, _kind) in enumerate(dynamic.symbol_relocations()):
        order.setdefault(index, place)
    bindings = []
    for symbol in symbols:
        if symbol.shndx != SHN_UNDEF or not symbol.name:
            continue
        provider = find_provider(symbol.name, symbol.version, scope)
        bindings.append(
            Binding(
                index=symbol.index,
                symbol=symbol.name.decode("utf-8", "backslashreplace"),
                version=symbol.version,
                version_file=symbol.version_file,
                bind=BIND_NAMES.get(symbol.bind, f"bind {symbol.bind}"),
                order=order.get(symbol.index, -1),
                provider=None if provider is None else provider.path,
                provider_soname=None if provider is None else provider.dynamic.soname,
                table=f".dynsym[{symbol.index}]",
            )
        )
    return tuple(bindings)


def find_provider(
    name: bytes, version: str | None, scope: Sequence[LoadedObject]
) -> LoadedObject | None:
    """The first object in look-up order that defines a name in the version asked for."""
    hashed = gnu_hash(name)
    if not isinstance(scope, Scope):
        return _first_with(name, hashed, version, scope)
    key = (name, version)
    if key not in scope.known:
        scope.known[key] = _first_with(name, hashed, version, scope[: scope.shared])
    return scope.known[key] or _first_with(name, hashed, version, scope[scope.shared :])


def _first_with(
    name: bytes, hashed: int, version: str | None, objects: Sequence[LoadedObject]
) -> LoadedObject | None:
    for loaded in objects:
        if loaded.dynamic.lookup(name, hashed, version) is not None:
            return loaded
    return None


def check_versions(loaded: LoadedObject, objects: Sequence[LoadedObject]) -> list[VersionMiss]:
    """Versions an object needs that the loaded library of that name does not define.

    As ``_dl_check_map_versions`` (glibc ``elf/dl-version.c``): a library without any
    version table passes with a warning, a weak need passes.
    """
    misses = []
    for file, version, weak in sorted(set(loaded.dynamic.verneed.values())):
        provider = next((o for o in objects if file in o.names), None)
        if provider is None or weak:
            continue
        defined = provider.dynamic.verdef
        if defined and version not in defined.values():
            misses.append(
                VersionMiss(
                    loaded.path, file, version, provider.path, tuple(sorted(defined.values()))
                )
            )
    return misses


def dependency_misses(
    dependencies: Sequence[LoadedObject],
    scope: Sequence[LoadedObject],
    elsewhere: Callable[[str, str | None, str | None], str | None] | None = None,
) -> list[DependencyMiss]:
    """Strong undefined symbols of newly loaded libraries that nothing in scope provides.

    ``elsewhere`` (name, version, version's file) → place is asked for what scope lacks.
    """
    misses = []
    for loaded in dependencies:
        used = {index for index, _kind in loaded.dynamic.symbol_relocations()}
        for symbol in loaded.dynamic.symbols():
            if symbol.shndx != SHN_UNDEF or symbol.bind == 2 or symbol.index not in used:
                continue
            if find_provider(symbol.name, symbol.version, scope) is not None:
                continue
            name = symbol.name.decode("utf-8", "backslashreplace")
            if elsewhere is None or elsewhere(name, symbol.version, symbol.version_file) is None:
                misses.append(DependencyMiss(loaded.path, name, symbol.version))
    return misses
