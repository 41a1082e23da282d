"""A version told as a past one is not the version that is there: the one of today is."""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste

LINE = "\nImportError: /x/site-packages/a.so: undefined symbol: _ZN3c105ErrorC2Ev"

#: (text, key, what is there)
NOW = (
    ("I had torch 2.5.0 before, now 2.6.0", "torch", "2.6.0"),
    ("I had torch==2.5.0 before, now torch==2.6.0", "torch", "2.6.0"),
    ("After upgrading from torch 2.5.0 to 2.6.0", "torch", "2.6.0"),
    ("It happens when switching from torch 2.5.1 to torch 2.6.0", "torch", "2.6.0"),
    ("Was working with torch 2.4.0, then I upgraded to torch 2.6.0+cu124", "torch", "2.6.0+cu124"),
    ("Previously on pytorch 2.3.1 this worked. Currently torch 2.7.0", "torch", "2.7.0"),
    ("torch 2.6.0 (it used to be 2.5.1)", "torch", "2.6.0"),
    ("Now on torch 2.6.0, previously torch 2.5.0", "torch", "2.6.0"),
    ("Currently 2.6.0; torch 2.5.0 before.", "torch", "2.6.0"),
    ("I rolled back to torch 2.5.1 from torch 2.6.0", "torch", "2.5.1"),
    ("torch was 2.5.0 until yesterday; it is 2.6.0 today", "torch", "2.6.0"),
    ("with torch 2.5.0 worked fine, 2.6.0 fails", "torch", "2.6.0"),
    ("torch 2.5.1 previously worked with this; on torch 2.6.0 it fails", "torch", "2.6.0"),
    ("Before: torch 2.5.0, after: torch 2.6.0", "torch", "2.6.0"),
    ("之前是 torch 2.5.0,现在 torch 2.6.0", "torch", "2.6.0"),
    ("之前用的 torch 2.5.0 没问题，现在 2.6.0 报错", "torch", "2.6.0"),  # noqa: RUF001
    ("从 torch 2.4.0 升级到 2.6.0", "torch", "2.6.0"),
    ("torch 现在是 2.6.0,以前 2.5.1 没问题", "torch", "2.6.0"),
    ("CUDA 11.8 before, now CUDA 12.4", "cuda", "12.4"),
    ("CUDA was 11.8, now 12.4", "cuda", "12.4"),
    ("以前 CUDA 11.8，现在 CUDA 12.4", "cuda", "12.4"),  # noqa: RUF001
    ("flash-attn 2.7.4 before, now flash-attn 2.8.3", "pkg:flash-attn", "2.8.3"),
    ("previously flash-attn 2.6.3, now 2.7.4.post1", "pkg:flash-attn", "2.7.4.post1"),
    ("Reverted from torch 2.6.0 to torch 2.5.1 and still get", "torch", "2.5.1"),
    ("Earlier I was on torch 2.4.1; today torch 2.5.0", "torch", "2.5.0"),
    ("Upgraded from xformers 0.0.27 to 0.0.28 today", "pkg:xformers", "0.0.28"),
)


@pytest.mark.parametrize(("text", "key", "there"), NOW)
def test_the_version_of_today_counts_and_not_the_one_before(
    text: str, key: str, there: str
) -> None:
    versions = read_paste(text + LINE).versions
    assert versions.get(key) == there
    assert f"{key}_also" not in versions


@pytest.mark.parametrize(
    "text",
    [
        "I installed torch 2.5.0 before flash-attn",
        "I installed torch 2.5.0 before, then the wheel",
        "I was running torch 2.5.0 when it failed",
        "I was using torch 2.5.0 before, when I switched to 2.4.0 it was solved",
        "After going back from torch 2.5.0 to 2.4.1 it works",
        "torch 2.5.0, the same wheel worked before",
    ],
)
def test_a_word_of_time_alone_makes_no_version_a_past_one(text: str) -> None:
    assert read_paste(text + LINE).versions.get("torch") == "2.5.0"


def test_a_past_version_alone_is_not_taken_for_the_one_that_is_there() -> None:
    assert "torch" not in read_paste("Previously torch 2.5.0 worked." + LINE).versions
