"""``why``: an address of PyTorch's own index is typed for a build that is on record alone."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.torch_index import is_on_index

INDEX = "https://download.pytorch.org/whl/"
#: c10::cuda::CUDAErrorLogCapture came with torch 2.14.
NEW = "ImportError: /x/_C.so: undefined symbol: _ZN3c104cuda19CUDAErrorLogCaptureC1Ev"
AUDIO = (
    "OSError: /x/site-packages/torchaudio/lib/libtorchaudio.abi3.so: undefined symbol: "
    "torch_dtype_float4_e2m1fn_x2"
)


@pytest.mark.parametrize(
    ("release", "label", "there"),
    [("2.11.0", "cu128", True), ("2.1.2", "cu121", True), ("2.1.2", "cu117", False),
     ("1.10.0", "cu113", True), ("2.14.0", "cu128", False), ("2.14.0", "cpu", True)],
)  # fmt: skip
def test_what_is_on_record(release: str, label: str, there: bool) -> None:
    assert is_on_index(release, label) == there


def test_no_address_of_a_build_without_code_for_the_gpus_that_the_text_s_build_serves() -> None:
    # PyTorch has no wheels for CUDA 12.8 since 2.12 (pytorch/pytorch issue 178665), and those
    # for 12.6 have no code for Blackwell cards.
    words = said(first(f"{NEW}\n\ntorch 2.11.0+cu128, Python 3.12"))
    assert INDEX not in words and "for CUDA 13.0, which takes a driver for that" in words
    words = said(first(f"{NEW}\n\ntorch 2.11.0+cu126, Python 3.12"))
    assert f"{INDEX}cu126" in words


@pytest.mark.parametrize(
    ("versions", "label"),
    [("torch 2.10.0+cu130, torchaudio 2.11", "cu130"),
     ("torch 2.10.0, torchaudio 2.11, CUDA 13.0", "cu130"),
     ("torch 2.10.0+cu126, torchaudio 2.11", "cu126"),
     ("torch 2.10.0+cu128, torchaudio 2.11", ""),  # the build of the package index
     ("torch 2.10.0, torchaudio 2.11", ""), ("torch 2.10.0, torchaudio 2.11, CUDA 13.2", "")],
)  # fmt: skip
def test_torchaudio_is_taken_for_the_cuda_of_torch(versions: str, label: str) -> None:
    command = first(f"{AUDIO}\n\n{versions}").help[0]
    assert "torchaudio==2.10.0" in command
    assert command.endswith(f"{INDEX}{label}") if label else INDEX not in command
