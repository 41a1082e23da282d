"""Where a text says that a package is from reaches every answer that types an install.

The wordings are those of public reports (open-mmlab/mmcv issue 1636, xuhuisheng/rocm-gfx803
issue 15) and their like in Chinese and Korean.
"""

from __future__ import annotations

import re

import pytest
from support.asking import first

from fa_forensics.facts.paste import read_paste

OWN = "_Z30pyramid_deformable_im2col_cudaN2at6TensorES0_iiS0_"
EXT = "_ext.cpython-37m-x86_64-linux-gnu.so"
POLICY = "_ZNK3c1010TensorImpl36is_contiguous_nondefault_policy_implENS_12MemoryFormatE"
IMAGE = "/home/u/.local/lib/python3.8/site-packages/torchvision/image.so"
BANNER = (
    "xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
    "    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.4.0)\n"
)


def keys(text: str) -> set[str]:
    wanted = ("flag:torch-", "flag:built-from", "flag:changed", "flag:own-code")
    return {key for key in read_paste(text).versions if key.startswith(wanted)}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("torch 1.12.0 (self-built ROCm)", {"flag:torch-source", "flag:torch-rocm"}),
        ("torch 2.4.1 (ROCm build)", {"flag:torch-rocm"}),
        ("torch release/2.8 (self-built), ROCm 7.0.0", {"flag:torch-source"}),
        ("PyTorch\uff08源码编译\uff09", {"flag:torch-source"}),
        ("torch 2.1 源码编译", {"flag:torch-source"}),
        ("직접 빌드한 torch 2.3", {"flag:torch-source"}),
        ("torch 1.12.0 (자체 빌드)", {"flag:torch-source"}),
        ("xformers 0.0.20 source build", {"flag:built-from-source:xformers"}),
        ("소스에서 빌드한 vllm", {"flag:built-from-source:vllm"}),
        ("torch (not self-built)", set()),
        ("unmodified vllm", set()),
        ("vllm 0.5.0 (installed from wheel)", set()),
    ],
)
def test_words_of_where_it_is_from_are_read_in_three_languages(
    words: str, wanted: set[str]
) -> None:
    assert keys(words) == wanted


@pytest.mark.parametrize(
    "words",
    [
        "mmcv (modified, source build), Python 3.7", "modified mmcv 1.3", "mmcv (수정, 소스 빌드)",
        "mmcv 1.3.9\uff08修改过\uff09", "我修改了mmcv的代码",
    ],
)  # fmt: skip
def test_a_changed_package_is_not_replaced_by_the_indexs_of_that_name(words: str) -> None:
    answer = first(f"{EXT}: undefined symbol: {OWN}\n\n{words}")
    assert any(text.startswith("rm -rf build") and text.endswith(" .") for text in answer.help)
    assert not any(re.search(r"mmcv(?:-full)?$", text) for text in answer.help)
    assert any("has to be among the sources" in note for note in answer.notes)


def test_that_a_function_was_added_is_read_in_chinese() -> None:
    words = "我在你代码上添加了一种新的pyramid_deformable_im2col卷积结构\uff0cmmcv显示安装成功"
    answer = first(f"{words}\n{EXT}: undefined symbol: {OWN}")
    assert any(text.startswith("rm -rf build") for text in answer.help)
    assert not any("another release" in note for note in answer.notes)


@pytest.mark.parametrize("words", ["torch 1.12.0 (self-built ROCm)", "torch 1.12.0 (ROCm)"])
def test_a_torch_for_rocm_keeps_its_place(words: str) -> None:
    answer = first(f"{IMAGE}: undefined symbol: {POLICY}\n{words}, torchvision for 1.11")
    assert any("vision@v0.13.0" in text for text in answer.help)
    assert not any('"torch==' in text or "torchvision==" in text for text in answer.help)


@pytest.mark.parametrize(
    "words", ["torch (self-built)", "torch\uff08自己编译\uff09", "torch (ROCm)"]
)
def test_no_other_answer_puts_an_indexs_torch_over_it(words: str) -> None:
    bare, told = first(BANNER), first(f"{BANNER}\n{words}")
    assert any('"torch==2.1.2' in text for text in bare.help)
    assert not any('"torch==' in text for text in told.help)
    assert any("would take its place" in note for note in told.notes)


def test_a_fork_is_built_again_where_its_sources_are() -> None:
    symbol = "_ZN3c104cuda9SetDeviceEi"
    file = "/e/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
    answer = first(f"{file}: undefined symbol: {symbol}\nflash-attn 2.5.6 (our fork), torch 2.3.0")
    assert not any(re.search(r" flash-attn(?:==\S+)?$", text) for text in answer.help[:-1])
