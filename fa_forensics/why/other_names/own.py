"""A name that no known library owns: the extension's own, or one of a library of its package."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.demangle import (
    mentions_cxx11,
    mentions_old_string,
    qualified_name,
    readable,
)
from fa_forensics.facts.dependents import extensions_of
from fa_forensics.facts.elf.dynamic import DynamicObject, gnu_hash
from fa_forensics.facts.package import find_distribution
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.patterns import lazily
from fa_forensics.resolve.nearest import OTHER_FLAVOUR, SAME_NAME, NameIndex, Near
from fa_forensics.resolve.process import BY_PATH, LoadedObject
from fa_forensics.why.judgement import FLAVOUR, NONE, UNKNOWN, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.ways.builds import clean_build, python_of

KIND, CODE = "own-symbol", "FA205"

#: nvcc names what the device link step makes: a hash, the length of the file's name, that name;
#: older ones the length of all, a temporary file and ``cpp1_ii`` behind the name.
_DEVICE_LINK = lazily(
    r"__(?:cudaRegisterLinkedBinary|fatbinwrap)_\w*?_?\d+_(?!cpp1_ii)([A-Za-z]\w*?)"
    r"(?:_(?:compute_\d+_)?cpp1_ii)?_[0-9a-f]{8}(?:_\d+)?$"
)
#: nvcc's own names are no longer than a file's name and its numbers.
_LONGEST = 400
_TEMPORARY = lazily(r"^tmpxft_[0-9a-f]+_[0-9a-f]+_\d+_")
_DEVICE_RUNTIME = "cuda_device_runtime"

#: Libraries of one package that are looked through; the largest has about 20.
_MOST = 50


def judge_own(
    symbol: SymbolText, name: str, place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) for an extension's own name that nothing loaded here exports."""
    linked = _DEVICE_LINK.match(name[:_LONGEST])
    if linked is not None:
        return _of_device_link(name, linked[1]), (LINK_OPTIONS,)
    near = _sibling(name, place, needed_by)
    if near is not None and near.relation == SAME_NAME:
        return _in_a_sibling(near, place, needed_by)
    if near is not None:
        cause = (
            f"{os.path.basename(near.library)} of the same package has it in the other "
            f"std::string flavour ({readable(near.demangled)}): the two were not built alike."
        )
        return Judgement("cxx11-abi", "FA301", FLAVOUR, cause), ()
    known = known_sibling(name, symbol.demangled)
    again = clean_build(place.python or "python", needed_by[0] if needed_by else "")
    if known is not None and any(os.path.basename(path) == known[1] for path in needed_by):
        return _left_out_of(known[1]), (again,)
    if known is not None and not _two_flavours(symbol):
        return _in_known_sibling(known, place)
    if _two_flavours(symbol):
        return _flavour_or_missing(known), _of_one_flavour(again)
    return _left_out(symbol, place, needed_by)


def _left_out(
    symbol: SymbolText, place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    """A name of the package's own that nothing has: most often its source was not compiled."""
    from fa_forensics.why.other_names.left_out import DOUBLED, owner_words, part_words, sort_of

    likely, notes = part_words(symbol.demangled)
    whose = owner_words(needed_by, symbol.demangled)
    cause = (
        f"No known library owns such a name: it is {whose} own, or one of a library of its package."
    )
    blas = _blas_note(symbol, whose)
    if blas:
        cause = f"No known library owns such a name: it is {whose} own. {blas[0]}"
    elif likely:
        cause += f" {likely}"
    elif re.search(r"(?:\b|_)cpu(?:\b|_)", symbol.demangled.partition("(")[0]):
        cause += (
            " A source file was left out of the build, or that library is missing or is loaded "
            "only behind this file."
        )
    else:
        cause += (
            " A source file was left out of the build (often one that is compiled for some GPU "
            "architectures only), or that library is missing or is loaded only behind this file."
        )
    if not blas and "(" in symbol.demangled and sort_of(symbol.demangled) != DOUBLED:
        cause += (
            " Or the function is declared with other parameters than it is defined with, in the "
            "source itself or by files of two versions in one build directory."
        )
    notes = (*blas[1:], *notes, *_flavour_note(symbol), _FROM_SOURCE)
    file = needed_by[0] if needed_by else ""
    return Judgement(KIND, CODE, UNKNOWN, cause, notes, "medium"), (
        clean_build(place.python or "python", file),
    )


_MINKOWSKI = (
    "MinkowskiEngine takes the BLAS by an option of its setup.py, in its source directory, where "
    "build/ was removed: python setup.py install --blas=openblas "
    "(--blas_include_dirs=$CONDA_PREFIX/include for one of conda's)."
)
_FROM_SOURCE = (
    "Built from source: take the newest sources and build from an empty directory, as the command "
    "that removes build/ does in the source directory (the installed file and .so files in the "
    "tree go too). From a wheel: another release of the package."
)


def _blas_note(symbol: SymbolText, whose: str) -> tuple[str, ...]:
    """(cause, notes): the name takes a type which the headers of BLAS libraries call by two names.

    For the option: setup.py of MinkowskiEngine 0.5.
    """
    found = re.search(r"\bCBLAS_(?:LAYOUT|ORDER)\b", symbol.demangled)
    if found is None:
        return ()
    other = "CBLAS_ORDER" if found[0] == "CBLAS_LAYOUT" else "CBLAS_LAYOUT"
    return (
        f"{found[0]} is what one cblas.h calls this type, and another one (OpenBLAS, MKL and "
        f"netlib differ) calls it {other}: objects compiled with two of them do not find each "
        "other's functions. Build it again from an empty directory with one BLAS and its headers.",
        *([_MINKOWSKI] if "Minkowski" in whose else []),
    )


def device_link(name: str) -> Judgement | None:
    """What is missing where a name is one that nvcc's device link makes; None for others."""
    linked = _DEVICE_LINK.match(name[:_LONGEST])
    return None if linked is None else _of_device_link(name, linked[1])


def known_sibling(name: str, demangled: str) -> tuple[Mapping[str, object], str] | None:
    """(package, library) that is known to export such a name; None for all others."""
    from fa_forensics.rules.remedy import known_packages

    scope = qualified_name(demangled) if name.startswith("_Z") else ""
    for row in known_packages():
        for sibling in row.get("siblings", ()):  # type: ignore[attr-defined]
            if name.startswith(tuple(sibling["names"])) or (
                scope and scope.startswith(tuple(sibling["scopes"]))
            ):
                return row, str(sibling["library"])
    return None


def _left_out_of(library: str) -> Judgement:
    """The library that should define the name is the one that lacks it."""
    cause = (
        f"It is {library}'s own name, and {library} itself lacks it: a source file was left out of "
        "its build (often one that an option or a GPU architecture switches), or files of two "
        "versions were compiled into one."
    )
    return Judgement(KIND, CODE, UNKNOWN, cause, (_FROM_SOURCE,))


def _in_known_sibling(
    known: tuple[Mapping[str, object], str], place: Place
) -> tuple[Judgement, tuple[str, ...]]:
    row, library = known
    package = str(row["import"]).split(".")[0]
    cause = (
        f"It belongs to {library} of the same package ({row['distribution']}), which the package "
        "loads before its extension: whoever imports the inner module alone does without. Nothing "
        "was left out of the build."
    )
    command = f"{python_of(place)} -c 'import {package}; import {row['import']}'"
    return Judgement(KIND, "FA207", NONE, cause), (command,)


def _two_flavours(symbol: SymbolText) -> bool:
    """Whether an own name may be in a library of the other std::string flavour.

    One that takes torch's types is compiled with torch's flags, like the file that needs it.
    """
    text = symbol.demangled
    if any(scope in text for scope in ("at::", "c10::", "torch::")):
        return False
    return mentions_old_string(text)


def _flavour_or_missing(known: tuple[Mapping[str, object], str] | None) -> Judgement:
    library = known[1] if known is not None else "a library of the package that has no torch in it"
    cause = (
        f"The name carries a std::string in the pre-cxx11 flavour and none of torch's types. Most "
        f"likely {library} exports the same function in the cxx11 flavour: the compiler's own "
        "flavour there, and that of a pre-cxx11 torch in the file that needs it. Build both with "
        "one flavour. If no library of the package has it in either, it was left out of the build."
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (_OWN_FLAGS, _ITS_SOURCE), "medium")


#: CMake reads both variables when it configures an empty build directory (its documentation).
_OWN_FLAGS = (
    "CXXFLAGS and CUDAFLAGS before the command give torch's flavour to the part that CMake or make "
    "compiles as well: =0 is right where torch.compiled_with_cxx11_abi() says False. The same "
    "build without them gives the same two files. With a cxx11 torch (2.7.0 and later, a "
    "container's) no flag is needed, and the file that misses the name is left from another torch."
)
_ITS_SOURCE = (
    "The command that begins with rm -rf build is for the package's source directory; where pip "
    "installed it by a name or an address, the variables stand before that installation instead."
)


def _of_one_flavour(again: str) -> tuple[str, ...]:
    """A build whose parts all have the std::string of a pre-cxx11 torch."""
    flag = "-D_GLIBCXX_USE_CXX11_ABI=0"
    begin = re.compile(r"&& (?=cmake -S |[^&]{1,400} -m pip )")
    return (begin.sub(f"&& CXXFLAGS={flag} CUDAFLAGS={flag} ", again, count=1),)


LINK_OPTIONS = "grep -rnE 'rdc|SEPARABLE_COMPILATION|RESOLVE_DEVICE_SYMBOLS|dlink' ."


def _of_device_link(name: str, file: str) -> Judgement:
    """What was left out, by which of the two names that the device link brings is undefined.

    nm on a link with nvcc 13.0 in parts: without the object of -dlink the files'
    ``__cudaRegisterLinkedBinary_*`` are undefined; with it, and without a file that it was made of,
    that file's ``__fatbinwrap_*`` is.
    """
    stem = _TEMPORARY.sub("", file)
    source = re.sub(r"_(cu|cpp|cc)$", r".\1", stem)
    how = (
        "In CMake the target needs CUDA_SEPARABLE_COMPILATION and CUDA_RESOLVE_DEVICE_SYMBOLS ON, "
        "in setup.py dlink=True."
    )
    if name.startswith("__fatbinwrap_") and stem == _DEVICE_RUNTIME:
        cause = (
            "nvcc's device link was made, and the library with CUDA's device runtime is not in the "
            "file: code compiled with -rdc=true needs libcudadevrt.a (-lcudadevrt), of the very "
            f"toolkit that made the device link, on the line that links the file too. {how}"
        )
        return Judgement(KIND, CODE, NONE, cause)
    if name.startswith("__fatbinwrap_"):
        cause = (
            f"nvcc's device link was made with the object of {source}, and that object is not in "
            "the file: it was compiled with -rdc=true, given to nvcc -dlink, and left out of the "
            "link of the library, or is there from another compilation than the device link's "
            "(the name has a number of each). A build from an empty directory, with all objects of "
            "the device link on the line that links the file, has it."
        )
        return Judgement(KIND, CODE, NONE, cause)
    cause = (
        f"nvcc's device link was left out: {source} was compiled with -rdc=true, and the library "
        f"was linked without the object that nvcc -dlink makes. {how}"
    )
    if stem == _DEVICE_RUNTIME:
        cause = (
            "nvcc's device link was left out: the file was linked with CUDA's device runtime "
            "(libcudadevrt.a), which code compiled with -rdc=true needs, and without the object "
            f"that nvcc -dlink makes. {how}"
        )
    return Judgement(KIND, CODE, NONE, cause)


def _in_a_sibling(
    near: Near, place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    cause = (
        f"{near.library} of the same package exports it; the package loads that library first, "
        "and whoever loads the file alone does without."
    )
    return Judgement(KIND, "FA207", NONE, cause), _import(place, needed_by)


def _import(place: Place, needed_by: Sequence[str]) -> tuple[str, ...]:
    """Import the package as its own code does it, where its name is known."""
    from fa_forensics.rules.remedy import row_of

    environment = place.environment
    found = find_distribution(needed_by[0], environment.site_dirs) if environment else None
    row = row_of(found.name) if found else None
    if row is None or environment is None:
        return ()
    return (f"{shlex.quote(environment.python)} -c 'import {row['import']}'",)


def _sibling(name: str, place: Place, needed_by: Sequence[str]) -> Near | None:
    """The same name, or its twin of the other flavour, in another library of the package."""
    if not needed_by or place.environment is None:
        return None
    distribution = find_distribution(needed_by[0], place.environment.site_dirs)
    files = extensions_of(distribution) if distribution else []
    raw = name.encode("utf-8", "surrogateescape")
    for path in [path for path in files if path not in needed_by][:_MOST]:
        try:
            dynamic = DynamicObject.open(path)
        except ForensicsError:
            continue  # a library that cannot be read is no witness for or against
        try:
            if dynamic.lookup(raw, gnu_hash(raw)) is not None:
                return Near(name, name, path, SAME_NAME)
            index = NameIndex([LoadedObject(path, dynamic, None, BY_PATH, "sibling")])
            for near in index.nearest(name):
                if near.relation == OTHER_FLAVOUR:
                    return near
        finally:
            dynamic.close()
    return None


def _flavour_note(symbol: SymbolText) -> tuple[str, ...]:
    new = mentions_cxx11(symbol.name or "", symbol.demangled)
    if not new and not mentions_old_string(symbol.demangled):
        return ()
    flavour = "cxx11" if new else "pre-cxx11"
    return (
        f"It carries a std::string in the {flavour} flavour: if the library that defines it was "
        "built in the other one, that has the name spelt otherwise.",
    )
