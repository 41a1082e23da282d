"""Pasted text: the versions that it names itself, from reports, tools, a REPL and sentences.

The reports are in the form of torch.utils.collect_env, nvidia-smi, nvcc, pip, ds_report and
``accelerate env``.
"""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste

COLLECT_ENV = """Collecting environment information...
PyTorch version: 2.3.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.3 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version: glibc-2.35

Python version: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.35
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 535.129.03

Versions of relevant libraries:
[pip3] flash-attn==2.5.8
[pip3] numpy==1.26.4
[pip3] torch==2.3.0
[conda] Could not collect
"""
SMI = """| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |
Cuda compilation tools, release 11.8, V11.8.89
"""
REPL = """Python 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] on linux
>>> torch.__version__
'2.6.0+cu126'
>>> torch.version.cuda
'12.6'
>>> torch._C._GLIBCXX_USE_CXX11_ABI
True
>>> torch.cuda.get_device_capability()
(8, 9)
"""
PRINTED = """$ python -c "import torch; print(torch.__version__, torch.version.cuda, \
torch._C._GLIBCXX_USE_CXX11_ABI)"
2.1.1+cu118 11.8 False
"""
PIP = """Package                  Version
------------------------ ------------
causal-conv1d            1.0.0
torch                    2.1.1+cu118
xformers                 0.0.23
Name: mamba-ssm
Version: 1.1.1
"""
DS = """torch version .................... 2.1.0+cu118
torch cuda version ............... 11.8
nvcc version ..................... 11.7
"""
ACCELERATE = """- `Accelerate` version: 0.19.0
- Platform: Linux-5.4.0-144-generic-x86_64-with-glibc2.29
- Python version: 3.8.10
- PyTorch version (GPU?): 2.0.0+cu118 (True)
"""
XFORMERS = """xFormers was built for:
    PyTorch 2.2.0+cu121 with CUDA 1201 (you have 2.2.0+cpu)
    Python  3.11.7 (you have 3.11.0)
"""

TEXTS = [
    (COLLECT_ENV, {"torch": "2.3.0+cu121", "torch_cuda": "12.1", "glibc": "2.35", "gcc": "11.4.0",
                   "os": "Ubuntu 22.04.3 LTS (x86_64)", "python": "3.10.12", "cuda": "12.4.131",
                   "gpu": "NVIDIA A100-SXM4-80GB", "driver": "535.129.03", "machine": "x86_64",
                   "pkg:flash-attn": "2.5.8", "pkg:numpy": "1.26.4", "rocm": None}),
    (SMI, {"driver": "535.104.05", "driver_cuda": "12.2", "cuda": "11.8"}),
    (REPL, {"torch": "2.6.0+cu126", "torch_cuda": "12.6", "cxx11_abi": "True",
            "capability": "8.9", "python": "3.10.12"}),
    (PRINTED, {"torch": "2.1.1+cu118", "torch_cuda": "11.8", "cxx11_abi": "False"}),
    (PIP, {"torch": "2.1.1+cu118", "pkg:causal-conv1d": "1.0.0", "pkg:xformers": "0.0.23",
           "pkg:mamba-ssm": "1.1.1"}),
    (DS, {"torch": "2.1.0+cu118", "torch_cuda": "11.8", "cuda": "11.7"}),
    (ACCELERATE, {"torch": "2.0.0+cu118", "python": "3.8.10", "glibc": "2.29",
                  "machine": "x86_64"}),
    (XFORMERS, {"torch": "2.2.0+cpu", "python": "3.11.0"}),
    ("FROM pytorch/pytorch:2.1.0-cuda11.8-cudnn8-devel", {"torch": "2.1.0", "torch_cuda": "11.8"}),
    ("FROM nvcr.io/nvidia/pytorch:23.12-py3", {"ngc": "23.12"}),
    ("the NVIDIA driver on your system is too old (found version 11040)", {"driver_cuda": "11.4"}),
    ("echo $LD_LIBRARY_PATH\n/usr/local/cuda-12.1/lib64:/opt/x",
     {"env:LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64:/opt/x", "cuda": "12.1"}),
    ("I have torch 2.2.0, CUDA 11.8 and python 3.10 on Ubuntu 20.04 with an RTX 3060",
     {"torch": "2.2.0", "cuda": "11.8", "python": "3.10", "os": "Ubuntu 20.04", "gpu": "RTX 3060"}),
    ("torch==2.9.0.dev20250801+cu128", {"torch": "2.9.0.dev20250801+cu128", "torch_cuda": "12.8"}),
    ("torch 2.2.0a0+81ea7a4", {"torch": "2.2.0a0+81ea7a4"}),
    ("flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp312-cp312-linux_x86_64.whl",
     {"pkg:flash-attn": "2.7.4.post1+cu12torch2.6cxx11abiFALSE", "torch": None}),
    ("The detected CUDA version (11.8) mismatches the version that was used to compile\n"
     "PyTorch (12.1).", {"cuda": "11.8", "torch_cuda": "12.1", "torch": None}),
    ("loss 2.3.0 at 12:01, see https://pytorch.org/docs/2.3.0", {"torch": None, "cuda": None}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_versions_are_read(text: str, expected: dict[str, str | None]) -> None:
    versions = read_paste(text).versions
    assert {key: versions.get(key) for key in expected} == expected


def test_a_reports_own_line_counts_for_more_than_a_sentence() -> None:
    versions = read_paste("torch 2.1.0 worked, it broke later\n\n" + COLLECT_ENV).versions
    assert versions["torch"] == "2.3.0+cu121"


def test_the_line_of_each_version_is_told() -> None:
    paste = read_paste(COLLECT_ENV)
    assert paste.version_lines["torch"] == 2
    assert paste.version_lines["driver"] == 15
    assert set(paste.version_lines) == set(paste.versions)


def test_prefixes_do_not_hide_versions() -> None:
    text = "\n".join("[rank0]: " + line for line in COLLECT_ENV.splitlines())
    assert read_paste(text).versions == read_paste(COLLECT_ENV).versions


def test_directories_of_packages_are_told() -> None:
    text = (
        'File "/opt/conda/lib/python3.10/site-packages/vllm/x.py", line 1\n'
        "ImportError: /usr/lib/python3/dist-packages/a.so: x\n"
        'File "/opt/conda/lib/python3.10/site-packages/torch/y.py", line 1\n'
        ".../site-packages/z.so"
    )
    assert read_paste(text).places == (
        "/opt/conda/lib/python3.10/site-packages",
        "/usr/lib/python3/dist-packages",
    )
