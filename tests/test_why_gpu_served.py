"""Which GPUs a package serves at all, and who is asked for code that a build cannot have."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.report_why import Answer

_NO_IMAGE = "no kernel image is available for execution on the device"


def _all(answer: Answer) -> str:
    return "\n".join((said(answer), *answer.help, *answer.notes))


@pytest.mark.parametrize(
    "versions", ["vLLM, GTX 1080 Ti", "vLLM 0.9.1, torch 2.7.0+cu126, Tesla P40"]
)
def test_vllm_below_7_0_is_not_mended_by_a_newer_one(versions: str) -> None:
    """vLLM's documentation asks for compute capability 7.0; newer torch drops older GPUs."""
    answer = first(f'The error is "CUDA error: {_NO_IMAGE}".', versions)
    text = _all(answer)
    assert answer.owner == "vllm" and "7.0" in said(answer) and "6.1" in said(answer)
    assert "--upgrade" not in text and "CUDA_SUPPORTED_ARCHS" in text and "GGUF" in text


def test_vllm_on_a_new_gpu_is_upgraded() -> None:
    answer = first(f"CUDA error: {_NO_IMAGE}", "vLLM 0.6.3, torch 2.4.0+cu121, RTX 5090")
    assert "--upgrade" in "\n".join(answer.help)


def test_an_extension_of_flash_attentions_csrc_is_built_by_itself() -> None:
    """csrc/layer_norm/setup.py passes its own -gencode list and reads no variable."""
    answer = first(
        f"CUDA Error: {_NO_IMAGE} flash-attention/csrc/layer_norm/ln_fwd_kernels.cuh 236",
        "flash-attention csrc/layer_norm, Blackwell GPU",
    )
    text = _all(answer)
    assert answer.owner == "dropout_layer_norm" and "Blackwell" in said(answer)
    assert "subdirectory=csrc/layer_norm" in text and "FORCE_BUILD" not in text
    assert "does not name the GPU" not in text and "scaled_dot" not in text


@pytest.mark.parametrize("text", ["needs a Blackwell GPU", "requires Hopper GPUs or newer"])
def test_a_family_that_is_asked_for_is_nobodys(text: str) -> None:
    from fa_forensics.facts.paste import read_paste

    assert "gpu_family" not in read_paste(text).versions


def test_what_bitsandbytes_reports_need_not_be_its_own() -> None:
    """Its macro CUDA_CHECK_RETURN(cudaPeekAtLastError()) sees what others left behind."""
    line = f"Error {_NO_IMAGE} at line 73 in file /src/csrc/ops.cu"
    answer = first(line, "torch 2.8, RTX 5090, sage_hub attention backend")
    assert answer.confidence != "high" and "sage_hub" in said(answer)
    assert "or bitsandbytes itself" in said(answer)
    alone = first(line, "bitsandbytes 0.41.1, RTX 5090")
    assert alone.owner == "bitsandbytes" and alone.confidence == "medium"
    assert "quantize_4bit" in alone.help[0]


@pytest.mark.parametrize("sm", ["60", "75"])
def test_sageattention_begins_with_8_0(sm: str) -> None:
    answer = first(
        'File "D:\\x\\lib\\site-packages\\sageattention\\core.py", line 138, in sageattn\n'
        '    raise ValueError(f"Unsupported CUDA architecture: {arch}")\n'
        f"ValueError: Unsupported CUDA architecture: sm{sm}"
    )
    assert answer.owner == "sageattention" and "8.0" in said(answer)
    assert "uninstall -y sageattention" in answer.help[0]
    assert "git+" not in "\n".join(answer.help)


def test_sageattention_that_does_not_know_a_newer_gpu_is_renewed() -> None:
    answer = first(
        'File "/x/site-packages/sageattention/core.py", line 138, in sageattn\n'
        "ValueError: Unsupported CUDA architecture: sm121"
    )
    assert answer.owner == "sageattention" and "older than" not in said(answer)
    assert "git+" in "\n".join(answer.help)


def test_the_module_of_8_9_serves_12_0() -> None:
    """SageAttention's core.py: sm120 goes to sageattn_qk_int8_pv_fp8_cuda, of _qattn_sm89."""
    answer = first(
        'File "/e/lib/python3.12/site-packages/sageattention/core.py", line 666, in f\n'
        '    assert SM89_ENABLED, "SM89 kernel is not available. Make sure you GPUs with compute '
        'capability 8.9."',
        "torch 2.7+cu128, RTX 5080",
    )
    assert "RTX 5080" in said(answer) and "12.8" in _all(answer)
    assert "uninstall -y sageattention" in "\n".join(answer.help)


def test_wgmma_is_hoppers_alone() -> None:
    """PTX ISA: wgmma.fence requires sm_90a."""
    text = (
        'TORCH_CUDA_ARCH_LIST="9.0;12.0"\n'
        "ptxas error: Instruction 'wgmma.fence' not supported on .target 'sm_120'"
    )
    answer = first(text, "torch 2.8.0+cu128, CUDA 12.8, RTX 5090 (12.0)")
    assert "Hopper" in said(answer) and 'TORCH_CUDA_ARCH_LIST="12.0"' in "\n".join(answer.help)
    plain = first("ptxas error : Instruction 'wgmma.fence' not supported on .target 'sm_90'")
    assert 'TORCH_CUDA_ARCH_LIST="9.0a"' in _all(plain)


def test_a_labelled_flashinfer_goes_on_under_its_own_name() -> None:
    """FlashInfer 0.1.6 is the first with 7.5 in its wheels; flashinfer-python began at 0.2.1."""
    path = "/tmp/build-via-sdist-i/flashinfer-{}/include/flashinfer/attention/handler.cuh: line 169"
    answer = first(
        f"CUDA Error: {_NO_IMAGE} (209) {path.format('0.1.4+cu121torch2.4')} at function f",
        "flashinfer 0.1.4+cu121torch2.4, sglang, NVIDIA T4",
    )
    helps = "\n".join(answer.help)
    assert "flashinfer==0.1.6" in helps and "flashinfer-python" not in helps
    assert "cu121/torch2.4" in helps and "--disable-flashinfer" in _all(answer)
    newer = first(
        f"CUDA Error: {_NO_IMAGE} (209) {path.format('0.2.0+cu124torch2.4')} at function f",
        "RTX 5090",
    )
    assert "uninstall -y flashinfer &&" in "\n".join(newer.help)


def test_sources_whose_conditions_disagree_are_not_built_again_alone() -> None:
    answer = first(
        "ImportError: /path/to/vllm/_C.abi3.so: undefined symbol: "
        "_Z20cutlass_moe_mm_sm100RN2at6TensorERKS0_S3_S3_S3_S3_S3_S3_S3_S3_bb",
        "vllm 0.11.1, torch 2.9.0+cu130, CUDA 13.0, RTX 5080",
    )
    text = _all(answer)
    assert "--upgrade --no-cache-dir vllm" in answer.help[0]
    assert "RTX 5080" in text and "a newer release than 0.11.1" in text
    assert not any(line.startswith("rm -rf build") for line in answer.help)


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.9.1+cu128, Jetson Thor (sm_110), aarch64\nCUDA error: {none}",
        "NVIDIA Thor with CUDA capability sm_110 is not compatible with the current PyTorch "
        "installation.\nThe current PyTorch install supports CUDA capabilities sm_80 sm_90 sm_100 "
        "sm_120.",
    ],
)
def test_thor_takes_torchs_own_wheel_for_cuda_13(text: str) -> None:
    """.ci/manywheel's table: 11.0 is in the aarch64 wheels for CUDA 13 and in no older ones."""
    answer = first(text.format(none=_NO_IMAGE))
    told = _all(answer)
    assert answer.owner == "torch" and "older CUDA" not in told and "JetPack hold" not in told
    assert "sm_86" not in told and "2.9 to 2.14 for CUDA 13.0" in told
    assert any("whl/cu13" in command for command in answer.help)


def test_an_orin_is_not_dropped_by_newer_torch() -> None:
    answer = first(f"CUDA error: {_NO_IMAGE}", "torch 2.9.0+cu126, Jetson Orin Nano, aarch64")
    told = _all(answer)
    assert "older CUDA" not in told and "JetPack hold code" in told and "sm_80, sm_90" in told


@pytest.mark.parametrize(
    ("said_of_it", "owner"),
    [
        ("this happens only if I choose sageattn in the loader, flash_attn_2 is fine.",
         "sageattention"),
        ("It works fine without xformers.", "xformers"),
    ],
)  # fmt: skip
def test_the_package_that_the_error_depends_on_by_the_text(said_of_it: str, owner: str) -> None:
    answer = first(f"CUDA error: {_NO_IMAGE}\n{said_of_it}", "RTX 5090")
    assert answer.owner == owner and "or torch itself" not in said(answer)


@pytest.mark.parametrize("path", [r"A:\...\python_embeded\Lib", r"C:\sd\venv\Lib"])
def test_torch_for_windows_comes_from_torchs_own_index(path: str) -> None:
    """The package index has win_amd64 wheels of torch without CUDA alone."""
    answer = first(
        rf"{path}\site-packages\torch\cuda\__init__.py:235: UserWarning:"
        "\nNVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible with the "
        "current PyTorch installation."
    )
    installs = [command for command in answer.help if "torch==" in command]
    assert installs and all("whl/cu128" in command for command in installs)
    assert "on the package index is for CUDA" not in _all(answer)


def test_a_package_that_asks_for_the_old_torch_is_named_with_its_release() -> None:
    """Requires-Dist: xformers 0.0.29.post3 has torch==2.6.0, 0.0.32.post2 torch==2.8.0."""
    told = _all(
        first(f"CUDA error: {_NO_IMAGE}", "torch 2.6.0 cu124, xformers 0.0.29.post3, RTX 5090")
    )
    assert '"torch==2.8.0"' in told and "xformers 0.0.32.post2" in told
