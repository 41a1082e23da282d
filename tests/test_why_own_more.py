"""Modules and functions of a package's own: whole installations, pairs of one release, owners."""

from __future__ import annotations

import pytest
from support.asking import first, said


def no_module(name: str, *lines: str) -> str:
    return "\n".join((*lines, f"ModuleNotFoundError: No module named '{name}'"))


def test_torchs_own_module_comes_back_in_the_release_of_the_text() -> None:
    answer = first(no_module("torch._C"), "torch 2.1.2, torchvision 0.16.2, Python 3.9")
    assert '"torch==2.1.2"' in answer.help[-1] and "not whole" in answer.cause


def test_a_source_tree_of_torch_needs_no_torch_to_be_built() -> None:
    answer = first(no_module("torch._C", "/opt/pytorch/torch/__init__.py in <module>()"))
    assert "/opt/pytorch" in answer.cause and "cpp_extension" not in said(answer)


def test_turbomind_is_looked_for_where_lmdeploy_keeps_it() -> None:
    frame = '  File "{}/lmdeploy/turbomind/turbomind.py", line 22, in <module>'
    wheel = first(no_module("_turbomind", frame.format("/v/lib/python3.10/site-packages")))
    assert "lmdeploy/lib/_turbomind*" in wheel.help[0]
    tree = first(no_module("_turbomind", frame.format("/data/QA/lmdeploy_main")))
    assert "source tree /data/QA/lmdeploy_main" in tree.cause and tree.help[0].startswith("cd / ")


def test_mmcv_without_operations_is_exchanged_in_its_own_line_of_releases() -> None:
    old = first(no_module("mmcv._ext"), "mmcv 1.7.2, torch 1.13.1+cu117, Python 3.8")
    assert "cu117/torch1.13.0" in old.help[-1] and "mmcv-full==1.7.2" in old.help[-1]
    plain = first(no_module("mmcv._ext"))
    assert "mmcv-lite" in plain.cause and not any(c.endswith(" mmcv") for c in plain.help)


@pytest.mark.parametrize("name", ["_THError", "_THArgCheck", "__THCudaCheck", "THCudaMalloc"])
def test_functions_of_th_and_thc_are_torchs(name: str) -> None:
    file = "/e/lib/python3.6/site-packages/my_conv.cpython-36m-x86_64-linux-gnu.so"
    answer = first(f"ImportError: {file}: undefined symbol: {name}")
    assert (answer.owner or "").startswith("torch/") and answer.exported_by[0] == "1.0.0"


def test_a_library_of_torch_can_lack_nccls_helpers_by_itself() -> None:
    file = "/opt/conda/lib/python3.6/site-packages/torch/lib/libtorch_python.so"
    answer = first(f"{file}: undefined symbol: _ZN5torch4cuda4nccl13get_max_countEv")
    assert "USE_NCCL" in answer.cause and answer.confidence == "medium"


def test_the_code_of_xla_is_of_the_file_that_has_it_inside() -> None:
    folder = "/x/site-packages/torch_xla-1.13-py3.8-linux-x86_64.egg"
    file = f"{folder}/_XLAC.cpython-38-x86_64-linux-gnu.so"
    answer = first(f"ImportError: {file}: undefined symbol: _ZN3tsl3Env7DefaultEv")
    assert answer.code == "FA205" and "import tensorflow" not in said(answer)
    other = first("ImportError: /x/op.so: undefined symbol: _ZN3tsl3Env7DefaultEv")
    assert "import tensorflow" in said(other)


def test_a_function_that_ctypes_misses_is_of_another_release() -> None:
    file = "/usr/local/lib/python3.8/dist-packages/bitsandbytes/libbitsandbytes_cuda114.so"
    line = f"AttributeError: {file}: undefined symbol: clion32bit_g32"
    board = first(line, "Jetson AGX Xavier, CUDA 11.4, Python 3.8")
    assert "different releases" in board.cause
    assert not any("pip install" in command for command in board.help)
    other = first("AttributeError: /x/site-packages/g/libg.so: undefined symbol: g_load")
    assert "another release" in other.cause


def test_a_bitsandbytes_for_an_old_cuda_is_no_newer_one() -> None:
    text = "CUDA SETUP: Required library version not found: libbitsandbytes_cuda{}.so."
    assert not any("pip install" in command for command in first(text.format(116)).help)
    assert "bitsandbytes<0.46" in said(first(text.format(117)))
    assert "CUDA 11.6" in first(text.format(116)).cause


def test_a_build_in_a_directory_of_its_sources_is_removed_whole() -> None:
    folder = "/home/j/.cache/torch_extensions/filtered_lrelu_plugin"
    file = f"{folder}/92f8-nvidia-geforce/filtered_lrelu_plugin.so"
    name = "_Z28choose_filtered_lrelu_kernelIN3c104HalfElLb1ELb0EE26filtered_lrelu_kernel_spec"
    answer = first(
        f"ImportError: {file}: undefined symbol: {name}RK28filtered_lrelu_kernel_paramsi"
    )
    assert answer.help[0] == f"rm -r {folder}" and "FORCE_CUDA" not in said(answer)


def test_wheels_for_a_release_do_not_fit_the_nightly_before_it() -> None:
    answer = first(
        "OSError: [WinError 127] The specified procedure could not be found",
        "torch 1.6.0.dev20200518, CUDA 10.2, Windows 10, torch-scatter/torch-sparse wheels for "
        "torch-1.6.0+cu102",
    )
    assert any('"torch==1.6.0"' in c and c.endswith("/cu102") for c in answer.help)


def test_a_mac_gets_no_readelf() -> None:
    answer = first(
        "ImportError: dlopen(a.cpython-37m-darwin.so, 2): Symbol not found: _THPVariableClass\n"
        "  Referenced from: a.cpython-37m-darwin.so\n  Expected in: flat namespace"
    )
    assert "readelf" not in said(answer) and "libtorch)" in said(answer)
