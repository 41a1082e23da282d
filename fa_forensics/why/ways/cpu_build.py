"""A torch for the CPU alone, by the text: it is exchanged for another of that build."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.torch_index import TORCH_INDEX, index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.why.judgement import DRIFT
from fa_forensics.why.place import CUDA_OWNERS, Place
from fa_forensics.why.seen import file_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: A command that brings torch, from the package index.
_TORCH = lazily(r'-m\spip\sinstall\s(?:--[\w-]{1,30}\s){0,6}"torch[=>]=[\w.,<]{1,40}"')
_ALONE = lazily(r'"torch[=>]=[\w.,<]{1,40}"$')


def is_for_cpu(paste: Paste) -> bool:
    """Whether the torch of the text has no CUDA: "+cpu" behind its release, or conda's cpuonly."""
    told = paste.versions.get("torch", "")
    return "+cpu" in told or ("+" not in told and "flag:cpuonly" in paste.versions)


def without_cuda_wheels(paste: Paste, name: str, notes: list[str]) -> list[str]:
    """The notes on a project's wheels; none where they are for CUDA and the text's torch is not."""
    own = (row_of(name) or {}).get("wheels_for")
    has_cpu = isinstance(own, dict) and bool(own.get("cpu"))
    return [] if is_for_cpu(paste) and not has_cpu else notes


def from_the_cpu_index(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer whose commands for torch name the index of its builds for the CPU alone.

    Not where the file needs a torch with CUDA, and on x86_64 under Linux alone: elsewhere the
    package index has that very build.
    """
    if "+cpu" not in paste.versions.get("torch", "") or answer.kind not in DRIFT:
        return answer
    told = ("flag:windows", "flag:windows-told", "flag:macos-told", "gpu", "torch_cuda")
    if any(key in paste.versions for key in told) or place.machine != "x86_64":
        return answer
    if "cuda" in file_of(paste).lower() or (answer.owner or "") in CUDA_OWNERS:
        return answer
    helps = tuple(_with_index(text) for text in answer.help)
    if helps == answer.help:
        return answer
    note = (
        "The torch in the text is a build for the CPU alone, which torch's own index has: the "
        "command with its address keeps to that, and the package index would bring CUDA."
    )
    return replace(answer, help=helps, notes=(*answer.notes, note))


def _with_index(command: str) -> str:
    if not _TORCH.search(command) or "index-url" in command:
        return command
    if _ALONE.search(command):
        return f"{command}{index_option('cpu')}"
    return " ".join((command, "--extra-index-url", f"{TORCH_INDEX}cpu"))
