"""Where the older copy of a CUDA library comes from: a toolkit, another wheel, the same file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.owner import is_cuda, owner_of_library
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.why.judgement import NEWER, NONE, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.wheels import CudaHistory, Wheel, in_one_file, shared_lines

#: Directories of a CUDA toolkit or of the system: what lies there is no wheel's.
_SYSTEM = re.compile(r"/usr/(?:local/cuda|lib|lib64)|/opt/(?:cuda|nvidia)|/lib(?:64)?/")

#: Files of torch itself and of the wheels that it brings, but for those that have a note.
_OF_TORCH = re.compile(r"/torch/lib/(?!.*nvidia/cusparse)|-packages/nvidia/(?!cusparse)")


def short_name(history: CudaHistory) -> str:
    """What the wheels of a library have in their names: "nccl", "cublas"."""
    return re.sub(r"^nvidia-|-cu\d\d$", "", history.known[-1].distribution)


def one_file_for_two(history: CudaHistory, place: Place) -> tuple[Wheel, ...]:
    """The wheels that bring the library to one file, where one of them lacks the name."""
    wheels = in_one_file(history, place)
    if len(wheels) < 2 or all(history.has(wheel) for wheel in wheels):
        return ()
    return wheels


def shared_file(history: CudaHistory, wheels: Sequence[Wheel]) -> Judgement:
    """Two wheels that overwrite one another's library."""
    directory = f"nvidia/{short_name(history).replace('-', '_')}/lib/{history.soname}"
    named = " and ".join(f"{wheel.distribution} {wheel.version}" for wheel in wheels)
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
    file = needed_by[0] if needed_by else ""
    name = file.rsplit("/", 1)[-1]
    cause = judgement.cause
    if name.split(".so")[0] == history.soname.split(".so")[0]:
        cause += (
            f" The message is of {name} itself: that copy was loaded where a newer one was meant."
        )
    elif _SYSTEM.match(file) and "-packages/" not in file:
        cause += (
            f" {name} is a toolkit's or the system's, and counts on the {history.soname} of its "
            "own release: another one was loaded before, most often the one of a wheel that torch "
            "or another package brought. Both have to come from one place."
        )
    elif guessed and _OF_TORCH.search(file) and "LD_LIBRARY_PATH" not in cause:
        cause += (
            " The right one lies beside torch; the older one comes before it: from "
            "LD_LIBRARY_PATH, from a system package or conda, or from an older wheel that "
            "replaced it."
        )
    notes = list(judgement.notes)
    shared = shared_lines(history)
    if shared and guessed:
        notes.append(
            f"{', '.join(shared[:-1])} and {shared[-1]} bring {history.soname} as one and the "
            "same file: where several of them are installed, the last one counts."
        )
    return replace(judgement, cause=cause, notes=tuple(notes))


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
    notes = (
        "One of the two sources is to leave LD_LIBRARY_PATH, or the wheel or conda package of the "
        "library that a process does not need is to be removed. Another copy of the library "
        "under that name does not help.",
    )
    return Judgement("versioned-symbol", "FA204", NONE, cause, notes)
