"""What a text tells of CUDA, cuDNN and torch stands against "the loaded copy is older"."""

from __future__ import annotations

import pytest
from support.asking import first as answer_to

GROUPED = (
    "ImportError: /v/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: "
    "cublasLtGroupedMatrixLayoutCreate, version libcublasLt.so.13\n\n"
)
NCCL = "ImportError: /v/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommResume"


def first(text: str) -> tuple[str, str, str]:
    answer = answer_to(text)
    return " ".join((answer.cause, *answer.notes)), "\n".join(answer.help), answer.confidence


@pytest.mark.parametrize(
    "versions",
    ["torch main built with CUDA 13.4 preview", "PyTorch master (commit 1a2b3c4), CUDA 13.4",
     "pytorch HEAD compiled with CUDA 13.4", "the CUDA 13.4 preview"],
)  # fmt: skip
def test_a_toolkit_as_new_as_the_name_need_not_be_too_old(versions: str) -> None:
    words, _, confidence = first(GROUPED + versions)
    assert "Two causes fit" in words and confidence == "medium"
    assert "older than that" not in words and "lies beside torch" not in words


def test_no_wheel_is_typed_for_a_torch_of_ones_own() -> None:
    words, commands, _ = first(f"{NCCL}\n\npytorch main compiled with CUDA 13.1, NCCL 2.30.1")
    assert "built from source" in words and "pip install" not in commands
    assert "older than that" in first(NCCL)[0]


def test_the_wheel_of_nccl_is_for_the_cuda_of_the_torches_that_ask_for_the_name() -> None:
    # Requires-Dist: torch 2.12.0 asks for nvidia-nccl-cu13==2.29.7 on the package index.
    assert '"nvidia-nccl-cu13>=2.29.7' in first(NCCL)[1]


def test_a_file_that_looks_for_an_older_cudnn_was_linked_with_it() -> None:
    text = "undefined symbol: cudnnSetConvolutionGroupCount\n\ntorch from source, cuDNN 7.0.3; "
    words, commands, _ = first(text + "LD_DEBUG=libs shows it searches for cudnn 6")
    assert "cuDNN 6" in words and "conda list" in commands and "Two causes" not in words


def test_torch_2_5_0_ends_where_it_looks_for_cufile() -> None:
    # torch/__init__.py of 2.5.0 has "cufile" in its list, that of 2.5.1 has not.
    text = (
        '  File "/usr/local/lib64/python3.9/site-packages/torch/__init__.py", line 300, in _load\n'
        "    ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)\n"
        "OSError: libcudart.so.12: cannot open shared object file: No such file or directory\n\n"
    )
    words, commands, _ = first(text + "torch 2.5.0, Python 3.9.18")
    assert "cuFile" in words and '"torch==2.5.1"' in commands and "torch==2.5.0" not in commands
    assert "cuFile" not in first(text + "torch 2.6.0")[0]


def test_a_library_that_is_named_goes_before_the_words_around_it() -> None:
    text = "RuntimeError: Could not load libtorchcodec - libnvrtc.so.13 missing on CUDA 12.8\n"
    words, commands, _ = first(text + "torch 2.10.0+cu128")
    assert "CUDA 13" in words and "whl/cu128" in commands and "FFmpeg" not in words


def test_conda_s_python_finds_its_directory_before_the_variable() -> None:
    text = (
        "Could not load library libcudnn_cnn_train.so.8. Error: "
        "/home/u/anaconda3/envs/a/bin/../lib/libcudnn_ops_train.so.8: "
        "undefined symbol: _Z22cudnnGenericOp, version libcudnn_ops_infer.so.8"
    )
    words, commands, _ = first(text)
    assert "has to leave LD_LIBRARY_PATH" not in words and "conda list -p" in commands
