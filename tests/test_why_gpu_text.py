"""``why`` on texts about GPU code, the driver and FlashAttention's own checks."""

from __future__ import annotations

import pytest
from support.asking import first, said

NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


def test_torch_is_named_before_the_extension_where_torch_itself_lacks_the_gpu() -> None:
    answer = first(
        '  File "/x/site-packages/flash_attn/flash_attn_interface.py", line 96, in _forward',
        "    out, softmax_lse, S_dmask, rng_state = flash_attn_gpu.fwd(",
        NO_KERNEL,
        "PyTorch version: 2.4.0+cu121",
        "CUDA used to build PyTorch: 12.1",
        "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090",
    )
    assert (answer.kind, answer.code, answer.owner) == ("gpu-arch", "FA504", "torch")
    assert "torch==2.8.0" in answer.help[0]


def test_the_extension_is_named_where_torch_has_the_gpu() -> None:
    answer = first(
        '  File "/x/site-packages/mamba_ssm/ops/selective_scan_interface.py", line 42, in forward',
        "    out, x, *rest = selective_scan_cuda.fwd(u, delta, A, B)",
        NO_KERNEL,
        "PyTorch version: 2.4.0+cu121",
        "CUDA used to build PyTorch: 12.1",
        "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 2080 Ti",
    )
    assert (answer.owner, answer.confidence) == ("mamba-ssm", "high")
    assert answer.help[0].startswith("MAMBA_FORCE_BUILD=TRUE")


def test_without_a_gpu_both_causes_are_told_with_the_command_that_parts_them() -> None:
    answer = first(NO_KERNEL)
    assert (answer.kind, answer.owner, answer.confidence) == ("gpu-arch", None, "medium")
    assert "get_arch_list" in answer.help[0] and "fa-forensics inspect" in answer.help[1]


@pytest.mark.parametrize(
    ("gpu", "release", "accepted"),
    [("Tesla T4", "2.5.8", "8.x"), ("NVIDIA GeForce RTX 5080", "2.7.2", "8.x, 9.0")],
)
def test_a_check_of_flash_attention_is_told_by_its_table(
    gpu: str, release: str, accepted: str
) -> None:
    answer = first(
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        f"GPU models and configuration: GPU 0: {gpu}",
        f"[pip3] flash-attn=={release}",
    )
    assert (answer.kind, answer.code, answer.owner) == ("gpu-arch", "FA507", "flash-attn")
    assert accepted in answer.cause and release in answer.cause


def test_a_gpu_that_a_later_release_takes_gets_that_release() -> None:
    answer = first(
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5080",
        "[pip3] flash-attn==2.7.2",
    )
    assert "2.7.3" in said(answer) and "FLASH_ATTN_CUDA_ARCHS=120" in answer.help[0]


def test_flash_attention_1_is_known_by_its_own_words() -> None:
    answer = first(
        "RuntimeError: Expected is_sm90 || is_sm8x || is_sm75 to be true, but got false."
    )
    assert (answer.code, answer.owner) == ("FA507", "flash-attn")
    assert "7.5, 8.x, 9.0" in answer.cause


def test_flash_attention_4_is_known_by_its_own_words() -> None:
    answer = first("AssertionError: Unsupported compute capability. Supported: 9.x, 10.x, 11.x")
    assert (answer.code, answer.owner) == ("FA507", "flash-attn-4")


def test_what_triton_compiled_is_no_packages_file() -> None:
    answer = first("RuntimeError: Triton Error [CUDA]: device kernel image is invalid")
    assert (answer.owner, answer.code, answer.confidence) == ("triton", "FA504", "medium")
    assert "another GPU" in answer.cause and "TRITON_PTXAS_PATH" in said(answer)
    assert "~/.triton/cache" in said(answer) and "fa-forensics inspect" not in said(answer)


def test_an_old_gpu_is_sent_to_an_older_build_of_torch() -> None:
    answer = first(
        "Found GPU0 Tesla K80 which is of cuda capability 3.7.",
        "    PyTorch no longer supports this GPU because it is too old.",
        "    The minimum cuda capability supported by this library is 5.0.",
    )
    assert (answer.owner, answer.code) == ("torch", "FA504")
    assert "whl/cu118" in answer.help[0] and "11.8 is the last" in said(answer)


def test_a_compiler_that_is_too_old_or_too_new_says_from_which_cuda_to_which() -> None:
    new = first("nvcc fatal   : Unsupported gpu architecture 'compute_120'")
    assert (new.kind, new.code, new.owner) == ("gpu-arch", "FA883", "nvcc")
    assert "12.8 or newer" in new.cause
    old = first("nvcc fatal   : Unsupported gpu architecture 'compute_70'")
    assert "too new" in old.cause and "CUDA 12.9 is the last" in old.cause


@pytest.mark.parametrize(
    ("line", "owner", "words"),
    [
        ("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", "ptxas", "Triton"),
        ("nvrtc: error: invalid value for --gpu-architecture (-arch)", "nvrtc", "comes with torch"),
        ("ValueError: Unknown CUDA arch (12.0) or GPU not supported", "torch", "torch's own"),
    ],
)
def test_each_compiler_has_its_own_way_out(line: str, owner: str, words: str) -> None:
    answer = first(line)
    code = "FA883" if owner == "torch" else "FA510"  # ptxas and NVRTC compile at run time
    assert (answer.kind, answer.code, answer.owner) == ("gpu-arch", code, owner)
    assert words in answer.notes[0]


@pytest.mark.parametrize(
    ("found", "cuda"), [("11040", "11.4"), ("12020", "12.2"), ("12000", "12.0")]
)
def test_the_drivers_own_number_is_read(found: str, cuda: str) -> None:
    answer = first(
        "RuntimeError: The NVIDIA driver on your system is too old "
        f"(found version {found}). Please update your GPU driver"
    )
    assert (answer.kind, answer.code, answer.owner) == ("gpu-driver", "FA506", "cuda-driver")
    assert f"supports CUDA {cuda}" in answer.cause


def test_an_old_driver_is_held_against_torchs_cuda() -> None:
    answer = first(
        "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "PyTorch version: 2.11.0+cu130",
        "CUDA used to build PyTorch: 13.0",
        "Nvidia driver version: 535.54.03",
    )
    assert "CUDA 12.2 (driver 535.54.03)" in answer.cause and "580.65.06" in answer.cause
    assert "torch==2.11.0+cu128" in answer.help[-1]


def test_ptx_of_a_newer_toolkit_is_no_matter_of_minor_compatibility() -> None:
    answer = first(
        "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "PyTorch version: 2.4.0+cu124",
        "CUDA used to build PyTorch: 12.4",
        "Nvidia driver version: 525.85.12",
    )
    assert (answer.kind, answer.code) == ("gpu-driver", "FA506")
    assert "550.54.14" in answer.cause and "does not cover PTX" in said(answer)


def test_an_image_that_the_driver_cannot_read_is_not_one_that_is_missing() -> None:
    answer = first("RuntimeError: CUDA error: device kernel image is invalid")
    assert (answer.kind, answer.confidence) == ("gpu-driver", "medium")
    assert "damaged" in answer.cause


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Error 804: forward compatibility was attempted on non supported HW", "FA506"),
        ("Failed to initialize NVML: Driver/library version mismatch", "FA506"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "FA209"),
        ("RuntimeError: No CUDA GPUs are available", "FA209"),
    ],
)
def test_the_drivers_other_texts_are_the_drivers(line: str, code: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.code, answer.owner) == ("gpu-driver", code, "cuda-driver")


def test_a_cpu_build_of_torch_is_no_matter_of_the_driver() -> None:
    answer = first("AssertionError: Torch not compiled with CUDA enabled")
    assert (answer.kind, answer.code, answer.owner) == ("wrong-torch", "FA601", "torch")


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: FlashAttention forward only supports head dimension at most 256",
        "RuntimeError: FlashAttention only support fp16 and bf16 data type",
        "RuntimeError: FlashAttention backward for head dim > 192 requires A100/A800 or H100/H800",
    ],
)
def test_a_limit_of_flash_attention_is_no_broken_file(line: str) -> None:
    answer = first(line)
    assert (answer.code, answer.owner, answer.direction) == ("FA507", "flash-attn", "none")
    assert "is loaded and fits" in answer.cause


def test_an_amd_gpu_is_rocms() -> None:
    assert first("RuntimeError: HIP error: invalid device function").kind == "rocm"


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "it does not work, please help",
    ],
)
def test_what_is_no_matter_of_files_is_not_recognised(line: str) -> None:
    assert first(line).kind == "unrecognised"


@pytest.mark.parametrize(
    ("found", "torch", "wanted"),
    [
        ("10010", "torch 1.7.1", "torch==1.7.1+cu101"),
        ("10010", "torch 1.7.1+cu102", "torch==1.7.1+cu101"),
        ("10010", "torch 1.6.0", "torch==1.6.0+cu101"),
        ("9020", "torch 1.5.1", "torch==1.5.1+cu92"),
        ("10000", "torch 1.7.1", "torch==1.7.1+cu92"),
        ("10020", "torch 1.7.1+cu110", '"torch==1.7.1"'),  # PyPI's own is for CUDA 10.2
        ("10010", "", "torch==1.4.0"),  # PyPI's torch is for CUDA 10.2 from 1.5 to 1.12
    ],
)
def test_below_cuda_11_a_driver_gets_a_torch_for_its_own_cuda_or_an_older_one(
    found: str, torch: str, wanted: str
) -> None:
    answer = first(
        f"RuntimeError: The NVIDIA driver on your system is too old (found version {found}).",
        torch,
    )
    assert wanted in " ".join(answer.help) and "1.12" not in " ".join(answer.help)
    assert "CUDA major version" not in said(answer)


def test_the_cuda_of_the_package_index_is_told_where_the_text_names_the_release_alone() -> None:
    answer = first(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 10010).",
        "cuda10.2 torch1.7.1",
    )
    assert "built for CUDA 10.2" in answer.cause and "440.33" in answer.cause


@pytest.mark.parametrize(
    "retold",
    [
        "warning: sm_120 not supported by the current installation",
        "sm_120 is not supported by the current PyTorch installation",
        "(sm_120) is not compatible with this pytorch build",
    ],
)
def test_torchs_own_warning_as_people_retell_it_decides_for_torch(retold: str) -> None:
    answer = first(NO_KERNEL, f"NVIDIA RTX 5090 GPU, CUDA 12.8; {retold}")
    assert answer.owner == "torch" and "2.7 to 2.11 for CUDA 12.8" in said(answer)


def test_an_installation_of_another_package_is_not_torchs() -> None:
    answer = first(NO_KERNEL, "sm_120 is not supported by the current installation of flash-attn")
    assert answer.owner != "torch"


def test_where_torch_is_one_of_two_causes_its_wheels_for_the_gpu_are_named() -> None:
    answer = first(NO_KERNEL, "GPU: NVIDIA GeForce RTX 5090")
    assert answer.owner is None and "2.7 to 2.11 for CUDA 12.8" in said(answer)
