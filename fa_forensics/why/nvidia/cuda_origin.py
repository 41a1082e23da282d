"""Where the older copy of a CUDA library comes from: a toolkit, another wheel, the same file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fa_forensics.atlas.libraries import LibraryRelease
from fa_forensics.facts.cuda_names import is_in_every
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.owner import is_cuda, owner_of_library
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import NEWER, NONE, UNKNOWN, Judgement
from fa_forensics.why.nvidia.places import (
    SYSTEM,
    found_last,
    in_conda,
    in_default_path,
    outside_wheels,
    toolkit_of_path,
)
from fa_forensics.why.nvidia.wheels import CudaHistory, Wheel, in_one_file, shared_lines
from fa_forensics.why.nvidia.without_torch import row_without_torch
from fa_forensics.why.place import Place
from fa_forensics.why.ways.builds import pip_of
from fa_forensics.why.ways.commands import needed_libraries

#: Files of torch itself and of the wheels that it brings, but for those that have a note.
_OF_TORCH = lazily(r"/torch/lib/(?!.*nvidia/cusparse)|-packages/nvidia/(?!cusparse)")


#: Ends what is said of a copy that lacks a name which all newer ones have.
OLDER_THAN_THAT = ": what lacks it is older than that."
#: Said of a torch that can be pip's.
BESIDE = (
    " pip's torch has the right one beside it, and the older one comes before that: from "
    "LD_LIBRARY_PATH, from a system package or conda, from an older wheel that replaced it, or "
    "from a package that was imported before torch."
)
#: Said of a torch in an environment of conda.
IN_CONDA = (
    " conda's torch takes the one in the environment's lib instead, which the package of another "
    "CUDA release can have written over (cudatoolkit beside cuda-cudart or libcublas): there all "
    "of CUDA's packages have to be of torch's release."
)
#: The packages of conda that bring CUDA's libraries.
CONDA_LIST = "conda list | grep -iE 'cudatoolkit|cuda-|cublas|pytorch'"


def short_name(history: CudaHistory) -> str:
    """What the wheels of a library have in their names: "nccl", "cublas"."""
    return re.sub(r"^nvidia-|-cu\d\d$", "", history.known[-1].distribution)


def one_file_for_two(
    history: CudaHistory, place: Place, brought: Wheel | None = None
) -> tuple[Wheel, ...]:
    """The wheels that bring the library to one file, where one of them lacks the name.

    ``brought`` is the wheel that the torch of a text asks for.
    """
    wheels = in_one_file(history, place)
    names = [wheel.distribution for wheel in wheels]
    if brought is not None and wheels and brought.distribution not in names:
        shared = shared_lines(history)
        if brought.distribution in shared and set(names) <= set(shared):
            wheels = (*wheels, brought)
    if len(wheels) < 2 or all(history.has(wheel) for wheel in wheels):
        return ()
    return wheels


def shared_file(history: CudaHistory, wheels: Sequence[Wheel]) -> Judgement:
    """Two wheels that overwrite one another's library."""
    directory = f"nvidia/{short_name(history).replace('-', '_')}/lib/{history.soname}"
    named = " and ".join(
        f"{wheel.distribution} {wheel.version}"
        + (f" ({wheel.how})" if wheel.how.startswith("asked for") else "")
        for wheel in wheels
    )
    having = [wheel for wheel in wheels if history.has(wheel)]
    cause = (
        f"{named} are both there, and both bring {history.soname} as one and the same file, "
        f"site-packages/{directory}: the one that was installed last is the one that is loaded."
    )
    first = history.having[0]
    if having:
        lacking = next(wheel for wheel in wheels if not history.has(wheel))
        cause += (
            f" The name came with {first.version}; that of {lacking.distribution} is loaded, which "
            "lacks it."
        )
    else:
        cause += f" The name came with {first.version}, and both are older."
    return Judgement("versioned-symbol", "FA204", NEWER, cause)


def separate_commands(
    place: Place, wheels: Sequence[Wheel], history: CudaHistory | None
) -> tuple[str, ...]:
    """Take the wheel that lacks the name away, and put the other's files back."""
    if history is None or not wheels:
        return ()
    python = place.python or "python"
    keep = max(wheels, key=lambda wheel: (history.has(wheel) is True, wheel.distribution))
    others = " ".join(wheel.distribution for wheel in wheels if wheel is not keep)
    wanted = f"{keep.distribution}=={keep.version}"
    if not history.has(keep):
        wanted = f"{keep.distribution}>={history.having[0].version}"
    return (
        f"{python} -m pip uninstall -y {others}",
        f'{python} -m pip install --force-reinstall --no-deps "{wanted}"',
    )


def with_origin(
    judgement: Judgement, history: CudaHistory, needed_by: Sequence[str], guessed: bool
) -> Judgement:
    """Say where the older copy can come from, by where the file that asks for the name lies.

    ``guessed`` tells that no wheel is known to bring the older one.
    """
    if {THIS_COPY, THIS_COPY_LAST} & set(judgement.notes):
        return judgement
    file = needed_by[0] if needed_by else ""
    name = file.rsplit("/", 1)[-1]
    cause = judgement.cause
    if name.split(".so")[0] == history.soname.split(".so")[0]:
        cause += (
            f" The message is of {name} itself: that copy was loaded where a newer one was meant."
        )
        if outside_wheels(file):
            folder = file.rpartition("/")[0]
            first = (
                f" It lies in {folder}, which goes before the wheels' own directories and has to "
                "leave LD_LIBRARY_PATH."
            )
            cause += found_last(folder) if in_default_path(file) else first
    elif SYSTEM.match(file) and "-packages/" not in file:
        cause += (
            f" {name} is a toolkit's or the system's, and counts on the {history.soname} of its "
            "own release: another one was loaded before, most often the one of a wheel that torch "
            "or another package brought. Both have to come from one place."
        )
    elif guessed and _OF_TORCH.search(file) and "LD_LIBRARY_PATH" not in cause:
        cause += BESIDE + (IN_CONDA if in_conda(file) else "")
    notes = (*judgement.notes, *(shared_note(history) if guessed else ()))
    return replace(judgement, cause=cause, notes=notes)


def shared_note(history: CudaHistory) -> tuple[str, ...]:
    """That several wheels bring the library to one file; none where one alone does."""
    shared = shared_lines(history)
    if not shared:
        return ()
    return (
        f"{', '.join(shared[:-1])} and {shared[-1]} bring {history.soname} as one and the same "
        "file: where several of them are installed, the last one counts.",
    )


def inner_of(symbol: SymbolText, needed_by: Sequence[str]) -> bool:
    """Whether a library of NVIDIA asks another one of its own release for the name."""
    asking = owner_of_library(needed_by[0].rsplit("/", 1)[-1]) if needed_by else None
    return symbol.version is not None and asking is not None and is_cuda(asking)


def inner_name(history: CudaHistory, file: str) -> Judgement:
    """A name that NVIDIA's libraries of one release share with one another, and no other has."""
    first, last = history.known[0], history.known[-1]
    name, soname = file.rsplit("/", 1)[-1], history.soname
    cause = (
        f"No {soname} on record exports it ({first.distribution} {first.version} to "
        f"{last.distribution} {last.version}), and {name} asks for it: it is a name that the two "
        f"share within one release. {name} and the {soname} that is loaded are of two releases of "
        "CUDA with one major version: a second toolkit, a wheel's library or conda's was loaded "
        "before the one that belongs to it. Both have to come from one place."
    )
    if history.having:
        cause = (
            f"{name} asks {soname} for a name that the two share within one release: the {soname} "
            "that is loaded is of another release of CUDA with that major version. A second "
            "toolkit, a wheel's library or conda's was loaded before the one that belongs to it, "
            "and both have to come from one place."
        )
    notes = (
        "One of the two sources is to leave LD_LIBRARY_PATH, or the wheel or conda package of the "
        "library that a process does not need is to be removed. Another copy of the library "
        "under that name does not help.",
    )
    return Judgement("versioned-symbol", "FA204", NONE, cause, notes)


def asked_of(symbol: SymbolText, provider: str) -> bool:
    """Whether a name is looked for in this library: one with a soname as its version in that alone.

    libtorch_cuda.so has parts of CUDA inside and exports their names, without a version.
    """
    version = symbol.version or ""
    if not version.startswith("lib") or ".so" not in version:
        return True
    return provider.rsplit("/", 1)[-1].startswith(version.split(".so")[0] + ".so")


#: What no CUDA toolkit contains: a copy of the system is a package of its own.
OUTSIDE_TOOLKITS = ("nccl", "cudnn", "cusparseLt", "nvshmem", "cudss", "cutensor")


def usual_copy(owner: str, wheels: bool = False) -> str:
    """Whose copy comes before a wheel's most often, for a sentence.

    ``wheels`` tells that an older wheel can be there as well.
    """
    if owner in OUTSIDE_TOOLKITS:
        return (
            "a copy of the system's, of the container's image or a module's on LD_LIBRARY_PATH, or "
            "an older wheel of the same library that another package asked for"
        )
    more = ", or an older one of these wheels is installed" if wheels else ""
    return f"most often one of a CUDA toolkit on LD_LIBRARY_PATH{more}"


#: Said where a copy of the system can be the older one.
NO_TOOLKIT = "torch's wheels need no CUDA toolkit of the system."
#: Said of a copy that lacks the name itself, as a lookup in it says.
THIS_COPY = (
    "That directory has to leave LD_LIBRARY_PATH, or the directory of a newer one has to stand "
    "before it: of the CUDA major version that the program was built for."
)
#: The same of a copy that the loader finds without the variable.
THIS_COPY_LAST = (
    "The loader looks there last, and without LD_LIBRARY_PATH: the directory of a newer one has to "
    "stand in that variable, of the CUDA major version that the program was built for, or the "
    "system's package has to become as new, or to go."
)


def is_the_library(symbol: SymbolText, history: CudaHistory, needed_by: Sequence[str]) -> bool:
    """Whether the file that the message names is the very library that should have the name."""
    file = needed_by[0].rsplit("/", 1)[-1] if needed_by else ""
    return symbol.version is None and file.split(".so")[0] == history.soname.split(".so")[0]


def this_copy(history: CudaHistory, first: LibraryRelease, file: str) -> Judgement:
    """Somebody looked a name up in this copy of the library, which is older than all on record."""
    name = file.rsplit("/", 1)[-1]
    cause = (
        f"The message is of the library itself: this {name} does not have the name, and every "
        f"{history.soname} on record has, from {first.distribution} {first.version} on. That copy "
        "is older than these, and was found where a newer one was meant."
    )
    toolkit = toolkit_of_path(file)
    major = re.search(r"-cu(\d\d)$", first.distribution)
    certain = bool(toolkit and major and parse_cuda(toolkit)[0] < int(major[1]))
    if toolkit:
        cause += f" Its path is that of CUDA {toolkit}."
    confidence = "high" if certain else "medium"
    note = THIS_COPY_LAST if in_default_path(file) else THIS_COPY
    return Judgement("versioned-symbol", "FA204", NEWER, cause, (note,), confidence)


def this_copy_commands(file: str) -> tuple[str, ...]:
    """Which copy it is, and which others there are."""
    stem = file.rsplit("/", 1)[-1].split(".so")[0]
    return (
        "echo $LD_LIBRARY_PATH",
        f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null",
    )


#: Said where it is open whether the library is old or not there.
EITHER = (
    "The first command tells the two apart. Where it lists the library, the copy is old: a newer "
    "one has to come before it, of a toolkit or of a torch that brings it. Where it does not, the "
    "package is built again with the library among what it links; a newer release mostly does so."
)


#: Said of a name that no release of today lacks.
UNLINKED = (
    "Where the command with RTLD_GLOBAL works, that is the cause. What puts it right: the package "
    "is built again with the library among what it links, which a newer release of it mostly does; "
    "until then that line, before the import, does the same."
)


#: Said of the CUDA runtime, which a torch with CUDA brings into the process.
WITHOUT_CUDA = (
    "Where the first command prints None, torch is a build without CUDA and brings no CUDA "
    "runtime: a torch with CUDA is to be installed, and the file built again with it. Where it "
    "prints a CUDA version, the file does not list the library, and is built again for that torch."
)


def _unlinked(title: str, soname: str, flag: str) -> Judgement:
    """A name that every release of the library has."""
    stem = soname.split(".so")[0]
    cause = (
        f"Every {stem} exports it, whatever its release: {title} is not loaded. The file does "
        f"not list it among the libraries it needs (it was linked without {flag}) and counted on "
        "something else, often torch, to bring it along."
    )
    if stem == "libcudart":
        cause += " A torch without CUDA brings none."
        return Judgement("versioned-symbol", "FA210", NONE, cause, (WITHOUT_CUDA,), "medium")
    return Judgement("versioned-symbol", "FA210", NONE, cause, (UNLINKED,), "medium")


def older_or_unlinked(
    since: str,
    title: str,
    history: CudaHistory,
    flag: str,
    place: Place,
    name: str = "",
    came: str = "",
) -> Judgement:
    """A name without a version that all on record have, on a machine that nobody looked at."""
    stem = history.soname.split(".so")[0]
    if is_in_every(owner_of_library(history.soname) or "", name):
        return _unlinked(title, history.soname, flag)
    cause = (
        f"{since}. Two causes fit: {title} is not loaded, because the file does not list it among "
        f"the libraries it needs (it was linked without {flag}) and counted on something else, "
        f"often torch, to bring it along; or the {stem} that is loaded is older than all of "
        f"these.{came}"
    )
    python = place.told.python if place.told is not None else None
    if python is not None and parse_cuda(python) < _OLD_PYTHON:
        cause += (
            f" Python {python} is of a time before these, so that the older copy is the likelier: "
            "the file was built with newer headers than the library that is loaded."
            if came
            else f" Python {python} is of a time before these, so that an older copy without the "
            "name is not ruled out by the record."
        )
        return Judgement("versioned-symbol", "FA204", UNKNOWN, cause, (EITHER,), "medium")
    return Judgement("versioned-symbol", "FA210", NONE, cause, (EITHER,), "medium")


#: Before this Python the record of NVIDIA's wheels does not begin.
_OLD_PYTHON = (3, 7)


def foreign_row(needed_by: Sequence[str]) -> Mapping[str, Any] | None:
    """The package that does not link torch, where the file that asks for the name is of one."""
    return row_without_torch(needed_by[0]) if needed_by else None


def of_another_package(
    judgement: Judgement, row: Mapping[str, Any], history: CudaHistory
) -> Judgement:
    """A judgement on a file that torch has no part in."""
    title = row["title"]
    note = (
        f"The file is of {title}, which does not link torch and takes the {history.soname} that "
        "the loader finds, or that is in the process already: what counts is the release of that "
        "copy, to its updates (CUDA 11.1.1 has names that 11.1.0 lacks), not the torch that is "
        f"installed. A build of {title} for the CUDA that is there, or a newer copy of that "
        "library before the old one, is the way out."
    )
    notes = tuple(n for n in judgement.notes if n != NO_TOOLKIT)
    return replace(judgement, notes=(*notes, note))


def foreign_commands(
    place: Place, row: Mapping[str, Any], history: CudaHistory | None, needed_by: Sequence[str]
) -> tuple[str, ...]:
    """Which copy such a file takes, and which toolkits and wheels there are."""
    stem = history.soname.split(".so")[0] if history is not None else "libcu"
    return (
        needed_libraries(needed_by, stem.removeprefix("lib")),
        "echo $LD_LIBRARY_PATH; ls -d /usr/local/cuda*",
        f"{pip_of(place)} list | grep -iE '{row['list']}|nvidia'",
    )
