"""torchao compares its release with torch's at import, and leaves its compiled code out."""

from __future__ import annotations

from fa_forensics.facts.python_api import is_older, own_check, passes_check
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import version_of
from fa_forensics.why.texts.python.pairs import index_note

#: Builds of torch that torchao's wheel of the package index, for CUDA 12, does not go with.
_OTHER = lazily(r"cu1[3-9]\d|cu11\d|cpu|xpu|rocm[\d.]+")


def torchao_refused(seen: Seen, torch: str, found: str) -> Answer:
    """``incompatible torch version 2.8.0+cu129 for torchao version 0.14.0``."""
    least = seen.mention.detail.get("least_torch", "")
    found = found or version_of(seen, "torchao") or ""
    takes = (least,) if least else own_check("torchao", found)
    release, _, build = torch.partition("+")
    cause = f"torchao {found} and torch {torch} do not go together, by torchao's own comparison."
    if not found:
        cause = f"This torchao and torch {torch} do not go together, by torchao's own comparison."
    direction = "unknown"
    if least:
        cause += f" It loads its compiled code with torch {least} and newer alone."
        direction = "file-newer"
    elif takes:
        cause += f" It loads its compiled code with torch {takes[-1]} alone."
        direction = "file-newer" if is_older(release, takes[0]) else "file-older"
    elif takes is not None:
        cause += (
            " No released torch is in the list of that release, so that another torch does not "
            "change it: another torchao does."
        )
    cause += (
        " It is a warning: its C++ and CUDA kernels are left out, and its Python part goes on "
        "without them. Nothing is damaged."
    )
    if on_windows(seen):
        return _without_kernels(seen, cause)
    wanted = passes_check("torchao", torch)
    tag = build if _OTHER.fullmatch(build) else ""
    helps, notes = [], []
    if wanted:
        helps.append(f'{seen.pip} install --no-deps "torchao{wanted}"{index_option(tag)}')
        notes.append(
            f"torchao {wanted.lstrip('=')} loads its kernels with torch {release}, and torch stays "
            "as it is; needed only where the kernels are."
            if wanted.startswith("==")
            else f"torchao from {wanted.lstrip('>=')} on loads its kernels with torch {release}, "
            "and torch stays as it is; needed only where the kernels are."
        )
        notes += index_note(tag)
    if takes:
        helps.append(f'{seen.pip} install "torch{">=" if least else "=="}{takes[-1]}"')
        notes.append(
            "A change of torch is one for torchvision, torchaudio and every other compiled package "
            "too, which have to be changed with it."
        )
    helps.append(f"{seen.pip} show torch torchao")
    return seen.answer(
        "wrong-torch", "FA606", cause, owner="torchao", direction=direction, confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


def _without_kernels(seen: Seen, cause: str) -> Answer:
    """torchao's wheel for all systems but Linux has Python files alone (py3-none-any)."""
    return seen.answer(
        "wrong-torch", "FA606", cause, owner="torchao", direction="unknown", confidence="high",
        help=(f"{seen.pip} show torch torchao",),
        notes=("For Windows the package index has torchao as Python files alone: no other release "
               "brings kernels there, and the line can be left as it is.",),
    )  # fmt: skip
