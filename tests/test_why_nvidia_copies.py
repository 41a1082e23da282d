"""Copies of NVIDIA's libraries: which one is old, whose it is, and what puts it right."""

from __future__ import annotations

import re

import pytest

from fa_forensics.facts.cuda_names import cuda_name_since, is_in_every
from fa_forensics.facts.library_names import flavours_of
from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes, *answer.help))


@pytest.mark.parametrize(
    ("built", "found", "numbers"),
    [
        ("(8, 3, 2)", "linked against (8, 0, 3)", ("8.3.2", "8.0.3")),
        ("(8, 9, 2)", "found runtime version (8, 2, 4)", ("8.9.2", "8.2.4")),
        ("7102", "linked against 7005", ("7.1.2", "7.0.5")),
    ],
)
def test_a_whole_cudnn_in_the_place_of_another_is_said_with_both_numbers(
    built: str, found: str, numbers: tuple[str, str], bare: str
) -> None:
    text = f"RuntimeError: cuDNN version incompatibility: PyTorch was compiled against {built} but "
    answer = first(text + found, bare)
    assert answer.owner == "cudnn" and answer.direction == "file-newer"
    assert all(number in answer.cause for number in numbers)
    assert "Parts of two" not in answer.cause


def test_the_directory_on_the_search_path_is_named(bare: str) -> None:
    answer = first(
        "cuDNN version incompatibility: PyTorch was compiled against (8, 3, 2) but linked against "
        "(8, 0, 3)\nLD_LIBRARY_PATH=/opt/cuda/lib64:/public/cudnn/v8.0.3/lib64:/usr/lib\n", bare,
    )  # fmt: skip
    assert "/public/cudnn/v8.0.3/lib64" in answer.cause


def test_the_odd_part_of_cudnn_is_named_with_its_directory(bare: str) -> None:
    answer = first(
        "Could not load library libcudnn_cnn_train.so.8. Error: /apps/cuda/11.8/lib64/"
        "libcudnn_cnn_train.so.8: symbol _ZN10cask_cudnn2kr8isAmpereEPNS0_5spa_tERKi, version "
        "libcudnn_cnn_infer.so.8 not defined in file libcudnn_cnn_infer.so.8 with link time "
        "reference", bare,
    )  # fmt: skip
    assert "/apps/cuda/11.8/lib64 has to leave LD_LIBRARY_PATH" in said(answer)
    assert "libcudnn_cnn_infer.so.8 that is in the process lacks the name" in answer.cause


def test_a_function_older_than_cuda_10_is_in_every_library() -> None:
    assert is_in_every("curand", "curandCreateGenerator")
    assert is_in_every("cublas", "cublasGemmEx")
    assert not is_in_every("cublas", "cublasSetEnvironmentMode")
    assert cuda_name_since("curand", "curandCreateGenerator") is None


def test_no_library_is_too_old_for_such_a_function(bare: str) -> None:
    answer = first(
        "ImportError: /x/lib/python3.9/site-packages/deepspeed/ops/adam/cpu_adam_op.so: undefined "
        "symbol: curandCreateGenerator", bare,
    )  # fmt: skip
    assert "linked without -lcurand" in answer.cause and "older" not in answer.cause
    assert any("RTLD_GLOBAL" in text for text in answer.help)


def test_nccl_is_no_part_of_a_toolkit(bare: str) -> None:
    answer = first(
        "torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister\n\ntorch 2.2.0", bare
    )
    assert "CUDA toolkit" not in said(answer)
    assert any("pip list" in text and "nccl" in text for text in answer.help)


def test_two_wheels_of_nccl_are_told_by_the_torch_of_the_text(bare: str) -> None:
    answer = first(
        "/x/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: "
        "ncclCommResume\n\ntorch 2.13.0, nvidia-nccl-cu12 2.21.5", bare,
    )  # fmt: skip
    assert any("uninstall -y nvidia-nccl-cu12" in text for text in answer.help)
    assert any("nvidia-nccl-cu13==" in text for text in answer.help)


def test_a_trace_of_the_loader_shows_the_copy(bare: str) -> None:
    answer = first(
        "  4709: file=libnvJitLink.so.12 [0];  needed by /v/lib/python3.11/site-packages/nvidia/"
        "cusparse/lib/libcusparse.so.12 [0]\n"
        "  4709:  search path=/opt/sdk/cuda/12.4/lib64  (LD_LIBRARY_PATH)\n"
        "  4709:   trying file=/opt/sdk/cuda/12.4/lib64/libnvJitLink.so.12\n", bare,
    )  # fmt: skip
    assert answer.owner == "nvJitLink"
    assert "/opt/sdk/cuda/12.4/lib64 has to leave LD_LIBRARY_PATH" in said(answer)


def test_an_error_of_cublas_names_the_two_causes(bare: str) -> None:
    answer = first(
        "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx(h)`",
        bare,
    )
    assert answer.owner == "cublas" and answer.confidence == "low"
    assert answer.help[0].startswith("env -u LD_LIBRARY_PATH")


def test_the_driver_decides_between_two_cuda_versions(bare: str) -> None:
    answer = first(
        "OSError: libcublas.so.13: cannot open shared object file: No such file or directory\n"
        "transformer-engine 2.6.0, driver 570.86.10", bare,
    )  # fmt: skip
    assert answer.code == "FA602" and "570.86.10 serves CUDA 12.8 at most" in answer.cause


def test_a_package_with_one_distribution_for_each_cuda_is_known_by_its_module(bare: str) -> None:
    found = flavours_of(["nixl_ep"])
    assert found is not None and found.wheels["12"] == "nixl-cu12"
    assert flavours_of(["torch"]) is None
    answer = first(
        'File "/x/site-packages/nixl_ep/__init__.py", line 2, in <module>\n'
        "    from . import nixl_ep_cpp\nImportError: libcudart.so.13: cannot open shared object "
        "file: No such file or directory\n\nvllm in a CUDA 12 image", bare,
    )  # fmt: skip
    assert any('"nixl-cu12"' in text for text in answer.help)


def test_the_drivers_library_without_its_number_is_no_missing_driver(bare: str) -> None:
    answer = first(
        "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared "
        "object file: No such file or directory", bare,
    )  # fmt: skip
    assert answer.owner == "cuda-driver" and answer.confidence == "medium"
    assert "/usr/lib/wsl/lib" in said(answer)


def test_the_loaders_message_without_its_end_is_read(bare: str) -> None:
    answer = first(
        "environments for CUDA 12 fail at import with `ImportError: libcudart.so.13`.\n"
        "pip install vllm --extra-index-url https://download.pytorch.org/whl/cu129", bare,
    )  # fmt: skip
    assert answer.code == "FA602" and "CUDA 12.9" in answer.cause


def test_the_release_is_judged_as_the_build_of_the_texts_cuda(bare: str) -> None:
    report = explain(
        ["ImportError: /x/a.so: undefined symbol: curandCreateGenerator\n\ntorch==1.12.1 (cu113)"],
        bare, {},
    )  # fmt: skip
    assert report.note is None or "cu102" not in report.note


def test_torch_in_lib64_is_apart_from_its_wheels(bare: str) -> None:
    answer = first(
        'File "/usr/local/lib64/python3.9/site-packages/torch/__init__.py", line 405, in <module>\n'
        "    from torch._C import *\nImportError: libcusparseLt.so.0: cannot open shared object "
        "file: No such file or directory", bare,
    )  # fmt: skip
    assert "lib64" in answer.cause
    assert not any("--force-reinstall" in text for text in answer.help)


def test_a_cuda_name_at_the_link_says_since_when_it_is_there(bare: str) -> None:
    answer = first(
        "libtorch_cuda.so: undefined reference to `cudaLaunchKernelExC@libcudart.so.11.0'", bare
    )
    assert re.search(r"since CUDA 11\.8", answer.cause) and "11.8" in " ".join(answer.help)


def test_nccl_tests_need_no_wheel_of_torch(bare: str) -> None:
    answer = first(
        'undefined symbol: "ncclCommWindowRegister"\nI built nccl 2.27 from source, in nccl tests.',
        bare,
    )
    assert answer.owner == "nccl" and not any("pip" in text for text in answer.help)


def test_an_extension_of_the_stable_abi_needs_torch_first(bare: str) -> None:
    answer = first(
        "extension_cpp_stable: ImportError: libtorch_cuda.so: cannot open shared object file: No "
        "such file or directory\n\ntorch with CUDA", bare,
    )  # fmt: skip
    assert answer.kind == "import-order" and "import torch" in answer.help[0]
