"""``why`` on what a GPU cannot do, on kernels that a build left out, on AMD GPUs and drivers.

What each answer must say follows from facts: the PTX ISA manual (which target has an
instruction), CUDA's release notes (which toolkit compiles for what, which driver is of which
CUDA), and LLVM's table of AMD's processors.
"""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

from fa_forensics.facts.amd_gpus import amd_families, amd_family, amd_target


@pytest.mark.parametrize(
    ("line", "capability", "way_out"),
    [
        ("ptxas k.ptx, line 9; error   : Feature '.bf16' requires .target sm_80 or higher", "8.0",
         "float16"),
        ("ptxas k.ptx, line 9; error : Modifier '.evict_last' on 'ld' requires .target sm_70 or "
         "higher", "7.0", "Triton"),
        ("ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes "
         "are ('fp8e4b15', 'fp8e5')", "8.9", "without FP8"),
    ],
)  # fmt: skip
def test_what_an_old_gpu_cannot_do_is_no_fault_of_a_toolkit(
    line: str, capability: str, way_out: str
) -> None:
    answer, *more = answers(line, "ptxas fatal   : Ptx assembly aborted due to errors")
    assert (answer.kind, answer.code, more) == ("gpu-arch", "FA509", [])
    assert capability in answer.cause and way_out in said(answer)
    assert "no newer ptxas" in answer.cause


def test_a_ptxas_that_is_too_old_is_told_from_a_driver_that_is() -> None:
    ours = first("ptxas /tmp/a.ptx, line 5; fatal   : Unsupported .version 8.7; current version is "
                 "'8.2'")  # fmt: skip
    assert ours.owner == "ptxas" and "12.8" in ours.cause and "12.2" in ours.cause
    theirs = first("ptxas application ptx input, line 9; fatal   : Unsupported .version 8.5; "
                   "current version is '8.4'")  # fmt: skip
    assert theirs.owner == "cuda-driver" and "12.4" in theirs.cause


def test_a_tritons_kernel_that_wants_more_shared_memory_is_not_out_of_memory() -> None:
    answer = first("triton.runtime.errors.OutOfResources: out of resource: shared memory, "
                   "Required: 147456, Hardware limit: 101376.")  # fmt: skip
    assert answer.code == "FA509" and "147456" in answer.cause and "101376" in answer.cause


@pytest.mark.parametrize(
    ("line", "owner", "words"),
    [
        ("OSError: Could not find compatible tinycudann extension for compute capability 61.",
         "tinycudann", "TCNN_CUDA_ARCHITECTURES=61"),
        ("NotImplementedError: No compiled cutlass_scaled_mm for CUDA device capability: 120. "
         "Required capability: 90 or 100", "vllm", "90 or 100"),
        ("CUDA kernel mul_mat_q has no device code compatible with CUDA arch 610. ggml-cuda.cu "
         "was compiled for: 700,750", "llama.cpp", "6.1"),
    ],
)  # fmt: skip
def test_a_kernel_that_a_build_left_out_is_told_by_the_packages_own_words(
    line: str, owner: str, words: str
) -> None:
    answer = first(line)
    assert (answer.kind, answer.code, answer.owner) == ("gpu-arch", "FA504", owner)
    assert words in said(answer)


def test_cutlass_kernels_for_a_range_of_gpus() -> None:
    answer = first("FATAL: kernel `fmha_cutlassF_f16_aligned_64x64_rf_sm80` is for sm80-sm100, but "
                   "was built for sm50")  # fmt: skip
    assert answer.code == "FA504" and "8.0" in answer.cause and "5.0" in answer.cause


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
         "Your Tesla T4 GPU has compute capability 7.5.", ("Tesla T4", "8.0", "float16")),
        ("The quantization method awq_marlin is not supported for the current GPU. Minimum "
         "capability: 80. Current capability: 75.", ("8.0", "7.5")),
        ("RuntimeError: X requires compute capability >= 9.0, got 8.6", ("9.0", "8.6")),
    ],
)  # fmt: skip
def test_a_check_of_the_capability_is_no_fault_of_a_file(line: str, words: tuple[str, ...]) -> None:
    answer = first(line)
    assert (answer.kind, answer.code, answer.confidence) == ("gpu-arch", "FA507", "high")
    assert all(word in said(answer) for word in words)


def test_the_list_of_xformers_is_read_as_one() -> None:
    answer, *more = answers(
        "NotImplementedError: No operator found for `memory_efficient_attention_forward` with:",
        "`fa2F@v2.5.7` is not supported because:",
        "    requires device with capability >= (8, 0) but your GPU has capability (7, 5)",
        "    bf16 is only supported on A100+ GPUs",
        "`cutlassF` is not supported because:",
        "    bf16 is only supported on A100+ GPUs",
    )
    assert more == [] and answer.owner == "xformers" and "7.5" in answer.cause
    assert "bfloat16" in answer.cause and "float16" in said(answer)


def test_an_nvcc_that_has_dropped_an_architecture_is_too_new() -> None:
    for arch, last in (("compute_35", "11.8"), ("sm_61", "12.9"), ("compute_30", "10.2")):
        answer = first(f"nvcc fatal   : Unsupported gpu architecture '{arch}'")
        assert "too new" in answer.cause and last in answer.cause
    other = first("nvcc fatal   : Unsupported gpu architecture 'compute_90'", "CUDA 12.4")
    assert "too new" not in other.cause and "another, older one" in said(other)


def test_a_gpu_that_no_wheel_serves_gets_no_newer_torch() -> None:
    answer = first(
        "    Found GPU0 GeForce GTX 660 which is of cuda capability 3.0.",
        "    PyTorch no longer supports this GPU because it is too old.",
    )
    assert "3.0" in answer.cause and "10.2" in answer.cause
    assert not any("pip install" in command for command in answer.help)


def test_a_warning_of_a_gpu_of_the_same_major_number_is_harmless() -> None:
    warning = (
        "    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is",
        "    (8.0) - (12.0)",
    )
    assert "only warns" in first(*warning).cause
    old = (
        "    Found GPU0 Tesla V100 which is of cuda capability 7.0.",
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is",
        "    (7.5) - (12.0)",
    )
    assert first(*old).code == "FA504"


def test_the_cuda_version_of_a_torch_is_not_claimed_where_the_text_does_not_tell() -> None:
    failed = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    answer = first(failed, "GPU 0: NVIDIA GeForce RTX 5090", "torch 2.7.1")
    assert answer.owner is None and answer.confidence == "medium"
    assert "12.8" in answer.cause and "12.6" in answer.cause
    assert "get_arch_list" in answer.help[0]


@pytest.mark.parametrize(
    ("name", "target"),
    [("AMD Radeon RX 7800 XT", "gfx1101"), ("7900 XTX", "gfx1100"), ("Radeon 780M", "gfx1103"),
     ("MI210", "gfx90a"), ("RX 6600", "gfx1032"), ("RTX 4090", None)],
)  # fmt: skip
def test_amd_gpus_by_name(name: str, target: str | None) -> None:
    assert amd_target(name) == target


def test_each_family_of_amd_gpus_passes_for_one_of_its_own() -> None:
    for family in amd_families():
        assert family.runs_as in family.targets
        major, minor, step = family.version.split(".")
        assert family.runs_as == f"gfx{major}{minor}{step}"
    assert amd_family("gfx906") is None


@pytest.mark.parametrize(
    "line",
    [
        "rocBLAS error: Cannot read /x/torch/lib/rocblas/library/TensileLibrary.dat: Illegal seek",
        "RuntimeError: HIP error: invalid device function",
        "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
    ],
)
def test_an_amd_gpu_without_code_is_named_by_its_target(line: str) -> None:
    answer = first(line, "GPU: AMD Radeon RX 6700 XT")
    assert (answer.kind, answer.code) == ("rocm", "FA504")
    assert "gfx1031" in answer.cause and "HSA_OVERRIDE_GFX_VERSION=10.3.0" in said(answer)
    assert "TORCH_CUDA_ARCH_LIST" not in said(answer)


def test_on_rocm_the_names_of_nccl_are_rccls() -> None:
    answer = first("ImportError: /v/torch/lib/libtorch_hip.so: undefined symbol: "
                   "ncclCommInitRankScalable")  # fmt: skip
    assert (answer.kind, answer.owner) == ("rocm", "rccl")
    assert "nvidia-nccl" not in said(answer)


@pytest.mark.parametrize("library", ["libtorch_cuda.so", "libc10_cuda.so", "libcudart.so.12"])
def test_a_cuda_library_is_not_to_be_installed_beside_a_torch_for_rocm(library: str) -> None:
    answer = first(
        f"ImportError: {library}: cannot open shared object file: No such file or directory",
        "torch 2.4.0+rocm6.1",
    )
    assert answer.kind == "rocm" and "build for ROCm" in answer.cause
    assert not any("pip install" in command for command in answer.help)


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("CUDA error: CUDA driver is a stub library", "FA209", "stubs"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please "
         "update your driver", "FA506", "570.26"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "FA209",
         "kernel module"),
        ("could not select device driver \"\" with capabilities: [[gpu]].", "FA209", "toolkit"),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up "
         "environment", "FA209", "nvidia_uvm"),
    ],
)  # fmt: skip
def test_a_driver_that_is_ill_is_no_fault_of_torch(line: str, code: str, words: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.code, answer.owner) == ("gpu-driver", code, "cuda-driver")
    assert words in said(answer)


def test_forward_compatibility_names_the_driver_of_the_host() -> None:
    answer = first("Error 804: forward compatibility was attempted on non supported HW",
                   "driver is 525, CUDA 12.1")  # fmt: skip
    assert "CUDA 12.0" in answer.cause and "530.30.02" in answer.cause
    assert "newer driver on the host" in said(answer)
