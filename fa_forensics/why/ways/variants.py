"""Builds of a torch release that are of another std::string flavour than its usual wheel."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.atlas.builds import minor_of
from fa_forensics.atlas.variants import variants_of
from fa_forensics.facts.cuda_labels import cuda_of_label
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR
from fa_forensics.why.place import Place

#: Issues 8406, 8603 and 8641 of pytorch/xla, and its README for 2.6.
XLA_FLAVOURS = (
    "torch-xla has wheels of both flavours for 2.6 and the nightlies around it: torch and "
    "torch-xla of one number need not fit. For 2.6 torch==2.6.0 goes with torch_xla==2.6.0, and "
    "torch==2.6.0+cpu.cxx11.abi with torch_xla==2.6.0+cxx11; for a nightly the torch that its own "
    "bucket has beside it (storage.googleapis.com/pytorch-xla-releases/wheels/tpuvm/, "
    "torch-2.7.0.dev-... by torch_xla-2.7.0.dev-...) is of its flavour, the one of PyTorch's "
    "nightly index need not be."
)


def of_both_flavours(versions: Mapping[str, str]) -> bool:
    """Whether a text's torch-xla can be one of those that there are in both flavours."""
    told = [versions.get(key, "") for key in ("pkg:torch-xla", "torch")]
    return "nightly" in versions or any(text.startswith(("2.6", "2.7")) for text in told)


def of_other_flavour(answer: Answer, release: str, label: str, cuda: str) -> str:
    """Why a release is not taken from the index of a label, in words; "" where it may be.

    ``cuda`` is the CUDA version of the wheel on the package index, which has the file's flavour.
    """
    if answer.direction != FLAVOUR:
        return ""
    own = "cxx11" if mentions_cxx11(answer.symbol or "", answer.demangled or "") else "pre-cxx11"
    wanted = cuda_of_label(label)
    for of, flavour in variants_of(release, "x86_64"):
        if minor_of(of) == wanted and flavour != own:
            return (
                f"Of torch {release} the build for CUDA {of} is {flavour}, unlike its others: that "
                f"one has not the file's flavour, and the command takes the package index's, for "
                f"CUDA {minor_of(cuda)}, which has it."
            )
    return ""


def same_again(answer: Answer, place: Place) -> bool:
    """Whether wheels for the text's torch release have the file's flavour, and this torch not.

    A project compiles them on the wheel of torch that the package index has.
    """
    present = place.present
    return (
        answer.direction == FLAVOUR
        and present is not None
        and present.release in answer.exported_by
    )
