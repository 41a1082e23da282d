"""``why`` where the failing file is on this machine: its GPU code decides."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from trees import make_distribution, make_prefix, make_venv

from fa_forensics.report_why import Answer
from fa_forensics.why import explain
from fixtures import husk

NAME = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
TEXT = (
    '  File "/x/site-packages/vllm_flash_attn/flash_attn_interface.py", line 96, in _forward\n'
    "    out, softmax_lse = vllm_flash_attn_cuda.fwd(\n"
    "RuntimeError: CUDA error: {}\n"
    "GPU models and configuration: GPU 0: {}\n"
)
NO_KERNEL = "no kernel image is available for execution on the device"
INVALID = "device kernel image is invalid"


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An environment with the GPU code of vllm-flash-attn 2.6.2, called by a later release.

    The later release's own check lets newer GPUs through, so that the code has to decide.
    """
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    unpacked = Path(husk.unpack("vllm_flash_attn-2.6.2", tmp_path / "husk"))
    shutil.copy(next(unpacked.rglob(NAME)), site / NAME)
    make_distribution(site, "vllm-flash-attn", "2.8.0", [NAME])
    return str(tmp_path / "env" / "bin" / "python")


def here(text: str, python: str) -> Answer:
    return explain([text], python, {}, where="here").answers[0]


def test_a_file_without_code_for_the_gpu_says_what_it_holds(python: str) -> None:
    answer = here(TEXT.format(NO_KERNEL, "NVIDIA GeForce RTX 5090"), python)
    assert (answer.kind, answer.code, answer.owner) == ("gpu-arch", "FA504", "vllm-flash-attn")
    assert answer.confidence == "high"
    assert "sm_80, sm_90 alone" in answer.cause and "12.0" in answer.cause


def test_a_file_with_code_for_the_gpu_is_not_blamed(python: str) -> None:
    answer = here(TEXT.format(NO_KERNEL, "NVIDIA GeForce RTX 3090"), python)
    assert answer.confidence == "medium"
    assert "sm_80 code runs on 8.6" in answer.cause and "get_arch_list" in answer.help[0]


def test_a_driver_is_held_against_the_toolkit_of_the_code(python: str) -> None:
    text = TEXT.format(INVALID, "NVIDIA GeForce RTX 3090") + "Nvidia driver version: 470.82.01\n"
    answer = here(text, python)
    assert (answer.kind, answer.code, answer.confidence) == ("gpu-driver", "FA506", "high")
    assert "470.82.01 supports CUDA 11.4" in answer.cause


def test_a_file_that_cannot_be_read_is_no_witness(tmp_path: Path) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    (site / NAME).write_bytes(b"\x7fELF and nothing more")
    make_distribution(site, "vllm-flash-attn", "2.8.0", [NAME])
    answer = here(
        TEXT.format(NO_KERNEL, "NVIDIA GeForce RTX 5090"), str(tmp_path / "env/bin/python")
    )
    assert (answer.kind, answer.owner) == ("gpu-arch", "vllm-flash-attn")
    assert "alone, and none of it" not in answer.cause
