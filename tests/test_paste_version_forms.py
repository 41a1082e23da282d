"""One version in the many forms in which people write it: each is read alike."""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste

ERROR = "ImportError: /x/site-packages/x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\n\n"


def told(words: str, key: str) -> str | None:
    return read_paste(ERROR + words).versions.get(key)


@pytest.mark.parametrize(
    "words",
    [
        "torch 2.1.2", "torch==2.1.2", "PyTorch 2.1.2", "pytorch version: 2.1.2", "torch2.1.2",
        "pytorch2.1.2", "torch=2.1.2", "torch-2.1.2", "PyTorch v2.1.2", "torch version is 2.1.2",
        "torch.__version__: '2.1.2'", "`torch` 2.1.2", "torch (2.1.2)", "torch@2.1.2",
        "torch:2.1.2", "我用的是torch2.1.2", "torch版本\uff1a2.1.2", "pytorch版本2.1.2",
        "- torch: 2.1.2",
        "| torch | 2.1.2 |", "**torch**: 2.1.2", "torch                    2.1.2", "torch~=2.1.2",
        "using torch 2.1.2", "on torch 2.1.2.", "PyTorch = 2.1.2", "torch2.1.2\uff0cpython3.10",
        "pytorch=2.1.2=py3.10_cuda12.1_cudnn8.9.2_0", "cuda12.1 + torch2.1.2", "torch2.1.2cu121",
    ],
)  # fmt: skip
def test_torch_is_read_in_every_form(words: str) -> None:
    assert (told(words, "torch") or "").partition("+")[0] == "2.1.2"


@pytest.mark.parametrize(
    "words",
    [
        "torch 2.1.2+cu121", "torch 2.1.2 cu121", "torch 2.1.2 (cu121)", "torch 2.1.2-cu121",
        "torch 2.1.2_cu121", "torch2.1.2cu121", "PyTorch 2.1.2 + cu121", "cu121 torch 2.1.2",
        "torch 2.1.2, cu121", "PyTorch 2.1.2+CUDA12.1", "torch 2.1.2 py3.10_cuda12.1_cudnn8_0",
        "pytorch=2.1.2=py3.10_cuda12.1_cudnn8.9.2_0", "PyTorch version: 2.1.2+cu121",
    ],
)  # fmt: skip
def test_the_cuda_of_torch_is_read_in_every_form(words: str) -> None:
    assert told(words, "torch_cuda") == "12.1"


@pytest.mark.parametrize(
    "words",
    [
        "CUDA 12.1", "cuda: 12.1", "CUDA Version 12.1", "cuda12.1", "cuda-12.1", "CUDA=12.1",
        "cuda_12.1", "nvcc 12.1", "nvcc: release 12.1, V12.1.105", "CUDA toolkit 12.1",
        "cuda版本12.1", "CUDA v12.1", "环境cuda12.1-cudnn8", "/usr/local/cuda-12.1/bin/nvcc",
        "| cuda | 12.1 |", "环境\uff1atorch2.1.2 cuda12.1 python3.10", "cuda12.1 + torch2.1.2",
    ],
)  # fmt: skip
def test_a_toolkit_is_read_in_every_form(words: str) -> None:
    assert told(words, "cuda") == "12.1"


@pytest.mark.parametrize(
    "words",
    [
        "Python 3.10", "python3.10", "Python: 3.10", "py3.10", "py310", "Python=3.10", "py 3.10",
        "Python v3.10", "Python (3.10)", "cp310", "python版本3.10", "| Python | 3.10 |",
        "docker 容器 + python 3.10 + gcc 10.2.1",
    ],
)  # fmt: skip
def test_python_is_read_in_every_form(words: str) -> None:
    assert told(words, "python") == "3.10"


@pytest.mark.parametrize(
    "words",
    [
        "4090", "GPU: 4090", "GPU 4090*8", "4090显卡", "显卡\uff1a4090", "RTX-4090", "rtx4090",
        "torch 2.1.2, CUDA 12.1, 4090", "RTX 4090 24GB", "8x RTX 4090", "Nvidia 4090",
    ],
)  # fmt: skip
def test_a_gpu_is_read_in_every_form(words: str) -> None:
    assert (told(words, "gpu") or "").endswith("4090")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("needs torch 2.0+", "torch"),
        ("CUDA 11.6+ only", "cuda"),
        ("line 4090, in forward", "gpu"),
        ("port 4090", "gpu"),
        ("/data/py310/x", "python"),
        ("x-cp310-cp310-linux_x86_64.whl", "python"),
    ],
)
def test_what_only_looks_like_one_is_none(words: str, key: str) -> None:
    assert told(words, key) is None


@pytest.mark.parametrize(
    "words",
    [
        "libcudart.so.11.0 not found", "找不到 libcudart.so.11.0", "no such file libcudart.so.11.0",
        "ImportError: libcudart.so.11.0: cannot open shared object", "missing libcudart.so.11.0",
        "Library not found: libcudart.so.11.0", "libcudart.so.11.0 is missing",
        "can't find libcudart.so.11.0", "libcudart.so.11.0 缺失", "ImportError: libcudart.so.11.0",
    ],
)  # fmt: skip
def test_a_missing_library_is_read_in_every_wording(words: str) -> None:
    first = read_paste(words).mentions[0]
    assert (first.what, first.library) == ("missing-library", "libcudart.so.11.0")


@pytest.mark.parametrize(
    "words",
    ["it requires GLIBC_2.32", "GLIBC_2.32 缺失", "GLIBC_2.32 is missing", "GLIBC_2.32 not found"],
)
def test_a_missing_version_is_read_in_every_wording(words: str) -> None:
    first = read_paste(words).mentions[0]
    assert (first.what, first.version) == ("version-not-found", "GLIBC_2.32")


@pytest.mark.parametrize(
    "words",
    [
        "flash-attn 2.5.6", "flash_attn==2.5.6", "flash-attn: v2.5.6", "flash attention 2.5.6",
        "FlashAttention 2.5.6", "flash attn 2.5.6", "flash-attn版本2.5.6", "flash_attn2.5.6",
        "flash-attention v2.5.6", "| flash-attn | 2.5.6 |", "Flash Attention: 2.5.6",
        "flash_attn-2.5.6+cu122torch2.1cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
    ],
)  # fmt: skip
def test_a_package_is_read_in_every_form(words: str) -> None:
    assert (told(words, "pkg:flash-attn") or "").startswith("2.5.6")


def test_a_kind_of_attention_is_no_release() -> None:
    words = "You are attempting to use Flash Attention 2.0 without specifying a torch dtype."
    assert told(words, "pkg:flash-attn") is None


@pytest.mark.parametrize(
    ("words", "key", "version"),
    [
        ("NVIDIA-SMI 535.104.05", "driver", "535.104.05"),
        ("nvidia-driver-535", "driver", "535"),
        ("gcc9.4", "gcc", "9.4"),
        ("g++ 9.4", "gcc", "9.4"),
        ("Debian 12.2", "os", "Debian 12"),
        ("RHEL8", "os", "RHEL8"),
        ("Rocky Linux 8.9", "os", "Rocky Linux 8"),
        ("CentOS Linux 7", "os", "CentOS Linux 7"),
        ("Amazon Linux 2023", "os", "Amazon Linux 2023"),
    ],
)
def test_a_system_is_read_in_every_form(words: str, key: str, version: str) -> None:
    assert told(words, key) == version


def test_the_version_of_a_compilers_package_is_no_system() -> None:
    assert told("gcc 10.2.1 Debian (Debian 10.2.1-6)", "os") is None
