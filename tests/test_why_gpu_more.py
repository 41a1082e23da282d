"""``why`` on ptxas, on checks of packages, and on drivers, where a first reading misleads.

What each answer must say follows from the sources named beside it.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.drivers import cuda_of_isa
from fa_forensics.facts.paste import read_paste
from fa_forensics.why import explain
from fa_forensics.why.torch_names.hip_twin import twin_of


def test_tritons_second_ptxas_has_a_variable_of_its_own() -> None:
    """Triton, third_party/nvidia/backend/compiler.py: get_ptxas takes it from 100 on."""
    answer = first("ptxas-blackwell fatal   : Value 'sm_110a' is not defined for option 'gpu-name'")
    assert answer.owner == "ptxas" and "13.0" in answer.cause
    assert "TRITON_PTXAS_BLACKWELL_PATH" in answer.notes[0] and "sm_101" in said(answer)
    plain = first("ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'")
    assert "BLACKWELL" not in "\n".join(plain.notes) and "TRITON_PTXAS_PATH" in plain.notes[0]


@pytest.mark.parametrize(
    ("wrote", "knows", "release"), [("8.6", "8.5", "12.6"), ("8.8", "8.7", "12.8")]
)
def test_a_ptx_version_that_triton_counted_wrong(wrote: str, knows: str, release: str) -> None:
    """Early releases of Triton add the minor number of CUDA 12 to 8.0."""
    answer = first(f"ptxas /tmp/a.ptx, line 5; fatal : Unsupported .version {wrote}; current "
                   f"version is '{knows}'")  # fmt: skip
    assert release in cuda_of_isa(knows)
    assert (answer.owner, answer.confidence) == ("triton", "medium")
    assert f"CUDA {release}" in answer.cause and "mixed" not in answer.cause


def test_a_toolkit_for_a_gpu_is_not_a_gpu_that_is_refused() -> None:
    answer = first(
        '  File "/w/Sage/setup.py", line 95, in <module>',
        "RuntimeError: CUDA 12.8 or higher is required for compute capability 12.0.",
    )
    assert answer.code == "FA883" and "nvcc" in answer.cause and "12.8" in answer.cause


def test_a_kernel_that_is_not_available_may_be_an_import_that_failed() -> None:
    """SageAttention, core.py: each module is imported in a try that catches everything."""
    answer = first(
        '  File "/v/site-packages/sageattention/core.py", line 6, in sageattn_qk_int8_pv_fp8_cuda',
        "AssertionError: SM89 kernel is not available. Make sure you GPUs have 8.9.",
    )
    assert (answer.owner, answer.confidence) == ("sageattention", "medium")
    assert "import torch, sageattention._qattn_sm89" in answer.help[0]
    assert not any("--gpu 8.9" in command for command in answer.help)


def test_flash_attention_1_asks_for_an_a100_backward_alone() -> None:
    answer = first("RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.",
                   "GPU 0: NVIDIA GeForce RTX 3090")  # fmt: skip
    assert "backward" in answer.cause and "over 64" in answer.cause
    assert "newer" not in answer.cause and "flash-attn>=2" in answer.help[0]


def test_a_copy_of_flash_attention_3_belongs_to_who_compiled_it() -> None:
    answer = first(
        "CUDA error (/w/xformers/third_party/flash-attention/hopper/a.h:167): no kernel image is "
        "available for execution on the device",
        "torch 2.7.0+cu128, RTX 5090",
    )
    assert answer.owner == "xformers" and not any("flash-attn-3" in c for c in answer.help)


def test_bitsandbytes_is_known_by_its_own_words() -> None:
    answer = first(
        "CUDA SETUP: Highest compute capability among GPUs detected: 6.1",
        "Error named symbol not found at line 116 in file /w/csrc/ops.cu",
    )
    assert answer.owner == "bitsandbytes" and "6.1" in answer.cause
    assert 'COMPUTE_CAPABILITY="61"' in said(answer)
    jetson = first("Error named symbol not found at line 233 in file /src/csrc/ops.cu",
                   "GPU 0: Jetson Orin Nano")  # fmt: skip
    assert "Tegra" in said(jetson)


def test_cuda_that_does_not_start_runs_no_kernel() -> None:
    """NVIDIA/nvidia-container-toolkit issue 520."""
    answer = first("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). "
                   "Error 500: named symbol not found")  # fmt: skip
    assert (answer.kind, answer.code) == ("gpu-driver", "FA209")
    assert "WSL" in answer.cause and "1.14.4" in answer.cause


def test_no_driver_is_too_old_for_what_all_of_them_have() -> None:
    answer = first("ImportError: /x/cuda_utils.so: undefined symbol: cuModuleGetFunction")
    assert answer.owner == "cuda-driver" and "none is too old" in answer.cause


def test_a_runtime_from_before_cuda_11_takes_the_driver_of_its_time() -> None:
    answer = first(
        "THCudaCheck FAIL file=/t/extra/cutorch/lib/THC/THCGeneral.c line=70 error=35 : CUDA "
        "driver version is insufficient for CUDA runtime version",
        "libcudart.so.9.1 (libc6,x86-64) => /opt/cuda/lib64/libcudart.so.9.1",
        "libcuda.so -> libcuda.so.375.82",
    )
    assert "CUDA 8.0" in answer.cause and "390.46" in answer.cause
    assert "Lua" in said(answer) and "wheel" not in said(answer)


def test_two_runtimes_of_cuda_10_are_named() -> None:
    answer = first(
        "RuntimeError: CUDA error: invalid device function",
        "NVCC: Cuda compilation tools, release 10.0, V10.0.130",
        "GPU 0: GeForce RTX 2080 Ti",
        "PyTorch: 1.5.1+cu101",
    )
    assert "10.0" in answer.notes[0] and "10.1" in answer.notes[0]


@pytest.mark.parametrize(
    ("library", "release"), [("libhip_hcc.so.3", "3.3"), ("libamdhip64.so.5", "5.x")]
)
def test_the_number_of_a_hip_runtime_is_its_release(library: str, release: str) -> None:
    answer = first(f"ImportError: {library}: cannot open shared object file: No such file or "
                   "directory")  # fmt: skip
    assert answer.kind == "rocm" and release in said(answer)


def test_the_rocm_of_bitsandbytes_is_a_sum() -> None:
    answer = first("RuntimeError: Configured ROCm binary not found at /v/site-packages/"
                   "bitsandbytes/libbitsandbytes_rocm84.so", "ROCm version: 7.14")  # fmt: skip
    assert "ROCm 7.14" in answer.cause and "BNB_ROCM_VERSION" in said(answer)


def test_a_code_object_that_the_hip_runtime_does_not_take() -> None:
    answer = first("RuntimeError: HIP Function Failed (/w/ck_tile/host/kernel_launch_hip.hpp,51) "
                   "shared object initialization failed", "torch 2.4.1+rocm6.0",
                   "rocm-libs 6.4.0.60400")  # fmt: skip
    assert answer.kind == "rocm" and "6.0" in answer.cause and "6.4" in answer.cause


def test_another_makers_gpu_gets_no_advice_on_nvidias_driver() -> None:
    answer = first(
        '  File "/usr/local/corex-4.2.0/lib64/python3/dist-packages/torch/cuda/__init__.py", line 4'
        ", in set_device",
        "Error 803: system has unsupported display driver / cuda driver combination",
    )
    assert answer.kind == "unrecognised" and "Iluvatar" in answer.cause
    assert "nvidia" not in "\n".join(answer.help).lower()


def test_cutlass_names_the_target_with_the_a_of_the_gpu() -> None:
    answer = first("Arch conditional MMA instruction used without targeting appropriate compute "
                   "capability.", "GPU 0: NVIDIA GeForce RTX 5090")  # fmt: skip
    assert "12.0a" in answer.cause and 'TORCH_CUDA_ARCH_LIST="12.0a"' in said(answer)


@pytest.mark.parametrize("error", ["999: unknown error", "101: invalid device ordinal", "3: init"])
def test_the_first_call_of_cuda_is_the_drivers_whatever_its_number(error: str) -> None:
    answer = first(f"RuntimeError: Unexpected error from cudaGetDeviceCount(). Error {error}")
    assert (answer.kind, answer.code, answer.owner) == ("gpu-driver", "FA209", "cuda-driver")


def test_a_feature_that_a_build_left_out_is_no_matter_of_the_gpu() -> None:
    answer = first("RuntimeError: This flash attention build does not support backward.")
    assert answer.code == "FA507" and "backward" in answer.cause


def test_triton_without_libcuda_gets_no_link() -> None:
    answer = first("AssertionError: libcuda.so cannot found!")
    assert answer.owner == "cuda-driver" and "TRITON_LIBCUDA_PATH" in said(answer)
    assert "ln -s" not in said(answer)


def test_error_35_may_mean_that_there_is_no_driver() -> None:
    """c10/cuda/CUDAFunctions.cpp: the same error is "Found no NVIDIA driver" for version 0."""
    line = (
        "Error CUDA driver version is insufficient for CUDA runtime version at line 9 in file a.cu"
    )
    alone = first(line)
    assert alone.confidence == "medium" and "no NVIDIA driver" in alone.cause
    intel = first(line, "laptop with Intel(R) Iris(R) Xe Graphics, torch 2.0.0+cu118")
    assert "none of NVIDIA's" in intel.cause and "newer driver" not in said(intel)
    assert "450.80.02" not in said(intel)
    known = first(line, "Driver Version: 470.57.02   CUDA Version: 11.4", "torch 2.4.0+cu121")
    assert "older than the CUDA runtime" in known.cause and known.confidence == "high"


def test_a_toolkits_version_is_not_that_of_the_runtime() -> None:
    answer = first(
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "CUDA 12.8 in /usr/local/cuda-12.8",
        "Driver Version: 550.54.14   CUDA Version: 12.4",
    )
    assert "12.8" not in answer.cause


def test_the_binding_of_cuda_has_a_runtime_of_its_own() -> None:
    """NVIDIA/cutlass issues 2804 and 2866: cuda-python 13 takes driver 580."""
    answer = first(
        "- Error name: (<cudaError_t.cudaSuccess: 0>, b'cudaErrorInsufficientDriver')",
        "- Target SM ARCH: not set",
        "CUDA_TOOLKIT_PATH=/usr/local/cuda-12.8",
    )
    assert "cuda-python" in answer.cause and "580.65.06" in answer.cause
    assert "cuda-python==12.9" in said(answer) and "torch==" not in said(answer)


def test_a_package_that_was_built_for_a_torch_keeps_it() -> None:
    old = "The NVIDIA driver on your system is too old (found version 11040)."
    lines = (
        "ImportError: /s/site-packages/vllm/_C.abi3.so: undefined symbol: cuTensorMapEncodeTiled",
    )
    both = explain(["\n".join((*lines, old))], None, where="elsewhere").answers
    assert not any("torch==" in command for answer in both for command in answer.help)
    assert any("vllm is compiled for one release" in said(answer) for answer in both)
    told = first(old, "PyTorch version: 2.4.0+cu121")
    assert "CUDA 11.8" in said(told) and "whl/cu118" in said(told)
    assert "Only a newer driver" in said(first(old.replace("11040", "6050")))


def test_a_conversion_that_triton_has_not() -> None:
    """triton issue 6698, vllm issue 19203, and bfloat16 before Ampere."""
    error = "LLVM ERROR: Unsupported rounding mode for conversion."
    line = f"0/1 [00:00<?]Unsupported conversion from bf16 to f16\n{error}"
    for text in ("runs in A100 but not V100", "GPU: Tesla V100"):
        answer = first(line, text)
        assert (answer.owner, answer.confidence) == ("triton", "medium")
        assert "7.0" in answer.cause and "float32" in said(answer)
    same = first("Unsupported conversion from f16 to f16", error, "on a T4 GPU")
    assert "3.3" in same.cause and "3.4" in same.cause
    assert first(error).confidence == "low"


def test_a_gpu_that_triton_does_not_know() -> None:
    """triton pull requests 6131 and 6771: 12.x came with 3.3.1."""
    line = 'AccelerateMatmul.cpp:36: getMMAVersionSafe(int, DotOp): Assertion `false && "'
    answer = first(f"{line}computeCapability not supported\"' failed.", "RTX 5080")
    assert answer.owner == "triton" and "3.3.1" in said(answer) and "12.0" in answer.cause


def test_a_build_file_that_refuses_a_gpu_by_its_own_list() -> None:
    lines = (
        "    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is",
        "    (8.0) - (12.0)",
    )
    answers = explain(["\n".join((
        *lines,
        '  File "/w/fastkernels/setup.py", line 70, in <module>',
        '    raise RuntimeError("Unsupported GPU")',
        "RuntimeError: Unsupported GPU",
    ))], None, where="elsewhere").answers  # fmt: skip
    assert len(answers) == 1 and answers[0].owner == "fastkernels"
    assert "line 70" in answers[0].cause and "GB10" in answers[0].cause
    alone = first(*lines)
    assert alone.code == "FA898" and "only warns" in alone.cause


def test_the_module_in_the_call_is_the_one_without_code() -> None:
    lines = (
        '  File "/s/server/utils/q.py", line 46, in forward',
        "    out = awq_inference_engine.gemm_forward_cuda(",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    )
    assert first(*lines).owner == "awq_inference_engine"
    t4 = first(*lines, "four T4")
    assert "T4 (compute capability 7.5)" in t4.cause and "instructions" in said(t4)
    assert first(*lines, "RTX 5090").confidence == "medium"


@pytest.mark.parametrize(
    ("text", "gpu"),
    [("fails on RTX 4090 but not on A100", "RTX 4090"), ("works on H100 and not on L40S", "L40S"),
     ("A10 and T4", None), ("int4 x, T4 = 3, f(T4)", None), ("2x L4, 24 GB", "L4")],
)  # fmt: skip
def test_which_gpu_a_sentence_means(text: str, gpu: str | None) -> None:
    assert read_paste(text).versions.get("gpu") == gpu


def test_a_name_of_hip_lives_as_long_as_its_twin() -> None:
    """The atlas has c10_cuda_check_implementation(..., int, bool) in 2.0.0 to 2.9.1."""
    name = "_ZN3c103hip28c10_hip_check_implementationEiPKcS2_ib"
    assert twin_of(name) == "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
    line = f"ImportError: /s/aiter/jit/m.so: undefined symbol: {name}"
    for text in ("", "torch 2.10.0+rocm7.0"):
        answer = first(line, text)
        assert (answer.direction, answer.confidence) == ("file-older", "medium")
        assert "newer than 2.9.1" in answer.cause and "torch==" not in said(answer)
    assert "no ROCm build" in first(line, "torch 2.10.0+cu128").cause
    assert twin_of("_Z9999x_3") == "_Z9999x_3"


def test_the_ending_of_hips_names_tells_rocm_6() -> None:
    line = "ImportError: /s/flash_attn_2_cuda.so: undefined symbol: hipGetDevicePropertiesR0600"
    answer = first(line)
    assert answer.direction == "file-newer" and "ROCm 6.0" in answer.cause
    assert "_cpu" not in said(answer)


def test_rocms_libraries_may_lie_in_site_packages() -> None:
    lines = (
        "    from torch._C import *  # noqa: F403",
        "ImportError: libMIOpen.so.1: cannot open shared object file: No such file",
    )
    alone = first(*lines)
    assert alone.confidence == "medium" and "_rocm_sdk_" in said(alone)
    told = first(*lines, "rocm[libraries,devel] from rocm.nightlies.amd.com")
    assert "_rocm_sdk_" in told.help[0] and "LD_LIBRARY_PATH" in said(told)


def test_torch_has_never_had_hip() -> None:
    answer = first(
        "ImportError: cannot import name 'hip' from 'torch' (/s/site-packages/torch/__init__.py)"
    )
    assert "torch.cuda" in answer.cause and "another" not in answer.cause
    other = first("ImportError: cannot import name 'zzz' from 'foo' (/s/site-packages/foo/a.py)")
    assert "in its place" not in other.cause


_OLD_HIP = "ImportError: .../vllm/_C.abi3.so: undefined symbol: _ZN3c103hip19getCurrentHIPStreamEa"


def test_a_name_of_hip_that_torch_gave_up_is_of_an_older_file() -> None:
    """torch/utils/hipify is version 1.0.0 in 2.10.0 and 2.0.0, without c10::hip, in 2.11.0."""
    alone = first(_OLD_HIP)
    assert alone.owner == "torch/c10_hip" and alone.direction == "file-older"
    assert "2.11" in alone.cause and "c10::cuda::getCurrentCUDAStream" in alone.cause
    assert alone.confidence == "medium" and "older than 1.8" not in alone.cause
    told = first(f"{_OLD_HIP}\n\ntorch 2.11.0+rocm7.2")
    assert told.direction == "file-older" and "2.11.0+rocm7.2 is newer" in told.cause
    masked = first("x.so: undefined symbol: _ZN3c103hip37getCurrentHIPStreamMasqueradingAsCUDAEa")
    assert masked.direction == "file-older" and "2.11" in masked.cause
    before = first(f"{_OLD_HIP}\n\ntorch 2.9.1+rocm6.4")
    assert before.direction != "file-older"


def test_names_of_cuda_on_a_torch_for_rocm() -> None:
    text = "ImportError: .../x.so: undefined symbol: _ZN3c104cuda20getCurrentCUDAStreamEa\n\n"
    old = first(f"{text}torch 2.10.0+rocm7.1")
    assert "ROCm" in old.cause and "2.11" in old.cause and "needs a CUDA build" not in old.cause
    drift = first(
        "ImportError: .../x.so: undefined symbol: "
        "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib\n\ntorch 2.12.0+rocm7.2"
    )
    assert drift.direction == "file-older" and "2.9.1" in drift.cause
