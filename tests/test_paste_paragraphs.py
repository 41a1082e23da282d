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


def _in_a_window(text: str, width: int) -> str:
    """The text as a terminal shows it: broken at its last column, wherever that falls."""
    lines = (line for line in text.split("\n"))
    return "\n".join(
        "\n".join(line[at : at + width] for at in range(0, max(1, len(line)), width))
        for line in lines
    )


#: A banner of xformers', a warning of torch's and a build's line: each in pieces of any size.
WIDE = [
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current "
    "PyTorch installation. The current PyTorch install supports CUDA capabilities sm_50 sm_60 "
    "sm_70 sm_75 sm_80 sm_86 sm_90.",
    "RuntimeError: Failed to import transformers.pipelines because of the following error (look up "
    "to see its traceback): /opt/lib/python3.10/site-packages/transformer_engine_extensions."
    "cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
    *MESSAGES,
]


@pytest.mark.parametrize("message", WIDE)
@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_break_within_words_at_a_windows_column_changes_nothing(message: str, width: int) -> None:
    whole = read_paste(message).mentions[0]
    broken = read_paste(_in_a_window(message, width)).mentions[0]
    assert (broken.what, broken.symbol, broken.library) == (whole.what, whole.symbol, whole.library)
    assert broken.file == whole.file


def test_a_line_that_ends_at_the_column_by_chance_is_no_broken_one() -> None:
    name = "_ZN3c104cuda9SetDeviceEab"
    line = f"ImportError: /{'x' * 50}/a.so: undefined symbol: {name}".rjust(120, "-")
    assert len(line) == 120
    mention = read_paste(f"{line}\nFROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel").mentions[0]
    assert mention.symbol == name
