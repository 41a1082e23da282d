"""Texts whose package version is not that of the failing file, and the torch that fits it.

The cases are public reports; what releases ask for is in their wheels' metadata.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.why.torch_names.reach import of_cuda

CHECK_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
ASSERT_FAIL = (
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKNSt7__cxx1112basic_stringIcSt11char_"
    "traitsIcESaIcEEE"
)
LIST_GET = (
    "_ZN3c108ListType3getERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEENS_4Type24"
    "SingletonOrSharedTypePtrIS9_EE"
)
LOGGER = "_ZN3c1013MessageLoggerC1EPKciib"
SITE = "/e/lib/python3.10/site-packages"


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


def banner(built: str, have: str) -> str:
    return (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        f"    PyTorch {built} with CUDA 1201 (you have {have})"
    )


def test_a_release_that_cannot_have_printed_the_banner_is_told_as_another_copy() -> None:
    """open-mmlab/PIA#30: xformers 0.0.21 is for torch 2.0.1, the banner's is for 2.1.2."""
    answer = first(banner("2.1.2+cu121", "2.1.2+cpu"), "torch 2.1.2+cpu, xformers 0.0.21")
    assert "0.0.21 was built for torch" not in said(answer)
    assert "0.0.21, which the text names too, is for torch 2.0.1" in said(answer)
    same = first(banner("2.1.2+cu121", "2.0.1+cu118"), "torch 2.0.1+cu118, xformers 0.0.23.post1")
    assert "which the text names too" not in said(same)


def test_the_banner_tells_which_of_two_torches_ran() -> None:
    """invoke-ai/InvokeAI#6590: pip lists another environment."""
    text = banner("2.1.2+cu121", "2.0.1+cu118") + "\n torch                  2.3.0+cu121"
    answer = first(text, "torch 2.0.1+cu118 (loaded), pip shows torch 2.3.0+cu121")
    assert "is the same for both" not in said(answer)
    assert answer.code == "FA607"


@pytest.mark.parametrize("words", ["vllm 0.2.0 (built from source)", "vllm 0.2.0"])
def test_the_wheels_torch_says_nothing_of_a_file_in_its_source_directory(words: str) -> None:
    """vllm-project/vllm#1344: built in NVIDIA's container, by pip's isolated build."""
    file = "/workspace/vllm-0.2.0/vllm/activation_ops.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file, CHECK_FAIL), f"{words}, NGC pytorch 23.08, Python 3.10")
    assert "as its version says" not in said(answer)
    assert "without --no-build-isolation pip takes a torch of the package index" in said(answer)


def test_built_from_source_in_parentheses() -> None:
    assert "flag:built-from-source:vllm" in read_paste("vllm 0.2.0 (built from source)").versions
    assert "flag:built-from-source:vllm" not in read_paste("vllm 0.2.0 (not built here)").versions


def test_a_name_of_one_past_torch_is_not_looked_for_in_todays_nightly() -> None:
    """eugr/spark-vllm-docker#141: the name is torch 2.10.0's alone."""
    line = "torch nightly cu130, vllm 0.18.1rc1 (prebuilt wheel, cu132), aarch64 (DGX Spark)"
    answer = first(missing("_C.abi3.so", LOGGER), line)
    assert answer.direction == "file-older"
    assert (
        'python -m pip install "torch==2.10.0" --index-url https://download.pytorch.org/whl/cu130'
        in answer.help
    )
    assert not any("/nightly/" in text for text in answer.help)


def test_the_build_that_a_wheel_names_is_typed_and_so_is_the_wheel_for_the_other() -> None:
    """SHI-Labs/NATTEN#220: torch 2.6.0 for CUDA 12.6 is cxx11, PyPI's for 12.4 is not."""
    file = f"{SITE}/natten/libnatten.cpython-310-x86_64-linux-gnu.so"
    answer = first(
        missing(file, ASSERT_FAIL),
        "torch 2.6.0, natten 0.17.5+torch260cu126, Python 3.10.12, CUDA 12.6",
    )
    typed = "\n".join(answer.help)
    assert '"torch==2.6.0+cu126" --index-url https://download.pytorch.org/whl/cu126' in typed
    assert "natten==0.17.5+torch260cu124 -f " in typed
    assert "Where pip compiled" not in said(answer)


def test_no_wheel_for_linux_is_typed_on_windows() -> None:
    file = r"C:\e\Lib\site-packages\natten\libnatten.cp310-win_amd64.pyd"
    answer = first(missing(file, ASSERT_FAIL), "Windows 11, torch 2.6.0, natten 0.17.5")
    assert "+torch260cu124" not in "\n".join(answer.help)


def test_torchs_cuda_without_its_release_leaves_the_releases_for_it() -> None:
    """Alibaba-NLP/DeepResearch#83: no torch for CUDA 12.1 is cxx11; sgl-kernel is for 2.7.1."""
    file = "/e/lib/python3.12/site-packages/sgl_kernel/common_ops.abi3.so"
    line = "sgl-kernel 0.2.5, sglang 0.4.10.post2, torch with CUDA 12.1, Python 3.12"
    answer = first(missing(file, LIST_GET), line)
    assert "has a build for CUDA 12.1" in answer.cause and "most likely" not in answer.cause
    assert 'python -m pip install "torch==2.7.1"' in answer.help
    assert not any("torch>=" in text for text in answer.help)


def test_the_torch_that_sglang_asks_for() -> None:
    assert torch_of("sglang", "0.4.10.post2") == "2.7.1"
    assert torch_of("sgl-kernel", "0.3.21") == "2.9.1"
    assert partner_of("sgl-kernel", "2.9.1") is None  # several of them are for one torch


@pytest.mark.parametrize(
    ("cuda", "kept"),
    [
        ("12.1", ["2.1.0", "2.5.1"]),
        ("12.8", ["2.7.0", "2.8.0"]),
        ("13.0", ["2.13.0"]),
        ("9.0", ["1.0.0"]),
    ],
)
def test_releases_by_their_cuda(cuda: str, kept: list[str]) -> None:
    releases = ["1.0.0", "1.13.0", "2.1.0", "2.5.1", "2.6.0", "2.7.0", "2.8.0", "2.13.0"]
    assert of_cuda(cuda, releases) == kept


def test_the_cuda_of_torch_in_words() -> None:
    assert read_paste("torch with CUDA 12.1").versions["torch_cuda"] == "12.1"
    assert read_paste("PyTorch built for CUDA 11.8").versions["torch_cuda"] == "11.8"
    assert "torch_cuda" not in read_paste("a machine with CUDA 12.1").versions


def test_torch_and_torch_xla_are_typed_as_a_pair() -> None:
    """pytorch/xla#8406: wheels of one number in both flavours."""
    file = f"{SITE}/_XLAC.cpython-310-x86_64-linux-gnu.so"
    text = missing(file, "_ZN5torch4lazy13MetricFnValueB5cxx11E")
    answer = first(text, "torch nightly 2.6 (cpu), torch_xla 2.6.0.dev, Python 3.10")
    assert any('"torch==2.6.0" torch-xla==2.6.0' in command for command in answer.help)
    assert "2.6.0.dev is a pre-release" in said(answer)
    alone = "\n".join(first(text).help)
    assert '"torch==2.7.0" torch-xla==2.7.0' in alone and "torch>=" not in alone


def test_a_projects_wheels_tell_their_flavour() -> None:
    """state-spaces/mamba#169: the wheel that is called cxx11abiTRUE."""
    symbol = (
        "_ZN3c107WarningC1ENS_7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEEERKNS_14"
        "SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb"
    )
    file = "/e/lib/python3.8/site-packages/causal_conv1d_cuda.cpython-38-x86_64-linux-gnu.so"
    answer = first(missing(file, symbol), "torch 2.1, CUDA 11.8")
    assert "torch2.1, cxx11abiFALSE and cp38 in its name" in said(answer)
    assert "called cxx11abiTRUE" in said(answer)
