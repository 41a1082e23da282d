"""``why`` on libraries between Python, the system and torch: who has a name, and who is older."""

from __future__ import annotations

import pytest
from support.asking import answers, first, said

from fa_forensics.facts.owner import owner_of
from fa_forensics.facts.paste.reader import read_paste

CAST = (
    "_ZN8pybind116detail11type_casterIN2at6TensorEvE4castERKS3_NS_19return_value_policyENS_6handleE"
)


def test_a_missing_init_function_may_be_python_2s() -> None:
    answer = first("ImportError: dynamic module does not define module export function "
                   "(PyInit__core)")  # fmt: skip
    assert answer.confidence == "medium" and "another Python" in answer.cause
    assert "init_core" in said(answer) and "-DPYTHON_EXECUTABLE" in said(answer)


@pytest.mark.parametrize("name", ["setupterm", "tigetnum", "del_curterm", "tgetent"])
def test_terminfo_owns_its_names(name: str) -> None:
    assert owner_of(name, None, name) == "terminfo"
    answer = first(f"ImportError: /x/site-packages/lib/y.so: undefined symbol: {name}")
    assert "libtinfo" in answer.cause and answer.confidence == "medium"


def test_cmake_leaves_libtorch_python_out() -> None:
    line = f"ImportError: /x/my.so: undefined symbol: {CAST}"
    cmake = first(line, "", "It is built with CMake, setuptools works.")
    assert cmake.direction == "none" and "TORCH_PYTHON_LIBRARY" in said(cmake)
    assert not any("install" in command for command in cmake.help)
    assert first(line).confidence != "high"


def test_a_relocation_misses_nothing() -> None:
    (answer,) = answers("(.init+0xb): relocation truncated to fit: R_X86_64_REX_GOTPCRELX against "
                        "undefined symbol `__gmon_start__'")  # fmt: skip
    assert answer.code == "FA883"


def test_python_2_lacks_names_that_every_python_3_has() -> None:
    line = "ImportError: /x/_knn.so: undefined symbol: _Py_Dealloc"
    assert "Python 2" in first(line).cause
    answer = first(line, "Ubuntu with Python2.7.12")
    assert "2.7.12" in answer.cause and "compiled for Python 3" in answer.cause


def test_the_systems_libstdcxx_may_hide_condas() -> None:
    line = ("ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by "
            "/home/u/miniconda3/envs/e/lib/python3.10/site-packages/a/b.so)")  # fmt: skip
    answer = first(line)
    assert any(c.startswith("LD_LIBRARY_PATH=/home/u/miniconda3/envs/e/lib ") for c in answer.help)
    assert "loaded first" in said(answer) and "LD_PRELOAD" not in said(answer)
    order = first("$ python -c 'import torch; import b'", line)
    assert "torch before that module" in order.notes[0]
    bare = first(line.replace("/home/u/miniconda3/envs/e", "/opt/venv"))
    assert not any("conda install" in command for command in bare.help)


def test_an_old_glibc_at_the_link_is_told_by_the_systems_own() -> None:
    lines = [f"libtorch/lib/libtorch_cpu.so: undefined reference to `{name}@GLIBC_2.35'"
             for name in ("hypot", "hypotf")]  # fmt: skip
    (alone,) = answers(*lines)
    assert (alone.code, alone.confidence) == ("FA203", "medium")
    (told,) = answers(*lines, "Libc version: glibc-2.34")
    assert told.confidence == "high" and "glibc 2.34" in told.cause
    (enough,) = answers(*lines, "Libc version: glibc-2.39")
    assert "which is enough" in enough.cause and enough.confidence == "medium"
    assert read_paste("ldd --version, 2.17").versions["glibc"] == "2.17"


@pytest.mark.parametrize(
    "path",
    ["/tmp/torchinductor_u/2u/c2.so", "/root/.triton/cache/ab/k.so",
     "/home/u/.cache/torch_extensions/py310_cu121/op/op.so"],
)  # fmt: skip
def test_a_half_written_build_is_no_broken_package(path: str) -> None:
    answer = first(f"OSError: {path}: file too short")
    assert answer.confidence == "medium" and "still writing" in answer.cause
    assert answer.help[0].startswith("rm -r ") and not any("pip" in c for c in answer.help)


def test_a_mac_says_which_way_round() -> None:
    text = "dlopen(/u/l.dylib, 6): tried: '/u/l.dylib' (mach-o file, but is an incompatible "
    intel = first(text + "architecture (have (arm64), need (x86_64)))")
    assert "for arm64" in intel.cause and "Apple Silicon, in a Python for Intel" in intel.cause
    arm = first(text + "architecture (have 'x86_64', need 'arm64'))")
    assert "for x86_64" in arm.cause and "Rosetta" not in arm.cause


@pytest.mark.parametrize(
    "words",
    [
        "%1 is not a valid Win32 application",
        "%1 \u4e0d\u662f\u6709\u6548\u7684 Win32 \u5e94\u7528\u7a0b\u5e8f\u3002",
    ],
)
def test_winerror_193_is_a_damaged_file_or_another_machines(words: str) -> None:
    answer = first(f'OSError: [WinError 193] {words} Error loading "D:\\py\\Lib\\site-packages\\'
                   'torch\\lib\\cublas64_12.dll" or one of its dependencies.')  # fmt: skip
    assert answer.owner == "torch" and "cublas64_12.dll" in answer.cause
    assert "procedure" not in said(answer) and "--no-cache-dir" in said(answer)


def test_the_libgomp_that_torch_brings_is_told_by_its_place() -> None:
    library = "/x/libtorch/lib/libgomp-75eea7e8.so.1"
    found = answers(*(f"./a: {library}: version `GOMP_4.5' not found (required by /l/lib{n}.so)"
                      for n in "bc"))  # fmt: skip
    assert len(found) == 1 and "LLVM" not in found[0].cause
    assert any(library in command for command in found[0].help)


def test_two_sources_that_register_one_name_are_two_packages() -> None:
    text = ("Only a single TORCH_LIBRARY can be used to register the namespace _C; Previous "
            "registration of TORCH_LIBRARY was registered at {}:10; latest registration was "
            "registered at {}:4")  # fmt: skip
    two = first(text.format("/w/one/csrc/binding.cpp", "/w/two/csrc/cpu/bindings.cpp"))
    assert "two different sources" in two.cause and "/w/two/csrc/cpu/bindings.cpp" in two.cause
    one = first(text.format("/a/p/csrc/binding.cpp", "/b/p/csrc/binding.cpp"))
    assert "two places" in one.cause


def test_an_operators_namespace_tells_the_package() -> None:
    answer = first(
        'File "/w/src/vllm/vllm/vllm_flash_attn/flash_attn_interface.py", line 1, in f',
        "AttributeError: '_OpNamespace' '_vllm_fa2_C' object has no attribute 'varlen_fwd'",
    )
    assert answer.owner == "vllm" and "source tree /w/src/vllm" in answer.cause


def test_flash_attention_3_is_not_built_where_it_has_no_gpu() -> None:
    missing = "ModuleNotFoundError: No module named 'flash_attn_{}'"
    rocm = first(missing.format("interface"), "on MI300x with ROCm 6.4")
    assert "ROCm" in rocm.cause and "hopper" not in "".join(rocm.help)
    ampere = first(missing.format("3_cuda"), "GPU: RTX 3050 Ti laptop")
    assert "8.6" in ampere.cause and "hopper" not in "".join(ampere.help)


def test_xformers_check_of_flash_attn_is_read_behind_its_wrapper() -> None:
    (answer,) = answers(
        "RuntimeError: Failed to import a.b because of the following error (look up to see its "
        "traceback):",
        "Requires Flash-Attention version >=2.7.1,<=2.7.4 but got 2.8.0.post2.",
    )
    assert (answer.owner, answer.confidence) == ("flash-attn", "high")
    assert "<=2.7.4.post" in answer.help[0] and "xformers" in said(answer)


def test_macos_has_no_xformers_for_cuda() -> None:
    answer = first(
        "Mac M1", "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built "
        "for:", "    PyTorch 2.0.1 with CUDA 1106 (you have 2.0.1)",
        "    Python  3.9.16 (you have 3.9.16)",
    )  # fmt: skip
    assert "macOS" in answer.cause and not any("pip install" in c for c in answer.help)


def test_an_unpacked_wheel_on_windows_is_left_and_not_installed_over() -> None:
    answer = first('  File "D:\\w\\torch\\__init__.py", line 81, in <module>',
                   "    from torch._C import *",
                   "ModuleNotFoundError: No module named 'torch._C'")  # fmt: skip
    assert "D:\\w" in answer.cause and "*.so" not in said(answer)


def test_a_toolkits_library_is_no_proof_of_a_newer_torch() -> None:
    answer = first("ImportError: libcusparse.so.11: cannot open shared object file: No such file "
                   "or directory", "torch==1.13.0")  # fmt: skip
    assert "toolkit" in answer.cause and answer.direction == "unknown"


def test_numpy_says_once_why_it_failed() -> None:
    (answer,) = answers(
        "RuntimeError: module compiled against API version 0xb but this version of numpy is 0xa",
        "ImportError: numpy.core.multiarray failed to import",
    )
    assert answer.confidence == "high" and "numpy>=1.13" in answer.help[0]


def test_a_link_line_without_object_files_made_an_empty_module() -> None:
    """Pointnet2_PyTorch issue 93; a linker needs an input to put a start function in."""
    link = (
        "g++ -pthread -shared -Wl,-z,relro -g %s-L/usr/local/cuda/lib64 -lcudart -o build/"
        "lib.linux-x86_64-3.7/pointnet2/_ext.cpython-37m-x86_64-linux-gnu.so"
    )
    error = "ImportError: dynamic module does not define module export function (PyInit__ext)"
    empty = first(link % "", error)
    assert empty.owner == "pointnet2" and "causes fit" not in empty.cause
    assert "nothing was compiled" in empty.cause and "pointnet2._ext" in said(empty)
    for inputs in ("build/temp/_ext-src/a.o ", "@build/objects.rsp ", "libparts.a ", "... "):
        assert "causes fit" in first(link % inputs, error).cause, inputs
    other = first(link.replace("_ext.", "_other.") % "", error)
    assert "causes fit" in other.cause
