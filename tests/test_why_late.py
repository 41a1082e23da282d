"""``why`` on texts that a first reading got wrong: what it may not say, and what it must."""

from __future__ import annotations

from support.asking import first_here


def test_uvs_hint_is_a_build_without_torch_and_not_a_missing_torch(bare: str) -> None:
    answer = first_here(
        "ModuleNotFoundError: No module named 'torch'\n\nhint: This error likely indicates that "
        "`flash-attn@2.8.1` depends on `torch`, but doesn't declare it as a build dependency.",
        bare,
    )
    assert answer.code == "FA884" and answer.owner == "flash-attn"
    assert "--no-build-isolation" in "\n".join(answer.help)


def test_a_library_older_than_the_record_is_not_said_to_be_another(bare: str) -> None:
    answer = first_here(
        "symbol cublasGetMathMode, version libcublas.so.9.0 not defined in file libcublas.so.9.0 "
        "with link time reference",
        bare,
    )
    assert "asks for it in libcublas.so.9.0" in answer.cause
    assert answer.owner == "cublas" and answer.direction == "file-newer"


def test_a_torch_before_the_record_is_not_judged_by_it(bare: str) -> None:
    """THPVariableClass is in torch 0.4.0's libraries, and the record begins at 1.0.0."""
    answer = first_here(
        "/x/lltm_cpp.cpython-36m-x86_64-linux-gnu.so: undefined symbol: THPVariableClass\n"
        "PyTorch version: 0.4.0",
        bare,
    )
    assert answer.kind == "import-order" and answer.direction == "unknown"
    assert "import torch first" in answer.cause and answer.confidence != "high"
    assert not any('"torch==' in command for command in answer.help)


def test_a_target_of_one_gpu_alone_has_a_release_of_its_own(bare: str) -> None:
    """sm_90 came with CUDA 11.8, sm_90a with 12.0; nvidia-smi's number is no toolkit."""
    answer = first_here(
        "nvcc fatal   : Unsupported gpu architecture 'compute_90a'\nDriver Version: 535.129.03, "
        "CUDA Version: 12.2",
        bare,
    )
    assert "CUDA 12.0 or newer" in answer.cause and "12.2 does not" not in answer.cause
    older = first_here("nvcc fatal   : Unsupported gpu architecture 'compute_90'", bare)
    assert "CUDA 11.8 or newer" in older.cause


def test_llvms_library_is_not_gccs(bare: str) -> None:
    answer = first_here("/x/lib_C.so: undefined symbol: _ZNSt3__15ctypeIcE2idE", bare)
    assert answer.owner == "libc++" and "libstdcxx" not in "\n".join(answer.help)


def test_a_rocm_library_has_its_own_name(bare: str) -> None:
    lost = "cannot open shared object file: No such file or directory"
    assert first_here(f"ImportError: libhipsparselt.so.0: {lost}", bare).owner == "hipsparselt"
    assert first_here(f"ImportError: libhipsparse.so.0: {lost}", bare).owner == "hipsparse"


def test_an_operator_need_not_be_called_one(bare: str) -> None:
    answer = first_here("torchvision::nms does not exist error on import torchvision", bare)
    assert answer.owner == "torchvision"


def test_nvidias_own_file_was_not_compiled_by_the_texts_toolkit(bare: str) -> None:
    answer = first_here(
        "/x/site-packages/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: "
        "__nvJitLinkComplete_12_4, version libnvJitLink.so.12\nCUDA 12.4",
        bare,
    )
    assert "compiles" not in answer.cause
    assert answer.help[0].startswith("env -u LD_LIBRARY_PATH")


def test_a_path_that_lost_its_colon_to_the_next_line_is_the_file(bare: str) -> None:
    answer = first_here(
        "ImportError:\n/h/site-packages/nvidia/cusparse/lib/libcusparse.so.12\n: undefined symbol: "
        "__nvJitLinkComplete_12_4, version libnvJitLink.so.12\nCUDA 12.4",
        bare,
    )
    assert answer.help[-1].endswith("nvidia/cusparse/lib/libcusparse.so.12")
    assert "compiles" not in answer.cause
