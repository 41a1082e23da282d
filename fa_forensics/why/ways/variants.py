"""Builds of a torch release that are of another std::string flavour than its usual wheel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fa_forensics.atlas.builds import minor_of
from fa_forensics.atlas.variants import variants_of
from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
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

_FROM_ON = lazily(r'"torch>=(\d+\.\d+\.0)"$')


def of_both_flavours(versions: Mapping[str, str]) -> bool:
    """Whether a text's torch-xla can be one of those that there are in both flavours."""
    told = [versions.get(key, "") for key in ("pkg:torch-xla", "torch")]
    return "nightly" in versions or any(text.startswith(("2.6", "2.7")) for text in told)


#: The package index has no nightlies; those of 2023 are called torch-nightly+20230707-cp38-....
_XLA_BUCKET = "https://storage.googleapis.com/pytorch-xla-releases/wheels/cuda"
#: Until this month the package index's torch was pre-cxx11 and torch-xla's own nightlies cxx11.
_XLA_BEFORE = "2024-08"


def of_xla(
    commands: Sequence[str], notes: Sequence[str], versions: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Commands and notes for a torch-xla of the other flavour than its torch.

    Issues 4133, 5608 and 6771 of pytorch/xla: its own wheels were cxx11, and its bucket has the
    torch that they were built on beside them.
    """
    helps = with_xla_pair(commands, versions)
    if not of_both_flavours(versions):
        return helps, [*notes]
    kept = [note for note in notes if not note.startswith("Each release of torch-xla")]
    if not ("nightly" in versions and "" < versions.get("date", "") < _XLA_BEFORE):
        return helps, [XLA_FLAVOURS, *kept]
    label, python = versions["nightly"], versions.get("python", "")
    note = (
        "torch-xla's nightlies of that time are cxx11, and those of torch on PyTorch's index are "
        "not: no day of the two fits. The torch that a torch_xla wheel was built on lies beside it "
        "in the same directory of its bucket and is called torch-nightly, with the day (+20230707) "
        "as the other has it: both are taken from there, of one day."
    )
    found = re.match(r"(\d)\.(\d{1,2})(?!\d)", python)
    if found is not None and label.startswith("cu1"):
        tag = f"cp{found[1]}{found[2]}"
        wheel = f"{_XLA_BUCKET}/{cuda_of_label(label)}/torch-nightly+YYYYMMDD-{tag}-{tag}"
        get = "python -m pip install --force-reinstall --no-deps"
        at = 1 if helps and "print(torch" in helps[0] else 0
        helps.insert(at, f"{get} {wheel}-linux_x86_64.whl")
        note += " YYYYMMDD in the command is the day of the torch_xla wheel."
    return helps, [note, *kept]


def with_xla_pair(commands: Sequence[str], versions: Mapping[str, str]) -> list[str]:
    """Commands with the pair of the text's minor version, which the package index has.

    torch_xla 2.6.0 is of PyPI's torch 2.6.0, pre-cxx11; both of 2.7.0 are cxx11. Nothing less than
    --force-reinstall takes it: ==2.6.0 is met by a 2.6.0+cxx11 that is there.
    """
    told = versions.get("pkg:torch-xla", "") or versions.get("torch", "")
    release = next((f"{minor}.0" for minor in ("2.6", "2.7") if told.startswith(minor)), "")
    if not release:  # torch alone would leave torch_xla behind
        return [_FROM_ON.sub(r'"torch==\1" torch-xla==\1', text) for text in commands]
    get = "python -m pip install --force-reinstall --no-cache-dir"
    kept = [text for text in commands if '"torch' not in text]
    at = 1 if kept and "print(torch" in kept[0] else 0
    return [*kept[:at], f'{get} "torch=={release}" torch-xla=={release}', *kept[at:]]


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


def with_that_build(commands: Sequence[str], release: str, cuda: str) -> tuple[str, ...]:
    """Commands with the one for PyTorch's own build of a release for one CUDA, behind the look.

    With its label in the number pip does not take another build of the release for it.
    """
    label = cuda_label(cuda)
    get = f'python -m pip install --no-cache-dir "torch=={release}+{label}"{index_option(label)}'
    at = 1 if commands and "print(torch" in commands[0] else 0
    return (*commands[:at], get, *commands[at:])
