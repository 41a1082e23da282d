"""``why`` on how GPU code is built again: by whose list, by which tool, in which directory.

What a build file passes to nvcc itself is in ``data/build_archs.json``, read from the packages'
own sources; torch adds no target where the flags have one (torch.utils.cpp_extension).
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.build_archs import own_list, own_lists
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.gpus import gpu_table
from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.tables import read_table

NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


@pytest.mark.parametrize("name", read_table("build_archs.json")["own"])
def test_no_build_file_asks_a_cuda_for_what_it_cannot_compile(name: str) -> None:
    sinces = [one.since for one in own_lists(name)]
    assert sinces == sorted(sinces, key=lambda text: [int(n) for n in text.split(".")])
    for one in own_lists(name):
        for target in one.targets:
            family = gpu_table().family(target.capability)
            assert family is not None and parse_cuda(family.since_cuda) <= parse_cuda(target.since)


def test_a_release_has_the_list_of_its_own_setup_py() -> None:
    old, new = own_list("mamba_ssm", "2.2.4"), own_list("mamba-ssm", None)
    assert old is not None and new is not None
    assert max(target.capability for target in old.targets) == (9, 0)
    assert (12, 0) in {target.capability for target in new.targets}


@pytest.mark.parametrize(
    ("gpu", "flags"),
    [("GTX 1080 Ti", "arch=compute_61,code=sm_61"), ("B300", ""), ("RTX 5090", "")],
)
def test_a_package_with_its_own_list_does_not_read_torchs_variable(gpu: str, flags: str) -> None:
    answer = first(f"    out = selective_scan_cuda.fwd(u)\n{NO_KERNEL}\n\nmamba_ssm, GPU {gpu}")
    built = next(command for command in answer.help if "MAMBA_FORCE_BUILD" in command)
    assert "TORCH_CUDA_ARCH_LIST" not in built and "--no-binary mamba-ssm" in built
    assert ("NVCC_APPEND_FLAGS" in built) == bool(flags) and flags in built
    assert "TORCH_CUDA_ARCH_LIST has no effect" in said(answer)


def test_an_older_cuda_than_the_lists_entry_asks_for() -> None:
    answer = first(f"    out = selective_scan_cuda.fwd(u)\n{NO_KERNEL}\n\nmamba_ssm, GPU B300")
    assert "has 10.0, whose code runs on 10.3" in said(answer) and "CUDA 12.8" in said(answer)


def test_a_package_of_wheels_alone_is_not_compiled_by_pip() -> None:
    text = '  File "/x/site-packages/sgl_kernel/elementwise.py", line 41, in rmsnorm\n' + NO_KERNEL
    for more in ("", "\n\nsgl_kernel, Blackwell sm_120"):
        answer = first(text + more)
        assert answer.owner == "sgl-kernel"
        assert not any("TORCH_CUDA_ARCH_LIST" in command for command in answer.help)
        assert "published built only" in said(answer)
    assert "compute capability 12.0" in answer.cause


@pytest.mark.parametrize(
    ("text", "sm"),
    [
        ("sgl_kernel, Blackwell sm_120, April 2025", "sm_120"),
        ("torch 2.7, sm_120, ubuntu", "sm_120"),
        ("it fails on sm_75", "sm_75"),
        ("supports sm_50 sm_60 sm_70", None),
        ("sm_70, sm_75, sm_80", None),
        ("arch=compute_80,code=sm_80", None),
        ("a wheel for sm_75-sm_90", None),
        ("Hopper sm_90 code only", None),
    ],
)
def test_a_capability_in_a_sentence(text: str, sm: str | None) -> None:
    assert read_paste(text).versions.get("sm") == sm


STACK = (
    "Exception raised from c10_cuda_check_implementation at CUDAException.cpp:43 (most recent call "
    "first):\n"
)


@pytest.mark.parametrize(
    ("steps", "owner"),
    [
        ("00007FFB c10_cuda.dll!c10::cuda::check [<unknown file>]\n"
         "00007FF8 flash_attn_2_cuda.cp312-win_amd64.pyd!PyInit_flash_attn_2_cuda", "flash-attn"),
        ("frame #0: c10::Error::Error() + 0x96 (0x7f in /x/site-packages/torch/lib/libc10.so)\n"
         "frame #1: <unknown function> + 0x1b (0x7f in /x/site-packages/"
         "causal_conv1d_cuda.cpython-310-x86_64-linux-gnu.so)", "causal-conv1d"),
        ("frame #0: c10::Error::Error() + 0x96 (0x7f in /x/site-packages/torch/lib/libc10.so)\n"
         "frame #1: clone + 0x3f (0x7f in /lib/x86_64-linux-gnu/libc.so.6)", None),
    ],
)  # fmt: skip
def test_the_first_file_of_the_stack_that_is_not_torchs(steps: str, owner: str | None) -> None:
    answer = first(f"{NO_KERNEL}\n{STACK}{steps}")
    assert answer.owner == owner


def test_windows_commands_set_variables_apart() -> None:
    step = "00007FF8 flash_attn_2_cuda.cp312-win_amd64.pyd!PyInit_flash_attn_2_cuda"
    answer = first(f"{NO_KERNEL}\n{STACK}{step}")
    assert "set FLASH_ATTENTION_FORCE_BUILD=TRUE" in answer.help
    assert "FLASH_ATTN_CUDA_ARCHS takes" in said(answer) and "SDPA" in said(answer)


def test_an_operator_of_a_project_is_built_in_its_directory() -> None:
    text = ("ninja: no work to do.\nerror in ms_deformable_im2col_cuda: no kernel image is "
            "available for execution on the device")  # fmt: skip
    answer = first(f"{text}\n\nMultiScaleDeformableAttention built in a/pixel_decoder/ops")
    assert answer.owner == "MultiScaleDeformableAttention"
    built = next(command for command in answer.help if "setup.py" in command)
    assert built.startswith("cd a/pixel_decoder/ops && rm -rf build") and "PACKAGE" not in built
    assert "nothing was compiled" in said(answer)
    named = first(f"{text}\n\nRTX 3090, torch 1.9.0+cu111")
    assert any('TORCH_CUDA_ARCH_LIST="8.6"' in command for command in named.help)


def test_a_name_of_the_driver_that_is_too_new_ends_with_the_driver() -> None:
    answer = first("undefined symbol: cuGreenCtxDestroy\n\nDriver Version: 535.86.10, sgl_kernel")
    assert "550.54.14 or newer is the way out" in said(answer)
    assert not any("readelf" in command for command in answer.help)


def test_what_the_writer_built_is_the_owner_and_its_list_is_read() -> None:
    error = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    call = "out, softmax_lse = _C_flashattention.fwd("
    for lines in ((call, error), (error, 'I built xformers with TORCH_CUDA_ARCH_LIST="12.0"')):
        assert first(*lines).owner == "xformers"
    answer = first(error, 'I built xformers with TORCH_CUDA_ARCH_LIST="12.0"')
    assert any("--no-binary xformers" in text for text in answer.help)
    assert "TORCH_CUDA_ARCH_LIST in the text is 12.0" in said(answer)
    assert "without xformers" in said(answer)


def test_no_command_asks_an_old_torch_for_what_it_does_not_have() -> None:
    line = "nvcc fatal   : Unsupported gpu architecture 'compute_75'"
    old, new = first(line, "torch 1.3.1, CUDA 8.0"), first(line, "torch 1.8.1, CUDA 8.0")
    assert "get_arch_list" not in " ".join(old.help)  # pytorch pull request 41212, July 2020
    assert "get_device_capability" in " ".join(old.help)
    assert "get_arch_list" in " ".join(new.help)
    assert any(note.startswith("PACKAGE is") for note in old.notes)


@pytest.mark.parametrize("gpu", ["RTX 2080 Ti", "Tesla V100"])
def test_a_build_of_flash_attn_2_is_not_all_on_a_gpu_that_it_refuses(gpu: str) -> None:
    line = (
        "ImportError: /x/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-"
        "gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
    )
    assert "does not run on" in first(line, f"torch 2.3.0+cu121, {gpu}").notes[0]
    assert "does not run on" not in " ".join(first(line, "torch 2.3.0+cu121, RTX 3090").notes)


@pytest.mark.parametrize(
    ("gpu", "says"),
    [("Jetson Thor", "10.0f and 11.0f"), ("RTX 5090", "as a rule what the build needs")],
)
def test_sm100_in_the_name_of_a_kernel_is_a_family(gpu: str, says: str) -> None:
    line = (
        "ImportError: .../vllm/_C_stable_libtorch.abi3.so: undefined symbol: "
        "_Z20cutlass_moe_mm_sm100RN5torch6stable6TensorERKS1_"
    )
    assert says in " ".join(first(line, f"vLLM from source, {gpu}").notes)


def test_two_builds_for_different_machines_are_no_matter_of_the_release() -> None:
    answer = first(
        "torchvision 0.15.2+rocm5.4.2 requires torch==2.0.1, but you have torch 2.0.0+cu118 which "
        "is incompatible."
    )
    commands = " ".join(answer.help)
    assert '"torch==2.0.0+cu118" torchvision' in commands and "whl/cu118" in commands
    assert "torch==2.0.1" not in commands
