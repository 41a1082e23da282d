"""Texts that look like those of a rule, and are of something else."""

from __future__ import annotations

import pytest
from support.asking import first, said

_NO_CODE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


@pytest.mark.parametrize("name", ["ctransform_points", "cquantize_my_blocks", "cigemm_fast"])
def test_a_name_that_only_begins_as_bitsandbytes_own_is_not_its(name: str) -> None:
    assert first(f"undefined symbol: {name}").owner != "bitsandbytes"


@pytest.mark.parametrize("name", ["cadam32bit_g32", "ctransform_row2turing", "cget_managed_ptr"])
def test_those_of_bitsandbytes_are(name: str) -> None:
    assert first(f"undefined symbol: {name}").owner == "bitsandbytes"


@pytest.mark.parametrize(
    "words",
    [
        "batch of 8x2080 tokens", "a tensor of 3x1080", "flags 0x1080 and 0xA100",
        "training with 1650 images", "I have 1650 samples",
    ],
)  # fmt: skip
def test_a_count_or_an_address_is_no_gpu(words: str) -> None:
    answer = first(_NO_CODE, f"{words}. torch 2.9.0")
    assert "does not name the GPU" in " ".join(answer.cause.split())


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("8x4090", "4090"),
        ("a box of 2x2080 Ti", "2080 Ti"),
        ("8xA100, 80 GB", "A100"),
        ("my 1650", "1650"),
    ],
)
def test_several_of_a_gpu_still_are(words: str, name: str) -> None:
    assert name in said(first(_NO_CODE, f"{words}. torch 2.9.0"))


_TREE = 'File "/home/u/mmdet/ops/nms/__init__.py", line 3, in <module>\n    from . import _C'


def test_a_relative_import_in_a_tree_does_not_tell_the_package() -> None:
    answer = first(_TREE, "ImportError: cannot import name '_C'")
    assert answer.code == "FA880" and "/home/u/mmdet/ops &&" not in said(answer)
    assert answer.owner != "nms"


_HIDDEN = "undefined symbol: _ZN5torch5utils15tensor_to_numpyERKN2at6TensorEb"
_SITE = "ImportError: /x/lib/python3.10/site-packages"


def test_a_package_with_a_release_for_each_torch_is_not_kept_off_its_own() -> None:
    answer = first(f"{_SITE}/torchvision/_C.so: {_HIDDEN}", "torch 2.7.1 torchvision 0.22.0")
    assert "torchvision==0.22" in answer.help[0]
    other = first(f"{_SITE}/foo/_C.so: {_HIDDEN}", "torch 2.7.1")
    assert "torch>=2.8.0" in other.help[0]


_DRIFT = "undefined symbol: _ZN3c104cuda9SetDeviceEi"


def test_a_torch_for_the_cpu_is_not_said_to_have_a_cuda() -> None:
    file = f"{_SITE}/torchaudio/lib/libtorchaudio.so"
    answer = first(f"{file}: {_DRIFT}", "torch 2.3.0+cpu torchaudio 2.2.0")
    assert "/whl/cpu" in said(answer) and "CUDA in the text is that of cpu" not in said(answer)


def test_a_command_that_removes_files_is_said_to_be_for_one_directory() -> None:
    answer = first(
        "ImportError: /home/u/audio/_torch_sox.cpython-36m.so: undefined symbol: _ZN2at7getTypeE",
        "torch 1.0.0",
    )
    assert any("-delete" in command for command in answer.help)
    assert any("elsewhere it removes" in note for note in answer.notes)


@pytest.mark.parametrize(
    "words", ["I do not use ctranslate2, nor onnxruntime", "with faster-whisper and onnxruntime"]
)
def test_packages_that_are_denied_or_two_do_not_ask(words: str) -> None:
    answer = first("libcudart.so.11.0: cannot open shared object file", words)
    assert "ONNX" not in answer.cause and "CTranslate2" not in answer.cause
