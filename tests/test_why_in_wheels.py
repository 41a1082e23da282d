"""``why`` on CUDA libraries in wheels, and on what programs without Python and JIT builds miss."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_why_libraries import GONE, first

from fa_forensics.facts.paste.reader import read_paste
from fa_forensics.why.texts.libraries.wheels_path import folder_of_wheel, folder_on_path


@pytest.mark.parametrize(
    ("words", "cuda"),
    [
        ("Google Colab (CUDA 11.8 torch)", "11.8"),
        ("PyTorch 2.5.1 + CUDA 12.4", "12.4"),
        ("torch 2.1.0 (CUDA 12.1)", "12.1"),
        ("torch 2.1, CUDA 12.1", None),  # the machine's
        ("CUDA 11.8 torch 2.0.1", None),
    ],
)
def test_the_cuda_of_torch_is_told_in_several_ways(words: str, cuda: str | None) -> None:
    assert read_paste(words).versions.get("torch_cuda") == cuda


def test_a_torch_that_reads_a_model_is_not_the_one_that_wrote_it() -> None:
    text = "Model was trained with torch 1.10.0+cu102, yours is 2.5.1. Bad things might happen."
    assert read_paste(text).versions["torch"] == "2.5.1"


def test_a_torch_for_cuda_11_decides_over_two_causes() -> None:
    text = f"from awq import AutoAWQForCausalLM\nImportError: libcudart.so.12: {GONE}\n"
    words, commands, answer = first(f"{text}\nGoogle Colab (CUDA 11.8 torch), autoawq from PyPI")
    assert answer["code"] == "FA602" and "Two causes" not in words
    assert "github.com/casper-hansen/AutoAWQ_kernels/releases" in words and "WHEEL" in commands
    assert "plays no part" not in words


def test_a_wheels_directory_in_the_text_is_the_one_for_the_path() -> None:
    folder = "/opt/conda/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib"
    text = f"ImportError: libnvrtc.so.12: {GONE}\nsglang 0.4.4; file in {folder}/libnvrtc.so.12"
    words, commands, _ = first(text)
    assert f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" in commands
    assert "sgl-kernel" in words and "was not imported first" not in words
    # cuBLAS is in the process after import torch, NVRTC only since 2.6.
    text = text.replace("nvrtc", "cublas").replace("cuda_cublas", "cublas")
    words, commands, _ = first(text)
    assert "importing torch first brings it" in words and "import torch" in commands


@pytest.mark.parametrize(
    ("library", "late"),
    # libtorch_cuda.so of torch 2.4.0+cu121 lists the first two, and not the others (readelf -d).
    [("libcublas.so.12", False), ("libcufft.so.11", False), ("libnvrtc.so.12", True),
     ("libcusolver.so.11", True)],
)  # fmt: skip
def test_importing_torch_first_is_no_way_to_what_it_loads_late(library: str, late: bool) -> None:
    _, commands, _ = first(f"    import my_ext\nImportError: {library}: {GONE}\ntorch 2.4.0+cu121")
    assert ("LD_LIBRARY_PATH" in commands) == late


@pytest.mark.parametrize(
    ("wheel", "folder"),
    # The directories in environments of torch 2.4.0+cu121 and 2.14.1+cu130.
    [("nvidia-cuda-nvrtc-cu12", "cuda_nvrtc"), ("nvidia-nvjitlink", "cu13"),
     ("nvidia-nccl-cu13", "nccl"), ("nvidia-nvjitlink-cu12", "nvjitlink")],
)  # fmt: skip
def test_the_directory_of_a_wheel(wheel: str, folder: str) -> None:
    assert folder_of_wheel(wheel) == folder


def test_bitsandbytes_with_a_torch_of_that_cuda_needs_the_wheels_directory() -> None:
    text = f"OSError: libnvJitLink.so.13: {GONE}\n\nbitsandbytes; torch from "
    words, commands, _ = first(text + "https://download.pytorch.org/whl/cu130")
    assert "nvidia/cu13/lib" in words and '"cu13"' in commands
    assert "order of imports is not" in words and "MODULE" not in commands


def test_nccl_of_a_package_is_installed_and_put_on_the_path() -> None:
    text = f"ImportError: libnccl.so.2: {GONE}\n\npip install lmdeploy, Python 3.11, August 2023"
    words, commands, _ = first(text)
    assert "lmdeploy" in words and "nvidia-nccl-cu11" in commands and "LD_LIBRARY_PATH" in commands
    assert "force-reinstall" not in commands


def test_llama_cpp_takes_cuda_from_the_loaders_path() -> None:
    text = f"libcudart.so.12: {GONE}\n\nComfyUI node with llama-cpp-python CUDA wheel, Python 3.10"
    words, commands, _ = first(text)
    assert "does not link torch" in words and "import torch" not in commands
    assert "nvidia-cuda-runtime-cu12 nvidia-cublas-cu12" in commands


def test_a_program_without_python_is_told_nothing_of_torch() -> None:
    text = (
        "Building engine, please wait for a while...\nCould not load library libcublasLt.so.12. "
        f"Error: libcublasLt.so.12: {GONE}\ncuda 11.7, tensorrt '8.5.3.1'"
    )
    words, commands, answer = first(text)
    assert "CUDA 12" in words and "CUDA 11.7" in words and answer["direction"] == "file-newer"
    assert "torch" not in commands and "plays no part" not in words


def test_dgl_with_condas_torch_needs_pytorchs_own() -> None:
    text = (
        "FileNotFoundError: Cannot find DGL C++ sparse library at /e/lib/python3.11/site-packages/"
        "dgl/dgl_sparse/libdgl_sparse_pytorch_2.4.0.post301.so"
    )
    words, commands, answer = first(text)
    assert answer["owner"] == "DGL" and "conda-forge" in words
    assert '"torch==2.4.0"' in commands and "ls /e/lib" in commands and "ldd" not in commands
    assert read_paste(text).versions["torch"] == "2.4.0.post301"


def test_nvjpeg_of_cuda_11_is_in_nvidias_channel() -> None:
    line = f"UserWarning: Failed to load image Python extension: libnvjpeg.so.11: {GONE}"
    words, commands, _ = first(line)
    assert '-c nvidia "libnvjpeg=11.*"' in commands and "warning" in words
    _, commands, _ = first(f"ImportError: libnvjpeg.so.12: {GONE}")
    assert '-c conda-forge "libnvjpeg=12.*"' in commands


def test_tensorrts_directory_and_release_are_those_of_the_text() -> None:
    text = (
        "/e/lib/python3.10/dist-packages/tensorrt/__init__.py in <module>\n"
        "---> 71 from .tensorrt import *\n     73 __version__ = \"9.1.0.post12.dev4\"\n\n"
        f"ImportError: libnvinfer.so.9: {GONE}\n"
        "!export LD_LIBRARY_PATH=/x:/content/TensorRT-9.1.0.4/lib"
    )  # fmt: skip
    words, commands, _ = first(text)
    assert "LD_LIBRARY_PATH=/content/TensorRT-9.1.0.4/lib" in commands
    assert '"tensorrt==9.1.0.post12.dev4"' in commands and "notebook" in words


def test_a_jit_file_names_its_tools_and_another_torch() -> None:
    line = f"torch_extensions/py38_cu113/fused/fused.so: {GONE}"
    words, commands, _ = first(f"{line}\ntorch 2.1.0+cu118")
    assert "CUDA 11.3 (cu113)" in words and "nvcc of CUDA 11.8" in words
    assert "rm -r ~/.cache/torch_extensions/py38_cu113/fused" in commands
    assert "rank" not in words


@pytest.mark.parametrize(
    ("number", "torch", "command"),
    # The wheels' metadata: 2.0.1+cu118 lists no nvidia-* wheel; 2.3.0+cu118, and the 2.0.1 of the
    # package index (CUDA 11.7), list nvidia-cuda-nvrtc-cu11.
    [("11.8", "2.0.1+cu118", '"torch==2.0.1" --index-url https://download.pytorch.org/whl/cu118'),
     ("11.8", "2.3.0+cu118", '"nvidia-cuda-nvrtc-cu11==11.8.*"'),
     ("11.7", "2.0.1", '"nvidia-cuda-nvrtc-cu11==11.7.*"'),
     ("11.8", "2.0.1", '"torch==2.0.1" --index-url https://download.pytorch.org/whl/cu118'),
     ("11.1", "1.9.0+cu111", '"torch==1.9.0+cu111" -f https')],
)  # fmt: skip
def test_nvrtcs_builtins_come_with_the_build_of_torch_that_is_there(
    number: str, torch: str, command: str
) -> None:
    line = f"RuntimeError: nvrtc: error: failed to open libnvrtc-builtins.so.{number}."
    _, commands, _ = first(f"{line}\ntorch {torch}")
    assert command in commands.splitlines()[0]


_FIRST_TRY = (
    '  File "/usr/lib64/python3.11/site-packages/torch/__init__.py", line 174, in '
    "_load_global_deps\n    ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)\nOSError: "
)


def test_torchs_first_try_names_the_index_of_the_torch_that_is_there() -> None:
    _, commands, _ = first(f"{_FIRST_TRY}libcufft.so.11: {GONE}\ntorch 2.7.0+cu128")
    assert '"torch==2.7.0" --index-url https://download.pytorch.org/whl/cu128' in commands


def test_torchs_first_try_names_no_wheel_for_a_torch_with_cuda_inside() -> None:
    words, commands, _ = first(f"{_FIRST_TRY}libcublas.so.11: {GONE}\ntorch 2.0.1+cu118")
    assert "nvidia-" not in commands and "not whole" in words
    assert '"torch==2.0.1" --index-url https://download.pytorch.org/whl/cu118' in commands


@pytest.mark.parametrize("before", ["", "/was"])
def test_a_directory_of_a_text_goes_on_the_path_as_the_shell_reads_it(
    before: str, tmp_path: Path
) -> None:
    folder = "~/my env/nvidia/cublas/lib"
    command = f'{folder_on_path("python", folder)}; printf %s "$LD_LIBRARY_PATH"'
    environment = {"HOME": str(tmp_path), **({"LD_LIBRARY_PATH": before} if before else {})}
    done = subprocess.run(
        ["/bin/bash", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    wanted = f"{tmp_path}/my env/nvidia/cublas/lib"
    assert done.stdout == (f"{wanted}:{before}" if before else wanted)


@pytest.mark.parametrize(
    "cut", [".../site-packages/nvidia/cuda_nvrtc/lib", "/home/.../nvidia/cuda_nvrtc/lib",
            "<env>/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib"],
)  # fmt: skip
def test_a_cut_path_is_not_typed(cut: str) -> None:
    command = folder_on_path("python", cut)
    assert "..." not in command and "<" not in command and '"cuda_nvrtc"' in command
    assert "DIRECTORY" in folder_on_path("python", "/home/.../thing/lib")


def test_no_import_is_advised_for_what_torch_opens_later() -> None:
    text = f"    import my_ext\nImportError: libcusolver.so.11: {GONE}\ntorch "
    words, commands, _ = first(f"{text}2.4.0+cu121")
    assert "imported before torch" not in words and "import torch; " not in commands
    assert "pip show nvidia-cusolver-cu12" in commands
    # NVRTC is in the list of needed libraries of torch 2.6.0's libtorch_cuda.so, not of 2.4.0's.
    text = text.replace("cusolver.so.11", "nvrtc.so.12")
    words, commands, _ = first(f"{text}2.4.0+cu121")
    assert "imported before torch" not in words and "import torch; " not in commands
    words, commands, _ = first(f"{text}2.7.0+cu128")
    assert "imported before torch" in words and "import torch; import my_ext" in commands


def test_a_wheel_that_is_not_on_record_is_not_named() -> None:
    text = f"    import my_ext\nImportError: libcusolver.so.10: {GONE}\ntorch 2.4.0+cu118"
    assert "nvidia-cuda-cusolver" not in "".join(first(text)[:2])
