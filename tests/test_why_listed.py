"""``why``: a package that a text merely lists is no more than the likely owner of a file."""

from __future__ import annotations

import pytest
from support.asking import first, said
from test_why_libraries import GONE


def missing(soname: str, versions: str) -> str:
    return f"ImportError: {soname}: {GONE}\n\n{versions}"


@pytest.mark.parametrize(
    ("soname", "versions", "package"),
    [
        # torchvision 0.3.0 is of torch 1.1, 0.6.0 of 1.5; torchaudio has code for CUDA since 0.10.
        ("libcudart.so.9.0", "torch 1.10.0.dev20210618+cpu\ntorchaudio 0.10.0.dev20210618\n"
         "torchvision 0.3.0", "torchvision"),
        ("libcudart.so.10.1", "torch 1.8.0+cu111, torchvision 0.6.0, torchaudio 0.7.0",
         "torchvision"),
        ("libcudart.so.12", "torch 2.1.0+cu118, torchvision 0.16.0+cu121, xformers 0.0.22",
         "torchvision"),
        ("libcudart.so.11.0", "torch 2.1.0+cu121, flash-attn 2.5.0", "flash-attn"),
        ("libcudart.so.10.2", "dgl 0.6.1, torch 1.9.0+cu111", "dgl"),
    ],
)  # fmt: skip
def test_of_a_list_the_package_is_told_as_the_likely_one(
    soname: str, versions: str, package: str
) -> None:
    answer = first(missing(soname, versions))
    assert f"n extension (probably of {package})" in answer.cause
    assert "compiled part of" not in answer.cause and answer.confidence == "medium"


@pytest.mark.parametrize(
    "versions",
    ["mmcv-full 1.4.0\ntorch 1.10.0+cu113\ntorchvision 0.11.0+cu113\ntorch-scatter 2.0.9",
     "torch 1.10.0+cu113, torchvision 0.11.1+cu113, torchaudio 0.10.0+cu113"],
)  # fmt: skip
def test_of_several_none_is_picked(versions: str) -> None:
    answer = first(missing("libcudart.so.10.2", versions))
    assert answer.cause.startswith("The extension is a CUDA 10.2 build")
    assert not any(" install " in command for command in answer.help)


def test_a_step_of_the_traceback_says_whose_it_is() -> None:
    text = f"""  File "/x/site-packages/torchvision/extension.py", line 3
ImportError: libcudart.so.9.0: {GONE}
torch 1.10.0+cpu
torchaudio 0.10.0"""
    answer = first(text)
    assert "a compiled part of torchvision is a build for CUDA 9.0" in answer.cause
    # 0.11.1 is the last release for torch 1.10.0, and PyTorch has it for the CPU
    assert answer.help[0].endswith(
        '"torchvision==0.11.1" --index-url https://download.pytorch.org/whl/cpu'
    )


def test_a_nightly_has_its_partners_on_the_index_of_nightlies() -> None:
    versions = "torch 1.10.0.dev20210618+cpu\ntorchvision 0.3.0"
    command = first(missing("libcudart.so.9.0", versions)).help[0]
    assert "torch torchvision" in command and command.endswith("/whl/nightly/cpu")


@pytest.mark.parametrize(
    ("soname", "versions", "title"),
    [("libcudnn.so.8", "torch 2.4.0+cu121, onnxruntime-gpu 1.17", "ONNX Runtime"),
     ("libcusparse.so.11", "bitsandbytes 0.37.0\ntorch 2.1.0+cu121", "bitsandbytes")],
)  # fmt: skip
def test_packages_with_answers_of_their_own_are_guesses_too(
    soname: str, versions: str, title: str
) -> None:
    answer = first(missing(soname, versions))
    assert f"most likely {title}. " in answer.cause and answer.confidence == "medium"
    shown = f'  File "/x/site-packages/{title.lower().replace(" ", "")}/a.py", line 3\n'
    assert "most likely" not in said(first(shown + missing(soname, "")))
