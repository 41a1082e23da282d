"""A library that only builds of torch for ROCm have: which of the two builds is the wrong one."""

from __future__ import annotations

import re

from fa_forensics.facts.owner import owner_of_library
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NONE
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.gpu.rocm_index import torch_for_rocm
from fa_forensics.why.texts.gpu.rocm_text import AMD_OR_NOT
from fa_forensics.why.texts.libraries.needing import (
    package_needing,
    rebuild_commands,
    rebuild_notes,
)
from fa_forensics.why.texts.libraries.torch_release import release_for_torch

#: Said where the last command brings torch for ROCm.
_AMD_LAST = (
    "Which of the two is wrong goes by the GPU. On an NVIDIA GPU or none: the extension's build "
    "for CUDA or for the CPU has to replace it. On an AMD GPU, where the build for ROCm was "
    "chosen, None in the first line means that torch has to become one for ROCm, as the last "
    "command gets it; its ROCm (X.Y) and its release are those that the extension's wheel names. "
    "No system package of ROCm has that library."
)


#: What is said of a package with an index for each CUDA (``needing.rebuild_notes``).
_BY_INDEX = lazily(r"PyTorch publishes (?P<name>[\w-]{2,40}) once for each .{1,400}")


def _of_rocm(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Notes on an index by CUDA, where it was a build for ROCm that pip took."""
    return tuple(_without_index(one) for one in notes)


def _without_index(note: str) -> str:
    found = _BY_INDEX.fullmatch(note)
    if found is None:
        return note
    return (
        f"PyTorch publishes {found['name']} once for each CUDA, for ROCm and for the CPU. Of a "
        "list that has all builds (-f https://download.pytorch.org/whl/torch_stable.html) pip "
        "takes the one whose label sorts last, which is ROCm's, where no label is given."
    )


def of_rocm_builds(seen: Seen, soname: str) -> Answer:
    """libtorch_hip.so and the like, by the torch that the text tells of."""
    owner, torch = owner_of_library(soname), seen.torch or ""
    package = package_needing(seen)
    who = package or "the extension"
    ask = f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.hip)'"
    if re.search(r"\+(?:cu\d|cpu)", torch) or (seen.torch_cuda and "rocm" not in torch):
        told = seen.versions.get(f"pkg:{package}", "").partition("+")[0]
        wanted = release_for_torch(seen, package) if package else ""
        which = "the build of the same release for this torch has to replace it."
        if told and wanted != told:
            own = f"{package} {wanted}" if wanted else "the release that belongs to it"
            which = f"the build for this torch has to replace it, which is {own} and not {told}."
        cause = (
            f"Only builds of torch for ROCm have {soname}, and torch {torch} is none: {who} is a "
            f"build for AMD GPUs, and {which} Nothing of ROCm is to be installed."
        )
        return seen.answer(
            "rocm", "FA202", cause, owner=owner, direction=NONE, confidence="high",
            help=(*rebuild_commands(seen), ask), notes=_of_rocm(rebuild_notes(seen)),
        )  # fmt: skip
    again = rebuild_commands(seen)
    cause = (
        f"Only builds of torch for ROCm have {soname}: {who} was built for AMD GPUs. Where torch "
        "is a build for NVIDIA GPUs or for the CPU, the build for that has to replace it; where "
        "torch is one for ROCm, it was not imported first."
    )
    return seen.answer(
        "rocm", "FA202", cause, owner=owner, direction=NONE, confidence="medium",
        help=(ask, *again, torch_for_rocm(seen)) if again else (ask, torch_for_rocm(seen)),
        notes=(_AMD_LAST if again else AMD_OR_NOT, *_of_rocm(rebuild_notes(seen))),
    )  # fmt: skip
