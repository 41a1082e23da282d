"""Which copy of a system library counts, and what to run to see whether it helped."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.report_why import Answer


def libstdcxx(path: str, version: str = "GLIBCXX_3.4.26") -> Answer:
    return first(
        f"ImportError: /lib64/libstdc++.so.6: version `{version}' not found (required by {path})"
    )


@pytest.mark.parametrize(
    ("path", "ran"),
    [
        ("...python3.9/site-packages/selective_scan_cuda.cpython-39-x86_64-linux-gnu.so",
         "import torch; import selective_scan_cuda"),
        ("/o/lib/python3.9/site-packages/bitsandbytes/libbitsandbytes_cuda121.so",
         "import torch; import bitsandbytes"),
        ("/e/lib/python3.11/site-packages/insightface/thirdparty/mesh/cython/mesh_core_cython."
         "cpython-311-x86_64-linux-gnu.so",
         "import insightface.thirdparty.mesh.cython.mesh_core_cython"),
    ],
)  # fmt: skip
def test_the_import_that_is_tried_is_the_one_that_loads_the_file(path: str, ran: str) -> None:
    assert f"'{ran}'" in libstdcxx(path).help[-1]


def test_a_program_is_asked_for_its_version_and_does_not_wait() -> None:
    answer = libstdcxx("/home/u/.triton/llvm/llvm-1-ubuntu-x64/bin/mlir-tblgen")
    assert answer.help[-1].endswith("bin/mlir-tblgen --version")


def test_the_copies_are_searched_for_the_family_that_is_missing() -> None:
    path = "/o/lib/python3.9/site-packages/bitsandbytes/libbitsandbytes_cuda121.so"
    assert '"CXXABI_1[0-9.]*"' in libstdcxx(path, "CXXABI_1.3.9").help[0]
    assert '"GLIBCXX_3[0-9.]*"' in libstdcxx(path).help[0]


def test_what_counts_is_the_libstdcxx_in_pythons_process() -> None:
    answer = first(
        "ImportError: /e/site-packages/x/_C.so: undefined symbol: "
        "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv"
    )
    assert "/proc/self/maps" in answer.help[0] and "older g++" in said(answer)


def test_a_wheel_whose_tag_promises_an_older_glibc_is_told_so() -> None:
    missing = "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found"
    kept = "vllm-0.20.0+cu129-cp38-abi3-manylinux_2_{}_x86_64.whl"
    assert "manylinux_2_31, promises that glibc 2.31" in said(first(missing, kept.format(31)))
    assert "vllm==0.20.0" in said(first(missing, kept.format(31)))
    assert "promises that" not in said(first(missing, kept.format(35)))


def test_a_library_that_cannot_be_mapped_goes_before_torchs_first_try() -> None:
    answer = first(
        "OSError: libcurand.so.10: cannot open shared object file: No such file or directory",
        "During handling of the above exception, another exception occurred:",
        "libcusolver.so.11: failed to map segment from shared object",
    )
    assert (answer.code, answer.owner) == ("FA890", "cusolver")
    assert "memory.max" in said(answer) and "whl/cpu" in said(answer)


def test_static_tls_on_a_jetson_names_the_notebooks_way() -> None:
    answer = first(
        "OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS "
        "block",
        "Jetson, Python 3.6, Jupyter notebook",
    )
    assert "kernel.json" in said(answer) and "first cell" in said(answer)
    assert "1,664 bytes" in said(answer) and answer.confidence == "high"
