"""torchvision and torchaudio from PyTorch's own index, where the text's torch is of another CUDA.

The package index has one build of each release, for the CUDA of its own torch of that release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import minor_of
from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.torch_index import index_option, is_on_index
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.place import Place
from fa_forensics.why.tables import Tables
from fa_forensics.why.ways.same_release import label_by_cuda, label_of

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

#: One of the two alone, in a release, at the end of a command that leaves torch as it is.
_PARTNER = lazily(r"--no-deps [\w -]{0,40}\b(torchvision|torchaudio)==[\d.]{3,9}$")


def with_partner_index(answer: Answer, paste: Paste, place: Place, tables: Tables) -> Answer:
    """The answer with the index of torch's CUDA behind such a command."""
    if place.told is None or place.present is None or tables.ages is None:
        return answer
    release = place.present.release
    label = label_of(paste, place) or label_by_cuda(paste, release)
    build = tables.ages.build(release, "x86_64")
    own = minor_of(build.cuda) if build is not None and build.cuda else ""
    if not label or not own or cuda_of_label(label) == own or not is_on_index(release, label):
        return answer
    helps = tuple(
        f"{text}{index_option(label)}" if _PARTNER.search(text) else text for text in answer.help
    )
    if helps == answer.help:
        return answer
    if label == "cpu":
        note = (
            f"The package index has that release for CUDA {own} alone, and the torch in the text "
            "is a build for the CPU: the address at the end has the build for it."
        )
        return replace(answer, help=helps, notes=(*answer.notes, note))
    note = (
        f"The package index has that release for CUDA {own} alone, and the CUDA in the text is "
        f"that of {label}: the address at the end has the build for it."
    )
    return replace(answer, help=helps, notes=(*answer.notes, note))
