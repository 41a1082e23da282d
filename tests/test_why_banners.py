"""``why``: lines that packages print in place of the loader's own words."""

from __future__ import annotations

import pytest
from support.asking import first, said


def test_a_library_that_a_package_did_not_get_loaded_may_be_there() -> None:
    """torchrec issue 557: nightly packages beside torch 1.12; its tables have fbgemm-gpu 0.2.0."""
    text = ">>> import torchrec\nFile fbgemm_gpu_py.so not found"
    answer = first(text, "torchrec-nightly, torch 1.12 (stable), CUDA 11.2")
    assert (answer.owner, answer.confidence) == ("fbgemm-gpu", "medium")
    assert "No library failed to load" not in said(answer) and "nightly" in answer.cause
    assert any('"fbgemm-gpu==0.2.0"' in command for command in answer.help)
    assert not any(" install " in command for command in first(text).help)


def test_an_arm_machine_whose_gpu_no_wheel_serves_compiles_torch() -> None:
    """bitsandbytes issue 1152: a T4G, which has 7.5 and is in servers with Graviton alone."""
    text = (
        "NVIDIA T4G with CUDA capability sm_75 is not compatible with the current PyTorch "
        "installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_80 sm_90."
    )
    words = said(first(text, "T4G, aarch64, CUDA 12.4"))
    assert "TORCH_CUDA_ARCH_LIST=7.5" in words and "older CUDA version" not in words
    server = said(first(text))
    assert "It is this build of torch" in server and "leave compute capability" not in server


@pytest.mark.parametrize(
    ("fault", "code"),
    [("wrong ELF class: ELFCLASS32", "FA101"), ("invalid ELF header", "FA208"),
     ("file too short", "FA102")],
)  # fmt: skip
def test_a_file_that_is_no_library_for_this_process_is_why_cudnn_gives_up(
    fault: str, code: str
) -> None:
    """SMPLer-X issue 37: a 32-bit libcuda.so comes first; nothing of cuDNN is at fault."""
    answer = first(f"Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: {fault}")
    assert (answer.code, answer.owner) == (code, "cuda-driver")
    assert not any(" install " in command for command in answer.help)
    missing = "libcuda.so: cannot open shared object file: No such file or directory"
    other = first(f"Could not load library libcudnn_cnn_infer.so.8. Error: {missing}")
    assert other.code == "FA209"  # the driver is not there


def test_a_torch_for_one_cuda_that_asks_for_another_is_another_torch() -> None:
    """PyTorch issue 20750: the wheel for CUDA 10.0 beside an older torch, for CUDA 8."""
    text = (
        'File "/usr/local/lib/python3.5/dist-packages/torch/__init__.py", line 79, in <module>\n'
        "    from torch._C import *\nImportError: libcurand.so.8.0: cannot open shared object "
        "file: No such file or directory"
    )
    answer = first(text, "torch 1.1.0+cu100, Python 3.5")
    assert (answer.kind, answer.owner) == ("wrong-torch", "torch")
    assert "cudatoolkit" not in said(answer)
    assert first(text, "torch 0.4.1+cu80").kind == "missing-library"


def test_a_stop_typed_twice_is_no_part_of_a_version() -> None:
    text = (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "PyTorch 2.0..0+cu118 with CUDA 1108 (you have 1.13.1+cu117)"
    )
    assert "2.0..0" not in said(first(text)) and "2.0.0+cu118" in said(first(text))


@pytest.mark.parametrize("below", ["", "\nMNN 3.1.0, glibc 2.41", " requires: Invalid argument\nx"])
def test_an_executable_stack_is_told_where_the_line_is_cut_off(below: str) -> None:
    """glibc 2.41 refuses what MNN asks for; the last words of its line are often left out."""
    line = "ImportError: /x/libMNN.so: cannot enable executable stack as shared object"
    answer = first(line + below)
    assert (answer.code, answer.kind) == ("FA105", "elf-loader")
