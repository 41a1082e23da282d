"""Names of torch in the mangling of a newer clang, which torch's own compiler does not write.

clang 18 writes the type of a template's constrained parameter into the name ("Tn", "Ty", "Tt"
of the Itanium C++ ABI); -fclang-abi-compat=17 takes that back (clang 18's release notes).
"""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.demangle import demangle, readable
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer, Overload
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.torch_names.cut import interval_of, scope_of
from fa_forensics.why.ways.builds import clean_build, rebuild_named

#: A constrained parameter: its type, most often enable_if, stands before the value.
_CONSTRAINED = lazily(r"(?<=[A-Za-z0-9_])Tn(?=NSt|N\d|i|b|j|m|l|P|D)")
_VALUE = lazily(r"EL[a-z]-?n?\d{1,6}E")
_SHOWN = 3


def of_clang(seen: Seen) -> Answer | None:
    """The answer for a name that a newer clang wrote; None for any other name."""
    found = re.search(r"_?(_ZN\w+)", seen.mention.symbol or "")
    name = found[1] if found is not None else ""
    atlas = seen.tables.ages
    constrained = _CONSTRAINED.search(name)
    if constrained is None or atlas is None:
        return None
    scope = scope_of(name)[0].rstrip(":")
    owner = owner_of(name, None, scope)
    if not is_torch(owner) or atlas.releases_of(name, seen.place.machine):
        return None
    value = _VALUE.search(name, constrained.end())
    starts = [name[: constrained.start()]]
    if value is not None:
        starts.insert(0, starts[0] + value[0][1:])
    near = next((rows for start in starts if (rows := _starting(seen, start))), [])
    theirs = ""
    if near:
        theirs = f": {readable(demangle(near[0][0]))} (torch {interval_of(seen, near[0][1])})"
    cause = (
        f"The name is whole, and spelt as clang 18 and newer spell it: they write the type of a "
        f"template's constraint into it (Tn...), which c++filt of before cannot read. It is "
        f"{scope}, which torch's wheels export in the spelling of gcc{theirs}. No release is too "
        "old or too new: the file was compiled with another compiler than torch."
    )
    others = tuple(
        Overload(n, demangle(n), rel, interval_of(seen, rel)) for n, rel in near[:_SHOWN]
    )
    helps = ("command -v g++ clang++; echo CC=$CC CXX=$CXX NVCC_PREPEND_FLAGS=$NVCC_PREPEND_FLAGS",)
    name_of = seen.package
    built = rebuild_named(seen.place, name_of) if name_of else None
    again = built[0] if built is not None else clean_build(raw_python(seen), "")
    answer = seen.answer(
        "wrong-torch", "FA884", cause, symbol=name, demangled=scope, owner=owner, overloads=others,
        direction=NONE, releases_looked_up=True, confidence="medium",
    )  # fmt: skip
    return replace(
        answer,
        help=(*helps, f"export CC=gcc CXX=g++; {again}", seen.inspect_command()),
        notes=(
            "Compiled with g++, from an empty build directory, it has torch's spelling; with clang "
            "-fclang-abi-compat=17 among the flags has it too. A ready-made wheel of the package "
            "for this torch is the other way out.",
        ),
    )


def _starting(seen: Seen, start: str) -> list[tuple[str, tuple[str, ...]]]:
    atlas = seen.tables.ages
    return [] if atlas is None else atlas.starting_with(start, seen.place.machine, limit=_SHOWN)
