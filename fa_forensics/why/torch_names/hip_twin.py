"""A name of torch's ROCm libraries, judged by the life of its twin in torch for CUDA.

ROCm's c10_hip and torch_hip are compiled from the sources of c10_cuda and torch_cuda, which
torch's hipify rewrites: ``c10::cuda::c10_cuda_f`` becomes ``c10::hip::c10_hip_f``
(torch/utils/hipify/cuda_to_hip_mappings.py) in the releases before that of
``data/torch_hip.json``; from that one on the names stay those of CUDA.
"""

from __future__ import annotations

import re

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.owner import title_of
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import NEWER, OLDER, UNKNOWN, Judgement, Question
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import History, look_up, order_key

_COUNT = lazily(r"\d{1,3}")
#: No identifier of torch's is longer.
_LONGEST = 200
#: The machine whose wheels all have CUDA.
_MACHINE = "x86_64"


def twin_of(name: str) -> str:
    """``_ZN3c103hip28c10_hip_f…`` → ``_ZN3c104cuda29c10_cuda_f…``: each identifier rewritten."""
    parts: list[str] = []
    at = 0
    while at < len(name):
        count = _COUNT.match(name, at)
        if count is None:
            parts.append(name[at])
            at += 1
            continue
        length = int(count[0])
        word = name[count.end() : count.end() + length]
        if not 0 < length <= _LONGEST or len(word) < length or not re.match(r"[A-Za-z_]", word):
            parts.append(count[0])
            at = count.end()
            continue
        own = word.replace("hip", "cuda").replace("HIP", "CUDA")
        own = own.replace("MasqueradingAsCUDA", "")
        parts.append(f"{len(own)}{own}")
        at = count.end() + length
    return "".join(parts)


def judge_by_twin(question: Question, place: Place, atlas: Atlas) -> Judgement | None:
    """What the twin's releases tell; None where it has none, or where all releases have it."""
    name = question.name
    twin = twin_of(name) if name.startswith("_Z") else name
    if twin == name:
        return None
    readable = demangle(twin)
    history = look_up(twin, readable, atlas, _MACHINE)
    first, last = history.known[0], history.known[-1]
    if not history.releases:
        return None
    if last in history.releases and (renamed := _renamed(question, readable, place)) is not None:
        return renamed
    if {first, last} <= set(history.releases):
        return None
    direction, loaded = _direction(history, place)
    if loaded is None:
        return None
    cause = (
        f"It belongs to {title_of(question.owner)}, and no table holds the names of those. torch "
        f"for CUDA, from the same source, has it as {readable}, in "
        f"{history.interval(history.releases)} alone: the file was built for such a torch, and the "
        f"one that is loaded is most likely {loaded}."
    )
    return Judgement("rocm", "FA204", direction, cause, _NOTES, "medium")


_NOTES = (
    "The way out is the file's own build for the torch that is loaded: a release of the package "
    "for it, or a build from source. What a package compiles at first use (aiter/jit, "
    "~/.cache/torch_extensions) is built again where the old file is deleted.",
    "A torch that is not built for ROCm lacks all such names: torch.version.hip is None there.",
)


def cuda_names_since() -> str:
    """The first minor release of torch whose ROCm libraries have the names of CUDA."""
    since: str = read_table("torch_hip.json")["cuda_names_since"]
    return since


def _renamed(question: Question, readable: str, place: Place) -> Judgement | None:
    """A name that torch still has, and that its ROCm builds call by CUDA's name since a release."""
    since = cuda_names_since()
    if place.present is not None and order_key(place.present.release) < order_key(since):
        return None
    which = "the torch that is loaded is newer, or it is none for ROCm at all"
    if place.present is not None:
        which = f"{place.present.text} is newer"
    cause = (
        f"It belongs to {title_of(question.owner)}. From torch {since} on its ROCm libraries have "
        f"the names of CUDA, here {readable}, and this name no more: the file was built for a "
        f"torch for ROCm before {since}, and {which}."
    )
    sure = "high" if place.present is not None else "medium"
    return Judgement("rocm", "FA204", OLDER, cause, _NOTES, sure)


def _direction(history: History, place: Place) -> tuple[str, str | None]:
    """(which of the two is older, what to call the loaded torch); None where it should have it."""
    releases = history.releases
    older, newer = releases[-1] != history.known[-1], releases[0] != history.known[0]
    if place.present is not None:
        own = order_key(place.present.release)
        if own > order_key(releases[-1]) and older:
            return OLDER, f"newer than {releases[-1]}"
        if own < order_key(releases[0]) and newer:
            return NEWER, f"older than {releases[0]}"
        return UNKNOWN, None
    if older:
        return OLDER, f"newer than {releases[-1]}"
    return NEWER, f"older than {releases[0]}"


def cuda_name_on_rocm(place: Place) -> Judgement:
    """A name of torch's CUDA libraries that a torch for ROCm lacks, of before the change."""
    since = cuda_names_since()
    cause = (
        f"{place.here} is a build for ROCm, whose libraries call such functions by names of HIP "
        f"(c10::hip). Two builds ask for this name: one for CUDA, and one for a torch for ROCm "
        f"from {since} on, which has CUDA's names. The file is one of these, and it has to be a "
        "build for this torch."
    )
    note = (
        "A file whose own name has rocm or hip in it, or that needs libamdhip64.so, is of the "
        "second kind; one that needs libcudart.so is of the first."
    )
    return Judgement("wrong-torch", "FA601", UNKNOWN, cause, (note,))
