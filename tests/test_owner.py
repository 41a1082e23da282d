"""Whose a symbol is: held against the libraries that really define it (oracle: nm)."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cache

import pytest
from support import oracles
from support.material import HUSK_IDS, SYSTEM_LIBRARIES, husk_file, system_library

from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.owner import (
    is_torch,
    libraries_of,
    owner_of,
    owner_of_library,
    title_of,
)
from fixtures.stub_torch import load_record, recorded_versions


@cache
def definers() -> dict[str, set[str]]:
    """Name → file names of the torch, nvidia and system libraries that define it."""
    found: dict[str, set[str]] = defaultdict(set)
    for version in recorded_versions():
        for library in load_record(version).libraries():
            for name in library.names():
                found[name].add(os.path.basename(library.path))
    for soname in SYSTEM_LIBRARIES:
        for _, (name, _, _) in oracles.nm_rows(system_library(soname), "--defined-only"):
            found[name].add(soname)
    return found


def group(owner: str | None) -> str | None:
    """All of torch's libraries are one owner here: names move between them over releases."""
    return "torch" if owner is not None and is_torch(owner) else owner


@pytest.mark.parametrize("identity", HUSK_IDS)
def test_a_symbols_owner_has_a_library_that_defines_it(identity: str) -> None:
    compared = 0
    for _, (name, version, _how) in oracles.nm_rows(husk_file(identity), "-u"):
        owners = {group(owner_of_library(library)) for library in definers().get(name, ())}
        ours = group(owner_of(name, version or None, demangle(name)))
        if name == "_ZSt21ios_base_library_initv":
            # libstdc++ has it from GCC 13 on; where this system's is older, only torch's own
            # copies of libstdc++ pieces define it. Its version, GLIBCXX_3.4.32, says whose it is.
            assert ours == "libstdc++"
        elif owners:
            assert ours in owners, (name, version, owners)
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("identity", HUSK_IDS)
def test_names_that_no_known_library_defines_are_python_s_or_the_packages_own(
    identity: str,
) -> None:
    for _, (name, version, _how) in oracles.nm_rows(husk_file(identity), "-u"):
        if name in definers():
            continue
        owner = owner_of(name, version or None, demangle(name))
        if name.startswith(("Py", "_Py")):
            assert owner == "python", name
        elif name.startswith(("_ZN10torchaudio", "_ZN5torio", "_ZN6cu_ctc")):
            assert owner == "extension", name
        elif name.startswith("sox_"):
            assert owner == "sox", name  # libsox.so, which torchaudio opens at run time
        elif name.startswith(("av_", "avcodec_", "avformat_", "avio_", "sws_", "swr_")):
            assert owner == "ffmpeg", name


@pytest.mark.parametrize(
    ("name", "version", "owner"),
    [
        # The function's own scope decides, never its arguments.
        ("_Z25transpose_embedding_inputN2at6TensorE", None, "extension"),
        ("_ZN4vllm4copyEN2at6TensorERKSs", None, "extension"),
        ("_ZN3c104cuda9SetDeviceEi", None, "torch/c10_cuda"),
        ("_ZN2at4cuda26getCurrentDevicePropertiesEv", None, "torch/torch_cuda"),
        ("_ZNK3c105Error4whatEv", None, "torch/c10"),
        ("_ZTVN3c105ErrorE", None, "torch/c10"),
        ("_ZN5torch8autograd4Node4nameEv", None, "torch/torch_cpu"),
        ("aoti_torch_abi_version", None, "torch/stable"),
        ("torch_list_push_back", None, "torch/stable"),
        ("THPVariableClass", None, "torch/torch_python"),
        ("PyErr_SetString", None, "python"),
        ("_PyObject_GC_New", None, "python"),
        ("cudaMalloc", "libcudart.so.12", "cudart"),
        ("cudaMalloc", None, "cudart"),
        ("__cudaRegisterFatBinary", None, "cudart"),
        ("cublasLtMatmul", "libcublasLt.so.12", "cublasLt"),
        ("cublasCreate_v2", "libcublas.so.12", "cublas"),
        ("cuTensorMapEncodeTiled", None, "cuda-driver"),
        ("cudnnCreate", None, "cudnn"),
        ("ncclAllReduce", None, "nccl"),
        ("nvmlInit_v2", None, "nvml"),
        ("hipMalloc", None, "hip"),
        # libstdc++ and libc pieces that some torch releases export as well stay libstdc++'s.
        ("_ZNSt15__exception_ptr13exception_ptrD1Ev", None, "libstdc++"),
        ("_ZNSt15__exception_ptr13exception_ptrD1Ev", "CXXABI_1.3.3", "libstdc++"),
        ("_ZdlPvm", None, "libstdc++"),
        ("_Znwm", "GLIBCXX_3.4", "libstdc++"),
        ("__cxa_throw_bad_array_new_length", None, "libstdc++"),
        ("memcpy", "GLIBC_2.14", "libc"),
        ("_Unwind_Resume", "GCC_3.0", "libgcc_s"),
        ("GOMP_parallel", "GOMP_4.0", "libgomp"),
        ("__gmon_start__", None, "toolchain"),
        ("_ITM_registerTMCloneTable", None, "toolchain"),
        ("cuckoo_hash", None, "extension"),
        ("curl_easy_init", None, "extension"),
        ("torchaudio_init", None, "extension"),
    ],
)  # fmt: skip
def test_owner_of_a_name(name: str, version: str | None, owner: str) -> None:
    assert owner_of(name, version, demangle(name)) == owner


@pytest.mark.parametrize(
    ("soname", "owner"),
    [
        ("libcudart.so.12", "cudart"),
        ("libcudart.so.11.0", "cudart"),
        ("libcublasLt.so.12", "cublasLt"),
        ("libcublas.so.12", "cublas"),
        ("libcusparseLt.so.0", "cusparseLt"),
        ("libc10.so", "torch/c10"),
        ("libc10_cuda.so", "torch/c10_cuda"),
        ("libtorch_python.so", "torch/torch_python"),
        ("libtorch.so", "torch/torch_cpu"),
        ("libtorch_cuda_linalg.so", "torch/torch_cuda"),
        ("libc10_hip.so", "torch/c10_hip"),
        ("libpython3.11.so.1.0", "python"),
        ("libc.so.6", "libc"),
        ("libcuda.so.1", "cuda-driver"),
        ("libavutil.so.58", None),
        ("libc10-1a2b3c.so", None),
        ("libcudart_static.a", None),
    ],
)
def test_owner_of_a_library(soname: str, owner: str | None) -> None:
    assert owner_of_library(soname) == owner


def test_libraries_without_an_owner_serve_only_names_that_have_one() -> None:
    """torch brings copies such as libgomp-a34b3233.so.1; their names are still the runtime's."""
    needed = {
        name
        for identity in HUSK_IDS
        for _, (name, _, _) in oracles.nm_rows(husk_file(identity), "-u")
    }
    for version in recorded_versions():
        for library in load_record(version).libraries():
            if owner_of_library(os.path.basename(library.path)) is None:
                owners = {owner_of(n, None, demangle(n)) for n in library.names() & needed}
                assert owners <= {"libstdc++", "libgomp"}, library.path


def test_every_owner_has_a_title_and_torch_s_have_libraries() -> None:
    for owner in ("torch/c10", "torch/torch_cpu", "torch/torch_python", "torch/stable", "cudart"):
        assert libraries_of(owner)
        assert title_of(owner) != owner
    assert "extension" in title_of("extension")
