"""Names of glibc that a linker does not find in the version that a library needs them in."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.facts.symbol_text import parse_symbol
from fa_forensics.facts.system_releases import (
    GLIBC,
    brings,
    family_of,
    number,
    version_number,
)
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.files.file_text import is_torchs
from fa_forensics.why.texts.libraries.glibc_text import LIBTORCH, own_glibc

#: Every distribution that torch runs on has this glibc (manylinux2014's).
_ANY_SYSTEM = (2, 17)
#: The cxx11-abi archives of libtorch need no newer glibc than this one.
_OF_CXX11_ARCHIVES = (2, 28)


def newer_than_any(version: str) -> bool:
    """Whether a version of glibc is one that some systems in use do not have."""
    return family_of(version) == GLIBC and version_number(version) > _ANY_SYSTEM


def linkers_glibc(seen: Seen, answer: Answer, version: str) -> Answer:
    """``undefined reference to `powf@GLIBC_2.27'``: one answer for all such names of a text."""
    mentions = [
        m for m in (*seen.paste.mentions, seen.mention)
        if m.what == "linker-undefined" and m.version and newer_than_any(m.version)
        and _name(m.file) == _name(seen.mention.file)
    ]  # fmt: skip
    first = mentions[0] if mentions else seen.mention
    newest = max((m.version or version for m in mentions), key=version_number, default=version)
    needing = _name(seen.mention.file) or "A library on the link line"
    own, system = own_glibc(seen)
    cause = f"{needing} needs names of {newest}, that is {brings(newest)} or newer"
    names = f" ({system})" if system else ""
    confidence = "medium"
    if own and number(own) < version_number(newest):
        cause += (
            f"; this system has glibc {own}{names}: {needing} was built on a newer system, and can "
            "neither be linked with nor be loaded here."
        )
        confidence = "high"
    elif own:
        cause += (
            f"; the system that the text names has glibc {own}{names}, which is enough. The linker "
            "takes another one: that of conda's compilers (a sysroot), or an older copy that comes "
            "before it."
        )
    else:
        cause += (
            ". Most likely the glibc of this system is older: then it can neither be linked with "
            "nor be loaded here. Else the linker takes another glibc than the system's (the "
            "sysroot of conda's compilers). The first command tells them apart."
        )
    notes = [
        "glibc belongs to the system and is not to be changed: a build of the file for this "
        "system, or a system (a container) with that glibc, are the two ways.",
    ]
    torchs = is_torchs(seen.mention.file or "")
    if torchs:
        old = version_number(newest) <= _OF_CXX11_ARCHIVES
        notes = [*notes, *((LIBTORCH,) if old else ()), _WHEELS]
    look = "ldd --version | head -1; echo CC=$CC CXX=$CXX; $(command -v gcc) -print-sysroot"
    symbol = parse_symbol(first.symbol or "") if first.symbol else None
    helps = [look]
    if torchs:
        helps.append(f"{seen.python} -c 'import torch; print(torch.utils.cmake_prefix_path)'")
    return replace(
        answer, kind="glibc", code="FA203", cause=cause, direction=NEWER, confidence=confidence,
        symbol=(symbol.name or first.symbol) if symbol else first.symbol,
        demangled=symbol.demangled if symbol else first.symbol,
        notes=tuple(notes), help=tuple(helps),
    )  # fmt: skip


_WHEELS = (
    "The wheel of the same torch release has the same libraries and CMake files, and its manylinux "
    "tag says which glibc it takes; installed with pip, the last command prints what "
    "CMAKE_PREFIX_PATH has to be."
)


def _name(path: str | None) -> str:
    return (path or "").rsplit("/", 1)[-1]
