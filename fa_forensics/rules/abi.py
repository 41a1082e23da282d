"""FA3xx: the C++ ABI: which std::string the file expects of torch."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.demangle import demangle, readable
from fa_forensics.facts.flavour import CXX11, NOT_APPLICABLE
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.atlas import TABLE, flavour_note
from fa_forensics.rules.base import RANK_NONE, Context, Judged, symbol_rank
from fa_forensics.rules.evidence import symbol_evidence
from fa_forensics.rules.flavour_split import split_by_flavour
from fa_forensics.rules.remedy import (
    build_for_this_torch,
    build_torch,
    build_words,
    remedies,
    remedy_notes,
    same_minor,
)

_WORDS = {
    "cxx11": "the new std::string (cxx11)",
    "pre-cxx11": "the old std::string (pre-cxx11)",
}
_MACRO = {"cxx11": "_GLIBCXX_USE_CXX11_ABI=1", "pre-cxx11": "_GLIBCXX_USE_CXX11_ABI=0"}


def flavour_mismatch(ctx: Context) -> Sequence[Judged]:
    """FA301: the file expects one std::string flavour of torch, this torch has the other."""
    torch = ctx.environment.torch if ctx.environment else None
    flavour = ctx.flavour.value
    if torch is None or ctx.resolution is None or flavour == NOT_APPLICABLE:
        return ()
    if torch.cxx11_abi not in _WORDS or torch.cxx11_abi == flavour:
        return ()
    split = split_by_flavour(ctx)
    if split.other_flavour:
        rank = symbol_rank(split.other_flavour[0])
        evidence = symbol_evidence(ctx, split.other_flavour)
    else:
        witness = ctx.flavour.witnesses[0]
        rank = RANK_NONE
        evidence = (
            Evidence(
                f"needs {witness} = {readable(demangle(witness))}",
                ctx.elf.path,
                ".dynsym",
                None,
                witness,
            ),
        )
    finding = Finding(
        code="FA301",
        severity="error" if split.other_flavour else "warning",
        confidence="high",
        title=f"the file was built for {_WORDS[flavour]}, torch {torch.version} for "
        f"{_WORDS[torch.cxx11_abi]}",
        evidence=(*evidence, Evidence(f"torch's flavour: {torch.cxx11_evidence}", torch.lib_dir)),
        notes=(
            f"The file was compiled with {_MACRO[flavour]}, torch with {_MACRO[torch.cxx11_abi]}.",
            "Every torch function that takes or returns a std::string has another name in the "
            "other flavour. It is a property of each build, not of a version: no compiler or "
            "library upgrade changes it, only a build of the extension in torch's flavour.",
            *flavour_note(ctx),
            *remedy_notes(ctx),
        ),
        help=remedies(ctx),
    )
    return (Judged(rank, finding),)


def mixed_flavours(ctx: Context) -> Sequence[Judged]:
    """FA302: the file needs torch names of both flavours, which no torch exports together."""
    if not ctx.flavour.mixed:
        return ()
    new, old = ctx.flavour.cxx11_symbols, ctx.flavour.old_symbols
    rarer = old if ctx.flavour.value == CXX11 else new
    finding = Finding(
        code="FA302",
        severity="warning",
        confidence="medium",
        title=f"{ctx.name} needs torch names of both std::string flavours "
        f"({len(new)} new, {len(old)} old)",
        evidence=tuple(
            Evidence(
                f"needs {name} = {readable(demangle(name))}", ctx.elf.path, ".dynsym", None, name
            )
            for name in rarer[:5]
        ),
        notes=(
            "Its object files were compiled with different settings; rebuild all of them alike.",
        ),
        help=build_for_this_torch(ctx),
    )
    return (Judged(RANK_NONE, finding),)


def other_torch_minor(ctx: Context) -> Sequence[Judged]:
    """FA303: every symbol resolves, but the file was made for another minor release of torch."""
    torch = ctx.environment.torch if ctx.environment else None
    where = build_torch(ctx)
    if torch is None or where is None or ctx.resolution is None or ctx.stable_abi:
        return ()
    if ctx.missing or ctx.missing_libraries or not (ctx.uses_torch and ctx.uses_torch_names):
        return ()
    if same_minor(where[0], torch.release):
        return ()
    window = ctx.releases.built_on if ctx.releases is not None else ()
    if not where[2] and any(same_minor(release, torch.release) for release in window):
        return ()  # it can have been built on this very minor release
    finding = Finding(
        code="FA303",
        severity="warning",
        confidence="medium",
        title=f"every name resolves in torch {torch.version}, but the file was {build_words(ctx)}",
        evidence=tuple(
            Evidence(text, ctx.elf.path, TABLE)
            for text in (ctx.releases.evidence if ctx.releases is not None else ())
        ),
        notes=(
            "The layout of a class can change while its names stay: such files have crashed while "
            "loading. Only a real load tells (--confirm).",
            *remedy_notes(ctx),
        ),
        help=remedies(ctx),
    )
    return (Judged(RANK_NONE, finding),)
