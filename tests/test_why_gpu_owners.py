"""Whose GPU code a text is about: by the paths, the names and the lists that it has."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.report_why import Answer

_NO_IMAGE = "no kernel image is available for execution on the device"


def _all(answer: Answer) -> str:
    return "\n".join((said(answer), *answer.help, *answer.notes))


def test_the_tree_in_a_path_names_flashinfer() -> None:
    answer = first(
        f"CUDA Error: {_NO_IMAGE} (209) /tmp/build-via-sdist-ab/flashinfer-0.1.1+cu121torch2.3/"
        "include/flashinfer/attention/prefill.cuh: line 2128 at function x",
        "sglang, RTX 2080 Ti",
    )
    text = _all(answer)
    assert answer.owner == "flashinfer" and "flashinfer==0.1.6" in text and "7.5" in said(answer)
    assert "PACKAGE" not in text and "/path/to/the" not in text


@pytest.mark.parametrize(
    "text",
    [
        f"SingleDecodeWithKVCache kernel launch failed, error: {_NO_IMAGE}",
        f"BatchPrefillWithPagedKVCache failed: {_NO_IMAGE}\nflashinfer 0.2.0",
    ],
)
def test_flashinfer_has_no_attention_below_turing(text: str) -> None:
    answer = first(text, "flashinfer from source with TORCH_CUDA_ARCH_LIST=7.5, Tesla V100")
    assert answer.owner == "flashinfer" and "neither a rebuild" in said(answer)
    assert 'ARCH_LIST="7.0"' not in _all(answer)


def test_code_of_10_0_is_not_offered_to_12_1() -> None:
    answer = first(
        'fused MoE dies with "no kernel image is available" from a prebuilt moe_utils .so that '
        "has no SM12x image",
        "DGX Spark GB10 (SM121), flashinfer",
    )
    assert answer.owner == "flashinfer" and "12.1" in said(answer)
    assert "ARCH_LIST=" not in "\n".join(answer.help)


def test_a_list_that_has_the_gpu_already_is_not_set_again() -> None:
    answer = first(
        f"error in ms_deformable_im2col_cuda: {_NO_IMAGE}",
        'GroundingDINO, GPU of compute capability 9.0, TORCH_CUDA_ARCH_LIST="9.0 8.0 8.6 7.5"',
    )
    text = _all(answer)
    assert answer.owner == "GroundingDINO" and "compute capability 9.0" in said(answer)
    assert "-gencode" in text and "X.Y" not in text and "does not name the GPU" not in text


def test_the_cuda_of_torch_alone_tells_that_it_has_dropped_an_old_gpu() -> None:
    answer = first(
        "P100, but default image's torch (cu128) has no sm_60 kernels: every operation dies with "
        "cudaErrorNoKernelImageForDevice"
    )
    assert answer.owner == "torch" and "whl/cu126" in answer.help[0]
    assert "TORCH_CUDA_ARCH_LIST" not in _all(answer)


def test_a_pinned_torch_keeps_its_release_for_another_cuda() -> None:
    answer = first(
        "NVIDIA A100-SXM4-80GB with CUDA capability sm_80 is not compatible with the current "
        "PyTorch installation.",
        "The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60 sm_70.",
        "torch==1.10.1",
    )
    assert "torch==1.10.1+cu113" in answer.help[0]


def test_a_driver_in_brackets_decides_and_its_branch_counts_whole() -> None:
    answer = first(
        "ImportError: /x/site-packages/sgl_kernel/common_ops.abi3.so: undefined symbol: "
        "cuGreenCtxDestroy",
        "also with CUDA 12.8 but an older driver (e.g. 525)",
    )
    assert "CUDA 12.0 only" in said(answer) and "550.54.14" in _all(answer)


def test_a_torch_for_the_cuda_of_an_old_driver_comes_from_its_own_index() -> None:
    answer = first(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        "lmdeploy 0.2.5",
    )
    assert any("whl/cu118" in command for command in answer.help)


def test_flash_attention_3_in_xformers_is_switched_off_by_its_own_setting() -> None:
    answer = first(
        "CUDA error (/__w/xformers/xformers/third_party/flash-attention/hopper/"
        f"flash_fwd_launch_template.h:175): {_NO_IMAGE}",
        "xformers 0.0.30, RTX 5090",
    )
    assert answer.owner == "xformers" and "_set_use_fa3(False)" in _all(answer)


def test_flashinfer_in_a_list_beside_other_packages_is_not_the_owner() -> None:
    answer = first(
        f"RuntimeError: CUDA error: {_NO_IMAGE}",
        "flashinfer-python==0.2.5",
        "xformers==0.0.30",
        "vllm==0.9.0",
        "GPU 0: NVIDIA GeForce RTX 5090",
    )
    assert answer.owner != "flashinfer"


def test_a_gpu_on_its_last_driver_is_not_sent_to_a_newer_one() -> None:
    text = "RuntimeError: The NVIDIA driver on your system is too old (found version {})."
    fermi = first(text.format(9010), "NVIDIA GF108M [GeForce GT 540M], Debian 12.2")
    assert "No newer driver helps" in said(fermi) and "the CPU is what is left" in said(fermi)
    assert "Two ways out" not in said(fermi) and not any("install" in c for c in fermi.help)
    kepler = first(text.format(11040), "Tesla K80, torch 2.5.1+cu124")
    assert "No newer driver helps" in said(kepler) and "for CUDA 11.8" in said(kepler)
    older = first(text.format(10020), "Tesla K80, torch 2.5.1+cu124")
    assert "Two ways out" in said(older)
    assert "Two ways out" in said(first(text.format(11040), "RTX 3090, torch 2.5.1+cu124"))


def test_a_package_with_its_own_list_of_gpus_is_the_one_that_is_named() -> None:
    """setup.py of mamba-ssm passes -gencode, and torch adds nothing of its variable then."""
    answer = first(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "mamba-ssm (December 2023), Quadro P5200, Python 3.10",
    )
    assert answer.owner == "mamba-ssm"
    assert not any("TORCH_CUDA_ARCH_LIST=" in text for text in (*answer.help, *answer.notes))


def test_a_compiled_module_of_an_extension_is_tried_behind_torch() -> None:
    answer = first(
        "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by "
        "/h/.conda/envs/e/lib/python3.7/site-packages/amp_C.cpython-37m-x86_64-linux-gnu.so)"
    )
    assert "'import torch; import amp_C'" in answer.help[-1]


def test_flash_attention_3_is_known_by_how_it_prints() -> None:
    # hopper/cuda_check.h prints "CUDA error (file:line)" and exits; FlashAttention 2 has a file of
    # the same name, whose errors torch raises (C10_CUDA_CHECK).
    answer = first(
        "flash-attn version: flash-attn-2.8.3\nCUDA error (/build/source/flash-attn/"
        "flash_fwd_launch_template.h:184): no kernel image is available for execution on the "
        "device",
        "RTX 5090, torch 2.9.0.dev20250909+cu128",
    )
    assert answer.owner == "flash-attn-3" and "2.8.3" not in answer.cause
    assert not any("FLASH_ATTN_CUDA_ARCHS" in command for command in answer.help)
    assert "scaled_dot_product_attention" in said(answer) and "sdpa" in said(answer)


def test_the_words_of_flashinfer_outrank_a_list_of_versions() -> None:
    answer = first(
        f"RuntimeError: RMSNorm failed with error code {_NO_IMAGE}",
        "PyTorch 2.4.0+cu124, sglang 0.2.12, flashinfer 0.1.4+cu124torch2.4, vllm 0.5.4, "
        "Tesla V100-SXM2-32GB",
    )
    text = _all(answer)
    assert answer.owner == "flashinfer" and "--disable-flashinfer" in text
    assert "vllm 0.5.4" not in text and "7.0" in said(answer)


def test_no_program_of_a_list_is_named_where_the_words_are_of_flashinfer() -> None:
    answer = first(f"SiluAndMul failed with error code {_NO_IMAGE}", "vllm 0.5.4, Tesla V100")
    assert answer.owner is None and "vllm" not in said(answer)


@pytest.mark.parametrize("name", ["xformers 0.0.27.post2", "pytorch3d 0.7.4", "vllm 0.5.4"])
def test_a_package_that_is_only_listed_is_no_certain_owner(name: str) -> None:
    answer = first(f"RuntimeError: CUDA error: {_NO_IMAGE}", f"torch 2.4.0+cu121, {name}, V100")
    assert answer.confidence == "medium"
    assert "most likely" in said(answer) or " or " in said(answer)


def test_flash_attn_2_in_a_list_did_not_start_a_kernel_on_a_gpu_that_it_refuses() -> None:
    answer = first(f"CUDA error: {_NO_IMAGE}", "torch 2.0.1+cu117, flash-attn 2.5.8, V100")
    assert answer.owner is None and "refuses" not in said(answer)


@pytest.mark.parametrize(
    ("name", "number"),
    [("GTX 3090", "8.6"), ("gtx4090", "8.9"), ("RTX 1080 Ti", "6.1"), ("4x4090", "8.9"),
     ("4090D", "8.9"), ("3090s", "8.6"), ("8xH100", "9.0"), ("Tesla-V100", "7.0"),
     ("RTX_5090", "12.0"), ("RTX 50 series", "12.0"), ("RTX 40xx", "8.9"), ("TeslaT4", "7.5"),
     ("T1000", "7.5"), ("compute capability 12.0", "12.0")],
)  # fmt: skip
def test_a_gpu_is_known_by_the_names_that_people_write(name: str, number: str) -> None:
    assert number in _all(first(f"CUDA error: {_NO_IMAGE}", f"CUDA 11.8, {name}, numpy 1.26"))


@pytest.mark.parametrize(
    "words", ["requires compute capability 8.0 or higher", "made for the RTX 40 series and up"]
)
def test_what_something_asks_for_is_no_gpu_of_the_text(words: str) -> None:
    text = _all(first(f"CUDA error: {_NO_IMAGE}", f"CUDA 11.8, numpy 1.26\nNAME {words}"))
    assert "does not name the GPU" in text


@pytest.mark.parametrize(
    ("torch", "most", "newer"),
    [("1.9.0+cu102", "7.5 at most", "8.0 (A100, A30) takes CUDA 11.0"),
     ("2.5.1+cu124", "9.0 at most", "12.0 (RTX 50xx, RTX PRO Blackwell) takes CUDA 12.8")],
)  # fmt: skip
def test_the_cuda_of_torch_bounds_a_rebuild_for_a_gpu_that_is_not_named(
    torch: str, most: str, newer: str
) -> None:
    text = _all(first(f"CUDA error: {_NO_IMAGE}", f"torch {torch}"))
    assert most in text and newer in text
