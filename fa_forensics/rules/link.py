"""FA2xx: what the loader would not find: libraries, versions, symbols."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fa_forensics.facts.demangle import readable
from fa_forensics.facts.owner import OWN, PYTHON, STABLE, is_torch, owner_of_library, title_of
from fa_forensics.facts.system_releases import FAMILIES, brings, newest
from fa_forensics.report import Evidence, Finding
from fa_forensics.resolve.explain import Missing
from fa_forensics.resolve.resolution import Library
from fa_forensics.rules.atlas import life_evidence, life_notes
from fa_forensics.rules.base import (
    RANK_DEPENDENCY,
    RANK_LIBRARY,
    RANK_NONE,
    RANK_VERSION,
    Context,
    Judged,
    symbol_rank,
)
from fa_forensics.rules.evidence import needed_by, others, symbol_evidence, tried
from fa_forensics.rules.flavour_split import split_by_flavour
from fa_forensics.rules.groups import library_causes
from fa_forensics.rules.remedy import (
    build_for_this_torch,
    import_command,
    remedies,
    remedy_notes,
)


def torch_symbols(ctx: Context) -> Sequence[Judged]:
    """FA201: torch here does not export a name that the file was built against."""
    drifted = split_by_flavour(ctx).drifted
    if not drifted or ctx.environment is None or ctx.environment.torch is None:
        return ()
    torch = ctx.environment.torch
    first = drifted[0]
    near = first.nearest[0] if first.nearest else None
    title = f"torch {torch.version} does not export {readable(first.demangled)}"
    title += others(len(drifted) - 1, "other symbol")
    notes = []
    if near is not None:
        notes.append(
            f"This torch has {readable(near.demangled)} instead: the function's signature "
            "changed between the two releases."
        )
    if all(item.owner == STABLE for item in drifted):
        notes.append(
            "The missing names are of torch's stable interface, which only grows: the file needs "
            "a newer torch."
        )
    life = life_notes(ctx, drifted)
    if not life and not all(item.owner == STABLE for item in drifted):
        notes.append("The file was built against another torch release than the one here.")
    notes += life
    finding = Finding(
        code="FA201",
        severity="error",
        confidence="high",
        title=title,
        evidence=(*symbol_evidence(ctx, drifted), *life_evidence(ctx, drifted)),
        notes=(*notes, *remedy_notes(ctx)),
        help=remedies(ctx),
    )
    return (Judged(symbol_rank(first), finding),)


def libraries_not_found(ctx: Context) -> Sequence[Judged]:
    """FA202: needed libraries are in none of the places where the loader looks."""
    libraries = library_causes(ctx).other
    if not libraries:
        return ()
    first = libraries[0]
    title = f"{first.soname} is not found"
    if len(libraries) > 1:
        title = f"{first.soname}{others(len(libraries) - 1, 'other library')} are not found"
    owner = owner_of_library(first.soname)
    notes = [f"{first.soname} is part of {title_of(owner)}."] if owner else []
    finding = Finding(
        code="FA202",
        severity="error",
        confidence="high",
        title=title,
        evidence=(*(needed_by(library) for library in libraries), *tried(first)),
        notes=(*notes, *_consequences(ctx, libraries)),
    )
    return (Judged(library_rank(ctx, first), finding),)


def damaged_libraries(ctx: Context) -> Sequence[Judged]:
    """FA208: a needed library was found but is no usable ELF file; the loader stops there."""
    return [
        Judged(
            library_rank(ctx, library),
            Finding(
                code="FA208",
                severity="error",
                confidence="high",
                title=f"{library.soname} was found but cannot be used",
                evidence=(needed_by(library), Evidence(library.problem or "")),
                notes=("The loader does not look further once it has found a file of that name.",),
            ),
        )
        for library in library_causes(ctx).damaged
    ]


def sibling_libraries(ctx: Context) -> Sequence[Judged]:
    """FA207: a library of the same package that only the package's own code can load first."""
    if ctx.as_package:
        return _loaded_by_package(ctx)
    causes = library_causes(ctx).sibling
    if not causes:
        return ()
    then = "With it loaded first, everything it needs has a provider."
    if ctx.left_with_siblings:
        then = f"With it loaded first, {ctx.left_with_siblings} needs are still not met."
    names = ", ".join(library.soname for library, _ in causes)
    beside = "lies beside it" if len(causes) == 1 else "lie beside it"
    finding = Finding(
        code="FA207",
        severity="error",
        confidence="high",
        title=f"{ctx.name} does not load by itself: {names} {beside}, but has no search path to it",
        evidence=tuple(
            row
            for library, sibling in causes
            for row in (needed_by(library), Evidence("the library", sibling.path))
        ),
        notes=(
            "Neither RPATH nor RUNPATH of the file names its own directory, so its package must "
            "load that library first; imported through the package this is no fault.",
            then,
        ),
        help=import_command(ctx),
    )
    return (Judged(library_rank(ctx, causes[0][0]), finding),)


def _loaded_by_package(ctx: Context) -> Sequence[Judged]:
    names = ", ".join(sibling.soname for sibling in ctx.siblings)
    finding = Finding(
        code="FA207",
        severity="note",
        confidence="high",
        title=f"{ctx.name} loads only after {names}, which its package has to load first",
        evidence=tuple(Evidence("the library", sibling.path) for sibling in ctx.siblings),
        notes=("It was judged in that order.",),
    )
    return (Judged(RANK_NONE, finding),)


def driver_libraries(ctx: Context) -> Sequence[Judged]:
    """FA209: the NVIDIA driver's own libraries are not on this machine."""
    missing = library_causes(ctx).driver
    if not missing:
        return ()
    finding = Finding(
        code="FA209",
        severity="error",
        confidence="high",
        title=f"{missing[0].soname} is not found: it belongs to the NVIDIA driver, which is not "
        "visible on this machine",
        evidence=tuple(row for lib in missing for row in (needed_by(lib), *tried(lib))),
        notes=(
            "No pip or conda package carries it. In a container, the driver's libraries come from "
            "the host (run it with --gpus all, or the NVIDIA container runtime).",
        ),
    )
    return (Judged(library_rank(ctx, missing[0]), finding),)


def versions(ctx: Context) -> Sequence[Judged]:
    """FA203: a loaded library does not define a symbol version that is needed of it."""
    if ctx.resolution is not None:
        misses = ctx.resolution.version_misses
    else:
        misses = ctx.system.unmet if ctx.system is not None else ()
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for miss in misses:
        key = (miss.needed_by, miss.soname, miss.provider)
        grouped.setdefault(key, []).append(miss.version)
    judged = []
    for place, ((needing, soname, provider), needed) in enumerate(grouped.items()):
        own = os.path.basename(needing) == os.path.basename(ctx.elf.path)
        who = ctx.name if own else os.path.basename(needing)
        defined = next(m.provided for m in misses if m.provider == provider)
        family = needed[-1].split("_")[0]
        of_family = [v for v in defined if v.startswith(family + "_")]
        finding = Finding(
            code="FA203",
            severity="error",
            confidence="high",
            title=f"{soname} here is older than the one {who} was built with: "
            f"it lacks {', '.join(needed)}",
            evidence=(
                Evidence(f"needs {', '.join(needed)}", needing, ".gnu.version_r"),
                Evidence(
                    f"defines up to {_newest(of_family)}"
                    if of_family
                    else "defines no such version",
                    provider,
                    ".gnu.version_d",
                ),
            ),
            notes=(
                *_brought(needed),
                "The file needs a build made for a system as old as this one: a manylinux wheel, "
                "or a build from source on this machine.",
            ),
            help=build_for_this_torch(ctx),
        )
        judged.append(Judged(RANK_VERSION + place, finding))
    return judged


def _brought(needed: Sequence[str]) -> tuple[str, ...]:
    """What first has the newest version of each family that is lacking: a sentence for each."""
    tops = [newest(needed, family) for family in FAMILIES]
    found = [(top, brings(top)) for top in tops if top is not None]
    return tuple(f"{top} comes with {source}." for top, source in found if source is not None)


def _newest(names: Sequence[str]) -> str:
    def key(name: str) -> tuple[int, ...]:
        return tuple(int(part) for part in name.split("_")[-1].split(".") if part.isdigit())

    return max(names, key=key)


def unlinked_symbols(ctx: Context) -> Sequence[Judged]:
    """FA210: a library that is loaded exports the symbol, but the file does not need that library.

    The loader looks only into the libraries that a file lists, and what those list
    (DT_NEEDED); that another part of the program has loaded one does not count.
    """
    items = ctx.unlinked
    if not items:
        return ()
    first = items[0]
    libraries = sorted({os.path.basename(item.exported_by or "") for item in items})
    flags = " ".join(f"-l{name[3:].split('.so')[0]}" for name in libraries)
    finding = Finding(
        code="FA210",
        severity="error",
        confidence="high",
        title=f"{ctx.name} uses {readable(first.demangled)}"
        f"{others(len(items) - 1, 'other symbol')} but was not linked with {', '.join(libraries)}",
        evidence=(
            *symbol_evidence(ctx, items),
            *(
                Evidence("exports it", path)
                for path in sorted({i.exported_by or "" for i in items})
            ),
        ),
        notes=(
            "The library is there and exports the name; the file does not list it (DT_NEEDED), so "
            "the loader does not look into it for this file.",
            f"It must be linked with {flags}; torch.utils.cpp_extension does that.",
        ),
        help=build_for_this_torch(ctx),
    )
    return (Judged(symbol_rank(first), finding),)


def library_symbols(ctx: Context) -> Sequence[Judged]:
    """FA204: a library other than torch is there but lacks a symbol the file needs."""
    by_owner: dict[str, list[Missing]] = {}
    for item in ctx.causes:
        if not is_torch(item.owner) and item.owner not in (OWN, PYTHON):
            by_owner.setdefault(item.owner, []).append(item)
    judged = []
    for owner, items in by_owner.items():
        first = items[0]
        name = readable(first.demangled)
        loaded = _loaded_library(ctx, owner)
        where = f" ({loaded})" if loaded else ""
        finding = Finding(
            code="FA204",
            severity="error",
            confidence="high",
            title=f"{title_of(owner)} in this environment has no {name}"
            + others(len(items) - 1, "other symbol"),
            evidence=symbol_evidence(ctx, items),
            notes=(
                f"The library that is loaded{where} is not the release the file was built with.",
            ),
            help=build_for_this_torch(ctx),
        )
        judged.append(Judged(symbol_rank(first), finding))
    return judged


def dependency_symbols(ctx: Context) -> Sequence[Judged]:
    """FA206: a library that the file brings with it lacks a provider for a symbol of its own."""
    if ctx.resolution is None or ctx.missing_libraries:
        return ()
    by_path: dict[str, list[Evidence]] = {}
    for miss in ctx.resolution.dependency_misses:
        version = f", version {miss.version}" if miss.version else ""
        by_path.setdefault(miss.path, []).append(
            Evidence(
                f"needs {miss.symbol}{version}",
                miss.path,
                ".dynsym",
                None,
                miss.symbol,
                miss.version,
            )
        )
    return [
        Judged(
            RANK_DEPENDENCY + place,
            Finding(
                code="FA206",
                severity="error",
                confidence="high",
                title=f"{os.path.basename(path)}, which {ctx.name} needs, has an undefined symbol: "
                f"{rows[0].symbol}{others(len(rows) - 1, 'other')}",
                evidence=tuple(rows),
            ),
        )
        for place, (path, rows) in enumerate(by_path.items())
    ]


def library_rank(ctx: Context, library: Library) -> int:
    """The place of a missing library in the loader's order."""
    if ctx.resolution is None:
        return RANK_LIBRARY
    return RANK_LIBRARY + ctx.resolution.libraries.index(library)


def _consequences(ctx: Context, libraries: Sequence[Library]) -> tuple[str, ...]:
    names = {library.soname for library in libraries}
    count = sum(1 for m in ctx.missing if m.absent_library in names)
    if not count:
        return ()
    source = "it" if len(libraries) == 1 else "them"
    return (f"{count} undefined symbol{'s' if count > 1 else ''} would come from {source}.",)


def _loaded_library(ctx: Context, owner: str) -> str | None:
    if ctx.resolution is None:
        return None
    return next(
        (
            path
            for path in ctx.resolution.scope
            if owner_of_library(os.path.basename(path)) == owner
        ),
        None,
    )
