"""``why`` on wheels and what is installed: a way out only where it is one.

mmcv 2.0.0rc1 to rc4 and xformers' .dev releases are on the package index (pip index versions
--pre). ctranslate2 3.24.0 has wheels for Python 3.8 to 3.12, and none for 3.13 (pip download
--python-version). torch 2.6.0 of CUDA 12.4 asks for nvidia-nvjitlink-cu12 12.4.127 (Requires-Dist).
"""

from __future__ import annotations

import pytest
from support.asking import first, said

IMPL = "_ZNK3c1010TensorImpl36is_contiguous_nondefault_policy_implENS_12MemoryFormatE"
WHEEL = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
REFUSED = f"ERROR: {WHEEL} is not a supported wheel on this platform."
DRIVER = "CUDA driver version is insufficient for CUDA runtime version"
IMAGE = "torchvision/io/image.py:13: UserWarning: Failed to load image Python extension:"


@pytest.mark.parametrize(
    ("file", "symbol", "more"),
    [
        ("mmcv/_ext.cpython-38-x86_64-linux-gnu.so", "_ZNK2at6Tensor7reshapeENS_8ArrayRefIlEE",
         "torch 2.0.1+cu118\nmmcv 2.0.0rc4"),
        ("xformers/_C.so", IMPL, "torch 2.3.0+cu121\nxformers 0.0.24.dev720"),
    ],
)  # fmt: skip
def test_a_pre_release_for_a_released_torch_brings_no_nightly(
    file: str, symbol: str, more: str
) -> None:
    answer = first(f"ImportError: /e/site-packages/{file}: undefined symbol: {symbol}", more)
    text = said(answer)
    assert "nightly" not in text and "package index" not in text
    assert "mmcv-full" not in text  # 2.0.0rc4 is called mmcv


def test_a_pre_release_beside_a_nightly_is_of_that_kind() -> None:
    answer = first(
        f"ImportError: /e/site-packages/xformers/_C.so: undefined symbol: {IMPL[:-1]}x",
        "torch 2.9.0.dev20250801+cu128\nxformers 0.0.32.dev1",
    )
    assert "is no release of the package index" not in said(answer)


def test_a_wheel_for_another_processor_is_not_named_as_the_way_out() -> None:
    answer = first(REFUSED, "Python 3.10 on aarch64", "torch 2.3")
    text = "\n".join(answer.notes)
    assert answer.kind == "wrong-machine" and "for aarch64" in text
    assert "linux_x86_64" not in text and "python=3.10" not in text
    python = first(REFUSED, "Python 3.11", "machine: x86_64")
    assert "cp311-cp311-linux_x86_64" in said(python)


@pytest.mark.parametrize("where", ["Windows 11", "OS: macOS 13.1 (arm64)"])
def test_apt_is_for_linux(where: str) -> None:
    answer = first(IMAGE, "torchvision 0.15.2", where)
    assert not any("apt-get" in text for text in answer.help)
    assert any(text.endswith("vision.git@v0.15.2") for text in answer.help)
    linux = first(f"/u/{IMAGE}", "torchvision 0.15.2", "Ubuntu 22.04")
    assert any("apt-get" in text for text in linux.help)


def test_a_nightly_of_torchvision_has_no_tag() -> None:
    answer = first(f"/u/{IMAGE}", "torchvision==0.15.0.dev20230101")
    assert not any("vision.git@" in text for text in answer.help)


def test_no_record_says_that_a_release_is_too_old() -> None:
    symbol = "_Z20cutlass_moe_mm_sm100RN2at6TensorERKS0_S3_"
    line = f"ImportError: /e/site-packages/vllm/_C.abi3.so: undefined symbol: {symbol}"
    text = said(first("vllm 99.0.0", line, "torch 2.9.0"))
    assert "too old" not in text and "a newer release than 99.0.0, where there is one" in text


@pytest.mark.parametrize("where", ["I am in WSL2 on my Windows box", "WSL2, Ubuntu 22.04"])
def test_wsl_is_linux(where: str) -> None:
    answer = first(REFUSED, where, r"downloaded to C:\Users\me\Downloads", "Python 3.11")
    assert answer.kind == "python-abi" and "Python 3.11" in answer.cause
    windows = first(REFUSED, r"downloaded to C:\Users\me\Downloads", "Windows 11", "Python 3.11")
    assert windows.kind == "wrong-machine" and "Windows is what runs" in windows.cause


def test_words_like_ctranslate2s_install_nothing() -> None:
    answer = first(f"CUDA failed with error: {DRIVER}", "xgboost 1.7", "Driver Version: 470.57")
    assert answer.confidence == "medium" and "another program" in answer.cause
    assert not any("install" in text for text in answer.help)


@pytest.mark.parametrize(("python", "installed"), [("3.13", False), ("3.12", True), ("3.7", False)])
def test_the_last_ctranslate2_for_cuda_11_is_for_its_pythons(python: str, installed: bool) -> None:
    lines = (f"CUDA failed with error {DRIVER}", "faster-whisper 1.0", "Driver Version: 470.57")
    answer = first(*lines, f"Python {python}")
    assert answer.confidence == "high"
    assert any('"ctranslate2==3.24.0"' in text for text in answer.help) == installed


def test_nothing_is_built_where_a_script_finds_no_torch() -> None:
    line = "ModuleNotFoundError: No module named 'torch'"
    answer = first("File train.py, import torch", line, "I have torch 2.1.0 installed")
    assert "PACKAGE" not in said(answer)


@pytest.mark.parametrize(("cuda", "told"), [("1204", False), ("1108", True)])
def test_a_minor_version_of_cuda_is_no_misfit_of_xformers(cuda: str, told: bool) -> None:
    answer = first(
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
        f"    PyTorch 2.5.1+cu124 with CUDA {cuda} (you have 2.5.1+cu124)",
        "    Python  3.11.10 (you have 3.10.12)",
    )
    assert ("It was built with CUDA" in answer.cause) == told
    assert "kind of machine" not in answer.cause


def test_the_library_of_bitsandbytes_is_torchs_own_pin() -> None:
    answer = first(
        "OSError: libnvJitLink.so.12: cannot open shared object file: No such file or directory",
        "/e/site-packages/bitsandbytes/libbitsandbytes_cuda124.so",
        "bitsandbytes 0.45.0",
        "torch 2.6.0+cu124",
    )
    assert any(text.endswith(" nvidia-nvjitlink-cu12==12.4.127") for text in answer.help)


@pytest.mark.parametrize("have", ["2.1.0+cu121", "2.3.0+cu118"])
def test_the_python_that_built_xformers_is_no_cause_beside_another_cuda(have: str) -> None:
    release = have.partition("+")[0]
    built = f"{release}+{'cu118' if have.endswith('cu121') else 'cu121'}"
    answer = first(
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
        f"    PyTorch {built} with CUDA 1106 (you have {have})",
        "    Python  3.9.16 (you have 3.10.12)",
    )
    assert answer.kind == "wrong-torch" and built in answer.cause and have in answer.cause
    assert "3.9.16 against 3.10.12 plays no part" in " ".join(answer.notes)
    assert "xformers==" in answer.help[0]


def test_the_python_of_an_older_xformers_is_no_second_mismatch() -> None:
    answer = first(
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
        "    PyTorch 2.7.1+cu126 with CUDA 1208 (you have 2.8.0+cu128)",
        "    Python  3.9.13 (you have 3.10.11)",
    )
    assert "mismatch" not in " ".join(answer.notes)
