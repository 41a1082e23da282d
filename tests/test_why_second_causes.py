"""Causes and ways that a text itself shows beside the usual ones: told, and told with care."""

from __future__ import annotations

import pytest
from support.asking import first, said

SINGLETON = "_ZN2at19UndefinedTensorImpl10_singletonE"  # exported by torch 1.0 alone


def test_an_extension_that_is_imported_alone_may_lack_torch_itself() -> None:
    """torch/utils/cpp_extension.py links extensions with torch's libraries from 1.5 on."""
    answer = first(
        ">>> import chamfer",
        f"ImportError: /x/chamfer.cpython-37m-x86_64-linux-gnu.so: undefined symbol: {SINGLETON}",
    )
    assert answer.help[0] == "python -c 'import torch, chamfer'"
    assert answer.confidence == "medium" and "import torch first" in answer.cause


@pytest.mark.parametrize("before", [">>> import torch\n>>> import chamfer", ">>> x = 1"])
def test_the_order_is_no_cause_where_the_text_does_not_show_it(before: str) -> None:
    answer = first(
        f"{before}\nImportError: /x/chamfer.cpython-37m-x86_64-linux-gnu.so: undefined symbol: "
        f"{SINGLETON}"
    )
    assert "import torch first" not in answer.cause


def test_a_file_of_a_torch_that_links_its_libraries_needs_no_order() -> None:
    answer = first(
        ">>> import x",
        "ImportError: /x/x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
    )
    assert "import torch first" not in answer.cause


def test_a_name_that_every_libstdcxx_has_is_not_blamed_on_an_old_one() -> None:
    """CXXABI_1.3.3 is of GCC 4.4, of 2009 (libstdc++'s ABI policy)."""
    answer = first(
        "ImportError: /x/torch/lib/libtorch_cpu.so: undefined symbol: "
        "_ZNSt15__exception_ptreqERKNS_13exception_ptrES2_, version CXXABI_1.3.3"
    )
    assert answer.owner == "libstdc++" and "No release is too old" in answer.cause
    assert "LD_PRELOAD" in answer.help[0] and "conda install" not in " ".join(answer.help)


def test_a_newer_release_is_no_way_out_of_an_old_glibc() -> None:
    answer = first("OSError: /lib64/libm.so.6: version `GLIBC_2.27' not found", "", "dgl 2.0")
    assert not any("--upgrade" in command for command in answer.help)


def test_a_projects_wheels_are_named_for_the_torch_of_the_text() -> None:
    answer = first(
        "ImportError: /x/site-packages/torch_sparse/_convert_cuda.so: undefined symbol: "
        "_ZNK2at6Tensor6deviceEv", "", "torch 1.9.0, Colab",
    )  # fmt: skip
    assert any("torch-1.9.0+cuXYZ.html" in note for note in answer.notes)


def test_a_name_that_torch_kept_to_itself_is_lacked_by_a_build_on_that_torch_too() -> None:
    """ATen/cuda/Exceptions.h: declared without C10_EXPORT from 1.5.0 to 1.10.2."""
    answer = first(
        "ImportError: /x/fused_weight_gradient_mlp_cuda.cpython-39-x86_64-linux-gnu.so: undefined "
        "symbol: _ZN2at4cuda4blas19_cublasGetErrorEnumE14cublasStatus_t", "", "torch 1.8.2+cu111",
    )  # fmt: skip
    assert "built on the very torch that is loaded lacks it too" in answer.cause
    assert answer.direction == "unknown" and answer.confidence == "medium"


def test_a_torch_for_intels_gpus_is_not_replaced_by_the_indexs() -> None:
    answer = first(
        "ImportError: /x/site-packages/torchvision/image.so: undefined symbol: "
        "_ZN5torch3jit17parseSchemaOrNameERKSs", "",
        "torch of Intel's xpu index with intel_extension_for_pytorch, Python 3.10",
    )  # fmt: skip
    assert not any(" install " in command and "torch" in command for command in answer.help)
    assert "Intel's GPUs (XPU)" in said(answer)


def test_the_name_of_an_environment_is_no_channel() -> None:
    answer = first(
        "ImportError: /x/envs/pytorch-gpu/lib/python3.9/site-packages/torchvision/image.so: "
        "undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs"
    )
    assert "conda-forge's" not in answer.cause and "-c conda-forge" not in " ".join(answer.help)


def test_a_module_that_was_not_defined_follows_from_the_file_that_did_not_load() -> None:
    from support.asking import answers

    (answer,) = answers(
        "name 'exllamav2_ext' is not defined",
        "libstdc++.so.6: version `GLIBCXX_3.4.30' not found",
    )
    assert answer.code == "FA203"


def test_a_series_of_cards_is_no_single_card() -> None:
    answer = first(
        "CUDA error: no kernel image is available for execution on the device", "",
        "torch 2.7 cu128, RTX 5000 series, Windows",
    )  # fmt: skip
    assert "12.0" in answer.cause and "7.5" not in said(answer)


def test_a_gpu_newer_than_an_old_releases_check_is_refused_by_that_release() -> None:
    """flash-attn before 2.7.3 takes 8.x and 9.0 (csrc/flash_attn/flash_api.cpp)."""
    answer = first(
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "", "RTX 5090"
    )
    assert "Releases from 2.7.3 on take it" in answer.cause and answer.confidence == "medium"
