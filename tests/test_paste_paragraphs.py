"""Messages that a window broke between words are read as if they stood in one line."""

from __future__ import annotations

import textwrap

import pytest

from fa_forensics.facts.paste import read_paste

#: One message each of a build, an interpreter, a driver, a package and a wheel, as their programs
#: print them.
MESSAGES = [
    "ImportError: Python version mismatch: module was compiled for Python 3.12, but the "
    "interpreter version is incompatible: 3.11.8 (main, Feb 26 2024, 13:06:38) [GCC 13.2.1].",
    "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA "
    "versions. PyTorch has CUDA version 11.8 whereas TorchAudio has CUDA version 11.7. Please "
    "install the TorchAudio version that matches your PyTorch version.",
    "CUDA Runtime Error: the provided PTX was compiled with an unsupported toolchain. at a.cpp:35",
    "DeepSpeed Op Builder: Installed CUDA version 12.2 does not match the version torch was "
    "compiled with 11.7, unable to compile cuda/cpp extensions without a matching cuda version.",
    "ERROR: torch-2.0.1+gite19229c-cp310-cp310-linux_x86_64.whl is not a supported wheel on this "
    "platform.",
    "Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/11.8.0/lib64/"
    "libcudnn_cnn_train.so.8: symbol _ZN10cask_cudnn2kr8isAmpereEPNS0_5spa_tERKi, version "
    "libcudnn_cnn_infer.so.8 not defined in file libcudnn_cnn_infer.so.8 with link time reference",
]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("width", [60, 72, 100])
def test_a_break_between_words_changes_nothing(message: str, width: int) -> None:
    lines = textwrap.wrap(message, width, break_long_words=False, break_on_hyphens=False)
    whole = read_paste(f"it says\n{message}\nand ends").mentions[0]
    broken = read_paste("\n".join(["it says", *lines, "and ends"])).mentions[0]
    assert (broken.what, broken.symbol, broken.library) == (whole.what, whole.symbol, whole.library)
    assert whole.number == 2 and 2 <= broken.number <= len(lines) + 1
    assert broken.detail == whole.detail


def test_a_text_that_tells_nothing_still_tells_nothing() -> None:
    text = "it was a dark and stormy night; the rain fell\nin torrents, except at occasional\nhours"
    assert not read_paste(text).mentions
    assert not read_paste(text * 2_000).mentions
