"""Names that a loaded library needs of another, and that the file taken for it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fa_forensics.facts.elf.dynamic import STB_WEAK, DynamicObject, gnu_hash
from fa_forensics.facts.owner import is_cuda_library
from fa_forensics.resolve.bind import check_versions, find_provider
from fa_forensics.resolve.process import CACHE, DEFAULT, LD_LIBRARY_PATH, LoadedObject
from fa_forensics.resolve.resolution import Library

#: (name, version) of an undefined symbol.
Name = tuple[bytes, str | None]

#: Rules by which a library is found that did not come with torch.
_OUTSIDE = (LD_LIBRARY_PATH, CACHE, DEFAULT)


def names_lacking(
    needing: LoadedObject,
    wanted: Mapping[str, LoadedObject],
    prefixes: Mapping[str, bytes],
    scope: Sequence[LoadedObject],
) -> dict[str, list[Name]]:
    """Soname → the names that ``needing`` uses of it and that nothing in scope has.

    ``wanted`` are the files taken, by soname; ``prefixes`` how names begin that are a
    library's own though they carry no version.
    """
    missing: dict[str, list[Name]] = {}
    for name, bind, version, file in needing.dynamic.undefined(wanted, bool(prefixes)):
        if bind == STB_WEAK:
            continue
        soname = file or next((s for s, p in prefixes.items() if name.startswith(p)), None)
        if soname is None:
            continue
        if wanted[soname].dynamic.lookup(name, gnu_hash(name), version) is not None:
            continue
        if find_provider(name, version, scope) is None:
            missing.setdefault(soname, []).append((name, version))
    used = {soname: used_of(needing.dynamic, names) for soname, names in missing.items()}
    return {soname: names for soname, names in used.items() if names}


def used_of(dynamic: DynamicObject, names: Sequence[Name]) -> list[Name]:
    """Those of the names that a relocation uses: the loader looks up no others."""
    indices = {index for index, _kind in dynamic.symbol_relocations()}
    used = {(s.name, s.version) for s in dynamic.symbols() if s.index in indices}
    return [name for name in names if name in used]


def torch_shortfalls(
    objects: Sequence[LoadedObject], torch: Sequence[LoadedObject], scope: Sequence[LoadedObject]
) -> list[Library]:
    """Libraries of ``import torch`` that are found and yet lack what torch's own need of them.

    Looked at are symbol versions, and the names of CUDA libraries that come from outside
    torch's installation: LD_LIBRARY_PATH, LD_PRELOAD, the system's directories.
    """
    found = []
    for needing in torch:
        for miss in check_versions(needing, objects):
            text = f"{miss.provider} does not define version {miss.version}"
            found.append(_shortfall(miss.soname, needing, text))
        wanted = {
            o.dynamic.soname: o
            for o in needing.needed
            if o.dynamic.soname and is_cuda_library(o.dynamic.soname) and _is_outside(o)
        }
        if not wanted:
            continue
        around = list(dict.fromkeys([*scope, *needing.scope]))
        for soname, names in names_lacking(needing, wanted, {}, around).items():
            name = names[0][0].decode("utf-8", "backslashreplace")
            how = "LD_PRELOAD" if wanted[soname].stage == "start" else wanted[soname].found_by
            text = f"{wanted[soname].path} ({how}) has no {name}"
            found.append(_shortfall(soname, needing, text))
    return found


def _is_outside(loaded: LoadedObject) -> bool:
    return loaded.found_by in _OUTSIDE or loaded.stage == "start"


def _shortfall(soname: str, needing: LoadedObject, text: str) -> Library:
    return Library(soname, needing.path, None, "not usable", (), text, text)
