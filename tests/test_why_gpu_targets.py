"""``why`` on targets of GPU code: which older one serves, and who lacks the code.

Machine code runs on newer GPUs of the same major capability (CUDA Programming Guide, Binary
Compatibility); which CUDA compiles for what is in ``data/gpus.json``.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.gpus import gpu_table
from fa_forensics.facts.paste import read_paste
from fa_forensics.why.texts.clues import named_gpu


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("nvcc fatal : Unsupported gpu architecture 'compute_89'\n\nRTX 4090, nvcc 11.5", "8.6"),
        ("nvcc fatal : Unsupported gpu architecture 'compute_86'\n\nRTX 3090, CUDA 11.0", "8.0"),
        ("nvcc fatal : Unsupported gpu architecture 'compute_75'\n\nnvcc 9.1", "7.0"),
        ("ValueError: Unknown CUDA arch (8.9) or GPU not supported\n\ntorch 1.12.1", "8.6"),
        ("ValueError: Unknown CUDA arch (8.6) or GPU not supported\n\ntorch 1.4.0", None),
        ("nvcc fatal : Unsupported gpu architecture 'compute_120'\n\nnvcc 12.4", None),
        ("nvcc fatal : Unsupported gpu architecture 'compute_87'\n\nnvcc 11.3", None),
    ],
)
def test_an_older_target_that_runs_on_the_same_gpu(text: str, entry: str | None) -> None:
    answer = first(text)
    offered = [command for command in answer.help if command.startswith("TORCH_CUDA_ARCH_LIST=")]
    assert bool(offered) == (entry is not None)
    if entry is not None:
        assert f'"{entry}"' in offered[0] and f"Code for {entry} runs on" in said(answer)


def test_a_list_without_the_entry_that_torch_does_not_know() -> None:
    answer = first("ValueError: Unknown CUDA arch (9.0+PTX) or GPU not supported\n"
                   "echo $TORCH_CUDA_ARCH_LIST\n8.0 8.6 9.0+PTX\nnvcc 11.7")  # fmt: skip
    assert any('"8.0;8.6+PTX"' in command for command in answer.help)
    assert gpu_table().family((9, 0)).since_cuda == "11.8"  # type: ignore[union-attr]
    assert "CUDA 11.7 does not compile for 9.0" in said(answer)


def test_the_cuda_of_nvidia_smi_is_the_drivers() -> None:
    text = "nvcc fatal : Unsupported gpu architecture 'compute_90a'\n\n"
    answer = first(f"{text}H800, Driver Version: 535.129.03, CUDA Version: 12.2")
    assert "The nvcc of CUDA 12.2" not in answer.cause and "CUDA 12.0 or newer" in answer.cause
    assert "the newest that the driver runs" in said(answer)
    assert "cuda" not in read_paste("nvidia-smi shows CUDA 12.2").versions


def test_a_list_that_makes_no_code_for_the_gpu() -> None:
    answer = first("CUDA error: no kernel image is available for execution on the device\n"
                   "export TORCH_CUDA_ARCH_LIST=7.5\n\nRTX 3090, torch 1.7.1+cu110")  # fmt: skip
    assert "TORCH_CUDA_ARCH_LIST=7.5" in said(answer)
    assert 'TORCH_CUDA_ARCH_LIST="8.0"' in said(answer)  # CUDA 11.0 compiles no 8.6
    assert 'TORCH_CUDA_ARCH_LIST="8.6"' not in said(answer)


def test_a_package_whose_installation_stands_beside_the_error() -> None:
    answer = first("pip install causal-conv1d  # prebuilt wheel doesn't include sm_121\n"
                   "RuntimeError: CUDA error: no kernel image is available")  # fmt: skip
    assert answer.owner == "causal-conv1d"
    assert any("CAUSAL_CONV1D_FORCE_BUILD=TRUE" in command for command in answer.help)
    assert "driver" not in answer.cause


def test_packages_that_may_lack_the_code() -> None:
    answer = first("CUDA error: no kernel image is available for execution on the device\n\n"
                   "RTX 5090, torch 2.7.1+cu128, xformers: 0.0.30, vllm: 0.9.2")  # fmt: skip
    assert "xformers 0.0.30" in said(answer) and "vllm 0.9.2" in said(answer)
    assert "torch itself has code for it" in answer.cause


def test_a_name_that_two_gpus_have() -> None:
    answer = first("RuntimeError: CUDA error: no kernel image is available\nTITAN X, torch 1.7")
    assert "5.2" in said(answer) and "6.1" in said(answer)
    assert "TITAN X" in answer.cause and any("5.2;6.1" in text for text in answer.help)


@pytest.mark.parametrize(
    ("words", "capability"),
    [
        ("two 3090s", (8, 6)), ("a 1080Ti", (6, 1)), ("RTX PRO 6000", (12, 0)),
        ("DGX Spark", (12, 1)), ("on Orin NX", (8, 7)), ("NVIDIA Thor", (11, 0)),
        ("B300", (10, 3)), ("GTX TITAN X", (5, 2)), ("T4 instance", (7, 5)),
        ("Quadro P2000", (6, 1)), ("GTX 960M", (5, 0)), ("GB300", (10, 3)),
    ],
)  # fmt: skip
def test_gpus_as_people_write_them(words: str, capability: tuple[int, int]) -> None:
    gpu = named_gpu(read_paste(words).versions["gpu"])
    assert gpu is not None and gpu.capability == capability


@pytest.mark.parametrize("words", ["at line 3090", "step 4080 of 5090", "storing 2060.5 MB"])
def test_numbers_are_no_gpus(words: str) -> None:
    assert "gpu" not in read_paste(words).versions


def test_which_triton_has_a_ptxas_for_a_gpu() -> None:
    """ptxas --version of the programs in Triton's wheels: ``data/triton_ptxas.json``."""
    text = "ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'\n\n"
    answer = first(f"{text}triton 3.5.0, DGX Spark")
    assert "Triton 3.5.0 is that of CUDA 12.8" in said(answer) and "Triton 3.6.0" in said(answer)
    thor = first("ptxas-blackwell fatal : Value 'sm_110a' is not defined for option 'gpu-name'")
    assert "Triton 3.7.0" in said(thor)
    assert any("TRITON_PTXAS_BLACKWELL_PATH=" in command for command in thor.help)
    by_torch = first("ptxas fatal : Value 'sm_120' is not defined for option 'gpu-name'\n\n"
                     "torch 2.6.0")  # fmt: skip
    assert "Triton 3.2.0 is that of CUDA 12.4" in said(by_torch)


def test_a_driver_older_than_any_ptxas_of_triton() -> None:
    answer = first("RuntimeError: Triton Error [CUDA]: device kernel image is invalid\n"
                   "NVIDIA-SMI 470.182.03  Driver Version: 470.182.03  "
                   "CUDA Version: 11.4")  # fmt: skip
    assert answer.owner == "cuda-driver" and "12.0 or newer" in answer.cause


def test_transformer_engine_has_a_variable_of_its_own() -> None:
    answer = first("/w/transformer_engine/common/a.cu:77 in function f: CUDA Error: no kernel "
                   "image is available for execution on the device\n\nRTX 5070")  # fmt: skip
    assert answer.owner == "transformer-engine"
    assert any(command.startswith("NVTE_CUDA_ARCHS=120 ") for command in answer.help)


def test_the_line_of_the_call_names_the_package() -> None:
    answer = first("out = causal_conv1d_cuda.causal_conv1d_fwd(x, w)\n"
                   "RuntimeError: CUDA error: no kernel image is available")  # fmt: skip
    assert answer.owner == "causal-conv1d"


def test_code_that_runs_on_a_newer_gpu_is_of_an_older_cuda() -> None:
    """sm_80 came with CUDA 11.0 and runs on 8.6: "no CUDA before 11.1" would be wrong."""
    answer = first("GeForce RTX 3090 with CUDA capability sm_86 is not compatible with the current "
                   "PyTorch installation.\nThe current PyTorch install supports CUDA capabilities "
                   "sm_37 sm_50 sm_60 sm_70.")  # fmt: skip
    assert "CUDA 11.0 or newer can have code" in said(answer)
    jetson = first("CUDA error: no kernel image is available for execution on the device\n"
                   "Jetson AGX Orin, torch 2.5.0")  # fmt: skip
    assert "JetPack" in said(jetson)


def test_a_busy_gpu() -> None:
    answer = first("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable")
    assert answer.owner == "cuda-driver" and answer.help


def test_nvrtc_is_as_old_as_torchs_cuda() -> None:
    # CUDA 11.8 is the first that compiles for 8.9, and torch 2.0 the first with wheels for it.
    answer = first(
        "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)\n4060ti",
        "RTX 4060 Ti, CUDA 12.5, torch 1.7.0+cu110",
    )
    assert answer.code == "FA510" and "8.9" in answer.cause and "CUDA 11.0" in answer.cause
    assert any("torch==2.0.*" in text and "whl/cu118" in text for text in answer.help)


def test_an_older_target_names_the_cuda_that_makes_it() -> None:
    answer = first("nvcc fatal : Unsupported gpu architecture 'compute_86'")
    assert "CUDA 11.0 or newer compiles it" in said(answer)
    old = first("nvcc fatal : Unsupported gpu architecture 'compute_86'\n环境cuda10.2-cudnn7-devel")
    assert "CUDA 10.2" in old.cause and not any('"8.0"' in text for text in old.help)


def test_tiny_cuda_nn_takes_lower_modules_too() -> None:
    answer = first(
        "OSError: Could not find compatible tinycudann extension for compute capability 61."
    )
    # bindings/torch/tinycudann/modules.py: the highest module that is not above the GPU's.
    assert "6.1 or lower" in answer.cause and "another major version" not in said(answer)


def test_a_name_of_two_gpus_is_the_one_that_the_check_refuses() -> None:
    answer = first(
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        "PyTorch: 2.9.1+cu130, 2xRTX 5000 16GB",
    )
    assert "Quadro RTX 5000" in answer.cause and "7.5" in answer.cause
    assert "sdpa" in said(answer)


def test_the_major_cuda_of_torch_tells_the_driver() -> None:
    # CUDA 13's release notes: minor version compatibility from driver 580.65.06 on.
    answer = first(
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "nunif with a CUDA 13 torch",
    )
    assert "580.65.06" in answer.cause
    assert any("whl/cu12" in text for text in answer.help)


def test_in_a_container_torch_is_changed_in_the_image() -> None:
    answer = first(
        "NVIDIA GeForce RTX 5060 Ti with CUDA capability sm_120 is not compatible with the current "
        "PyTorch installation. The current PyTorch install supports CUDA capabilities sm_86 sm_90",
        "docker compose",
    )
    assert "Dockerfile" in answer.notes[0]


@pytest.mark.parametrize(
    ("told", "entry"),
    [
        ("GPU-GTX1080Ti, CUDA-9.0, cuDNN-7.0", "6.1"),  # sm_70 code does not run on 6.1
        ("RTX 2080 Ti, CUDA 10.0", "7.5"),
        ("RTX 3090, CUDA 11.0", "8.0"),
    ],
)
def test_the_list_is_for_the_gpu_that_the_text_names(told: str, entry: str) -> None:
    arch = "compute_75" if "1080" in told else "compute_86"
    answer = first(f"nvcc fatal : Unsupported gpu architecture '{arch}'\n{told}")
    assert any(text.startswith(f'TORCH_CUDA_ARCH_LIST="{entry}" ') for text in answer.help)
