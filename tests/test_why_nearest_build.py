"""What is typed is of the CUDA and of the torch that the text tells."""

from __future__ import annotations

import pytest
from support.asking import first, said

OLD = "\nImportError: /x/lib/python3.8/site-packages/foo/_C.so: undefined symbol: "
OLD += "_ZNK2at6Tensor7optionsEv"


@pytest.mark.parametrize(
    "versions",
    ["torch 1.10.0+cu113", "torch 1.10.0, CUDA 11.3", "torch 1.12.1+cu116", "torch 1.11.0+cu115"],
)
def test_the_nearest_build_of_the_same_cuda_is_taken_from_torchs_own_index(versions: str) -> None:
    """PyPI's torch 1.9.1 is for CUDA 10.2; torch's own index has it for 11.1 too."""
    helps = [text for text in first(versions + OLD).help if '"torch==1.9.1"' in text]
    assert helps and all(text.endswith("/cu111") for text in helps)


@pytest.mark.parametrize("versions", ["torch 1.10.0", "torch 1.10.0, CUDA 11.8"])
def test_a_cuda_that_no_build_of_that_torch_has_names_no_index(versions: str) -> None:
    assert "--index-url" not in said(first(versions + OLD))


@pytest.mark.parametrize("reason", ["file too short", "invalid ELF header"])
@pytest.mark.parametrize(
    ("versions", "name", "command"),
    [
        ("torch 2.7.1 torchvision 0.22.0", "torchvision", "torchvision==0.22.1"),
        ("torch 2.5.1 torchvision 0.20.0", "torchvision", "torchvision==0.20.1"),
        ("torch 2.7.1 torchaudio 2.7.0", "torchaudio", "torchaudio==2.7.1"),
        ("torch 2.7.1+cu118 torchvision 0.22.0", "torchvision",
         "torchvision==0.22.1 --index-url https://download.pytorch.org/whl/cu118"),
        ("torch 2.7.0 torchvision 0.22.0", "torchvision", "torchvision==0.22.0"),
        ("torchvision 0.22.0", "torchvision", "torchvision==0.22.0"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_put_back_in_the_release_of_the_torch_there(
    versions: str, name: str, command: str, reason: str
) -> None:
    path = f"/x/lib/python3.10/site-packages/{name}/_C.so"
    answer = first(f"{versions}\nImportError: {path}: {reason}")
    assert any(text.endswith(command) for text in answer.help)


MISMATCH = (
    "RuntimeError: The detected CUDA version (12.4) mismatches the version that was used to "
    "compile PyTorch (11.8)."
)


@pytest.mark.parametrize("told", ["sageattention==1.0.6", "sageattention==2.0.1",
                                  "flash-attn-3==3.0.0b1"])  # fmt: skip
def test_a_floor_of_the_newest_release_is_not_told_of_an_older_one(told: str) -> None:
    answer = first(f"pip install {told}\ntorch 2.3.0+cu118\n{MISMATCH}")
    assert "is compiled with nvcc of CUDA" not in said(answer)


def test_a_floor_is_told_where_the_newest_release_is_built() -> None:
    answer = first(f"pip install sageattention\ntorch 2.3.0+cu118\n{MISMATCH}")
    assert "sageattention is compiled with nvcc of CUDA 12.0" in said(answer)
