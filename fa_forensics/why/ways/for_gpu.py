"""Commands for a torch that has no code for the GPU that the text names: they are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.torch_archs import torch_archs
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.torch_names.history import order_key

if TYPE_CHECKING:
    from fa_forensics.facts.gpus import Gpu
    from fa_forensics.facts.paste import Paste

_PINNED = lazily(r'"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})[^"]{0,20}"')
#: torch alone, of one release, from the package index.
_ENDS = lazily(r'"torch==(?P<release>\d{1,2}(?:\.\d{1,3}){2})"$')
#: Notes on a command for the extension and one for torch, and on that torch.
_ON_TORCH = lazily(
    r"(?:One of the two commands|Another build of the extension|Installing another torch|torch "
    r"[\d.]{3,9} has (?:the file's flavour|no build for the CUDA)|The package index has torch)"
)
_FIRST_DOES = lazily(r"One of the two commands is enough: the first (?P<does>[^;]{1,200});")


def with_code_for_it(answer: Answer, paste: Paste, place: Place, tables: Tables) -> Answer:
    """The answer without commands for a torch that has no code for the text's GPU.

    A release before the first with such code is left out. One whose build on the package index
    has none is taken from torch's own index, from a build that has it.
    """
    since = place.told.gpu_since if place.told is not None else ""
    if not since or answer.kind not in DRIFT:
        return answer
    answer = _from_a_build_with_it(answer, paste, place, tables)
    gone = [text for text in answer.help if _before(text, since)]
    if not gone:
        return answer
    note = (
        f"An older torch is no way out here: the first with code for the GPU in the text is torch "
        f"{since}. What is changed is the package of the file."
    )
    return without_commands(answer, gone, note)


def without_commands(answer: Answer, gone: list[str], note: str) -> Answer:
    """The answer without some commands that bring a torch, and with the reason for that."""
    left = tuple(text for text in answer.help if text not in gone)
    kept = [
        f"The command {found['does']}." if (found := _FIRST_DOES.match(note)) else note
        for note in answer.notes
        if not _ON_TORCH.match(note) or _FIRST_DOES.match(note)
    ]
    return replace(answer, help=left, notes=(note, *kept))


def _before(command: str, since: str) -> bool:
    found = _PINNED.search(command)
    return found is not None and order_key(found["release"]) < order_key(since)


def _from_a_build_with_it(answer: Answer, paste: Paste, place: Place, tables: Tables) -> Answer:
    """The answer whose command for torch alone names the index of a build with the GPU's code."""
    gpu = _oldest(paste)
    if gpu is None or place.machine != "x86_64" or tables.ages is None:
        return answer
    helps, notes = [], [*answer.notes]
    for text in answer.help:
        found = _ENDS.search(text)
        cuda = _lacking(found["release"], gpu, tables) if found is not None else ""
        other = _having(found["release"], gpu) if found is not None and cuda else None
        if found is None or other is None:
            helps.append(text)
            continue
        helps.append(f"{text}{index_option(cuda_label(other))}")
        notes.append(
            f"The package index has torch {found['release']} for CUDA {cuda}, without code for "
            f"the GPU in the text: the address is that of the build for CUDA {other}, which has it."
        )
    return replace(answer, help=tuple(helps), notes=tuple(notes))


def _oldest(paste: Paste) -> Gpu | None:
    from fa_forensics.errors import ForensicsError
    from fa_forensics.facts.gpus import parse_gpu

    named = paste.versions.get("capability") or paste.versions.get("gpu")
    try:
        return min(parse_gpu(named), key=lambda gpu: gpu.capability) if named else None
    except ForensicsError:
        return None


def _lacking(release: str, gpu: Gpu, tables: Tables) -> str:
    """The CUDA of the package index's build of a release that lacks a GPU's code; "" for none."""
    from fa_forensics.why.texts.gpu.torch_for_gpu import covers

    build = tables.ages.build(release, "x86_64") if tables.ages is not None else None
    cuda = build.cuda if build is not None else None
    archs = torch_archs(release, cuda) if cuda else None
    return str(cuda) if archs is not None and not covers(archs, gpu) else ""


def _having(release: str, gpu: Gpu) -> str | None:
    from fa_forensics.why.texts.gpu.torch_for_gpu import cuda_with

    return cuda_with(".".join(release.split(".")[:2]), gpu)
