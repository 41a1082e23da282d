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
    assert any('"nvidia-nccl-cu13>=2.28.3' in command for command in answer.help)
    assert any(
        note.startswith("The command is for a torch for CUDA 13") and "nvidia-nccl-cu12" in note
        for note in answer.notes
    )
    told = said(first(f"{NCCL}\n\ntorch 2.8.0+cu128"))
    assert "The command is for a torch for" not in told


@pytest.mark.parametrize(("torch", "pinned"), [("2.1.0", False), ("2.4.0", False)])
def test_torch_asks_for_one_nvjitlink_since_2_5(torch: str, pinned: bool) -> None:
    words = said(first(f"{LINK}\n\ntorch {torch}"))
    assert ("torch asks for one version of that wheel:" in words) == pinned
    assert "since 2.5.0" in words and "nvjitlink|cusparse" in words


def test_a_wheel_that_was_built_for_another_cuda_is_not_typed_again() -> None:
    # readelf -d: transformer_engine_cu12 2.6.0 needs libcublas.so.13, 2.6.0.post1 needs .so.12.
    lines = "OSError: libcublas.so.13: cannot open shared object file: No such file or directory"
    text = f'python -c "import transformer_engine"\n{lines}\n\nDriver Version: 570.86.10\n'
    faulty = first(f"{text}transformer-engine 2.6.0")
    assert any(one.endswith('"transformer-engine-cu12==2.6.0.post1"') for one in faulty.help)
    assert "uninstall" not in said(faulty)  # there was no transformer-engine-cu13 then
    other = first(f"{text}transformer-engine 2.9.0")
    assert any("transformer-engine-cu12==2.9.0" in one for one in other.help)


def test_condas_own_torch_is_not_told_of_wheels() -> None:
    file = "/h/envs/e/lib/python3.10/site-packages/torch/lib/../../../../libcublas.so.11"
    name = "cublasLtBIIMatmulAlgoGetHeuristic, version libcublasLt.so.11"
    words = said(first(f"OSError: {file}: undefined symbol: {name}"))
    assert "import nvidia" not in words and "pip lists no wheel" not in words


def test_the_wheel_in_a_note_is_that_of_the_library() -> None:
    file = "/opt/conda/lib/python3.9/site-packages/torch/lib/libtorch_cuda_cu.so"
    tail = "not defined in file libcusparse.so.11 with link time reference"
    name = "symbol cusparseSpSM_analysis, version libcusparse.so.11"
    words = said(first(f"ImportError: {file}: {name} {tail}"))
    assert "cuBLAS" not in words and "$CONDA_PREFIX/lib" in words
