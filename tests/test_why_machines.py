"""``why`` on files for another machine, another C library or another kind of Python."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path

import pytest
from support.asking import answers, first, said

import fa_forensics
from fa_forensics.facts.paste.machines import conda_has, machines_around, pypi_has_torch
from fa_forensics.facts.python_names import names_that_begin, python_spans, special_build

TABLE = json.loads((Path(fa_forensics.__file__).parent / "data/machines.json").read_text("utf-8"))


def test_the_table_of_machines_is_sound() -> None:
    words = [word for row in TABLE["boards"] for word in row["words"]]
    assert len(words) == len(set(words)) and all(word == word.lower() for word in words)
    assert {row["machine"] for row in TABLE["boards"]} <= {*TABLE["processors"], "arm"}
    assert conda_has("") and conda_has("aarch64") and not conda_has("riscv64")
    assert pypi_has_torch("aarch64") and not pypi_has_torch("armv7l")


@pytest.mark.parametrize(
    ("around", "host"),
    [
        ("seen on a Jetson Orin Nano", "a Jetson board"),
        ("NVIDIA DGX Spark, CUDA 13", "a DGX Spark"),
        ("Raspberry Pi 5 with Ubuntu", "a Raspberry Pi"),
        ("c7g.large (Graviton3)", "an AWS Graviton"),
        ("uname -m says aarch64", "aarch64"),
    ],
)
def test_libtorch_of_x86_on_an_arm_machine_is_told_by_the_words_around(
    around: str, host: str
) -> None:
    line = "/usr/bin/ld: /opt/libtorch/lib/libtorch.so: error adding symbols: file in wrong format"
    answer = first(line, around)
    assert (answer.kind, answer.confidence) == ("wrong-machine", "high")
    assert (answer.owner or "").split("/")[0] == "torch"
    assert host in answer.cause and "x86-64" in answer.cause
    assert any("cmake_prefix_path" in command for command in answer.help)


def test_no_command_installs_what_a_machine_has_not() -> None:
    jetson = first("skipping incompatible /o/libtorch/lib/libtorch.so when searching for -ltorch",
                   "Jetson AGX Xavier")  # fmt: skip
    assert "JetPack" in said(jetson)
    assert not any("install" in command for command in jetson.help)
    small = first("ImportError: /x/torch/_C.so: wrong ELF class: ELFCLASS64", "armv7l")
    assert not any("pip install" in command for command in small.help)
    assert "64-bit" in said(small)


def test_the_loader_says_no_such_file_of_another_processors_library(tmp_path: Path) -> None:
    """glibc passes another e_machine over with ENOENT: what the answer rests on."""
    source = tmp_path / "a.c"
    source.write_text("int f(void) { return 1; }\n")
    file = tmp_path / "liba.so"
    try:
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(file), str(source)], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no gcc")
    data = bytearray(file.read_bytes())
    data[18:20] = (0x15).to_bytes(2, "little")  # EM_PPC64
    file.write_bytes(data)
    with pytest.raises(OSError, match="No such file"):
        ctypes.CDLL(str(file))


def test_a_library_that_is_shown_and_not_found_is_for_another_processor() -> None:
    lines = (
        "OSError: /y/libspam.so: cannot open shared object file: No such file or directory",
        "$ file libspam.so: ELF 64-bit LSB shared object, x86-64, version 1 (SYSV)",
    )
    alone = first(*lines)
    assert (alone.kind, alone.confidence) == ("wrong-machine", "medium")
    told = first(*lines, "on a Jetson Nano")
    assert (told.kind, told.confidence) == ("wrong-machine", "high")
    assert "not missing" in told.cause


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ld: warning: ignoring file libtorch/lib/libc10.so, file was built for unsupported file "
         "format ( 0x7F 0x45 0x4C 0x46 0x02 ) which is not the architecture being linked "
         "(x86_64): libtorch/lib/libc10.so", "for Linux"),
        ("ld: warning: ignoring file libtorch/lib/libtorch.so, building for macOS-arm64 but "
         "attempting to link with file built for unknown-unsupported file format "
         "( 0x7F 0x45 0x4C 0x46 0x02 )", "for Linux"),
        ("ld: warning: ignoring file '/l/libtorch/lib/libc10.dylib': found architecture 'x86_64', "
         "required architecture 'arm64'", "for x86_64, and arm64"),
        ("ld: warning: ignoring file /l/libtorch/lib/libtorch.dylib, building for macOS-arm64 but "
         "attempting to link with file built for macOS-x86_64", "for x86_64, and arm64"),
    ],
)  # fmt: skip
def test_apples_linker_tells_whose_library_it_leaves_out(line: str, words: str) -> None:
    found = answers(
        line,
        line.replace("libc10", "libtorch_cpu"),
        "Undefined symbols for architecture arm64:",
        '  "at::globalContext()", referenced from:',
        "ld: symbol(s) not found",
    )
    assert [one.kind for one in found] == ["wrong-machine"]
    assert words in found[0].cause and "missing" not in found[0].cause


def test_macs_are_told_which_build_to_take() -> None:
    line = "dlopen(/x/{0}, 6): tried: '/x/{0}' (mach-o file, but is an incompatible architecture "
    arm = first(line.format("torchvision/_C.so") + "(have 'x86_64', need 'arm64e' or 'arm64'))")
    assert "is arm64." in arm.cause and "ARCHFLAGS" in said(arm)
    intel = first(line.format("torch/lib/libc10.dylib") + "(have 'arm64', need 'x86_64'))")
    assert any(command.endswith("torch==2.2.2") for command in intel.help)
    egg = first("/p/torch_scatter-2.0-py3.8-macosx-10.9-x86_64.egg/torch_scatter/_version.so: "
                "mach-o, but wrong architecture")  # fmt: skip
    assert "is for x86_64" in egg.cause


@pytest.mark.parametrize(
    "line",
    [
        "ImportError: Error relocating /x/torch/lib/libc10.so: backtrace: symbol not found",
        "OSError: Error loading shared library ld-linux-x86-64.so.2: No such file or directory "
        "(needed by /x/torch/lib/libc10.so)",
    ],
)
def test_glibcs_wheels_do_not_run_on_alpine(line: str) -> None:
    answer = first(line)
    assert (answer.owner, answer.confidence) == ("libc", "high")
    assert "musl" in answer.cause and "slim" in said(answer)


def test_a_name_of_torch_on_alpine_is_still_torchs() -> None:
    answer = first("Error relocating /x/flash.so: _ZN3c104cuda9SetDeviceEi: symbol not found")
    assert answer.owner == "torch/c10_cuda"


def test_torchs_cpu_library_is_no_fallback_of_a_package() -> None:
    answer = first("ImportError: /x/lib/libtorch_cpu.so: undefined symbol: frobnicate_it")
    assert "CUDA set-up failed" not in said(answer)


def test_names_of_special_builds_of_python() -> None:
    assert special_build("_Py_DecRefShared") == "free-threaded"
    assert special_build("_Py_NegativeRefcount") == "debug"
    assert special_build("PyLong_Type") is None
    free = first("ImportError: /x/a.so: undefined symbol: _Py_MergeZeroLocalRefcount")
    assert "free-threaded" in free.cause and "cp313t" in said(free)


def test_a_name_that_was_cut_off_is_read_by_its_beginning() -> None:
    assert names_that_begin("PySlice_U") == ("PySlice_Unpack",)
    assert not python_spans("PySlice_U")
    answer = first("python3: symbol lookup error: /x/python3.6/site-packages/torch/lib/"
                   "libtorch_python.so: undefined symbol: PySlice_U")  # fmt: skip
    assert "PySlice_Unpack" in answer.cause and "3.6.1" in answer.cause
    assert "patch release" in said(answer)
    many = first("ImportError: /x/a.so: undefined symbol: PyUnicode_As")
    assert many.confidence == "low"


def test_a_python_from_before_its_release_lacks_later_names() -> None:
    answer = first("ImportError: /x/python3.11/a.so: undefined symbol: PyFrame_GetLasti",
                   "Python 3.11.0a6")  # fmt: skip
    assert (answer.direction, answer.confidence) == ("file-newer", "high")
    assert "3.11.0a6" in answer.cause and "too old" in answer.cause


@pytest.mark.parametrize(
    ("python", "other"), [("Python 3.11.9", True), ("Python 3.10.2", False), ("3.10t", False)]
)
def test_a_file_with_another_tag_is_there_and_not_looked_for(python: str, other: bool) -> None:
    answer = first(
        "ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
        "site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
        python,
    )
    assert (answer.code == "FA401") is other
    if other:
        assert "compiled for Python 3.10" in answer.cause


def test_the_words_of_other_files_are_no_host() -> None:
    from fa_forensics.facts.paste.lines import Source

    text = "spam-1.0-cp310-cp310-manylinux2014_aarch64.whl\nERROR here"
    assert "host" not in machines_around(Source(text).line_at(len(text) - 2), None)


@pytest.mark.parametrize(
    ("line", "kind", "command"),
    [
        ("Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so.", "missing-library",
         "--force-reinstall mkl"),
        ("Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with "
         "libgomp.so.1 library.", "import-order", "MKL_THREADING_LAYER=GNU"),
    ],
)  # fmt: skip
def test_what_mkl_says_of_itself(line: str, kind: str, command: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.owner) == (kind, "mkl")
    assert any(command in text for text in answer.help)


def test_a_cut_name_of_the_cxx_library_is_not_torchs() -> None:
    line = "undefined symbol: _ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE..."
    versioned = first(f"/x/libc10.so: {line}, version GLIBCXX_3.4.26")
    assert (versioned.kind, versioned.owner) == ("libstdcxx", "libstdc++")
    assert "GCC 9" in versioned.cause
    assert "GCC 5" not in first(f"/x/libc10.so: {line}").cause


def test_a_half_written_jit_build_is_removed_and_no_package_reinstalled() -> None:
    answer = first("OSError: /h/.cache/flashinfer/90/cached_ops/a/a.so: invalid ELF header")
    assert answer.help[0] == "rm -r /h/.cache/flashinfer"
    assert not any("install" in text for text in answer.help)


def test_a_torch_for_32_bit_arm_is_not_sent_to_conda_forge() -> None:
    answer = first(
        "ImportError: /lib/arm-linux-gnueabihf/libc.so.6: version 'GLIBC_2.32' not found "
        "(required by /home/pi/.local/lib/python3.9/site-packages/torch/lib/libtorch_python.so)",
        "torch 1.10.2 armv7l wheel, python3.9, Raspberry Pi 2B",
    )
    words = said(answer)
    assert "linux_armv7l" in words and "x86_64" not in words
    assert "conda-forge's" not in words and "build from source" in words
