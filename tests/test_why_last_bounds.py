"""What a text does not tell is not read from it, and no text is slow.

Git LFS where it is only named, an import that is no cure, a CUDA without its update, digits of
other scripts, one message pasted twice; words that a reader came back to again and again.
"""

from __future__ import annotations

import time

import pytest
from support.asking import first, said

from fa_forensics.facts.cuda_labels import cuda_label, cuda_of_label
from fa_forensics.facts.owner import library_then
from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.paste.machines import is_of_arm
from fa_forensics.facts.paste.wrapped import unwrapped

SHORT = "OSError: /a/x.so: file too short"


@pytest.mark.parametrize(
    "told",
    [
        f"{SHORT}\nI don't use git-lfs, it is a plain wheel",
        f"{SHORT}\nsize 99999\nI use git-lfs for others",
        f"I run git-lfs at home\n{SHORT}",
        f"{SHORT}\nIt does not begin with version https://git-lfs.github.com/spec/v1 or so",
    ],
)
def test_git_lfs_is_no_cause_where_no_pointer_is_printed(told: str) -> None:
    words = said(first(told))
    assert "pointer" not in words and "git lfs pull" not in words and "99999" not in words


def test_the_size_of_a_pointer_stands_in_the_pointer() -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:be\nsize 4978\n"
    mention = read_paste(f"{SHORT}\nsize 99999\n\n$ cat x.so\n{pointer}").mentions[0]
    assert mention.detail["pointer"] == "yes" and mention.detail["size"] == "4978"


CXX = (
    "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found "
    "(required by /opt/v/lib/python3.10/site-packages/foo/_C.so)"
)


@pytest.mark.parametrize(
    ("told", "cured_by"),
    [
        ("It does not happen unless I import cv2 first.", ""),
        ("There is no error without cv2, but with import cv2 first there is.", ""),
        ("All works here. When I import cv2 first I see:", ""),
        ("If I import cv2 first it crashes, otherwise it works.", ""),
        ("It works if I import cv2 first.", "cv2"),
        ("When I import cv2 first, the error goes away.", "cv2"),
        ("With import scipy before torch there is no error.", "scipy"),
        ("It works only when I import cv2 first.", ""),
    ],
)
def test_an_import_is_a_cure_where_the_text_says_so(told: str, cured_by: str) -> None:
    assert read_paste(f"{told}\n{CXX}").mentions[0].detail.get("cured_by", "") == cured_by


def test_a_cuda_of_two_numbers_is_not_older_than_its_own_update() -> None:
    missing = "ImportError: /opt/v/x.so: undefined symbol: cusparseSpSM_analysis"
    same = first(f"torch 1.12.1+cu113, nvcc: release 11.3, V11.3.109 (CUDA 11.3.1)\n{missing}")
    assert "CUDA 11.3, whose library has no such name" not in same.cause
    older = first(f"torch 1.10.0+cu111\n{missing}")
    assert "whose library has no such name" in older.cause


def test_digits_of_other_scripts_are_no_versions() -> None:
    assert library_then("torch/torch_cpu", "1.\u00b2") == library_then("torch/torch_cpu", "")
    assert cuda_of_label("\u0661\u0662\u0661") == "" and cuda_label("\u0661\u0662.\u0661") == ""
    assert cuda_of_label("cu121") == "12.1" and cuda_label("12.1.105") == "cu121"
    missing = "ModuleNotFoundError: No module named 'foo._C'"
    shown = f"{missing}\n_C.cpython-3\u0661\u0660-x86_64-linux-gnu.so"
    assert "\u0661" not in said(first(shown))


@pytest.mark.parametrize("name", ["GB100", "GB102"])
def test_a_gpu_whose_name_goes_on_with_a_digit_is_another(name: str) -> None:
    assert not is_of_arm(read_line(name))
    assert is_of_arm(read_line("GB10"))


def read_line(gpu: str) -> str:
    return f"nvidia {gpu.lower()}"


def test_a_message_that_is_pasted_twice_is_one() -> None:
    message = "undefined symbol: __nvJitLinkCreate_12_8, version libnvJitLink.so.12"
    once, twice = (read_paste(text).mentions for text in (message, f"{message}\n{message}"))
    assert [(m.symbol, m.version, m.file) for m in twice] == [
        (m.symbol, m.version, m.file) for m in once
    ]


def test_the_last_line_of_a_long_text_is_put_together_too() -> None:
    filler = "step 1 is done\n" * 1_000
    text = f"{filler}ImportError: /a/libx.so: undefined\nsymbol: _ZN3c104cuda9SetDeviceEi"
    assert unwrapped(text)[0].endswith("/a/libx.so: undefined symbol: _ZN3c104cuda9SetDeviceEi")


@pytest.mark.parametrize(
    "told",
    [
        "\u6211\u52a0" * 10_000,
        "\u6211\u6211\u6211\u6dfb\u52a0" * 4_000,
        "\u81ea\u5df1\u5199" * 30_000,
        "\u6211\u52a0\u7b97\u5b50" * 10_000,
        "undefined symbol:\n" * 11_000,
        "x.so\n" * 40_000,
        "RTX 3090 compiled on A100, run on V100 " * 5_000,
    ],
)
def test_words_said_again_and_again_are_read_at_once(told: str) -> None:
    read_paste("")
    start = time.process_time()
    read_paste(told)
    assert time.process_time() - start < 0.6


def test_an_operator_that_the_reporter_wrote_is_own_code() -> None:
    assert (
        "flag:own-code"
        in read_paste(
            "\u6211\u81ea\u5df1\u5199\u4e86\u4e00\u4e2acuda\u7b97\u5b50\uff0c\u62a5\u9519"
        ).versions
    )
    assert (
        "flag:own-code"
        not in read_paste(
            "\u6211\u4fee\u6539\u4e86\u914d\u7f6e\u3002\u7b97\u5b50\u62a5\u9519"
        ).versions
    )
