"""Reports built by hand from true values, for the tests of the renderers.

The files are vllm-flash-attn 2.5.6 and 2.6.2 (PyPI, cp311, manylinux1_x86_64) under torch
2.4.0+cu121: names from ``nm -D -u`` and ``c++filt``, the missing ones from ``ldd -r``, slots
from ``readelf -r``, GPU code from ``cuobjdump -lelf`` 12.4, the loader's words from a real
dlopen. A part of the undefined names stands for all of them.
"""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.report import (
    BoundSymbol,
    Confirm,
    Evidence,
    Finding,
    GpuCode,
    ReleaseFacts,
    Report,
    Skipped,
    TargetReport,
    Witness,
)
from fa_forensics.report_why import Answer, Overload, WhyReport

PREFIX = "/home/ada/env"
PACKAGES = f"{PREFIX}/lib/python3.11/site-packages"
NAME = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
PATH = f"{PACKAGES}/{NAME}"
CUDART = f"{PACKAGES}/nvidia/cuda_runtime/lib/libcudart.so.12"
STDCXX = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def torch_library(name: str) -> str:
    """The path of one of torch's own libraries in the sample environment."""
    return f"{PACKAGES}/torch/lib/{name}"


ENVIRONMENT: dict[str, object] = {
    "python": f"{PREFIX}/bin/python",
    "python_version": "3.11.7",
    "prefix": PREFIX,
    "found_by": "--python",
    "torch": {
        "version": "2.4.0+cu121",
        "release": "2.4.0",
        "cuda": "12.1",
        "path": f"{PACKAGES}/torch",
        "cxx11_abi": "pre-cxx11",
    },
    "torch_problem": None,
    "variables": {"LD_LIBRARY_PATH": None},
}

#: What ``ldd -r`` leaves over of 2.5.6 under torch 2.4.0: (.rela.plt slot, symbol, c++filt).
MISSING = (
    (46, "_ZN3c104cuda9SetDeviceEi", "c10::cuda::SetDevice(int)"),
    (
        123,
        "_ZN2at4_ops9_pad_enum4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEElNS5_8optionalIdEE",
        (
            "at::_ops::_pad_enum::call(at::Tensor const&, c10::ArrayRef<c10::SymInt>, long, "
            "c10::optional<double>)"
        ),
    ),
    (229, "_ZN3c104cuda14ExchangeDeviceEi", "c10::cuda::ExchangeDevice(int)"),
    (331, "_ZN3c104cuda14MaybeSetDeviceEi", "c10::cuda::MaybeSetDevice(int)"),
    (
        334,
        (
            "_ZN2at4_ops19empty_memory_format4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10"
            "ScalarTypeEEENS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEENS6_INS2_12MemoryFormatEEE"
        ),
        (
            "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>, "
            "c10::optional<c10::ScalarType>, c10::optional<c10::Layout>, "
            "c10::optional<c10::Device>, "
            "c10::optional<bool>, c10::optional<c10::MemoryFormat>)"
        ),
    ),
    (347, "_ZN3c104cuda9GetDeviceEPi", "c10::cuda::GetDevice(int*)"),
    (
        528,
        (
            "_ZN3c107WarningC1ENS_7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEEERKNS_14"
            "SourceLocationESsb"
        ),
        (
            "c10::Warning::Warning(c10::variant<c10::Warning::UserWarning, "
            "c10::Warning::DeprecationWarning>, c10::SourceLocation const&, "
            "std::basic_string<char, "
            "std::char_traits<char>, std::allocator<char> >, bool)"
        ),
    ),
    (
        545,
        (
            "_ZN2at4_ops10empty_like4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEENS6_INS5_6"
            "LayoutEEENS6_INS5_6DeviceEEENS6_IbEENS6_INS5_12MemoryFormatEEE"
        ),
        (
            "at::_ops::empty_like::call(at::Tensor const&, c10::optional<c10::ScalarType>, "
            "c10::optional<c10::Layout>, c10::optional<c10::Device>, c10::optional<bool>, "
            "c10::optional<c10::MemoryFormat>)"
        ),
    ),
)

BOUND = (
    BoundSymbol("PyList_New", None, "global", "PyList_New", "python", f"{PREFIX}/bin/python"),
    BoundSymbol(
        "_ZN3c1019UndefinedTensorImpl10_singletonE",
        None,
        "global",
        "c10::UndefinedTensorImpl::_singleton",
        "torch",
        torch_library("libc10.so"),
    ),
    BoundSymbol(
        "_ZN3c105ErrorC2ENS_14SourceLocationESs",
        None,
        "global",
        "c10::Error::Error(c10::SourceLocation, std::basic_string<char, std::char_traits<char>, "
        "std::allocator<char> >)",
        "torch",
        torch_library("libc10.so"),
    ),
    BoundSymbol(
        "cudaLaunchKernel", "libcudart.so.12", "global", "cudaLaunchKernel", "cudart", CUDART
    ),
    BoundSymbol(
        "_Znwm", "GLIBCXX_3.4", "global", "operator new(unsigned long)", "libstdc++", STDCXX
    ),
    BoundSymbol("strlen", "GLIBC_2.2.5", "global", "strlen", "libc", LIBC),
    BoundSymbol("__gmon_start__", None, "weak", "__gmon_start__", "libc", None),
)

FOUND = {
    "libc10.so": torch_library("libc10.so"),
    "libtorch_cpu.so": torch_library("libtorch_cpu.so"),
    "libtorch_python.so": torch_library("libtorch_python.so"),
    "libcudart.so.12": CUDART,
    "libc10_cuda.so": torch_library("libc10_cuda.so"),
    "libtorch_cuda.so": torch_library("libtorch_cuda.so"),
    "libstdc++.so.6": STDCXX,
    "libgcc_s.so.1": "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
    "libc.so.6": LIBC,
}

ELF: dict[str, object] = {
    "machine": "x86_64",
    "type": "shared object",
    "osabi": 0,
    "soname": None,
    "needed": list(FOUND),
    "rpath": [],
    "runpath": ["/opt/hostedtoolcache/Python/3.11.9/x64/lib"],
    "build_id": "0f40d6bec47eb3a13408df64b3c39beca7e29492",
    "compilers": ["GCC: (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0"],
    "python_tag": "cp311",
    "module_name": "vllm_flash_attn_2_cuda",
    "size_bytes": 254188512,
    "tls_size_bytes": 0,
    "executable_stack": False,
    "section_headers": True,
    "versions_needed": [
        {"file": "libc.so.6", "version": "GLIBC_2.14"},
        {"file": "libc.so.6", "version": "GLIBC_2.2.5"},
        {"file": "libstdc++.so.6", "version": "GLIBCXX_3.4.18"},
        {"file": "libcudart.so.12", "version": "libcudart.so.12"},
    ],
    "undefined_count": 318,
    "defined_count": 1865,
    "libraries": [
        {"soname": n, "path": p, "found_by": "loaded by torch", "needed_by": PATH, "tried": []}
        for n, p in FOUND.items()
    ],
}

WITNESS = Witness(
    "stopped",
    "/usr/local/cuda/bin/cuobjdump",
    "cuobjdump 13.5 gave up at entry 2 (Invalid ELF); the list above is whole.",
)

HEALTHY = TargetReport(
    path=PATH,
    member=None,
    verdict="loads",
    headline="every name this file needs is provided by torch 2.4.0 and the libraries here.",
    elf=ELF,
    undefined=BOUND,
    cxx11_abi="pre-cxx11",
    links_with=("2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0"),
    built_on=("2.4.0",),
    gpu_code=(GpuCode("cubin", "sm_90", 64, 121287552), GpuCode("cubin", "sm_80", 64, 118485120)),
    toolkits=("CUDA 12.1 (sm_80, sm_90; cubin headers)",),
    cuobjdump=WITNESS,
    confirm=Confirm("confirmed", "dlopen succeeded after import torch", ({"step": "dlopen"},)),
)

DRIFT = Finding(
    code="FA201",
    severity="error",
    confidence="high",
    title="torch 2.4.0 does not export c10::cuda::SetDevice(int)",
    evidence=(
        Evidence(
            "needs _ZN3c104cuda9SetDeviceEi = c10::cuda::SetDevice(int)",
            PATH,
            ".rela.plt",
            "46",
            "_ZN3c104cuda9SetDeviceEi",
        ),
        Evidence(
            "has c10::cuda::SetDevice(signed char) (other parameters)",
            torch_library("libc10_cuda.so"),
            ".dynsym",
            None,
            "_ZN3c104cuda9SetDeviceEa",
        ),
    ),
    notes=("c10::cuda::SetDevice(int) is exported by torch 2.1.0 to 2.2.2 only.",),
    help=("pip install 'torch==2.1.2'", f"pip install --no-binary :all: {NAME.partition('.')[0]}"),
)

GROUPED = Finding(
    code="FA202",
    severity="error",
    confidence="high",
    title="7 more torch names have no provider in torch 2.4.0",
    evidence=tuple(
        Evidence(f"needs {name} = {text}", PATH, ".rela.plt", str(slot), name)
        for slot, name, text in MISSING[1:]
    ),
)

#: Where 2.5.6 stands (``nm -D`` of each release's libraries); the lists of names are shortened.
PLACE = ReleaseFacts(
    machine="x86_64",
    known=("2.0.0", "2.0.1", "2.1.0", "2.1.1", "2.1.2", "2.2.0", "2.2.1", "2.2.2", "2.3.0"),
    links_with=("2.1.0", "2.1.1", "2.1.2"),
    links_text="2.1.0 to 2.1.2",
    missing=(
        (("2.0.0", "2.0.1"), (MISSING[0][1],)),
        (("2.2.0", "2.2.1", "2.2.2"), (MISSING[1][1],)),
        (("2.3.0",), (MISSING[0][1], MISSING[1][1])),
    ),
    symbols=56,
    built_on=("2.1.0", "2.1.1", "2.1.2"),
    built_text="2.1.0 to 2.1.2",
    best="2.1.0",
    evidence=(
        "c10::cuda::SetDevice(int) came in 2.1.0.",
        "at::_ops::_pad_enum::call went in 2.2.0.",
    ),
    confidence="high",
    package_links=("2.1.0", "2.1.1", "2.1.2"),
    package_text="2.1.0 to 2.1.2",
    exported_by={MISSING[0][1]: ("2.1.0", "2.1.1", "2.1.2", "2.2.0", "2.2.1", "2.2.2")},
    exported_text={MISSING[0][1]: "2.1.0 to 2.2.2"},
)

FAILING = replace(
    HEALTHY,
    verdict="fails",
    headline="import stops at c10::cuda::SetDevice(int), which torch 2.4.0 does not export.",
    findings=(DRIFT, GROUPED),
    skipped=(Skipped("gpu-arch", "no CUDA device is visible to this machine"),),
    elf={
        **ELF,
        "compilers": ["GCC: (Debian 12.2.0-14) 12.2.0", "GCC: (Debian 11.3.0-12) 11.3.0"],
        "build_id": "37f6c82f46c9b26c48da0179865711576f882a9b",
        "rpath": ["/home/woosuk2/miniconda3/envs/build-py311/lib"],
        "runpath": [],
        "size_bytes": 323359688,
        "undefined_count": 299,
    },
    undefined=(
        *(BoundSymbol(name, None, "global", text, "torch", None) for _, name, text in MISSING),
        *BOUND,
    ),
    missing=tuple(name for _, name, _ in MISSING),
    links_with=("2.1.0", "2.1.1", "2.1.2"),
    built_on=("2.1.0", "2.1.1", "2.1.2"),
    releases=PLACE,
    gpu_code=(GpuCode("cubin", "sm_80", 32, 158023200), GpuCode("cubin", "sm_90", 32, 162223136)),
    confirm=Confirm(
        "confirmed", f"{NAME}: undefined symbol: _ZN3c104cuda9SetDeviceEi", ({"step": "dlopen"},)
    ),
)

UNREADABLE = TargetReport(
    path="/home/ada/broken.so",
    member=None,
    verdict="inconclusive",
    headline="the file ends after 4096 of 323359688 bytes.",
    skipped=(Skipped("fatbin", "the file is cut short"),),
    problem="the file ends after 4096 of 323359688 bytes",
    hint="fetch it again",
)

IN_WHEEL = replace(
    HEALTHY, path="/home/ada/vllm_flash_attn-2.6.2.whl", member=NAME, elf={**ELF, "libraries": []}
)

DRIFT_ANSWER = Answer(
    kind="symbol-drift",
    code="FA201",
    symbol="_ZN3c104cuda9SetDeviceEi",
    demangled="c10::cuda::SetDevice(int)",
    owner="torch (libc10_cuda.so)",
    provider=None,
    cause="The file was built on an older torch than the 2.4.0 installed here, which has "
    "c10::cuda::SetDevice(signed char) in its place.",
    direction="file-older",
    confidence="high",
    exported_by=("2.2.0", "2.1.0", "2.1.1", "2.1.2", "2.2.1", "2.2.2"),
    overloads=(
        Overload(
            "_ZN3c104cuda9SetDeviceEa",
            "c10::cuda::SetDevice(signed char)",
            ("2.3.0", "2.3.1", "2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.6.0", "2.7.0", "2.7.1"),
        ),
    ),
    help=("pip install 'torch==2.1.2'",),
    notes=("The parameter became a signed char in torch 2.3.0.",),
    source_line="undefined symbol: _ZN3c104cuda9SetDeviceEi",
)

LIBRARY_ANSWER = Answer(
    kind="missing-library",
    code="FA101",
    symbol=None,
    demangled=None,
    owner=None,
    provider=None,
    cause="No folder that the loader searches holds libcudart.so.12.",
    source_line="libcudart.so.12: cannot open shared object file: No such file or directory",
)


def report(*targets: TargetReport) -> Report:
    """A report of these targets in the sample environment."""
    return Report("0.1.0", ENVIRONMENT, targets)


def why(*answers: Answer) -> WhyReport:
    """A report of these answers in the sample environment."""
    return WhyReport("0.1.0", ENVIRONMENT, answers)
