"""``why`` on texts of Windows, however they tell it: no command is one of a POSIX shell alone."""

from __future__ import annotations

import re

import pytest
from support.asking import first, said

#: What cmd does not have: NAME=VALUE before a command, $NAME, $(...), and these programs.
POSIX = re.compile(r"^[A-Z_]+=\S* |\$[A-Za-z_(]|(?:^|[|;&] *)(?:grep|env|ldd|ls|export) ")
TOLD = ("I am on Windows 11", r"D:\work\venv\Scripts\python.exe train.py", "OS: Windows 10")
BANNER = (
    "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
    "    PyTorch 2.0.1 (you have 2.1.0+cu121)\n    Python  3.11.5 (you have 3.11.5)"
)
MESSAGES = {
    "xformers": BANNER,
    "half": "ModuleNotFoundError: No module named 'torch_scatter.scatter_cuda'",
    "flash 1.x": "ModuleNotFoundError: No module named 'flash_attn_cuda'",
    "nvrtc": "RuntimeError: The following operation failed in the TorchScript interpreter.\n"
    "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)",
    "several GPUs": "RuntimeError: CUDA error: no kernel image is available for execution on the "
    "device\nGPU 0: NVIDIA GeForce GTX 1080\nGPU 1: NVIDIA GeForce RTX 5090",
    "toolkits": "RuntimeError: Detected that PyTorch and torch_scatter were compiled with "
    "different CUDA versions. PyTorch has CUDA version 11.8 whereas torch_scatter has CUDA "
    "version 11.7.",
    "start function": "ImportError: dynamic module does not define module export function "
    "(PyInit_ext)",
    "cudnn": "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against "
    "(8, 7, 0) but found runtime version (8, 3, 2).",
}


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", MESSAGES)
def test_windows_is_seen_however_it_is_told(kind: str, told: str) -> None:
    answer = first(MESSAGES[kind], told)
    assert [command for command in answer.help if POSIX.search(command)] == []


def test_a_word_of_windows_beside_paths_of_linux_changes_no_command() -> None:
    file = "/home/me/e/lib/python3.11/site-packages/xformers/_C.so"
    text = f'{MESSAGES["toolkits"]}\n  File "{file[:-5]}__init__.py", line 1'
    for told in TOLD[:2]:
        assert any(c.startswith("CUDA_HOME=/usr/local/cuda-11.8 ") for c in first(text, told).help)
    start = (
        f"ImportError: {file}: dynamic module does not define module export function (PyInit__C)"
    )
    assert "dumpbin" not in said(first(start, TOLD[0]))


def test_torchscripts_program_is_run_without_nvrtc_in_either_shell() -> None:
    text = (
        '  File "a.py", line 1, in f\n    return torch.jit.script(g)(x)\n'
        "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch) TorchScript"
    )
    assert "PYTORCH_JIT=0 python YOUR_PROGRAM.py" in first(text).help
    helps = first(text, TOLD[0]).help
    assert "set PYTORCH_JIT=0" in helps and "python YOUR_PROGRAM.py" in helps


NO_PROCEDURE = (
    "ImportError: DLL load failed while importing exllamav2_ext: The specified procedure could "
    "not be found."
)


def test_wheels_whose_name_has_no_torch_are_for_the_torch_of_their_release() -> None:
    """turboderp-org/exui#37 and exllamav2#434: 0.0.13 on for torch 2.2, 0.0.20 for torch 2.3."""
    for release, torch, wanted in (("0.0.15+cu121", "2.1.2+cu121", "2.2"),
                                   ("0.0.20", "2.2.1", "2.3")):  # fmt: skip
        answer = first(NO_PROCEDURE, f"torch {torch}, exllamav2 {release}, CUDA 12.1, Windows")
        assert answer.direction == "file-newer"
        assert any(f'"torch=={wanted}.*"' in t and t.endswith("/cu121") for t in answer.help)
        assert "is named for its torch" not in said(answer)


def test_a_release_that_no_table_has_is_not_compared_by_a_name_without_torch() -> None:
    answer = first(NO_PROCEDURE, "torch 2.4.0+cu121, exllamav2 0.1.8+cu121, Windows")
    assert "tells no torch" in said(answer) and answer.direction == "unknown"


def test_a_nightly_is_not_the_release_of_its_number() -> None:
    """rusty1s/pytorch_scatter#489."""
    answer = first(
        "OSError: [WinError 127] The specified procedure could not be found",
        "torch 2.7.0.dev20250310+cu128, torch-scatter 2.1.2+pt27cu128, Python 3.10, Windows 11",
    )
    assert "is no release" in said(answer)
    assert any('"torch==2.7.*"' in text and text.endswith("/cu128") for text in answer.help)


def test_a_wheel_that_is_for_this_torch_by_its_address_may_be_another() -> None:
    """open-mmlab/mmcv#1619: the published wheel was wrong, and was replaced."""
    answer = first(
        "pip install mmcv-full==1.4.1 -f https://download.openmmlab.com/mmcv/dist/cu113/torch1.10.0"
        "/index.html",
        "ImportError: DLL load failed while importing _ext: The specified procedure could not be "
        "found.",
        "torch 1.10.0, mmcv-full 1.4.1, Windows",
    )
    assert "is not what it is called" in said(answer)
    assert any("--no-binary mmcv-full" in text for text in answer.help)
