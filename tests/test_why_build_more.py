"""``why`` on builds: what the text itself tells of the machine, the toolkit and the checks."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.why.torch_names.history import order_key


@pytest.mark.parametrize(
    "lines",
    [
        ("pip install flash-attn fails with ModuleNotFoundError: No module named 'torch'",),
        ("在安装 xformers 时报错\uff1aModuleNotFoundError: No module named 'torch'",),
        ("$ uv pip install causal-conv1d", "ModuleNotFoundError: No module named 'torch'"),
        ("pip install some_kernels", "ModuleNotFoundError: No module named 'torch'"),
    ],
)
def test_torch_that_an_installation_misses_is_hidden_by_isolation(lines: tuple[str, ...]) -> None:
    answer = first(*lines)
    assert answer.code == "FA884" and "environment of its own" in answer.cause
    assert "--no-build-isolation" in said(answer)


@pytest.mark.parametrize(
    "lines",
    [
        ("I did pip install flash-attn", "python demo.py",
         "ModuleNotFoundError: No module named 'torch'"),
        ("import torch", "ModuleNotFoundError: No module named 'torch'"),
    ],
)  # fmt: skip
def test_torch_that_a_program_misses_is_not_there(lines: tuple[str, ...]) -> None:
    assert "environment of its own" not in first(*lines).cause


def test_without_isolation_torch_is_missing_indeed() -> None:
    answer = first(
        "$ pip install --no-build-isolation flash-attn",
        "Preparing metadata (setup.py): finished with status 'error'",
        '  File "/tmp/pip-install-x1/flash-attn_0a1b2c3d4e5f/setup.py", line 20, in <module>',
        "ModuleNotFoundError: No module named 'torch'",
    )
    assert "has no torch" in answer.cause and "none: that torch" not in answer.cause


def test_deepspeed_checks_by_itself_where_it_runs() -> None:
    line = "DeepSpeed Op Builder: Installed CUDA version {} does not match the version torch was "
    other = first(line.format("12.4") + "compiled with 11.8, unable to compile cuda/cpp extensions")
    assert other.owner == "deepspeed" and "torch's build helper" not in said(other)
    assert "export CUDA_HOME=/usr/local/cuda-11.8" in other.help
    assert "export DS_SKIP_CUDA_CHECK=1" not in other.help
    minor = first(line.format("12.6") + "compiled with 12.1, unable to compile cuda/cpp extensions")
    assert "export DS_SKIP_CUDA_CHECK=1" in minor.help


def test_the_version_of_torch_is_not_taken_for_that_of_nvcc() -> None:
    answer = first(
        "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not "
        "match the version used to compile Pytorch binaries.  Pytorch binaries were compiled with "
        "Cuda 11.3."
    )
    assert (
        "torch was built with CUDA 11.3" in answer.cause
        and "nvcc that was found is CUDA" not in (answer.cause)
    )
    assert "a minor one too" in answer.cause


@pytest.mark.parametrize("amd", ["MI300X, ROCm 6.4", "pip install torch+rocm6.2", "gfx1100"])
def test_a_toolkit_of_nvidia_is_not_what_an_amd_machine_lacks(amd: str) -> None:
    answer = first(amd, "OSError: CUDA_HOME environment variable is not set.")
    assert answer.kind == "rocm" and "torch.version.hip" in said(answer)
    plain = first("ROCM used to build PyTorch: N/A",
                  "OSError: CUDA_HOME environment variable is not set.")  # fmt: skip
    assert plain.kind != "rocm"


@pytest.mark.parametrize(
    "lines",
    [
        ("No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda:/usr/local/cuda-11.8'",
         "/usr/bin/ld: cannot find -lcudart"),
        ("FileNotFoundError: [Errno 2] No such file or directory: ':/usr/local/cuda/bin/nvcc'",),
    ],
)  # fmt: skip
def test_a_cuda_home_with_colons(lines: tuple[str, ...]) -> None:
    answer = first(*lines)
    assert "a list of directories" in answer.cause
    assert "export CUDA_HOME=/usr/local/cuda" in answer.help


def test_a_cuda_home_of_one_directory_is_none() -> None:
    answer = first("using CUDA_HOME='/usr/local/cuda'", "/usr/bin/ld: cannot find -lcudart")
    assert "list of directories" not in said(answer)


def test_an_entry_that_torch_no_longer_knows() -> None:
    text = "ValueError: Unknown CUDA arch ({}) or GPU not supported"
    gone = first(text.format("10.1"), "torch 2.10.0+cu128")
    assert "any more" in gone.cause and "11.0" in said(gone) and gone.confidence == "high"
    new = first(text.format("12.0"), "torch 2.6.0+cu124")
    assert "torch 2.7 and newer take it" in new.cause
    never = first(text.format("8.5"), "torch 2.6.0+cu124")
    assert "no torch on record" in never.cause


def test_the_table_of_entries_is_in_order() -> None:
    for first_one, last in build_names()["helper_archs"].values():
        assert not last or order_key(first_one) <= order_key(last)


def test_a_list_that_lacks_the_target_is_not_to_blame() -> None:
    answer = first("TORCH_CUDA_ARCH_LIST=8.7 pip install x",
                   "nvcc fatal   : Unsupported gpu architecture 'compute_100a'")  # fmt: skip
    assert "10.0a" in answer.cause and "(8.7) does not have 10.0a" in said(answer)
    assert "leave 10.0a out" not in said(answer)


def test_the_compiler_whose_headers_the_text_names() -> None:
    error = "/x/torch/include/ATen/ATen.h:4:2: error: #error C++17 or later compatible compiler is "
    old = first(
        error + "required to use ATen.", "In file included from /usr/include/c++/7/mutex:35"
    )
    assert "gcc 7" in old.cause and old.confidence == "high"
    cmake = first("[ 50%] Building CXX object CMakeFiles/x.dir/x.cpp.o",
                  error + "required to use ATen.")  # fmt: skip
    assert "cmake -DCMAKE_CXX_STANDARD=17 .." in cmake.help


@pytest.mark.parametrize(
    "error",
    [
        'x.h(24): error: namespace "std" has no member "uintptr_t"',
        "x.h:3:1: error: 'uint32_t' does not name a type",
        "x.cc:9:5: error: 'int64_t' was not declared in this scope",
        'x.cu(7): error: identifier "uint8_t" is undefined',
    ],
)
def test_a_header_that_others_no_longer_bring_along(error: str) -> None:
    answer = first(error, "gcc (GCC) 13.2.0")
    assert "<cstdint>" in answer.cause and answer.code == "FA883"


def test_a_visual_studio_that_is_newer_than_its_year() -> None:
    text = (
        r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v{}\include\crt/host_config.h(153): "
        "fatal error C1189: #error:  -- unsupported Microsoft Visual Studio version! Only the "
        "versions between 2017 and {} (inclusive) are supported!"
    )
    answer = first(text.format("12.1", "2022"))
    assert "before 14.40" in answer.cause and "12.4 and newer" in said(answer)
    newest = first(text.format("12.8", "2022"))
    assert "before 14.50" in newest.cause
    assert "14." not in first(text.format("11.2", "2019")).cause


@pytest.mark.parametrize(
    ("library", "owner", "words"),
    [
        ("c10_cuda.lib", "torch", "without CUDA"),
        ("cudart.lib", "cuda-toolkit", "CUDA toolkit"),
        ("python310.lib", "python", "embeddable"),
        ("c10.lib", "torch", "link line"),
    ],
)
def test_what_the_linker_of_windows_does_not_find(library: str, owner: str, words: str) -> None:
    answer = first(f"LINK : fatal error LNK1181: cannot open input file '{library}'")
    assert answer.owner == owner and words in answer.cause and answer.code == "FA883"


def test_a_module_that_torch_built_and_windows_does_not_load() -> None:
    answer = first(
        r'  File "C:\Python39\lib\site-packages\torch\utils\cpp_extension.py", line 1538, in '
        "_import_module_from_library",
        "    return imp.load_module(module_name, file, path, description)",
        "ImportError: DLL load failed while importing upfirdn2d: The specified module could not be "
        "found.",
    )
    assert "os.add_dll_directory" in said(answer) and answer.confidence == "medium"


def test_a_python_without_its_headers_on_windows() -> None:
    answer = first(r"D:\ComfyUI\python_embeded\lib\site-packages\triton\windows_utils.py:315",
                   "C:/T/cuda_utils.c:14: error: include file 'Python.h' not found")  # fmt: skip
    assert "embeddable" in answer.cause and "include and libs" in said(answer)
