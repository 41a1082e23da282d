"""CUDA's libraries by the place they come from: conda, a wheel, a toolkit, a cache, a sentence."""

from __future__ import annotations

import pytest

from fa_forensics.facts.cuda_names import cuda_name_gone, cuda_on_pypi, newest_cuda_of
from fa_forensics.report_why import Answer
from fa_forensics.why import explain

GONE = "cannot open shared object file: No such file or directory"


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes, *answer.help))


def test_condas_own_torch_is_known_by_its_search_path(bare: str) -> None:
    path = "/c/envs/e/lib/python3.10/site-packages/torch/lib/../../../../libcublas.so.11"
    text = f"OSError: {path}: undefined symbol: cublasLtBIIMatmulAlgoGetHeuristic, version "
    answer = first(f"{text}libcublasLt.so.11\nconda env with cudatoolkit 11.3.1", bare)
    assert "conda's own torch" in answer.cause and "pip's torch" not in said(answer)
    assert "conda remove cudatoolkit" in answer.help and answer.owner == "cublasLt"


def test_torch_is_blamed_only_where_the_text_has_it(bare: str) -> None:
    text = (
        "ImportError: /opt/conda/bin/../lib/libcusparse.so.12: undefined symbol: "
        "__nvJitLinkComplete_12_4, version libnvJitLink.so.12\nKaggle, import cuml, Python 3.10"
    )
    answer = first(text, bare)
    assert "Two causes fit" in answer.cause and "was loaded first" not in answer.cause
    assert "env -u LD_LIBRARY_PATH python -c 'import cuml'" in answer.help
    assert any('"libnvjitlink>=12.4,<13"' in command for command in answer.help)
    assert "most likely of pip's torch" in first(f"{text}\ntorch 2.1.0", bare).cause


@pytest.mark.parametrize(
    ("told", "words"),
    [("torch 0.4.1, CUDA 10.0", "the text has CUDA 10.0"),
     ("PyTorch 0.4.1, CUDA from /opt/cuda", "most likely a build for CUDA 9.0")],
)  # fmt: skip
def test_an_old_torch_against_the_nvcc_of_the_text(told: str, words: str, bare: str) -> None:
    answer = first(f"./_ext.so: undefined symbol: __cudaPopCallConfiguration\n{told}", bare)
    assert words in answer.cause and answer.direction == "file-newer"
    assert "libcudart.so.11" not in answer.cause and "CUDA_HOME" in said(answer)


def test_the_builds_of_old_torches() -> None:
    assert newest_cuda_of("0.4.1") == "9.2" and cuda_on_pypi("0.4.1") == "9.0"
    assert newest_cuda_of("1.2.0") == "10.0" and newest_cuda_of("2.4.0") is None
    gone = cuda_name_gone("cudart", "cudaSetupArgument")
    assert gone is not None and (gone.first, gone.nvcc) == ("10.1", "9.2")
    assert cuda_name_gone("cudart", "cudaLaunchKernel") is None


def test_the_old_launch_is_of_an_old_nvcc(bare: str) -> None:
    answer = first("/w/_ext.so: undefined symbol: cudaSetupArgument\ntorch 1.5.0, CUDA 10.1", bare)
    assert answer.direction == "file-older" and "nvcc before CUDA 9.2" in answer.cause
    assert "CUDA 10.1" in answer.cause and any("nvcc --version" in c for c in answer.help)


def test_cupy_by_the_cuda_of_the_text(bare: str) -> None:
    file = "/e/lib/python3.8/site-packages/cupy_backends/cuda/api/runtime.so"
    answer = first(f"{file}: undefined symbol: cudaMallocAsync\nCUDA 11.5", bare)
    assert "CUDA 11.5, which has the name" in answer.cause
    assert any(command.endswith("pip install cupy-cuda11x") for command in answer.help)


def test_the_wheel_that_asks_has_the_right_copy_beside_it(bare: str) -> None:
    folder = "/opt/conda/lib/python3.10/site-packages/nvidia/cublas/lib"
    text = f"{folder}/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version "
    answer = first(f"{text}libcublasLt.so.11", bare)
    assert f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" in answer.help
    assert "lies beside it" in answer.cause


def test_what_was_compiled_at_run_time_is_compiled_again(bare: str) -> None:
    text = (
        "undefined symbol: cudaGetDriverEntryPointByVersion, version libcudart.so.12\n"
        "torch 2.6.0, ~/.cache/flashinfer/90/cached_ops"
    )
    answer = first(text, bare)
    assert "rm -rf ~/.cache/flashinfer" in answer.help
    assert not any("torch==" in command for command in answer.help)


def test_a_library_of_one_cuda_that_the_text_has(bare: str) -> None:
    answer = first(f"ImportError: libcudart.so.10.0: {GONE}\nCUDA 10.0", bare)
    assert "/usr/local/cuda-10.0/lib64" in answer.cause and "ldconfig" in answer.cause
    assert "torch was not imported first" not in said(answer)


@pytest.mark.parametrize(
    ("soname", "torch", "cuda"),
    [("libcudart.so.10.1", "1.7.0", "10.2"), ("libcudart.so.11.0", "1.8.1", "10.2")],
)
def test_the_build_of_the_package_index_is_for_one_cuda(
    soname: str, torch: str, cuda: str, bare: str
) -> None:
    answer = first(f"ImportError: {soname}: {GONE}\nPyTorch version: {torch}", bare)
    assert f"on the package index is one for CUDA {cuda}" in answer.cause


def test_the_runtime_that_torch_reports_is_torchs_own(bare: str) -> None:
    text = f"ImportError: libcudart.so.10.1: {GONE}\nPyTorch: 1.7.0\n  - CUDA Runtime 10.2"
    answer = first(text, bare)
    assert answer.code == "FA602" and "CUDA 10.2 build" in answer.cause


def test_nvrtc_asks_for_the_builtins_of_its_own_release(bare: str) -> None:
    answer = first("nvrtc: error: failed to open libnvrtc-builtins.so.11.1.", bare)
    assert "+cu111" in answer.cause and "not at import torch" in answer.cause
    assert any("/usr/local/cuda-11.1/lib64" in command for command in answer.help)


def test_a_part_for_one_torch_release(bare: str) -> None:
    path = "/usr/lib/python3.9/site-packages/dgl/graphbolt/libgraphbolt_pytorch_2.4.0.so"
    for text in (f"FileNotFoundError: Cannot find DGL C++ graphbolt library at {path}",
                 f"OSError: {path}: {GONE}"):  # fmt: skip
        answer = first(text, bare)
        assert answer.owner == "DGL" and "none for torch 2.4.0" in answer.cause
        assert any("data.dgl.ai/wheels/torch-2.4" in command for command in answer.help)


def test_a_library_in_a_sentence(bare: str) -> None:
    text = (
        "installing vllm 0.21 tries to open libcudart.so.13 which is of cu13\n"
        "uv pip install vllm==0.21 --torch-backend=cu129"
    )
    answer = first(text, bare)
    assert answer.code == "FA602" and "vllm" in answer.cause and "CUDA 12.9" in answer.cause
    assert "wheels.vllm.ai/0.21.0/cu129" in said(answer)


def test_onnxruntime_by_its_release(bare: str) -> None:
    text = (
        "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.11: "
        f"{GONE}\nonnxruntime-gpu 1.17.0"
    )
    answer = first(text, bare)
    assert "onnxruntime-gpu 1.17.0" in answer.cause
    assert any('"onnxruntime-gpu>=1.19.0"' in command for command in answer.help)


def test_an_image_has_a_torch_of_its_own(bare: str) -> None:
    text = (
        f"ImportError: libtorch_cuda_cu.so: {GONE}\npip install mmcv-full -f "
        "https://download.openmmlab.com/mmcv/dist/cu111/torch1.8.0/index.html\n"
        "NVIDIA NGC PyTorch container 20.12-py3"
    )
    answer = first(text, bare)
    assert "image 20.12" in answer.cause and "mmcv-full" in answer.cause
    assert any("--no-binary mmcv-full" in command for command in answer.help)
