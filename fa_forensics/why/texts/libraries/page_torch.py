"""The torch of a page of wheels (``-f .../whl/torch-1.11.0+cu113.html``) in a text without one."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.torch_names.history import order_key

#: From this release on PyTorch's builds for CUDA 11 take CUDA from wheels of NVIDIA.
_FROM_WHEELS = "2.2.0"


def with_torch_of_page(seen: Seen, major: str | None) -> Seen | None:
    """The text as one of the torch whose page pip is given; None where that decides nothing.

    It decides for a library of CUDA 11: the builds for it have CUDA inside.
    """
    if seen.torch or major != "11":
        return None
    right, wrong = seen.versions.get("wheel_page", ""), seen.versions.get("wrong_page", "")
    release, _, label = (right or _right(wrong)).partition("+")
    cuda = re.fullmatch(r"cu(11)(\d)", label)
    if cuda is None or order_key(release) >= order_key(_FROM_WHEELS):
        return None
    told = {"torch": f"{release}+{label}", "torch_cuda": f"{cuda[1]}.{cuda[2]}"}
    return replace(seen, paste=replace(seen.paste, versions={**seen.versions, **told}))


def about_page(answer: Answer, seen: Seen) -> Answer:
    """The answer with where its torch is read from, and with a mistake in the address."""
    wrong = seen.versions.get("wrong_page", "")
    page = seen.versions.get("wheel_page") or _right(wrong)
    notes = [f"That torch is {page} is read from the address of wheels that pip is given."]
    if wrong and "wheel_page" not in seen.versions:
        notes.append(
            f"The address in the text ends in torch-{wrong}.html, and there is no such page: it is "
            f"torch-{page}.html. From a page that is not there pip takes nothing, and compiles "
            "the package with the CUDA toolkit of the machine instead."
        )
    return replace(answer, notes=(*answer.notes, *notes))


def _right(wrong: str) -> str:
    """1.11.0+11.3, as people write it, is the page 1.11.0+cu113."""
    release, _, cuda = wrong.partition("+")
    return f"{release}+{cuda_label(cuda)}"
