"""``why`` where torch is not found: sudo, Python 2, a build in an environment of its own; Arm."""

from __future__ import annotations

import pytest
from support.asking import first, said

GONE = "ModuleNotFoundError: No module named 'torch'"


@pytest.mark.parametrize(
    "line",
    [
        f"Fixes the `flash_attn` install failure reported in #126 (`{GONE}`).",
        f"flash-attn fails to build: {GONE}",
        f"xformers installation error\n{GONE}",
        f"cannot install mamba-ssm\n{GONE}",
    ],
)
def test_an_installation_that_failed_is_a_build_apart_from_torch(line: str) -> None:
    answer = first(line, "torch 2.6.0 (cu124)")
    assert answer.code == "FA884" and "environment of its own" in answer.cause
    assert not any("install torch" in command for command in answer.help)


def test_a_torch_that_the_text_has_is_not_to_be_installed() -> None:
    answer = first(GONE, "torch 2.6.0, Python 3.10")
    assert answer.confidence == "medium" and "another Python" in answer.cause
    assert "--no-build-isolation" in said(answer)
    assert not any("install torch" in command for command in answer.help)


@pytest.mark.parametrize("command", ["sh build.sh", "python setup.py develop", "./make.sh"])
def test_sudo_takes_the_systems_python(command: str) -> None:
    """sudoers(5): secure_path is used in place of the user's PATH."""
    text = (f"$ sudo {command}", '  File "setup.py", line 2, in <module>', GONE)
    answer = first(*text, "torch 1.13.1")
    assert "sudo" in answer.cause and "secure_path" in answer.cause
    assert command in answer.help
    assert not any("install torch" in one for one in answer.help)


def test_python_2_is_known_by_its_spelling() -> None:
    """Python 3 puts the name in quotes; torch 1.4 was the last one for Python 2.7."""
    answer = first("ImportError: No module named torch.utils.cpp_extension")
    assert "Python 2" in answer.cause and not any("install torch" in one for one in answer.help)
    assert "Python 2" not in first("ImportError: No module named 'torch'").cause


@pytest.mark.parametrize("gpu", ["DGX Spark GB10", "NVIDIA GB10"])
def test_a_bare_torch_on_a_dgx_spark_is_no_build_of_pypis_x86(gpu: str) -> None:
    """PyPI's aarch64 wheel of torch 2.9.1 has no CUDA; PyTorch's index has cu126, cu128, cu130."""
    answer = first(
        ".../site-packages/sgl_kernel/sm100/common_ops.abi3.so",
        "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory",
        f"torch 2.9.1, sgl-kernel, Python 3.12, {gpu}",
    )
    assert "another CUDA major version" in answer.cause and "CUDA 13" in answer.cause
    assert not any('"torch==2.9.1"' in one for one in answer.help)
    assert any("docs.sglang.ai/whl" in one for one in answer.help) and "cu130" in said(answer)


def test_a_gb10_with_a_told_build_is_judged_by_it() -> None:
    answer = first(
        "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory",
        "torch 2.9.1+cu130, sgl-kernel, NVIDIA GB10",
    )
    assert answer.code == "FA602" and "CUDA 13.0" in answer.cause


def test_transformer_engine_without_its_parts_is_an_empty_name() -> None:
    """transformer_engine/common refuses to be imported with the name alone."""
    answer = first("RuntimeError: Found empty `transformer-engine` meta package installed")
    assert (answer.kind, answer.owner) == ("damaged-file", "transformer-engine")
    assert any("transformer-engine[pytorch]" in one for one in answer.help)


def test_xformers_of_torch_2_1_0_is_on_the_index_of_each_cuda() -> None:
    """0.0.22.post7+cu118 is for torch 2.1.0+cu118 (xformers pull request 876)."""
    banner = "xFormers can't load C++/CUDA extensions. xFormers was built for:\n    PyTorch "
    answer = first(f"{banner}2.1.0+cu121 with CUDA 1201 (you have 2.1.0+cu118)")
    assert (
        '"xformers==0.0.22.post7" --index-url https://download.pytorch.org/whl/cu118'
        in answer.help[0]
    )
    assert "one CUDA alone" not in said(answer)
    older = first(f"{banner}2.0.1+cu118 with CUDA 1108 (you have 2.0.1+cu117)")
    assert "one CUDA alone" in said(older)


def test_a_wheel_that_takes_any_newer_torch_is_got_with_its_own() -> None:
    """vllm 0.2.2 asks for torch>=2.1.0 in its metadata, and its wheel is made with 2.1."""
    answer = first(
        "from vllm import cuda_utils",
        "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        "vllm 0.2.2",
    )
    assert any(c.endswith('"vllm==0.2.2" "torch==2.1.*"') for c in answer.help)


def test_the_build_that_a_text_tells_is_not_called_pypis_on_arm() -> None:
    from fa_forensics.why import explain

    text = (
        "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory\n"
        "torch 2.9+cu130, sgl-kernel, DGX Spark"
    )
    assert "+cpu" not in str(explain([text], None, {}))
