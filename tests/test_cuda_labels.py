"""CUDA releases and the labels that wheels and indexes have for them."""

from __future__ import annotations

import pytest

from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label

#: Pairs that stand in the names of published wheels of torch (torch-1.1.0 has cu90 and cu100).
PUBLISHED = [
    ("9.2", "cu92"),
    ("10.0", "cu100"),
    ("11.8", "cu118"),
    ("12.1", "cu121"),
    ("13.0", "cu130"),
]


@pytest.mark.parametrize(("cuda", "label"), PUBLISHED)
def test_a_cuda_release_and_its_label_name_one_another(cuda: str, label: str) -> None:
    assert cuda_label(cuda) == label
    assert cuda_of_label(label) == cuda
    assert cuda_of_label(label.removeprefix("cu")) == cuda


def test_a_patch_release_has_the_label_of_its_minor_version() -> None:
    assert cuda_label("12.1.105") == "cu121"


@pytest.mark.parametrize("text", ["", "12", "cpu", "twelve.1", "12.15"])
def test_what_names_no_minor_version_has_no_label(text: str) -> None:
    assert cuda_label(text) == ""


@pytest.mark.parametrize("text", ["", "cpu", "rocm6.3", "cu1", "cu12.1"])
def test_what_is_no_label_names_no_cuda(text: str) -> None:
    assert cuda_of_label(text) == ""
