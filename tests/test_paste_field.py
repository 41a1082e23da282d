"""Pasted text: shapes met in public threads, retold with other names.

Each row: a text, and (what, an attribute or detail, its text) of its first cause.
"""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste

DEVICE = "_ZN3c104cuda9SetDeviceEi"
FILE = "/opt/lib/python3.11/site-packages/x_cuda.cpython-311-x86_64-linux-gnu.so"
WORKER = "(Worker_TP{0} pid=24{0}) ERROR 02-12 23:57:21 [multiproc_executor.py:824] "
WORKERS = "\n".join(
    WORKER.format(rank) + line
    for rank in (0, 1)
    for line in (
        '  File "/p/vllm/vllm_flash_attn/flash_attn_interface.py", line 253, in varlen_func',
        "    out, softmax_lse = torch.ops._vllm_fa2_C.varlen_fwd(",
        "                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        '  File "/p/torch/_ops.py", line 1255, in __call__',
        "    return self._op(*args, **kwargs)",
        "torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported "
        "toolchain.",
        "Search for `cudaErrorUnsupportedPtxVersion' in https://docs.nvidia.com",
    )
)
NESTED = "2025-08-13 04:39:39,838 - __main__ - INFO - ERROR 08-13 04:39:39 engine.py:400] "
IPYTHON = """OSError                                   Traceback (most recent call last)
<ipython-input-1-0c2219f9314e> in <module>
      1 import json
----> 2 import trt_pose.coco

~/.local/lib/python3.6/site-packages/torch/__init__.py in _load_global_deps()
--> 141     ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)

OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block
"""
UV = """  \xd7 Failed to build `flash-attn==2.7.4.post1`
  \u251c\u2500\u25b6 The build backend returned an error
  \u2570\u2500\u25b6 Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)
      ModuleNotFoundError: No module named 'torch'
"""
NVCC = """  \u2570\u2500> [22 lines of output]
      setup.py:78: UserWarning: flash_attn was requested, but nvcc was not found.
      OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.
"""
TRANSCRIPTS = f"""python -c 'import x_cuda'
#Traceback (most recent call last):
#ImportError: libc10.so: cannot open shared object file: No such file or directory

python -c 'import torch; import x_cuda'
#Traceback (most recent call last):
#ImportError: {FILE}: undefined symbol: {DEVICE}
"""
SHAPES: list[tuple[str, str, str, str | None]] = [
    (
        f"> ImportError: [{FILE}](https://vscode-remote.example.net{FILE}): undefined symbol: "
        f"{DEVICE}",
     "undefined-symbol", "file", FILE),
    (f"ImportError:\n{FILE}\n: undefined symbol: {DEVICE}\n", "undefined-symbol", "file", FILE),
    (
        f"{FILE}:undefined symbol: {DEVICE},how to solve?", "undefined-symbol", "symbol", DEVICE),
    (f"FAILED tests/test_x.py::test_a - ImportError: {FILE}: undefined symbol: {DEVICE}",
     "undefined-symbol", "file", FILE),
    ("_C.so: undefined symbol: _ZN2at5emptyEN3c108ArrayRefIlEERKNS0_13TensorOptionsENS0_8opti",
     "undefined-symbol", "cut", "yes"),
    (f"undefined symbol ({DEVICE})", "undefined-symbol", "symbol", DEVICE),
    (f"missing symbol: {DEVICE} in x_cuda", "undefined-symbol", "symbol", DEVICE),
    (f"symbol {DEVICE} not found", "undefined-symbol", "symbol", DEVICE),
    (
        f"x.so \u672a\u5b9a\u4e49\u7b26\u53f7\uff1a{DEVICE}", "undefined-symbol", "symbol", DEVICE),
    ("SetDeviceEi undefined symbol", "undefined-symbol", "symbol", "SetDeviceEi"),
    (f"dlopen(/x/_C.so, 0x0002): symbol not found in flat namespace '_{DEVICE}'",
     "symbol-not-found-macho", "symbol", DEVICE),
    ("INTEL MKL ERROR: /x/libmkl_avx512.so.2: undefined symbol: mkl_sparse_optimize_bsr_trsm_i8.",
     "undefined-symbol", "symbol", "mkl_sparse_optimize_bsr_trsm_i8"),
    (
        "RuntimeError: Failed to dlopen libnvJitLink (libnvJitLink.so: cannot open shared "
        "object file: "
     "No such file or directory)", "missing-library", "library", "libnvJitLink.so"),
    ("RuntimeError: Error in dlopen for library libnvrtc.so.12 and libnvrtc-672ee683.so.11.2: "
     "libnvrtc.so.12: cannot open shared object file: No such file or directory",
     "missing-library", "library", "libnvrtc.so.12"),
    ("ImportError: /x/_C.so: cannot open shared object file: Permission denied",
     "missing-own-file", "reason", "Permission denied"),
    (f"{NESTED}    import vllm._C\n{NESTED}ImportError: libcudart.so.13: cannot open shared object "
     "file: No such file or directory", "missing-library", "import", "vllm._C"),
    (WORKERS, "unsupported-toolchain", "ranks", "0-1"),
    (WORKERS, "unsupported-toolchain", "function", "varlen_func"),
    (WORKERS, "unsupported-toolchain", "code",
     "out, softmax_lse = torch.ops._vllm_fa2_C.varlen_fwd("),
    (IPYTHON, "static-tls", "file", "/usr/lib/aarch64-linux-gnu/libgomp.so.1"),
    (UV, "torch-missing-in-build", "package", "flash-attn"),
    (NVCC, "cuda-home-missing", "prose", None),
    ("/bin/sh: line 1: 12345 Killed                  /usr/local/cuda/bin/nvcc --threads 4 -c x.cu",
     "out-of-memory-build", "program", "nvcc"),
    ("vllm 0.6.3 requires torch==2.4.0, but you have torch 2.5.1 which is incompatible.",
     "torch-pin-broken", "package", "vllm"),
    ("RuntimeError: Couldn't load custom C++ ops. This can happen if your versions differ",
     "operator-missing", "module", "torchvision"),
    ("RuntimeError: Could not find shared object file for Transformer Engine torch lib.",
     "stop-iteration-so", "of_te", "torch"),
    (TRANSCRIPTS, "undefined-symbol", "file", FILE),
    (TRANSCRIPTS, "undefined-symbol", "import", "x_cuda"),
    ("  0%|          | 0/10 [00:00<?, ?it/s]Could not load library libcudnn_cnn_train.so.8. Error: "
     "/c/libcudnn_cnn_train.so.8: symbol _ZN10cask_cudnn2kr1aEv, version libcudnn_cnn_infer.so.8 "
     "not "
     "defined in file libcudnn_cnn_infer.so.8 with link time reference", "could-not-load-library",
     "symbol", "_ZN10cask_cudnn2kr1aEv"),
    ("python3: relocation error: /d/libcudnn_cnn_infer.so.8: symbol _Z1aPKc, version "
     "**libcudnn_ops_infer.so.8** not defined in file **libcudnn_ops_infer.so.8** with link time "
     "reference.", "undefined-symbol", "library", "libcudnn_ops_infer.so.8"),
    ("U c10::cuda::SetDevice(int)", "nm-line", "symbol", "c10::cuda::SetDevice(int)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "name", "expected"), SHAPES)
def test_a_shape_of_the_field_is_read(
    text: str, what: str, name: str, expected: str | None
) -> None:
    mention = read_paste(text).mentions[0]
    got = getattr(mention, name) if hasattr(mention, name) else mention.detail.get(name)
    assert (mention.what, got) == (what, expected)


def test_eight_workers_that_fail_alike_are_one() -> None:
    assert len(read_paste(WORKERS).mentions) == 1


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("* **PyTorch:** 2.4.1+cu121\n* **Python:** 3.8.20", "torch", "2.4.1+cu121"),
        ("* **PyTorch:** 2.4.1+cu121\n* **Python:** 3.8.20", "python", "3.8.20"),
        ("CUDA Version: 12.4", "cuda", "12.4"),
        ("same, torch2.2.0+cuda11.8:", "torch_cuda", "11.8"),
        ("on `torch 2.1.0+cuda 12.1`", "torch", "2.1.0"),
        ("Requirement already satisfied: torch in ./site-packages (2.1.0+cu121)", "torch",
         "2.1.0+cu121"),
        (
            "pytorch        1.12.0       py3.8_cuda11.3_cudnn8.3.2_0", "torch_cuda", "11.3"),
        ("PyTorch version: N/A", "torch", None),
        ("vllm 0.6.3 requires torch==2.4.0, but you have torch 2.5.1", "torch", "2.5.1"),
        ("torch.__version__  = 2.7.0+rocm6.3", "rocm", "6.3"),
    ],
)  # fmt: skip
def test_versions_are_read_as_people_write_them(text: str, key: str, expected: str | None) -> None:
    assert read_paste(text).versions.get(key) == expected
