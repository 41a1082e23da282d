"""Targets that a GPU runs, builds that can be told apart, libraries by what their names say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.asking import first, said

import fa_forensics
from fa_forensics.facts.build_archs import parts_of_flash

_NO_IMAGE = "no kernel image is available for execution on the device"


@pytest.mark.parametrize(
    ("target", "told", "typed"),
    [
        ("sm_120", 'GPU: NVIDIA B300\nTORCH_CUDA_ARCH_LIST="10.3a;12.0"', "10.3a"),
        ("sm_100", "GPU: NVIDIA B300", "10.3a"),
        ("sm_100", "GPU: NVIDIA B200", "10.0a"),
        ("sm_100", "NVIDIA GeForce RTX 5090", "12.0"),
    ],
)
def test_the_target_is_one_that_the_gpu_runs(target: str, told: str, typed: str) -> None:
    """PTX ISA: tcgen05 takes sm_100a, sm_103a; code for one of them runs on that one alone."""
    answer = first(
        f"ptxas error : Instruction 'tcgen05.alloc' not supported on .target '{target}'", told
    )
    assert f'TORCH_CUDA_ARCH_LIST="{typed}"' in "\n".join(answer.help)
    assert ('"10.0a"' in said(answer)) == (typed == "10.0a")


def test_flash_attention_is_given_no_list_of_torch() -> None:
    """flash-attention's setup.py passes -gencode options of its own."""
    answer = first(
        "ptxas error : Instruction 'wgmma.fence' not supported on .target 'sm_120'",
        'RTX 5090\nTORCH_CUDA_ARCH_LIST="9.0a 12.0"\nflash-attn',
    )
    assert "TORCH_CUDA_ARCH_LIST=" not in "\n".join(answer.help)
    assert "does not read TORCH_CUDA_ARCH_LIST" in said(answer)


@pytest.mark.parametrize(
    ("told", "covered"),
    [
        ("NVIDIA GeForce RTX 3090\ntorch 2.1.0+cu121", True),
        ("NVIDIA H100\ntorch 2.1.0+cu118", True),
        ("NVIDIA H100\ntorch 2.0.1+cu117", False),
        ("NVIDIA GeForce RTX 5090\ntorch 2.7.0+cu128", False),
    ],
)
def test_code_for_8_0_runs_on_every_8_x(told: str, covered: bool) -> None:
    """CUDA Programming Guide, binary compatibility: within a major number, to newer ones."""
    answer = first(
        "CUDA error (/home/u/flash-attention/csrc/layer_norm/ln_fwd_kernels.cuh:236): "
        f"{_NO_IMAGE}\n{told}"
    )
    assert answer.owner == "dropout_layer_norm"
    assert ("holds no code" in said(answer)) != covered
    assert ("NVCC_APPEND_FLAGS" in said(answer)) != covered
    assert (answer.confidence == "medium") == covered


def test_the_parts_of_flash_attention_have_their_list_once() -> None:
    parts = parts_of_flash()
    assert not parts["fused_dense_lib"].targets
    assert {len(one.targets) for one in parts.values()} == {0, 3}


@pytest.mark.parametrize(("release", "other"), [("0.48.0", False), ("0.45.0", True)])
def test_bitsandbytes_has_wheels_for_arm_servers_since_0_46(release: str, other: bool) -> None:
    """The package index has manylinux_2_24_aarch64 wheels of 0.46.0, and none of 0.45.5."""
    answer = first(
        "OSError: /home/u/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda118.so: "
        "cannot open shared object file: No such file or directory",
        f"aarch64 GH200 480GB\nbitsandbytes {release}\ntorch 2.7.0+cu118\nPython 3.11",
    )
    assert ("another processor" in said(answer)) == other
    assert ("git clone" in said(answer)) == other


def test_a_list_that_no_wheel_of_that_cuda_has_is_another_torchs() -> None:
    """torch 2.7 to 2.11 for CUDA 12.8 have sm_75 to sm_120 (PyTorch's RELEASE.md)."""
    words = (
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current "
        "PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 "
        "sm_60 sm_61 sm_70 sm_75 sm_80 sm_86 sm_90."
    )
    for told in ('RTX 5090, "latest PyTorch with CUDA 12.8" claimed', "torch 2.7.0+cu128"):
        answer = first(words, told)
        text = said(answer)
        assert answer.cause.startswith("The torch that runs") and "sys.executable" in text, told
    assert "Another torch runs" not in said(first(words, "torch 2.6.0+cu124"))


def test_the_cuda_of_nvidia_smi_is_no_toolkit() -> None:
    answer = first(
        "nvcc fatal   : Unsupported gpu architecture 'compute_75'\n"
        "error: command '/usr/local/cuda-8.0/bin/nvcc' failed with exit status 1\n\n"
        "Driver Version: 440.31\nCUDA Version: 10.2\nPytorch version: '1.3.1'"
    )
    assert "cuda-10.2" not in said(answer) and "cuda-X.Y" in said(answer)
    named = first(
        "nvcc fatal   : Unsupported gpu architecture 'compute_75'\n"
        "error: command '/usr/local/cuda-8.0/bin/nvcc' failed with exit status 1\n\n"
        "CUDA Version: 10.2\nPytorch version: '1.3.1'"
    )
    assert "cuda-10.2" in said(named)


def test_an_old_torch_has_no_key_of_its_compiler() -> None:
    """torch 1.3.0's wheel: internals v3, and no _PYBIND11_ names in torch._C."""
    words = (
        "RuntimeError: Unable to cast Python instance of type <class 'torch._C.ScriptModule'> to "
        "C++ type 'torch::jit::script::Module'"
    )
    old, new = said(first(words, "torch 1.3.0")), said(first(words, "torch 2.3.0"))
    assert "COMPILER_TYPE" not in old and "std::string flavour. The" not in old
    assert "define PYBIND11_VERSION" in old and "PYBIND11_COMPILER_TYPE" in new


_CUBLAS = (
    "ImportError: /opt/c/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined "
    "symbol: cublasSetWorkspace_v2, version libcublas.so.11"
)


def test_a_wheel_of_the_torch_index_has_cublas_in_torch_lib() -> None:
    """torch-2.0.1+cu118 holds libcublas.so.11 in torch/lib; PyPI's 2.0.1 asks for NVIDIA's."""
    held = said(first(_CUBLAS, "torch 2.0.1+cu118"))
    assert "LD_LIBRARY_PATH=/opt/c/lib/python3.10/site-packages/torch/lib" in held
    assert "import nvidia" not in held and "import nvidia" in said(first(_CUBLAS, "torch 2.0.1"))
    assert "torch/lib is that directory" in said(first(_CUBLAS))


def test_a_library_without_a_version_is_the_packages_own() -> None:
    frame = "/opt/e/lib/python3.6/site-packages/spconv-1.2.1-py3.6-linux-x86_64.egg/spconv/{}.py"
    words = (
        f'  File "{frame}", line 35, in <module>\n    torch.ops.load_library(_LIB_PATH)\n'
        "OSError: {}: cannot open shared object file: No such file or directory"
    )
    answer = first(words.format("__init__", "libcuhash.so"))
    assert answer.owner == "spconv" and "exactly this version" not in said(answer)
    assert first(words.format("utils", "libcuhash.so")).owner is None
    assert "exactly this version" in said(first(words.format("__init__", "libcuhash.so.3")))


def test_a_truncated_cudnn_is_copied_again() -> None:
    answer = first("/usr/local/cuda/lib64/libcudnn.so: file not recognized: File truncated")
    text = said(answer)
    assert "df -h /usr/local/cuda/lib64" in text and "install that again" in text


def test_the_first_release_for_arm_is_a_fact_of_the_table() -> None:
    table = Path(fa_forensics.__file__).parent / "data/packages.json"
    rows = json.loads(table.read_text(encoding="utf-8"))["packages"]
    row = next(one for one in rows if one["distribution"] == "bitsandbytes")
    assert row["arm_since"] == "0.46.0"
