"""``why`` on libraries that are not found: torch's own, conda's, another CUDA's, Python's."""

from __future__ import annotations

import pytest
from test_why_libraries import GONE, first

CONDA = (
    "mamba create -n t pytorch=1.12 -c conda-forge\n{step}ImportError: {library}: {gone}\n{listed}"
)
TORCH_STEP = (
    '  File "/e/lib/python3.9/site-packages/torch/__init__.py", line 202, in <module>\n'
    "    from torch._C import *\n"
)


def test_condas_torch_gets_its_libraries_from_conda() -> None:
    listed = "cudatoolkit   11.7.0  hd8887f6_10  conda-forge"
    text = CONDA.format(step=TORCH_STEP, library="libcupti.so.11.2", gone=GONE, listed=listed)
    words, commands, answer = first(text)
    assert "cudatoolkit 11.7" in words and answer["confidence"] == "high"
    assert '"cudatoolkit=11.2"' in commands and "pip install" not in commands
    assert "None" not in words


def test_no_wheel_is_offered_that_does_not_hold_the_library() -> None:
    words, commands, _ = first(f"{TORCH_STEP}ImportError: libcupti.so.11.2: {GONE}")
    assert "No wheel brings" in words and "pip install" not in commands
    # The wheel for CUDA 12 has had cuDNN 8 and cuDNN 9.
    _, commands, _ = first(f"{TORCH_STEP}ImportError: libcudnn.so.8: {GONE}")
    assert '"nvidia-cudnn-cu12==8.*"' in commands
    words, commands, _ = first(f"{TORCH_STEP}ImportError: libcusparseLt.so.0: {GONE}")
    assert "nvidia-cusparselt-cu13" in words and '"nvidia-cusparselt-cu12"' in commands
    assert "Jetson the" not in words
    words, commands, _ = first(f"Jetson Orin\n{TORCH_STEP}ImportError: libcudnn.so.8: {GONE}")
    assert "JetPack" in words and "pip install" not in commands


def test_a_torch_for_the_cpu_and_a_file_for_cuda_have_to_agree() -> None:
    words, commands, answer = first(
        f"pip install torch==1.10.0+cpu torchaudio==0.10.0\nImportError: libcudart.so.10.2: {GONE}"
    )
    assert answer["code"] == "FA601" and "for the CPU" in words
    # An install command does not say whose file failed, and PyPI's torch 1.10 lacks that name.
    assert "torchaudio" not in words and "torch==1.10.0" not in commands


def test_wheels_before_1_13_have_the_runtime_under_a_name_of_their_own() -> None:
    words, commands, _ = first(f"OSError: libcudart.so.11.0: {GONE}\ntorch 1.10.0+cu113")
    assert "with a hash" in words and "cudatoolkit=11.3" in commands


@pytest.mark.parametrize("torch", ["1.10.0+cu111", "2.4.0+cpu"])
def test_a_package_for_rocm_under_another_torch_is_named(torch: str) -> None:
    step = 'File "/e/lib/python3.8/site-packages/torchaudio/_extension.py", line 27, in <module>\n'
    words, commands, _ = first(f"torch {torch}\n{step}OSError: libtorch_hip.so: {GONE}")
    assert "torchaudio is a build for AMD GPUs" in words
    assert '"torchaudio==' in commands and "/whl/" + torch.split("+")[1] in commands


def test_a_file_that_torch_loads_finds_torch_there() -> None:
    text = (
        'Traceback (most recent call last):\n File "/e/dist-packages/torch/_ops.py", line 9, in f\n'
        f"    ctypes.CDLL(path)\nOSError: libnvrtc.so.13: {GONE}\nin torchcodec"
    )
    words, commands, _ = first(text)
    assert "imported first" not in words and "--index-url" in commands


def test_a_separate_extension_of_flash_attn_is_built_from_its_directory() -> None:
    text = (
        '  File "/e/lib/site-packages/flash_attn/ops/layer_norm.py", line 7, in <module>\n'
        f"    import dropout_layer_norm\nImportError: libtorch_cuda_cu.so: {GONE}\ntorch 2.1"
    )
    assert "subdirectory=csrc/layer_norm" in first(text)[1]


@pytest.mark.parametrize("name", ["libcudart.so.9.0", "libnvrtc.so.10.1", "libcublas.so.11"])
def test_a_library_without_the_version_of_its_name_is_another_ones(name: str) -> None:
    words, commands, _ = first(
        f"ImportError: /opt/c/{name}: version `{name}' not found (required by /e/a.so)"
    )
    assert "under that name" in words and f"readlink -f /opt/c/{name}" in commands
    assert "LD_LIBRARY_PATH" not in commands


def test_a_name_that_only_one_release_of_cublas_has_means_two_releases() -> None:
    words, commands, _ = first(
        "relocation error: /usr/local/cuda-11.1/lib64/libcublas.so: symbol runGemmShortApi, "
        "version libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference"
    )
    assert "two releases" in words and "env -u LD_LIBRARY_PATH" in commands


def test_the_part_of_cudnn_that_lies_elsewhere_is_named() -> None:
    wheel, odd = "/e/lib/python3.10/site-packages/nvidia/cudnn/lib", "/lib/x86_64-linux-gnu"
    words, commands, _ = first(
        f"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH\ncalling init: {wheel}/libcudnn.so.9\n"
        f"calling init: {wheel}/libcudnn_graph.so.9\ncalling init: {odd}/libcudnn_ops.so.9"
    )
    assert f"{odd}/libcudnn_ops.so.9" in words and f"dpkg -S {odd}/libcudnn_ops.so.9" in commands


def test_libpython_of_the_python_that_runs_is_no_other_version() -> None:
    text = (
        "Python 3.12.3\n---> 42 from engine.bindings import A\n     43 import b\n"
        f"\nImportError: libpython3.12.so.1.0: {GONE}"
    )
    words, _, _ = first(text)
    assert "engine.bindings was linked" in words and "no other version" in words
    assert "kernel.json" in words
