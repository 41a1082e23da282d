"""Errors of CUDA's runtime and libraries that are of a run: said as such, and behind any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.asking import first, said

import fa_forensics

ROWS = json.loads((Path(fa_forensics.__file__).parent / "data" / "cuda_errors.json").read_text())[
    "rows"
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_each_error_of_the_runtime_is_known_by_its_message_and_its_name(
    row: dict[str, str],
) -> None:
    for text in (f"RuntimeError: CUDA error: {row['text']}", row["name"], row.get("driver")):
        if text:
            assert row["name"] in first(text).cause, text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", "address"),
        ("cuda runtime error (700) : an illegal memory access was encountered at /a/x.cu:30",
         "address"),
        ("CUDA error (flash_attn/src/flash_fwd_launch_template.h:92): invalid argument", "launch"),
        ("RuntimeError: CUDA error: invalid device ordinal", "CUDA_VISIBLE_DEVICES"),
    ],
)  # fmt: skip
def test_the_forms_of_programs_are_read(text: str, words: str) -> None:
    answer = first(text)
    assert words in answer.cause and "error of the run" in answer.cause


def test_the_package_of_the_kernel_is_named_where_the_text_has_it() -> None:
    answer = first(
        '  File "/x/site-packages/flash_attn/flash_attn_interface.py", line 91, in _flash',
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    )
    assert answer.owner == "flash-attn" and "another torch minor release" in said(answer)


def test_an_error_of_the_loader_comes_before_one_of_the_run() -> None:
    answer = first(
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "ImportError: /x/a.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
    )
    assert answer.code == "FA201"


def test_hopper_kernels_on_another_gpu_lack_code_by_whatever_name_the_error_has() -> None:
    """FlashAttention 3 is compiled for sm_80 and sm_90a alone (its setup.py)."""
    answer = first(
        "CUDA error (/x/third_party/flash-attention/hopper/flash_fwd_launch_template.h:188): "
        "invalid argument", "", "RTX 5090",
    )  # fmt: skip
    assert answer.code == "FA504" and "12.0" in answer.cause


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cudnn"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cudnn"),
        ("RuntimeError: cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling "
         "`cusolverDnCreate(handle)`", "cusolver"),
        ("RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR", "cufft"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
         "`cublasCreate(handle)`", "cublas"),
    ],
)  # fmt: skip
def test_a_status_of_a_library_is_that_librarys(text: str, owner: str) -> None:
    answer = first(text)
    assert (answer.code, answer.owner) == ("FA204", owner)
    assert "every symbol was found" in answer.cause


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("bash: nvcc: command not found", "FA883"),
        ("RuntimeError: CUDA out of memory", "FA897"),
        ("RuntimeError: Cannot find a working triton installation.", "FA897"),
        ("FATAL: kernel built for sm80-sm100, but running on sm121", "FA504"),
    ],
)
def test_short_messages_that_many_paste_are_known(text: str, code: str) -> None:
    answer = first(text)
    assert answer.code == code and "Nothing in this text" not in answer.cause
