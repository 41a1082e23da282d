"""``why`` on builds and installations that fail: compilers, setup.py, pip, CMake, Visual Studio."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.asking import first, said

from fa_forensics.atlas.headers import Headers
from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.why.ways.builds import old_modules_gone


def test_the_names_that_torch_gave_up_are_in_no_torch_on_record() -> None:
    headers = Headers.open()
    for name in ("AT_CHECK", "THCState", "THCudaCheck", "THCudaMalloc", "THTensor"):
        assert any(name.startswith(key.rstrip("*")) for key in build_names()["gone"])
        assert not headers.has(name), name
    assert headers.has("getCurrentCUDAStream") and not headers.without("getCurrentCUDAStream")


def test_no_name_of_std_stands_under_two_standards() -> None:
    for table in ("standard", "dropped"):
        names = [name for row in build_names()[table].values() for name in row]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "line",
    [
        "src/nms.cpp:12:3: error: 'AT_CHECK' was not declared in this scope",
        'csrc/roi.cu(32): error: identifier "AT_CHECK" is undefined',
        "include\\emd.h(32): error C3861: 'AT_CHECK': identifier not found",
        "foo.cpp(12): error C3861: “AT_CHECK”: 找不到标识符",
        "build of x fails: 'AT_CHECK' was not declared in this scope",
        "x.cpp:4:9: error: use of undeclared identifier 'AT_CHECK'",
    ],
)
def test_a_macro_that_torch_gave_up_means_an_older_source(line: str) -> None:
    answer = first(line)
    assert (answer.code, answer.direction) == ("FA883", "file-older")
    assert "TORCH_CHECK" in answer.cause and "1.5" in answer.cause
    assert "compiler is in order" in said(answer)


@pytest.mark.parametrize(
    "line",
    [
        'k.cu(155): error: namespace "at::cuda" has no member "getCurrentCUDAStream"',
        "k.cpp:1:2: error: 'getCurrentCUDAStream' is not a member of 'at::cuda'",
        "k.cpp:1:2: error: no member named 'getCurrentCUDAStream' in namespace 'at::cuda'",
    ],
)
def test_a_name_that_every_torch_has_was_not_removed(line: str) -> None:
    answer = first(line, "PyTorch version: 2.1.0+cu121")
    assert "not given up" in answer.cause and "include" in answer.cause
    assert answer.confidence == "medium" and "grep -rlw getCurrentCUDAStream" in said(answer)


def test_a_member_that_only_newer_torches_have_means_a_newer_source() -> None:
    answer = first(
        "a.cpp:5:3: error: 'class at::Tensor' has no member named 'mutable_data_ptr'",
        "PyTorch version: 2.0.1+cu118",
    )
    assert answer.direction == "file-newer" and "2.1.0" in answer.cause


@pytest.mark.parametrize(
    ("line", "standard"),
    [
        ("a.h:5:1: error: 'optional' is not a member of 'std'", "C++17"),
        ('a.h(5): error: namespace "std" has no member "string_view"', "C++17"),
        ("error: no member named 'bit_cast' in namespace 'std'", "C++20"),
        ("`optional is not a part of std`", "C++17"),
    ],
)
def test_a_name_of_a_newer_standard(line: str, standard: str) -> None:
    answer = first(line)
    assert standard in answer.cause and answer.confidence == "medium"


def test_torch_1_passes_an_older_standard_than_a_newer_package_needs() -> None:
    answer = first("a.h:5:1: error: 'optional' is not a member of 'std'", "torch==1.13.1")
    assert answer.direction == "file-newer" and "c++14" in answer.cause


def test_a_compiler_that_does_not_know_the_standard_is_the_cause_not_its_warnings() -> None:
    answer = first(
        "UserWarning: Attempted to use ninja as the BuildExtension backend but we could not find "
        "ninja.. Falling back to using the slow distutils backend.",
        "Your compiler (g++ 4.8.5) may be ABI-incompatible with PyTorch!",
        "gcc: error: unrecognized command line option \u2018-std=c++14\u2019",
    )
    assert answer.owner == "gcc" and "-std=c++14" in answer.cause and "too old" in answer.cause


def test_headers_that_nvcc_does_not_understand_are_no_fault_of_the_source() -> None:
    answer = first(
        "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded "
        "with \u2018...\u2019:",
        "[4/10] /usr/bin/nvcc  -I/x/include -c /x/a.cu",
    )
    assert answer.owner == "nvcc" and "gcc 11" in answer.cause and "g++-10" in said(answer)
    assert "nvidia-cuda-toolkit" in said(answer)
    glibc = first(
        "/usr/include/x86_64-linux-gnu/bits/mathcalls.h(79): error: exception specification is "
        'incompatible with that of previous function "cospi"'
    )
    assert "C library" in glibc.cause and "-ccbin" not in said(glibc)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a.h:8:10: fatal error: cuda_fp8.h: No such file or directory", "since 11.8"),
        ("a.h:8:10: fatal error: cudnn.h: No such file or directory", "cuDNN"),
        ("a.h:8:10: fatal error: cutlass/numeric_types.h: No such file or directory", "submodule"),
        ("a.cu(3): fatal error C1083: Cannot open include file: 'cuda_runtime.h': No such file or "
         "directory", "CUDA toolkit"),
        ("a.cu:1:10: fatal error: thrust/complex.h: No such file or directory", "include/cccl"),
        ("x.cpp:1:10: fatal error: c10/cuda/impl/cuda_cmake_macros.h: No such file or directory",
         "CPU build"),
        ("/tmp/tmps1/main.c:5:10: fatal error: Python.h: No such file or directory", "Triton"),
    ],
)  # fmt: skip
def test_who_brings_a_header(line: str, words: str) -> None:
    answer = first(line)
    assert answer.code == "FA883" and words in said(answer)


def test_no_gpu_while_building_and_a_torch_without_cuda_are_told_apart() -> None:
    trace = ("    arch_list[-1] += '+PTX'", "IndexError: list index out of range")
    docker = first(*trace, "ERROR: failed to solve: process did not complete")
    assert docker.kind == "gpu-arch" and "docker build sees no GPU" in said(docker)
    assert "TORCH_CUDA_ARCH_LIST=" in docker.help[-1]
    cpu = first("Using /home/u/.cache/torch_extensions/py37_cpu as PyTorch extensions root", *trace)
    assert cpu.code == "FA884" and "CPU build" in cpu.cause and "alone does not help" in cpu.cause
    tcnn = first(
        "OSError: Unknown compute capability. Specify the target compute capabilities in the "
        "TCNN_CUDA_ARCHITECTURES environment variable or install PyTorch with the CUDA backend"
    )
    assert 'TCNN_CUDA_ARCHITECTURES="86"' in tcnn.help[-1]


def test_a_build_for_too_old_a_gpu_is_a_question_of_its_list_of_targets() -> None:
    answer = first(
        "ptxas /tmp/tmpxft_0023_-11_k.compute_50.ptx, line 4; error   : Feature 'f16 arithmetic' "
        "requires .target sm_53 or higher",
        "ptxas fatal   : Ptx assembly aborted due to errors",
    )
    assert "5.3" in answer.cause and "5.0" in answer.cause
    assert "TORCH_CUDA_ARCH_LIST" in said(answer)


def test_a_mac_has_no_toolkit_to_install() -> None:
    answer = first(
        "/private/var/folders/x/T/pip-install-1/causal-conv1d_2/setup.py:77: UserWarning: "
        "causal_conv1d was requested, but nvcc was not found."
    )
    assert "macOS" in answer.cause and "CUDA_HOME" not in said(answer)


@pytest.mark.parametrize(
    "lines",
    [
        ("NameError: name 'bare_metal_version' is not defined",),
        ('    raw = check_output([cuda_dir + "/bin/nvcc", "-V"])',
         "TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'"),
    ],
)  # fmt: skip
def test_a_value_that_was_never_set_means_no_nvcc(lines: tuple[str, ...]) -> None:
    answer = first(*lines)
    assert answer.owner == "nvcc" and "found no CUDA toolkit" in answer.cause


def test_a_mismatch_without_its_numbers_invents_none() -> None:
    answer = first(
        "RuntimeError: The detected CUDA version (%s) mismatches the version that was used to "
        "compilePyTorch (%s). Please make sure to use the same CUDA versions."
    )
    assert (answer.code, answer.owner) == ("FA884", "nvcc")
    assert "cuda-X.Y" in said(answer) and "cuda-12" not in said(answer)


def test_a_python_that_is_too_new_is_told_by_what_pip_lists() -> None:
    answer = first(
        "ERROR: Could not find a version that satisfies the requirement torch==2.1.0+cu121 (from "
        "versions: 2.2.0, 2.2.0+cpu, 2.2.1, 2.3.0, 2.6.0)",
        "ERROR: No matching distribution found for torch==2.1.0+cu121",
    )
    assert "Python 3.12" in answer.cause and "3.11" in said(answer)
    assert answer.confidence == "medium"


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("ERROR: Wheel 'flash-attn' located at C:\\w\\flash_attn-2.7.0-cp310-cp310-win_amd64.whl "
         "is invalid.", "damaged-file", "Git LFS"),
        ("ERROR: flash_attn-2.7.4 (1).whl is not a valid wheel filename.", "damaged-file", "name"),
        ("error: [Errno 18] Invalid cross-device link: 'flash_attn-2.whl' -> '/tmp/pip-wheel'",
         "wrong-torch", "TMPDIR"),
        ("error: invalid command 'bdist_wheel'", "wrong-torch", "install wheel"),
        ("ModuleNotFoundError: No module named 'pkg_resources'", "wrong-torch", "setuptools<82"),
        ('File "/x/torch/utils/file_baton.py", line 50 in wait', "wrong-torch", "-name lock"),
        ("UnboundLocalError: local variable 'cublas_path' referenced before assignment",
         "missing-library", "nvidia-cublas"),
        ("error: command 'gcc' failed: No such file or directory", "wrong-torch", "C++ compiler"),
        ("ERROR: Package 'x' requires a different Python: 3.7.16 not in '>=3.8'", "python-abi",
         ">=3.8"),
    ],
)  # fmt: skip
def test_installations_that_end_before_a_compiler(line: str, kind: str, words: str) -> None:
    answer = first(line)
    assert answer.kind == kind and words in said(answer)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("host_config.h(160): fatal error C1189: #error:  -- unsupported Microsoft Visual Studio "
         "version! Only the versions between 2017 and 2019 (inclusive) are supported!",
         "2017 to 2019"),
        ("error STL1002: Unexpected compiler version, expected CUDA 12.4 or newer.", "CUDA 12.4"),
        ("subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero", "vcvars64"),
        ("nvcc fatal   : Cannot find compiler 'cl.exe' in PATH", "vcvars64"),
        ("UserWarning: It seems that the VC environment is activated but DISTUTILS_USE_SDK is not "
         "set.", "set DISTUTILS_USE_SDK=1"),
    ],
)  # fmt: skip
def test_visual_studio_absent_too_new_or_not_set_up(line: str, words: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.owner) == ("windows", "msvc") and words in said(answer)


def test_cmake_files_of_torch_and_a_toolkit_that_dropped_nvtx_2() -> None:
    answer = first(
        '  The link interface of target "torch::nvtoolsext" contains:',
        "    CUDA::nvToolsExt",
        "  but the target was not found.",
        "Cuda compilation tools, release 12.9, V12.9.41",
    )
    assert answer.confidence == "high" and "12.9" in answer.cause


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 744.00 MiB",
        "RuntimeError: CUDA error: device-side assert triggered",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    ],
)
def test_what_is_no_question_of_binaries_is_said_in_one_sentence(line: str) -> None:
    answer = first(line)
    assert answer.kind == "unrecognised" and "no question of binaries" in answer.cause
    assert "MAX_JOBS" not in said(answer)


def test_the_first_error_of_a_source_counts_and_a_cause_goes_before_it() -> None:
    lines = [f"src/a{n}.cpp:{n}:1: error: no matching function for call to 'f{n}'" for n in (1, 2)]
    found = read_paste("\n".join(lines)).mentions
    assert [(m.what, m.number) for m in found] == [("source-error", 1)]
    assert (
        first(*lines, "x.cpp:1:1: error: 'AT_CHECK' was not declared in this scope").owner
        == "torch"
    )
    assert first(*lines).confidence == "low"


def test_a_log_that_only_says_that_it_failed_gets_the_command_that_shows_why() -> None:
    answer = first("ERROR: Failed building wheel for flash-attn")
    assert answer.confidence == "low" and "build.log" in said(answer)
    quiet = first("Precompiled wheel not found. Building from source...")
    assert quiet.confidence == "low" and "no error by itself" in quiet.cause


def test_a_function_of_somebody_else_is_not_flash_attns() -> None:
    answer = first(
        "TypeError: llama_flash_attn_forward() got an unexpected keyword argument 'cache_position'",
        "flash_attn==2.7.4.post1",
    )
    assert answer.owner != "flash-attn"


def test_old_modules_of_a_source_tree_go_and_those_of_a_python_in_it_stay(tmp_path: Path) -> None:
    name = "x.cpython-310-x86_64-linux-gnu.so"
    kept = [
        tmp_path / "env/lib/python3.10" / part / name for part in ("lib-dynload", "site-packages")
    ]
    for file in (*kept, tmp_path / "pkg" / name):
        file.parent.mkdir(parents=True)
        file.touch()
    subprocess.run(old_modules_gone(f"/src/pkg/{name}"), shell=True, check=True, cwd=tmp_path)
    assert sorted(tmp_path.rglob("*.so")) == kept
