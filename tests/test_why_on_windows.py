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
