"""A name of another project, which neither torch nor a CUDA toolkit brings along."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string, qualified_name
from fa_forensics.facts.owner import libraries_of, title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.facts.tables import read_table
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR, NONE, UNKNOWN, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.ways.commands import needed_libraries


@lru_cache(maxsize=1)
def _products() -> Mapping[str, Mapping[str, Any]]:
    products: Mapping[str, Mapping[str, Any]] = read_table("products.json")["products"]
    return products


def is_product(owner: str) -> bool:
    """Whether a name's owner is another project that ``data/products.json`` knows."""
    return owner in _products()


def judge_product(
    symbol: SymbolText, owner: str, place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    """(judgement, commands) for a name of another project that nothing loaded here exports."""
    row = _products()[owner]
    inside = next(
        (text for text in needed_by for part in row.get("inside", ()) if part in text), ""
    )
    if inside:
        return _linked_in(inside, title_of(owner), place)
    returned = _returns_a_string(symbol, row)
    if returned:
        return _by_what_it_returns(returned, owner, row, place, needed_by)
    cause = f"It belongs to {title_of(owner)}, and torch has no part in it. {row['set']}"
    python = shlex.quote(place.python) if place.python else "python"
    commands = (*(text.replace("{python}", python) for text in row["look"]),)
    if needed_by:
        commands = (*commands, needed_libraries(needed_by))
    notes = _flavour(symbol, owner)
    return Judgement("versioned-symbol", "FA204", UNKNOWN, cause, notes, "medium"), commands


def _linked_in(file: str, title: str, place: Place) -> tuple[Judgement, tuple[str, ...]]:
    """A file that has the project's code compiled into it: what is installed has no part in it."""
    name = file.rsplit("/", 1)[-1]
    cause = (
        f"It is of the code that {title} and XLA share, which {name} has compiled into itself, at "
        "the revision that its sources are pinned to: neither torch nor a TensorFlow that is "
        "installed has a part in it. Most likely the build did not link the part that defines it, "
        "as after a change of that revision."
    )
    note = (
        "From source: the build files list that part among the dependencies, the revision is the "
        "one that the sources ask for, and the build begins in an empty directory. Else a "
        "published wheel of the release, beside the torch that it names, is whole."
    )
    python = shlex.quote(place.python) if place.python else "python"
    commands = (f"{python} -m pip list", needed_libraries((file,)))
    return Judgement("own-symbol", "FA205", NONE, cause, (note,), "medium"), commands


def _returns_a_string(symbol: SymbolText, row: Mapping[str, Any]) -> str:
    """The function of a name in the pre-cxx11 flavour that only its result shows; "" for others."""
    name, function = symbol.name or "", qualified_name(symbol.demangled).rpartition("::")[2]
    plain = name.startswith("_Z") and "cxx11" not in name
    return function if plain and function in row.get("strings", ()) else ""


def _by_what_it_returns(
    function: str, owner: str, row: Mapping[str, Any], place: Place, needed_by: Sequence[str]
) -> tuple[Judgement, tuple[str, ...]]:
    """A name without [abi:cxx11] of a function that returns a std::string."""
    title = title_of(owner)
    cause = (
        f"It belongs to {title}. {function} returns a std::string, so that a cxx11 build of "
        f"{title} has it as {function}[abi:cxx11]: the file was compiled in the pre-cxx11 flavour "
        "(a pre-cxx11 torch sets -D_GLIBCXX_USE_CXX11_ABI=0 for its extensions), and the library "
        "that is loaded, as those of systems are, most likely in the cxx11 one."
    )
    notes = (
        f"One flavour for all is the way out: {title} compiled with -D_GLIBCXX_USE_CXX11_ABI=0 for "
        "this file, or a cxx11 torch (2.7.0 and later of the package index, conda-forge's, a "
        "container's) and the file compiled again for it, from an empty directory.",
        f"Where the second command shows {function} without [abi:cxx11], the flavours agree, and "
        f"the {title} that is loaded is another one than it shows.",
    )
    python = shlex.quote(place.python) if place.python else "python"
    library = libraries_of(owner)[0]
    shown = f"nm -DC $(ldconfig -p | grep -m1 -o '/.*{library}.*') | grep {function}"
    looks = [text.replace("{python}", python) for text in row["look"]]
    commands = (looks[0], shown, *looks[1:])
    if needed_by:
        commands = (*commands, needed_libraries(needed_by))
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, notes, "medium"), commands


def _flavour(symbol: SymbolText, owner: str) -> tuple[str, ...]:
    """That another std::string flavour is a cause as well, for a name that shows one."""
    new = mentions_cxx11(symbol.name or "", symbol.demangled)
    if not new and not mentions_old_string(symbol.demangled):
        return ()
    own, other = ("cxx11", "pre-cxx11") if new else ("pre-cxx11", "cxx11")
    return (
        f"The name has a std::string in the {own} flavour: a build of {title_of(owner)} in the "
        f"{other} flavour has it under another spelling. Then the file has to be compiled with "
        f"-D_GLIBCXX_USE_CXX11_ABI={0 if new else 1}.",
    )


def linked_in_two_flavours(answer: Answer) -> Answer | None:
    """For a linker's message: that torch's flag made the name's flavour, where it can have."""
    demangled, owner = answer.demangled or "", answer.owner or ""
    if not is_product(owner) or not mentions_old_string(demangled):
        return None
    title = title_of(owner)
    cause = (
        f"It belongs to {title}, and its std::string is in the pre-cxx11 flavour: a pre-cxx11 "
        "libtorch sets -D_GLIBCXX_USE_CXX11_ABI=0 for whatever is compiled with it "
        f"(TORCH_CXX_FLAGS), and a system's {title} is cxx11 and has the function under another "
        "name. Most likely no library is left out of the link line."
    )
    notes = (
        f"A cxx11 libtorch goes with that {title}: the download libtorch-cxx11-abi-..., or 2.7.0 "
        f"and later, which are all cxx11; then everything is compiled again from an empty build "
        f"directory. Else a build of {title} with that flag.",
        f"Where names of {title} without any std::string are missing too, its libraries are not "
        "on the link line.",
    )
    return replace(
        answer, kind="cxx11-abi", code="FA301", direction=FLAVOUR, cause=cause,
        confidence="medium", notes=notes,
        help=(
            "grep -rn GLIBCXX_USE_CXX11_ABI CMakeLists.txt Makefile",
            "cmake -S . -B build -LA | grep -iE 'torch_dir|cxx_flags'",
        ),
    )  # fmt: skip
