"""torch from its own index: the build of the text's CUDA, or the nearest one there is."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.torch_archs import torch_archs
from fa_forensics.facts.torch_cuda import cuda_builds
from fa_forensics.facts.torch_index import TORCH_INDEX, index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.torch_names.history import order_key

#: torch as the last thing that a command installs: what follows may not be on torch's own index.
_ALONE = lazily(r'"torch[=>]=[\w.,<]{1,40}"$')
_ONE_TORCH = lazily(r'"torch==\d{1,4}(?:\.\d{1,4}){2}"(?: [\w.=*\'-]+){0,4}$')


def from_index(command: str, label: str) -> str:
    """A command with torch's own index, beside the package index where more than torch is named.

    pip takes 1.12.0+cu113 from there for torch==1.12.0: a local version is the newer one.
    """
    if _ALONE.search(command):
        return f"{command}{index_option(label)}"
    return (
        f"{command} --extra-index-url {TORCH_INDEX}{label}"
        if _ONE_TORCH.search(command)
        else command
    )


def nearest_build(label: str, loaded: str, release: str, cuda: str) -> str:
    """The build of ``release`` nearest to that of a label: cu111 for cu113.

    ``loaded`` is the release that the text has, ``cuda`` that of the package index's build.
    "" where the release has that very build, where the package index's is of that CUDA major
    version, or where the nearest one has no code for GPUs that the text's build serves.
    """
    own, known = cuda_of_label(label), cuda_builds(minor_of(release))
    major = own.split(".")[0]
    if not own or own in known or minor_of(cuda).split(".")[0] == major:
        return ""
    alike = sorted((one for one in known if one.split(".")[0] == major), key=order_key)
    older = [one for one in alike if order_key(one) < order_key(own)]
    if not alike:
        return ""
    near = (older or alike[:1])[-1]
    served, serves = torch_archs(loaded, own), torch_archs(release, near)
    if served is not None and serves is not None and not {*served} <= {*serves}:
        return ""  # of CUDA 12.6 for one of 12.8: a Blackwell card would be left without code
    return cuda_label(near)


def from_nearest(answer: Answer, release: str, cuda: str, label: str, near: str) -> Answer:
    """The answer with the index of the nearest build, where a command is for torch."""
    helps = tuple(from_index(text, near) for text in answer.help)
    if helps == answer.help:
        return answer
    note = (
        f"torch {release} has no build for the CUDA of {label}, which the text has, and the "
        f"package index has it for CUDA {cuda}: the address at the end has the nearest build "
        f"of the same CUDA major version, {near}."
    )
    return replace(answer, help=helps, notes=(*answer.notes, note))
