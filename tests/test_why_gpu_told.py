"""What a text tells of the GPU and of whose kernel failed is read before anything is said."""

from __future__ import annotations

import sys

import pytest

from fa_forensics.facts.paste import read_paste
from fa_forensics.report_why import Answer
from fa_forensics.why import explain

_NONE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


def first(text: str) -> Answer:
    return explain([text], sys.executable, {}).answers[0]


def test_a_warning_that_flash_attention_is_not_used_is_no_refusal() -> None:
    warned = (
        "WARN launcher: flash_attn.py:111 Unable to use Flash Attention V2: GPU with CUDA "
        f"capability 7 5 is not supported for Flash Attention V2\n...\n{_NONE}"
    )
    for text in (warned, f"{warned}\n\nGPU Tesla T4"):
        answer = first(text)
        assert answer.code == "FA504" and answer.owner != "flash-attn" and "7.5" in answer.cause
        assert not any("flash-attn" in command for command in answer.help)


@pytest.mark.parametrize(
    "told", ["torch 1.3.1, Tesla K40c", "torch 1.3.1+cu92, GeForce GT 740M, CUDA 10.0"]
)
def test_a_gpu_from_before_all_binaries_of_torch_is_too_old(told: str) -> None:
    """Since torch 1.3.1 its binaries begin with 3.7 (pytorch issue 31319)."""
    answer = first(f"{_NONE}\n\n{told}")
    assert answer.owner == "torch" and "too old" in answer.cause and "3.7" in answer.cause
    assert not any("PACKAGE" in command for command in answer.help)


def test_detectron2_does_not_own_an_operator_that_it_does_not_have() -> None:
    answer = first(
        "error in ms_deformable_im2col_cuda: no kernel image is available for execution on the "
        "device.\ndetectron2 arch flags       7.5\nGPU 0      NVIDIA RTX A6000 (arch=8.6)\n\n"
        "PyTorch 1.13.1+cu116, detectron2 0.6"
    )
    assert answer.owner != "detectron2" and not any("detectron2" in one for one in answer.help)
    assert any("detectron2 was compiled for sm_75" in note for note in answer.notes)


@pytest.mark.parametrize("words", ["sglang 0.4.4, ROCm", "sglang, ROCm environment (no CUDA)"])
@pytest.mark.parametrize("soname", ["libcuda.so.1", "libcudart.so.12"])
def test_rocm_without_a_number_is_a_machine_without_cuda(words: str, soname: str) -> None:
    gone = "cannot open shared object file: No such file or directory"
    answer = first(f"ImportError: {soname}: {gone}\n\n{words}")
    assert answer.kind == "rocm" and "no driver of NVIDIA is missing" in answer.cause


@pytest.mark.parametrize("words", ["supports CUDA, ROCm, CPU", "ROCm, CUDA and CPU builds"])
def test_rocm_in_a_list_of_what_is_served_is_no_machine(words: str) -> None:
    assert "amd" not in read_paste(words).versions


def test_a_helper_of_triton_is_compiled_again() -> None:
    file = "/home/u/.triton/cache/ABC/cuda_utils.so"
    answer = first(f"ImportError: {file}: undefined symbol: cuModuleGetFunction")
    assert "rm -r ~/.triton/cache" in answer.help and "setup.py" not in answer.cause


def test_an_apu_passes_for_the_first_vega() -> None:
    text = "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"
    answer = first(f"{text}\n\namdgcn-amd-amdhsa--gfx902:xnack+")
    assert "gfx902" in answer.cause
    assert any("HSA_OVERRIDE_GFX_VERSION=9.0.0" in command for command in answer.help)
