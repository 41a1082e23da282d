"""A name that no release of a CUDA library lacks, asked for in that very library."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.cuda_names import is_in_every
from fa_forensics.facts.owner import title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE, Judgement
from fa_forensics.why.nvidia.cuda_origin import inner_of
from fa_forensics.why.nvidia.places import of_condas_torch
from fa_forensics.why.nvidia.wheels import CudaHistory
from fa_forensics.why.place import Place
from fa_forensics.why.seen import Seen
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


_STUB = lazily(r"(?:^|/)stubs/[^/]{1,60}$|(?:^|/)lib\w{1,30}?[_-]stubs?\.so[\d.]{0,12}$")


def is_stub(needed_by: Sequence[str]) -> bool:
    """Whether the file in the message is by its name a stub of a library, not a program's file."""
    return bool(needed_by) and _STUB.search(needed_by[0]) is not None


def of_a_stub(owner: str, history: CudaHistory, needed_by: Sequence[str]) -> Judgement:
    """Somebody looked a name up in a stub: tilelang's libcudart_stub.so (sglang issue 30875)."""
    file = needed_by[0]
    name, title = file.rsplit("/", 1)[-1], title_of(owner)
    whose = re.search(r"/([A-Za-z]\w{1,40})/(?:lib/)?[^/]{1,80}$", file)
    of = f" of {whose[1]}" if whose is not None and whose[1] != "lib" else ""
    cause = (
        f"It belongs to {title}, whose own file is {history.soname}. The message is of {name}{of}, "
        "a stub: a stand-in that has a part of the names and opens the real library for these. "
        f"What asked for the name was given the stub in place of {title}, most often because it "
        "looks among the loaded files for one whose name begins so. Neither torch's release nor "
        "the driver has a part in it, and nothing is to be built again."
    )
    return Judgement("versioned-symbol", "FA204", NONE, cause, (OF_STUBS,), "medium")


#: Said of a stub.
OF_STUBS = (
    "The way out is a release of either side that does without that: of the package with the stub, "
    "or of the one that looks the library up. Where the message is a warning, the program goes on "
    "without the part that it names."
)


def stub_commands(place: Place, history: CudaHistory) -> tuple[str, ...]:
    """Which files of that name are in the process of torch."""
    python, stem = place.python or "python", history.soname.split(".so")[0]
    return (
        f"{python} -c 'import torch; print(*{{line.split()[-1] for line in "
        f'open("/proc/self/maps") if "{stem}" in line}})\'',
    )


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


_OF_PYTORCH = "The command with pip install is the other way: PyTorch's own build in its place."


def left_out_of_torch(answer: Answer, seen: Seen, file: str) -> Answer:
    """torch's own file misses a name that every release of a library has: its link left it out.

    pytorch/pytorch pull request 3455: torch built from source with CUDA 9, without -lnvrtc.
    """
    name, title = file.rsplit("/", 1)[-1], title_of(answer.owner or "")
    by_hand = "flag:torch-source" in seen.versions
    cause = (
        f"Every release of {title} exports it, and the file that misses it, {name}, is torch "
        "itself: the library is not loaded, because the link of this torch left it out, and no "
        "copy is too old. PyTorch's own wheels list what they need, so that this torch was built "
        "from source, or is another maker's. No extension plays a part."
    )
    ldd = f"ldd {shlex.quote(file)} | grep -iE 'cuda|nv|not found'" if file[:1] == "/" else ""
    helps = (
        *((ldd,) if ldd else (needed_libraries((file,)),)),
        "git submodule update --init --recursive; python setup.py clean; rm -rf build",
        *(() if by_hand else (f"{seen.pip} install --force-reinstall --no-cache-dir torch",)),
        *answer.help[-1:],
    )
    notes = (
        "The command with setup.py clean is for the directory of torch's own sources; then torch "
        "is built there again, with CUDA_HOME naming the toolkit whose lib64 has the library. "
        "Where a clean build misses it too, that state of the sources leaves it out: a release's "
        "tag, or a newer state, is the way.",
        *(() if by_hand else (_OF_PYTORCH,)),
    )
    return replace(
        answer, kind="versioned-symbol", code="FA210", direction=NONE, cause=cause,
        confidence="medium", help=helps, notes=notes,
    )  # fmt: skip
