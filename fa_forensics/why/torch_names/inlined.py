"""Methods that torch's headers define themselves: a release has a copy that no file asks for."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import qualified_name
from fa_forensics.why.torch_names.history import History, Present


def without_copies(
    history: History, demangled: str, atlas: Atlas, present: Present | None
) -> tuple[History, str]:
    """(the life of a name as files can be built by it, a sentence on what it leaves out).

    Where a release exports a plain function as a weak symbol alone, its headers define it inline
    (C++ standard, [dcl.inline]; the Itanium C++ ABI, vague linkage): a file that is compiled
    with them has its own copy, and never misses the name. Those of at::Tensor are such since
    torch 1.10. Instances of templates are weak as well, and are asked for all the same. A
    ``present`` torch that exports the name has it, whatever files were built with.
    """
    scope = qualified_name(demangled)
    if not history.symbol.startswith("_Z") or "<" in scope or not scope or history.twin:
        return history, ""
    binds: dict[str, set[str]] = {}
    for export in atlas.exports(history.symbol, history.machine):
        binds.setdefault(export.release, set()).add(export.bind)
    defined = [r for r in history.alive if binds.get(r, set()) - {"weak"}]
    if not defined:
        return history, ""
    last = history.alive.index(defined[-1]) + 1
    kept, copies = history.alive[:last], history.alive[last:]
    if not copies or (present is not None and present.release in history.alive):
        return history, ""
    have = "has" if len(copies) == 1 else "have"
    note = (
        f"torch {history.interval(copies)} {have} a weak copy of it: there the headers define the "
        "function, and a file that is compiled with them brings its own. What misses the name was "
        f"built with torch {defined[-1]} or before."
    )
    later = history.known[history.known.index(defined[-1]) + 1 :]
    lacking = tuple(release for release in later if release not in copies)
    if copies[-1] == history.known[-1] and lacking:
        note += f" Of the later releases {history.interval(lacking)} alone lack it."
    own = tuple(r for r in history.releases if r in kept)
    return replace(history, releases=own, alive=kept), note
