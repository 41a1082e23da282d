"""Pasted text: which sort of failure it tells of, and what is read from it.

The texts are those of the programs themselves: glibc 2.36, GNU ld 2.40, CPython 3.11, PyTorch 2,
CUDA 12, pip 24, pybind11, xformers, kernels, Transformer Engine, bitsandbytes.
"""

from __future__ import annotations

from typing import Any

import pytest

from fa_forensics.facts.paste import Mention, read_paste

SITE = "/opt/conda/lib/python3.10/site-packages"
NVCC = "nvcc fatal   : Unsupported gpu architecture 'compute_120'"
SM120 = """/x/torch/cuda/__init__.py:235: UserWarning:
NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch \
installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_80 sm_90.
"""
FWD = f"""  File "{SITE}/flash_attn/flash_attn_interface.py", line 51, in _flash_attn_forward
    out, softmax_lse = flash_attn_cuda.fwd(
TypeError: fwd(): incompatible function arguments. The following argument types are supported:
    1. (arg0: torch.Tensor, arg1: float) -> list[torch.Tensor]

Invoked with: tensor([1.]), 0.125, None
"""
KERNELS = """FileNotFoundError: Cannot find a build variant for this system in \
kernels-community/flash-attn2. Variants:
  torch212-cxx11-cu126-x86_64-linux: Torch version (2.12) does not match environment Torch \
version (2.13)
"""
XFORMERS = """WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.2.0+cu121 with CUDA 1201 (you have 2.2.0+cpu)
    Python  3.11.7 (you have 3.11.0)
"""
GLOBBED = f"""  File "{SITE}/transformer_engine/pytorch/__init__.py", line 45, in _load_library
    so_path = next(so_dir.glob(f"{{module_name}}.*.{{extension}}"))
StopIteration
"""
K40 = """    Found GPU0 Tesla K40c which is of cuda capability 3.5.
    PyTorch no longer supports this GPU because it is too old.
    The minimum cuda capability supported by this library is 3.7.
"""
CUDA = "RuntimeError: CUDA error: "

#: Text: (what, the attributes and details that are read).
KINDS: list[tuple[str, str, dict[str, str]]] = [
    # loaders
    ("ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
     "missing-library", {"library": "libcudart.so.13", "reason": "No such file or directory"}),
    ("python: error while loading shared libraries: libcudart.so.11.0: cannot open shared object "
     "file: No such file or directory", "missing-library",
     {"library": "libcudart.so.11.0", "program": "python"}),
    (
        "ImportError: libcudart.so.11.0: \u65e0\u6cd5\u6253\u5f00\u5171\u4eab\u5bf9\u8c61\u6587"
        "\u4ef6: "
     "\u6ca1\u6709\u90a3\u4e2a\u6587\u4ef6\u6216\u76ee\u5f55", "missing-library",
     {"library": "libcudart.so.11.0"}),
    ("ImportError: libcudart.so.11.0: Kann die Shared-Object-Datei nicht \xf6ffnen: Datei oder "
     "Verzeichnis nicht gefunden", "missing-library", {"library": "libcudart.so.11.0"}),
    ("Error loading shared library libcudart.so.12: No such file or directory (needed by /x/_C.so)",
     "missing-library", {"library": "libcudart.so.12", "needed_by": "/x/_C.so", "libc": "musl"}),
    ("ImportError: libc10.so: cannot open shared object file: No such file or directory",
     "import-order", {"library": "libc10.so"}),
    ("ImportError: ~/.cache/torch_extensions/py311_cu124/cpu_adam/cpu_adam.so: cannot open shared "
     "object file: No such file or directory", "missing-own-file",
     {"file": "~/.cache/torch_extensions/py311_cu124/cpu_adam/cpu_adam.so"}),
    ("OSError: /x/torch/lib/../../nvidia/cublas/lib/libcublas.so.12: cannot open shared object "
     "file: No such file or directory", "missing-library",
     {"library": "/x/torch/lib/../../nvidia/cublas/lib/libcublas.so.12"}),
    ("ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found "
     "(required by /x/libtorch_python.so)", "version-not-found",
     {"version": "GLIBCXX_3.4.30", "library": "/lib/x86_64-linux-gnu/libstdc++.so.6",
      "file": "/x/libtorch_python.so"}),
    ("GLIBC_2.32 not found with flash-attn 2.8.x wheels", "version-not-found",
     {"version": "GLIBC_2.32"}),
    ("version 'GLIBC_ABI_DT_RELR' not found (required by ./x.so)", "version-not-found",
     {"version": "GLIBC_ABI_DT_RELR", "file": "./x.so"}),
    ("OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block",
     "static-tls", {"file": "/usr/lib/aarch64-linux-gnu/libgomp.so.1"}),
    ("ImportError: libtorch_cpu.so: cannot enable executable stack as shared object requires: "
     "Permission denied", "exec-stack", {"file": "libtorch_cpu.so", "reason": "Permission denied"}),
    ("ImportError: /x/_C.so: invalid ELF header", "invalid-elf", {"file": "/x/_C.so"}),
    ("OSError: ./t.so: file too short", "file-too-short", {"file": "./t.so"}),
    ("OSError: ./t.so: cannot read file data", "file-too-short", {"file": "./t.so"}),
    ("OSError: /x/_C.so: wrong ELF class: ELFCLASS32", "wrong-elf-class", {"file": "/x/_C.so"}),
    ("OSError: libnvToolsExt-847d78f2.so.1: ELF load command address/offset not properly aligned",
     "misaligned", {"file": "libnvToolsExt-847d78f2.so.1"}),
    ("OSError: /x/_C.so: failed to map segment from shared object", "map-refused",
     {"file": "/x/_C.so"}),
    ("AttributeError: /x/libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats",
     "ctypes-attribute", {"symbol": "cget_col_row_stats", "file": "/x/libbitsandbytes_cpu.so"}),
    ("Could not load library libcudnn_cnn_infer.so.8. Error: /x/libcudnn_cnn_infer.so.8: undefined "
     "symbol: _ZN11nvrtcHelper4loadEb, version libcudnn_ops_infer.so.8", "could-not-load-library",
     {"symbol": "_ZN11nvrtcHelper4loadEb", "version": "libcudnn_ops_infer.so.8",
      "library": "libcudnn_cnn_infer.so.8", "file": "/x/libcudnn_cnn_infer.so.8"}),
    (
        "Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open "
        "shared object "
     "file: No such file or directory", "could-not-load-library",
     {"library": "libcudnn_cnn_infer.so.8", "sought": "libnvrtc.so"}),
    ("Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1}", "could-not-load-library",
     {"library": "libcudnn_ops.so.9.1.0"}),
    ("RuntimeError: nvrtc: error: failed to open libnvrtc-builtins.so.11.1.", "nvrtc-builtins",
     {"library": "libnvrtc-builtins.so.11.1"}),
    # GPUs
    (CUDA + "no kernel image is available for execution on the device", "no-kernel-image", {}),
    ("THCudaCheck FAIL file=/x.cpp line=50 error=48 : no kernel image is available for execution "
     "on the device", "no-kernel-image", {}),
    (CUDA + "invalid device function", "invalid-device-function", {}),
    (CUDA + "device kernel image is invalid", "image-invalid", {}),
    (CUDA + "the provided PTX was compiled with an unsupported toolchain.",
     "unsupported-toolchain", {}),
    ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "ampere-only", {}),
    (SM120, "gpu-not-supported-by-torch",
     {"gpu": "NVIDIA GeForce RTX 5090", "sm": "sm_120", "supported": "sm_50 sm_80 sm_90"}),
    (K40, "gpu-not-supported-by-torch", {"gpu": "Tesla K40c", "sm": "sm_35", "least": "3.7"}),
    (CUDA + "CUDA driver version is insufficient for CUDA runtime version", "driver-too-old", {}),
    ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
     "driver-too-old", {"found": "11040"}),
    (NVCC, "arch-unsupported-by-nvcc", {"arch": "compute_120"}),
    ("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'",
     "arch-unsupported-by-nvcc", {"arch": "sm_120"}),
    # Python
    ("ModuleNotFoundError: No module named 'flash_attn_2_cuda'", "no-module",
     {"module": "flash_attn_2_cuda"}),
    ("TypeError: flash_attn_func() got an unexpected keyword argument 'window_size'",
     "unexpected-keyword", {"function": "flash_attn_func", "parameter": "window_size"}),
    ("ImportError: cannot import name 'flash_attn_unpadded_func' from 'flash_attn' "
     f"({SITE}/flash_attn/__init__.py)", "missing-attribute",
     {"name": "flash_attn_unpadded_func", "module": "flash_attn",
      "where": f"{SITE}/flash_attn/__init__.py"}),
    ("AttributeError: module 'torch' has no attribute 'float8_e4m3fn'", "missing-attribute",
     {"module": "torch", "name": "float8_e4m3fn"}),
    ("AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'", "missing-attribute",
     {"sort": "operator", "name": "rms_norm"}),
    (FWD, "pybind-arguments",
     {"function": "fwd", "supported": "1. (arg0: torch.Tensor, arg1: float) -> list[torch.Tensor]",
      "invoked": "tensor([1.]), 0.125, None",
      "frame": f"{SITE}/flash_attn/flash_attn_interface.py"}),
    ("RuntimeError: operator torchvision::nms does not exist", "operator-missing",
     {"operator": "torchvision::nms"}),
    (
        "ImportError: Python version mismatch: module was compiled for Python 3.8, but the "
        "interpreter "
     "version is incompatible: 3.10.12 (main).", "python-mismatch", {"built": "3.8"}),
    # builds
    ("/usr/bin/ld: cannot find -lcurand: No such file or directory", "jit-build-failed",
     {"library": "libcurand.so", "flag": "-lcurand"}),
    ("a.cpp:(.text+0xa): undefined reference to `c10::cuda::SetDevice(int)'", "linker-undefined",
     {"symbol": "c10::cuda::SetDevice(int)"}),
    ("ld.lld: error: undefined symbol: c10::cuda::SetDevice(int)", "linker-undefined",
     {"symbol": "c10::cuda::SetDevice(int)"}),
    ("nvlink error   : Undefined reference to '_Z3fooi' in 'x.o'", "linker-undefined",
     {"symbol": "_Z3fooi", "linker": "nvlink"}),
    ("undefined c10::UndefinedTensorImpl::_singleton when linking torch/c10_hip",
     "linker-undefined", {"symbol": "c10::UndefinedTensorImpl::_singleton"}),
    ("The detected CUDA version (11.8) mismatches the version that was used to compile\n"
     "PyTorch (12.1). Please make sure to use the same CUDA versions.", "build-cuda-mismatch",
     {"toolkit": "11.8", "torch_cuda": "12.1"}),
    ("g++: fatal error: Killed signal terminated program cc1plus", "out-of-memory-build",
     {"program": "cc1plus"}),
    ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "out-of-memory-build",
     {"program": "cicc", "signal": "9"}),
    (
        "ERROR: flash_attn-2.5.8-cp310-cp310-linux_x86_64.whl is not a supported wheel on this "
        "platform.",
     "wheel-not-supported", {"file": "flash_attn-2.5.8-cp310-cp310-linux_x86_64.whl"}),
    # packages and the rest
    (XFORMERS, "xformers-banner", {"built_torch": "2.2.0+cu121", "here_torch": "2.2.0+cpu"}),
    (KERNELS, "kernels-variant", {"kernel":
        "kernels-community/flash-attn2", "built_torch": "2.12"}),
    (GLOBBED, "stop-iteration-so", {"function": "_load_library"}),
    ("Segmentation fault (core dumped)", "segfault", {}),
    ("\u6bb5\u9519\u8bef\uff08\u6838\u5fc3\u5df2\u8f6c\u50a8\uff09", "segfault", {}),
    ("Aborted (core dumped)", "abort", {}),
    (
        "hipErrorNoBinaryForGpu: Unable to find code object for all devices!", "hip-error", {}),
    ("ImportError: DLL load failed while importing flash_attn_2_cuda: The specified module could "
     "not be found.", "windows", {"module": "flash_attn_2_cuda"}),
    (
        "OSError: [WinError 126] The specified module was not found.", "windows", {"code": "126"}),
    (
        "RuntimeError: Failed to import transformers.pipelines because of the following error "
        "(look up "
     "to see its traceback):", "import-wrapper", {"module": "transformers.pipelines"}),
    # lines of tools
    ("                 U _ZN3c104cuda9SetDeviceEi", "nm-line",
     {"symbol": "_ZN3c104cuda9SetDeviceEi", "sort": "undefined"}),
    ("0000000000001109 T hello_there", "nm-line", {"symbol": "hello_there", "sort": "defined"}),
    ("\tlibc10.so => not found", "ldd-line", {"library": "libc10.so", "sort": "not found"}),
    ("undefined symbol: PyThread_set_key_value\t(./libtorch_python.so)", "ldd-line",
     {"symbol": "PyThread_set_key_value", "file": "./libtorch_python.so"}),
    ("     2: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND _ZN3c104cuda9SetDeviceEi",
     "readelf-line", {"symbol": "_ZN3c104cuda9SetDeviceEi", "sort": "undefined"}),
    ("0000000000000000      D  *UND*\t0000000000000000 cudaMalloc", "readelf-line",
     {"symbol": "cudaMalloc"}),
    (" 0x0000000000000001 (NEEDED)             Shared library: [libcudart.so.11.0]",
     "readelf-line", {"library": "libcudart.so.11.0", "sort": "needed"}),
    ("_ZN3c104cuda9SetDeviceEi", "bare-symbol", {"symbol": "_ZN3c104cuda9SetDeviceEi"}),
    ("c10::cuda::SetDevice(int)", "bare-symbol", {"symbol": "c10::cuda::SetDevice(int)"}),
    ("cuTensorMapEncodeTiled", "bare-symbol", {"symbol": "cuTensorMapEncodeTiled"}),
    ("cudaLibraryGetKernel@libcudart.so.12", "bare-symbol",
     {"symbol": "cudaLibraryGetKernel", "version": "libcudart.so.12"}),
    ("why is _ZN3c104cuda9SetDeviceEi not there?", "bare-symbol",
     {"symbol": "_ZN3c104cuda9SetDeviceEi"}),
]  # fmt: skip


def said(mention: Mention) -> dict[str, Any]:
    """All that a mention says, attributes and details."""
    named = ("symbol", "version", "library", "file")
    return {**mention.detail, **{name: getattr(mention, name) for name in named}}


@pytest.mark.parametrize(("text", "what", "expected"), KINDS, ids=[k[1] for k in KINDS])
def test_a_failure_is_recognised_and_read(text: str, what: str, expected: dict[str, str]) -> None:
    mentions = read_paste(text).mentions
    assert mentions[0].what == what
    got = said(mentions[0])
    assert {key: got.get(key) for key in expected} == expected
    assert len(mentions) == 1


#: A listing or a name is pasted as it stands.
LOGGED = [k for k in KINDS if k[1] not in ("bare-symbol", "nm-line", "readelf-line")]


@pytest.mark.parametrize(("text", "what", "expected"), LOGGED, ids=[k[1] for k in LOGGED])
@pytest.mark.parametrize("prefix", ["[rank7]: ", "api-1  | ", "2024-08-20T14:02:10.5Z "])
def test_prefixes_change_nothing(
    text: str, what: str, expected: dict[str, str], prefix: str
) -> None:
    mention = read_paste("\n".join(prefix + line for line in text.splitlines())).mentions[0]
    got = said(mention)
    assert (mention.what, {key: got.get(key) for key in expected}) == (what, expected)


@pytest.mark.parametrize(
    "text",
    [
        "Everything works now, thank you",
        "INFO 08-20 14:02:10 step 12 loss 0.21 error_rate 0.1",
        "| 0  NVIDIA A100-SXM4-80GB        Off | 00000000:01:00.0  On |",
        "U should try another version of it",
        "next(iter([]))\nStopIteration",
        "\u8bf7\u95ee\u600e\u4e48\u5b89\u88c5\uff1f",
        "",
    ],
)
def test_a_text_without_a_failure_tells_of_none(text: str) -> None:
    assert read_paste(text).mentions == ()
