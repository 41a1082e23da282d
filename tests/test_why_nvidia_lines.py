"""``why``: NVIDIA's wheels of one library for several CUDAs write to one file."""

from __future__ import annotations

import pytest
from support.asking import first, said

NCCL = "ImportError: /x/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclAlltoAll"
LINK = (
    "ImportError: /x/dist-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: "
    "undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12"
)


@pytest.mark.parametrize(
    "versions",
    ["pip3 install torch --index-url https://download.pytorch.org/whl/cu130",
     "torch 2.10.0+cu130"],
)  # fmt: skip
def test_the_wheel_is_the_one_for_the_cuda_that_the_text_tells(versions: str) -> None:
    words = said(first(f"{versions}\n{NCCL}"))
    assert "nvidia-nccl-cu12>=" not in words and "nvidia-nccl-cu13" in words


def test_where_no_cuda_is_told_the_command_says_for_which_it_is() -> None:
    answer = first(NCCL)
    assert any('"nvidia-nccl-cu12>=2.28.3' in command for command in answer.help)
    assert any(
        note.startswith("The command is for a torch for CUDA 12") and "nvidia-nccl-cu13" in note
        for note in answer.notes
    )
    told = said(first(f"{NCCL}\n\ntorch 2.8.0+cu128"))
    assert "The command is for a torch for" not in told


@pytest.mark.parametrize(("torch", "pinned"), [("2.1.0", False), ("2.4.0", False)])
def test_torch_asks_for_one_nvjitlink_since_2_5(torch: str, pinned: bool) -> None:
    words = said(first(f"{LINK}\n\ntorch {torch}"))
    assert ("torch asks for one version of that wheel:" in words) == pinned
    assert "since 2.5.0" in words and "nvjitlink|cusparse" in words
