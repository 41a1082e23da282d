"""The answer for a name that is not torch's: Python, glibc, the driver, the extension itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import OWN, PYTHON, is_cuda, is_rocm, title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.report_why import Answer
from fa_forensics.resolve.process import LoadedObject
from fa_forensics.why.judgement import NEWER, NONE, UNKNOWN, Judgement
from fa_forensics.why.other_names.known import PRIVATE, judge_known
from fa_forensics.why.place import Place, other_soname
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.spelling import could_be_spelt
from fa_forensics.why.ways.commands import inspect_command

#: Symbol versions and the answer's kind: GLIBC_2.38 is a matter of glibc, whoever owns it.
_VERSION_KINDS = (("GLIBCXX_", "libstdcxx"), ("CXXABI_", "libstdcxx"), ("GLIBC_", "glibc"))

#: The kind and code of a missing name by its owner; the first column is the owner.
_KINDS = {
    PYTHON: ("python-abi", "FA402"),
    OWN: ("own-symbol", "FA205"),
    "cuda-driver": ("gpu-driver", "FA209"),
    "nvml": ("gpu-driver", "FA209"),
    "libc": ("glibc", "FA203"),
    "libstdc++": ("libstdcxx", "FA203"),
}


def other_answer(
    symbol: SymbolText,
    name: str,
    owner: str,
    provider: str | None,
    place: Place,
    tables: Tables,
    needed_by: Sequence[str],
) -> Answer:
    """Judge a name that torch does not own."""
    if is_cuda(owner) and name:
        from fa_forensics.why.nvidia.cuda import cuda_answer

        return cuda_answer(symbol, name, owner, provider, place, tables, needed_by)
    from fa_forensics.why.other_names.products import is_product

    commands: tuple[str, ...] = ()
    known = None
    private = symbol.version == PRIVATE  # not a matter of what is here
    if provider is None and name and (private or not _known_here(owner, place)):
        known = judge_known(symbol, name, owner, place, needed_by)
    if known is None and provider is None and name and not place.loaded_of(owner):
        from fa_forensics.why.other_names.products import judge_product

        known = judge_product(symbol, owner, place, needed_by) if is_product(owner) else None
    if owner == OWN and provider is None and name and known is None:
        from fa_forensics.why.other_names.own import judge_own

        judgement, commands = judge_own(symbol, name, place, needed_by)
    elif known is not None:
        judgement, commands = known
        owner = OWN if is_product(owner) and judgement.code == "FA205" else owner
    else:
        judgement = _judge(symbol, owner, provider, place)
    return Answer(
        kind=judgement.kind,
        code=judgement.code,
        symbol=name or None,
        demangled=symbol.demangled,
        owner=owner,
        provider=provider,
        cause=judgement.cause,
        direction=judgement.direction,
        confidence=judgement.confidence,
        help=(*commands, inspect_command(place, needed_by)),
        notes=judgement.notes,
        releases_looked_up=False,
    )


def _known_here(owner: str, place: Place) -> bool:
    """Whether a copy of the owner's library is here to judge by."""
    return owner not in ("cuda-driver", PYTHON) and bool(place.loaded_of(owner))


def _judge(symbol: SymbolText, owner: str, provider: str | None, place: Place) -> Judgement:
    kind, code, direction = _kind(symbol, owner, provider)
    title = title_of(owner)
    if place.told is not None and owner != OWN:
        cause = f"It belongs to {title}, which is missing there or is another release."
        return Judgement(kind, code, direction, cause, (), "medium")
    if not place.looked(owner):
        cause = f"It belongs to {title}; who exports it could not be looked up here."
        return Judgement(kind, code, direction, cause, (), "medium")
    if symbol.name is None and provider is None and not could_be_spelt(symbol):
        cause = (
            "A readable name of this sort (a template, an operator, a name of std) can be spelt in "
            "many ways and was not looked up; paste the mangled name, which starts with _Z."
        )
        return Judgement(kind, code, direction, cause, (), "low")
    if provider is not None:
        return provided(kind, code, provider)
    confidence = "medium" if symbol.name is None else "high"
    loaded = place.loaded_of(owner)
    other_major = other_soname(symbol, loaded)
    if other_major is not None:
        return another_major(other_major, symbol.version or "", place)
    if loaded and owner == "libstdc++":
        return _old_libstdcxx(kind, code, symbol, loaded[0])
    if loaded:
        cause = f"{title} is here ({loaded[0].path}) but does not export it: it is another release."
    else:
        cause = f"It belongs to {title}, which is not loaded with {place.here}."
    return Judgement(kind, code, direction, cause, (), confidence)


def _old_libstdcxx(kind: str, code: str, symbol: SymbolText, loaded: LoadedObject) -> Judgement:
    """A name of the C++ library that the one here lacks: it is older than the compiler was."""
    cause = (
        f"{loaded.path} does not export it: it is older than the C++ library of the compiler that "
        "built the file."
    )
    notes: tuple[str, ...] = ()
    if mentions_cxx11(symbol.name or "", symbol.demangled):
        notes = ("The __cxx11 in it is the C++ library's own; torch's flavour plays no part.",)
    return Judgement(kind, code, NEWER, cause, notes)


def provided(kind: str, code: str, provider: str) -> Judgement:
    """A name that is here."""
    return Judgement(
        kind, code, NONE,
        f"{os.path.basename(provider)} in this environment exports it, so here it is not missing.",
        ("An error that names it comes from another environment, or from a file that does not list "
         "this library among its needs: inspect the file itself.",),
    )  # fmt: skip


def another_major(brought: str, wanted: str, place: Place) -> Judgement:
    """The library is here in another major version than the symbol's version names."""
    cause = (
        f"{place.here} brings {brought}; the file needs {wanted}, which is another "
        "major version and not here."
    )
    return Judgement("missing-library", "FA602", UNKNOWN, cause)


def _kind(symbol: SymbolText, owner: str, provider: str | None) -> tuple[str, str, str]:
    for prefix, kind in _VERSION_KINDS:
        if symbol.version and symbol.version.startswith(prefix):
            return kind, "FA203", NEWER if provider is None else NONE
    if is_rocm(owner):
        return "rocm", "FA204", UNKNOWN
    kind, code = _KINDS.get(owner, ("versioned-symbol", "FA204"))
    return kind, code, UNKNOWN
