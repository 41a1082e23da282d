"""``why`` on AMD GPUs: names of cards, targets of torch's wheels, and builds that stop.

What each answer must say follows from the sources of ``data/amd_gpus.json`` and
``data/torch_hip.json``.
"""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

from fa_forensics.facts.amd_gpus import amd_families, amd_target, torch_wheels
from fa_forensics.facts.paste import read_paste
from fa_forensics.why import explain


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("my card is a 6700xt", "gfx1031"),
        ("RX6600 under Arch", "gfx1032"),
        ("Radeon RX 7600", "gfx1102"),
        ("with a 7900 GRE", "gfx1100"),
        ("AMD Radeon(TM) 780M Graphics", "gfx1103"),
        ("a laptop with an 890M", "gfx1150"),
        ("Strix Halo box", "gfx1151"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "gfx1151"),
        ("on MI355X", "gfx950"),
        ("Radeon Vega 64", "gfx900"),
        ("9070 XT", "gfx1201"),
        ("AI PRO R9700", "gfx1201"),
    ],
)
def test_cards_are_read_as_people_write_them(words: str, target: str) -> None:
    name = read_paste(words).versions["amd_gpu"]
    assert amd_target(name) == target


@pytest.mark.parametrize("words", ["Ryzen 7 5800XT", "RTX 2080 Ti", "a 7950X with 64 GB", "1060S"])
def test_other_parts_are_no_cards_of_amd(words: str) -> None:
    assert "amd_gpu" not in read_paste(words).versions


_NONE = "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"


def test_a_card_that_torchs_wheels_lack_passes_for_its_family() -> None:
    answer = first(f"{_NONE}\n\ni have a 6700xt")
    assert answer.owner == "torch" and "gfx1031" in answer.cause
    assert "HSA_OVERRIDE_GFX_VERSION=10.3.0" in "\n".join(answer.help)
    assert torch_wheels().first("gfx1031") is None
    assert "AMD does not support it" in said(answer) and "nvidia" not in said(answer).lower()
    alone = first(_NONE)
    assert all(family.version in said(alone) for family in amd_families())


def test_a_target_that_newer_wheels_have() -> None:
    text = "RuntimeError: HIP error: invalid device function\n\nRX 7600, torch {}"
    assert torch_wheels().first("gfx1102") == "2.7"
    old = first(text.format("2.5.1+rocm6.2"))
    assert old.owner == "torch" and "gfx1102 from 2.7 on" in said(old)
    new = first(text.format("2.8.0+rocm6.4"))
    assert new.owner != "torch" and "it is the extension that lacks it" in said(new)


def test_an_override_that_the_text_sets() -> None:
    other = first(f"{_NONE}\n\nRX 7600, HSA_OVERRIDE_GFX_VERSION=10.3.0")
    assert "for gfx1102 it is 11.0.0" in said(other)
    none = first(f"{_NONE}\n\nStrix Halo, HSA_OVERRIDE_GFX_VERSION=11.0.0")
    assert "try without" in said(none)


def test_words_of_cuda_on_a_torch_for_rocm_are_rocms() -> None:
    """torch 2.11 for ROCm has CUDA's names, in its messages too."""
    text = "CUDA error: no kernel image is available for execution on the device"
    answer = first(f"{text}\n\ntorch 2.12.0+rocm7.2, gfx1036")
    assert answer.kind == "rocm" and "gfx1036" in answer.cause
    image = first("CUDA error: device kernel image is invalid\n\ntorch 2.12.0+rocm7.2")
    assert image.kind == "rocm" and "driver" not in image.cause


@pytest.mark.parametrize(
    "text",
    [
        "ninja: error: '/opt/rocm/lib/libamdhip64.so', needed by '/w/_C.so', missing and no "
        "known rule to make it",
        "make[2]: *** No rule to make target '/opt/rocm/lib/libamdhip64.so', needed by 'x'.  Stop.",
        'CMake Error at a.cmake:9:\n  The imported target "hip::amdhip64" references the file\n\n'
        '     "/opt/rocm/lib/libamdhip64.so.6.2.60200"\n\n  but this file does not exist.',
        "/usr/bin/ld: cannot find -lamdhip64: No such file or directory",
    ],
)
def test_a_file_of_rocm_that_a_build_wants(text: str) -> None:
    answer = first(text)
    assert answer.owner == "hip" and "libamdhip64.so" in answer.cause
    assert "ROCM_PATH" in "\n".join(answer.help) and "ln -s" not in said(answer)


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("clang: error: cannot find HIP runtime; provide its path via '--rocm-path'", "hip"),
        ("-- Could NOT find HIP: Found unsuitable version \"0.0.0\" (found /opt/rocm)", "hip"),
        ("fatal error: hipblas/hipblas.h: No such file or directory", "hip"),
        ("fatal error: 'c10/hip/HIPStream.h' file not found", "torch"),
        ("cannot locate libamdhip64.so after attempted paths ['/opt/rocm/lib']", "hip"),
        ("RuntimeError: One of GPU archs of ['gfx1103'] is invalid or not supported by "
         "Flash-Attention", "flash-attn"),
        ("RuntimeError: FlashAttention only support AMD MI200 GPUs or newer", "flash-attn"),
        ("RuntimeError: miopenStatusUnknownError", "miopen"),
        ("ImportError: libhsa-runtime64.so.1: undefined symbol: hsaKmtWaitOnEvent_Ext", "hsa"),
        ("ImportError: libhipsparselt.so.0: cannot open shared object file: No such file or "
         "directory", "hipsparselt"),
    ],
)  # fmt: skip
def test_who_owns_what_a_build_or_a_start_for_amd_misses(text: str, owner: str) -> None:
    answer = first(text)
    assert answer.owner == owner and answer.help


def test_sources_with_names_of_hip_are_for_an_older_torch() -> None:
    answer = first("error: no member named 'getCurrentHIPStreamMasqueradingAsCUDA' in namespace "
                   "'at::hip'")  # fmt: skip
    assert "2.11" in answer.cause and "getCurrentCUDAStream" in answer.cause
    assert answer.direction == "file-older"


def test_each_package_reads_its_own_variable_for_targets() -> None:
    error = "Error invalid device function at line 679 in file /bitsandbytes/csrc/ops.hip"
    for text in (f"7900 XTX: {error}", f"{error}\n\nRX 7900 XTX, torch==2.3.0+rocm6.0"):
        answer = first(text)
        assert (answer.kind, answer.owner) == ("rocm", "bitsandbytes")
        assert '-DBNB_ROCM_ARCH="gfx1100"' in said(answer)
        assert "PYTORCH_ROCM_ARCH=gfx" not in said(answer)
    flash = first("HIP error: invalid device function\n\nflash_attn 2.8.3, gfx1100, ROCm 6.4")
    assert any(command.startswith("GPU_ARCHS=gfx1100 ") for command in flash.help)


def test_a_runtime_of_another_rocm_than_torchs() -> None:
    answer = first(
        "ImportError: libamdhip64.so.6: cannot open shared object file: No such file or directory\n"
        "import torch_scatter\n\ntorch 2.8.0+rocm7.0.0"
    )
    assert "A build for ROCm 7" in answer.cause and "NVIDIA" not in answer.cause


def test_a_cuda_library_on_a_machine_with_an_amd_gpu() -> None:
    answer = first(
        "Running on amd gpu with pip installed package\n"
        "OSError: libnvrtc.so.12: cannot open shared object file: No such file or directory"
    )
    assert answer.kind == "rocm" and "build for NVIDIA" in answer.cause
    assert "525" not in said(answer)


def test_a_release_beside_a_rocm_is_no_build_for_cuda() -> None:
    """torch 2.4 for ROCm 6.1 has libc10_hip.so, and no libc10_cuda.so."""
    lost = "cannot open shared object file: No such file or directory"
    for library in ("libc10_cuda.so", "libtorch_cuda.so", "libcudart.so.12"):
        report = explain([f"torch 2.4 rocm 6.1| {library}: {lost}"], None, where="elsewhere")
        answer = report.answers[0]
        assert answer.kind == "rocm" and "build for ROCm" in answer.cause, library
        assert "+cu" not in (report.note or "") and "import torch; import" not in said(answer)
    nvidia = first(
        f"ImportError: libc10_cuda.so: {lost}", "torch 2.4.1+cu121, RTX 4090, no ROCm 6.1"
    )
    assert nvidia.kind != "rocm"


def test_code_for_another_target_is_named_with_both() -> None:
    found = answers(
        "[hiperror](209) fail to call hipModuleLoadData(&module, buffer) no kernel image is "
        "available for execution on the device hipErrorNoBinaryForGpu\n"
        ":1:devprogram.cpp :1838: Error: The program ISA amdgcn-amd-amdhsa--gfx942 is not "
        "compatible with the device ISA amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-\n"
        'ROCm 6.3.1 on MI250X, flash-attention built with GPU_ARCHS="gfx90a"'
    )
    text = "\n".join((found[0].cause, *found[0].help, *found[0].notes))
    assert len(found) == 1 and found[0].owner == "flash-attn"
    assert "gfx942" in text and "gfx90a" in text and "FLASH_ATTENTION_TRITON_AMD_ENABLE" in text
    assert "TORCH_CUDA_ARCH_LIST" not in text and "sm_" not in text


def test_the_runtime_of_the_rocm_that_is_there_is_a_matter_of_the_path() -> None:
    answer = answers(
        "ImportError: libamdhip64.so.5: cannot open shared object file: No such file or "
        "directory\n\nROCm 5.0, Radeon VII"
    )[0]
    assert any("/opt/rocm/lib:/opt/rocm/hip/lib" in text for text in answer.help)
    assert any("ldconfig" in text for text in answer.notes)


def test_bitsandbytes_for_rocm_is_not_told_to_be_built_for_cuda() -> None:
    site = "/opt/conda/envs/x/lib/python3.10/site-packages/bitsandbytes"
    answer = answers(
        f"Could not find the bitsandbytes CUDA binary at PosixPath('{site}/"
        "libbitsandbytes_hip_nohipblaslt.so')\nCould not load bitsandbytes native library: "
        f"{site}/libbitsandbytes_cpu.so: cannot open shared object file: No such file or directory"
    )[0]
    text = "\n".join((answer.cause, *answer.help, *answer.notes))
    assert "COMPUTE_BACKEND=hip" in text and "COMPUTE_BACKEND=cuda" not in text
    assert "libbitsandbytes_hip.so" in text and "--force-reinstall" not in text
    assert answer.confidence == "medium"


def test_a_library_of_torchs_own_is_not_built_again() -> None:
    answer = answers(
        "ImportError: /opt/venv/lib64/python3.13/site-packages/torch/lib/libtorch_hip.so: "
        "undefined symbol: rsmi_is_P2P_accessible"
    )[0]
    text = "\n".join((answer.cause, *answer.help, *answer.notes))
    assert answer.owner == "rocm-smi" and "librocm_smi64.so" in text and "setup.py" not in text


def test_libraries_of_the_systems_rocm_are_not_built_again() -> None:
    answer = answers(
        "OSError: /opt/rocm-5.7.1/lib/libhipsolver.so.0: undefined symbol: "
        "rocsolver_zhegvdx_inplace\n\ntorch 2.1 nightly for rocm5.2"
    )[0]
    text = "\n".join((answer.cause, *answer.help, *answer.notes))
    assert answer.owner == "rocsolver" and "two releases of ROCm" in answer.cause
    assert "5.7.1" in answer.cause and "LD_LIBRARY_PATH" in text and "setup.py" not in text


def test_a_nightly_that_lacks_a_library_of_rocm_is_at_fault() -> None:
    answer = answers(
        "    from torch._C import *  # noqa: F403\nImportError: librocprofiler-sdk.so.1: cannot "
        "open shared object file: No such file or directory\n\n2.12.0.dev20260324+rocm7.2-cp312"
    )[0]
    assert answer.owner == "rocprofiler" and "2.12.0.dev20260324+rocm7.2" in answer.cause
    assert "another nightly or the last release" in answer.notes[0]


def test_a_nightly_can_be_older_than_the_target() -> None:
    # pytorch pull request 164854 (October 2025) brought gfx1151, and 2.10 has it.
    answer = first(
        "HIP error: invalid device function\n[pip3] torch==2.10.0.dev20250929+rocm7.0\n\n"
        "gfx1151, HSA_OVERRIDE_GFX_VERSION=11.0.0 worked"
    )
    assert answer.owner == "torch" and "20250929" in said(answer)
    assert "take it off" not in said(answer)


_HIP = "RuntimeError: HIP error: invalid device function"


@pytest.mark.parametrize(
    "built",
    [
        "$ rocm-sdk targets\ngfx1100;gfx1101;gfx1102",
        "PYTORCH_ROCM_ARCH='gfx1100;gfx1101;gfx1102'",
        "torch.cuda.get_arch_list() is ['gfx1100', 'gfx1101', 'gfx1102']",
    ],
)
def test_a_list_of_targets_is_what_was_built_and_never_the_gpu(built: str) -> None:
    assert "gfx" not in read_paste(f"{_HIP}\n{built}").versions
    alone = said(first(_HIP, built))
    assert "gfx1100, gfx1101, gfx1102" in alone and "this GPU (gfx1100)" not in alone
    answer = first(_HIP, built, "AMD Radeon 780M (gfx1103)")
    assert "this GPU (gfx1103)" in answer.cause and "not among them" in answer.cause
    assert "HSA_OVERRIDE_GFX_VERSION=11.0.0" in " ".join(answer.help)


@pytest.mark.parametrize(
    "versions",
    [
        "Pytorch version: 2.4.1, ROCM HIP version: 6.1.40093, AMD Radeon RX 6800M",
        "torch 2.4.1, AMD Radeon RX 6800M",
    ],
)
def test_a_torch_on_an_amd_gpu_is_not_the_build_that_pypi_has(versions: str) -> None:
    told = repr(explain([f"{_HIP}\n{versions}"], None))
    assert "torch 2.4.1, as the text says" in told and "that PyPI has" not in told


def test_a_cuda_in_brackets_behind_torch_is_that_of_the_build() -> None:
    text = "version `GLIBC_2.29' not found (required by /x/site-packages/libpyg.so)"
    told = repr(explain([f"{text}\nPyTorch 2.1.0 (conda cu118)"], None))
    assert "torch 2.1.0+cu118, as the text says" in told and "that PyPI has" not in told


def test_the_first_release_on_record_is_not_told_as_the_first_with_a_target() -> None:
    """torch 1.12 to 2.0 had gfx90a too, which the table does not know (its first row is 2.1)."""
    answer = first(
        "hipErrorNoBinaryForGpu: The program ISA amdgcn-amd-amdhsa--gfx942 is not compatible with "
        "the device ISA amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"
    )
    assert "from 2.1 on" not in " ".join(answer.notes)


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        # pytorch.org/get-started/previous-versions: 1.13 for ROCm is in whl/rocm5.2.
        ("torch 1.13.1, ROCM 5.4.2", "torch==1.13.1 --index-url https://download.pytorch.org/whl/rocm5.2"),
        ("torch 2.6.0, ROCm 6.1.2", "torch==2.6.0 --index-url https://download.pytorch.org/whl/rocm6.1"),
        ("ROCm 5.3", "torch --index-url https://download.pytorch.org/whl/rocmX.Y"),
    ],
)  # fmt: skip
def test_the_index_is_one_that_has_the_release_of_torch(told: str, typed: str) -> None:
    answer = first(
        f"{told}\n    import torch_scatter\nOSError: libc10_hip.so: cannot open shared object "
        "file: No such file or directory"
    )
    assert any(command.endswith(typed) for command in answer.help)


@pytest.mark.parametrize(
    ("library", "owner"),
    [
        ("libhipfile.so.0", "hipfile"),
        ("librocm_sysdeps_liblzma.so.5", "rocm-sysdeps"),
        ("librocm_sysdeps_z.so.1", "rocm-sysdeps"),
        ("librocroller.so.1", "rocroller"),
    ],
)
def test_a_library_of_rocm_behind_a_word_and_a_colon(library: str, owner: str) -> None:
    """ROCm/TheRock issue 7329 and pytorch pull request 188454."""
    answer = first(
        f"[ERROR] Failed to retrieve GPU info: ERROR:{library}: cannot open shared object file",
        "torch nightly for ROCm (10.1.0a20260811)",
    )
    told = "\n".join((said(answer), *answer.help, *answer.notes))
    assert answer.owner == owner and "ERROR:" not in told and "_rocm_sdk_core/lib" in told
    assert "another nightly of both" in told


def test_xformers_on_a_torch_for_rocm_is_taken_out_or_from_its_index() -> None:
    """utensils/comfyui-nix issue 57; xformers 0.0.30 asks for torch 2.7.0."""
    answer = first(
        "!!! Exception during processing !!! No operator found for "
        "`memory_efficient_attention_forward` with input",
        "torch 2.10.0+rocm7.1, xformers 0.0.30, gfx1201",
    )
    assert "torch 2.7.0" in said(answer) and "uninstall -y xformers" in answer.help[0]
    assert any("whl/rocm7.1" in command for command in answer.help)
