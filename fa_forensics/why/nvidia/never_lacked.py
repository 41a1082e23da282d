"""A name that no release of a CUDA library lacks, asked for in that very library."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.cuda_names import is_in_every
from fa_forensics.facts.owner import title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.why.judgement import NONE, Judgement
from fa_forensics.why.nvidia.cuda_origin import inner_of
from fa_forensics.why.nvidia.places import of_condas_torch
from fa_forensics.why.nvidia.wheels import CudaHistory
from fa_forensics.why.place import Place
from fa_forensics.why.ways.builds import pip_of
from fa_forensics.why.ways.commands import needed_libraries, without_path

#: Said of a library that is there under its name and is none of NVIDIA's releases.
NO_GENUINE = (
    "Libraries that stand in for NVIDIA's under its name are those of sandboxes, of GPUs over a "
    "network and of profilers (a shim), and the stubs of a toolkit: each has a part of the names. "
    "They come in by LD_LIBRARY_PATH, LD_PRELOAD or /etc/ld.so.conf.d, and a newer one of them may "
    "have the name. The command with --force-reinstall puts NVIDIA's own back, in the version that "
    "torch asks for; of a nightly torch, another day's build or a release is the other way."
)


def no_release_lacks(owner: str, name: str, history: CudaHistory) -> bool:
    """Whether every release under a soname has a name, so that no older copy explains it."""
    if not history.having or len(history.having) != len(history.known):
        return False
    number = history.soname.rpartition(".so.")[2]
    return is_in_every(owner, name) or history.known[0].version.startswith(f"{number}.0.")


def stand_in(owner: str, history: CudaHistory, place: Place) -> Judgement:
    """What is loaded under the soname is not a release of NVIDIA's, or it is not loaded at all."""
    first, title = history.having[0], title_of(owner)
    cause = (
        f"Every {history.soname} on record exports it, from {first.distribution} {first.version} "
        f"on, and no release under that name is known without it: the copy of {title} that the "
        "loader takes is not too old. Either the file under that name is not NVIDIA's library, or "
        "not a whole one (a library that stands in for it, a stub, a copy that was written over), "
        "or the file that asks was packed so that it does not find it, as some nightly builds were."
    )
    return Judgement("versioned-symbol", "FA204", NONE, cause, (NO_GENUINE,), "medium")


def stand_in_commands(
    place: Place, history: CudaHistory, needed_by: Sequence[str]
) -> tuple[str, ...]:
    """Which file is taken, and the wheel that torch asks for once more."""
    python = place.python or "python"
    stem = history.soname.split(".so")[0].removeprefix("lib")
    wheel = re.sub(r"-cu\d\d$", "", history.known[0].distribution)
    asked = (
        f"$({python} -c 'import importlib.metadata as m; print(next(r for r in "
        f'm.requires("torch") if r.startswith("{wheel}")).split(";")[0].replace(" ", ""))\')'
    )
    return (
        needed_libraries(needed_by, stem),
        without_path(place),
        f'{pip_of(place)} install --force-reinstall --no-deps "{asked}"',
    )


def is_inner_of_conda(symbol: SymbolText, needed_by: Sequence[str]) -> bool:
    """Whether both of NVIDIA's libraries that share a name are those of conda's own torch."""
    whole = bool(needed_by) and needed_by[0].startswith("/")  # its environment says more
    return (
        bool(needed_by)
        and not whole
        and of_condas_torch(needed_by[0])
        and inner_of(symbol, needed_by)
    )
