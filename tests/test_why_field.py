"""``why`` on texts as people post them: half sentences, requirements, builds that stop."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste
from fa_forensics.why import explain

SET_DEVICE = "_ZN3c104cuda9SetDeviceEa"


@pytest.mark.parametrize(
    ("text", "torch"),
    [
        ("torch 2.8.0+cu128", "2.8.0+cu128"),
        ("I have pytorch 2.3 here", "2.3"),
        ("PyTorch=2.1.2", "2.1.2"),
        ("torch版本2.4.0", "2.4.0"),
        ("torch 的版本是2.4.1", "2.4.1"),
        ("torch 버전은 2.5.1 입니다", "2.5.1"),
        ("same here, torch2.2.0+cuda11.8:", "2.2.0+cuda11.8"),
        ("my torch is 2.4.1", "2.4.1"),
        ("the torch 2.8 wheel fails; PyTorch: 2.9.1+cu128", "2.9.1+cu128"),
        ("built for torch 2.8, here is torch 2.9.1", "2.9.1"),
        ("works with torch 2.3.1, but with torch 2.5.1 it fails", "2.5.1"),
        ("they say upgrade to torch 2.4.0; mine: torch 2.2.2", "2.2.2"),
        ("it works with torch 2.3.1, it fails with torch 2.5.1", "2.5.1"),
        ("it never worked with torch 2.3.1", "2.3.1"),
        ("torch 2.6.0 works, but this import does not", "2.6.0"),
        ("after upgrading to torch 2.6.0 I get this", "2.6.0"),
        ("after downgrading to torch 2.1.2 I get this", "2.1.2"),
        ("I have torch 2.4.0, the README says tested on torch 2.1.0", "2.4.0"),
    ],
)
def test_a_sentence_names_the_torch_that_is_there(text: str, torch: str) -> None:
    assert read_paste(text).versions.get("torch") == torch


@pytest.mark.parametrize(
    "text",
    [
        "it works fine with torch 2.3.1",
        "Colab (goes away with PyTorch 2.5.1 and its own torchaudio)",
        "pytorch 1.10.1 reinstalled works",
        "after downgrading to torch==2.1.2 it works",
        "fixed by downgrading torch to 2.0.1",
        "solved with torch 2.4.0",
        "downgrade to pytorch 1.1.0 cleared the error for another user",
        "repository written for pytorch 1.0",
        "the model was trained with torch 1.10.0",
        "a wheel that was built with torch 2.4.0",
        "降级到 torch 1.7.1 解决",
    ],
)
def test_the_torch_that_put_it_right_is_not_the_one_that_failed(text: str) -> None:
    assert "torch" not in read_paste(text).versions


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("it is only supported on CUDA 11.6 and above", "cuda"),
        ("needs CUDA 12.4 or newer", "cuda"),
        ("use torch 2.4+ please", "torch"),
        ("torch 2.0.1 or later is required", "torch"),
        ("需要 torch 2.1.0 以上", "torch"),
        ("I took the torch 2.5.1 wheel", "torch"),
    ],
)
def test_a_version_that_is_asked_for_is_not_there(text: str, key: str) -> None:
    assert key not in read_paste(text).versions


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("我用A100-SXM4跑", "A100-SXM4"),
        ("on a Jetson AGX Orin", "Jetson AGX Orin"),
        ("my GTX 1080 Ti", "GTX 1080 Ti"),
        ("runs on A100, not on H100", "H100"),
        ("A100 or H100, both", None),
        ("wget host/a100.tar", None),
    ],
)
def test_a_sentence_names_one_gpu_or_none(text: str, gpu: str | None) -> None:
    assert read_paste(text).versions.get("gpu") == gpu


def test_a_requirement_is_not_the_toolkit_that_was_found() -> None:
    line = "RuntimeError: FlashAttention is only supported on CUDA 11.6 and above."
    cause = first(line).cause
    assert "found is older" in cause and "found is 11.6" not in cause
    other = first("nvidia-smi says CUDA 12.2", line).cause
    assert "not the CUDA 12.2" in other
    old = first(line, "Cuda compilation tools, release 11.4, V11.4.120").cause
    assert "found is 11.4" in old


def test_a_renamed_function_without_its_module_is_the_public_one() -> None:
    answer = first("ImportError: cannot import name 'flash_attn_unpadded_kvpacked_func'")
    assert "from 2.0.0 on" in answer.cause
    assert "flash_attn_varlen_kvpacked_func took its place" in answer.cause
    assert not any("flash-attn<" in command for command in answer.help)


def test_a_tool_that_setup_py_imports_belongs_to_the_build() -> None:
    answer = first(
        '  File "/tmp/pip-install-k2x1/flash-attn_0123456789abcdef0123456789abcdef/setup.py", '
        "line 11, in <module>",
        "    import psutil",
        "ModuleNotFoundError: No module named 'psutil'",
    )
    assert (answer.kind, answer.code, answer.owner) == ("wrong-torch", "FA884", "flash-attn")
    assert "install psutil packaging ninja wheel setuptools" in answer.help[0]
    assert "--no-build-isolation flash-attn" in answer.help[1]
    own = first("    import psutil", "ModuleNotFoundError: No module named 'psutil'")
    assert own.code != "FA884"


@pytest.mark.parametrize(
    "lines",
    [
        ("[12/73] nvcc -c flash_bwd.cu", "Killed", "ninja: build stopped: subcommand failed."),
        ("sh: line 1:  4242 Killed                  cicc --c++17 x.cu",),
    ],
)
def test_a_compiler_that_the_kernel_ended(lines: tuple[str, ...]) -> None:
    answer = first(*lines)
    assert answer.code == "FA885" and "MAX_JOBS=" in said(answer)


def test_killed_alone_says_nothing_of_a_build() -> None:
    assert first("epoch 3", "Killed").code != "FA885"


def test_a_compiler_that_crashed_is_at_fault_before_memory_is() -> None:
    answer = first("nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)")
    assert (answer.code, answer.owner) == ("FA883", "nvcc")
    assert "another release of the same CUDA" in answer.cause and "signal 9" in answer.cause


def test_half_a_toolkit() -> None:
    answer = first("sh: 1: cudafe++: not found", "ninja: build stopped: subcommand failed.")
    assert (answer.owner, answer.code) == ("nvcc", "FA883")
    assert "did not find cudafe++" in answer.cause


def test_a_command_that_nvcc_refuses() -> None:
    answer = first("nvcc fatal   : Unknown option '-fno-such'")
    assert (answer.owner, answer.code) == ("nvcc", "FA883") and "Unknown option" in answer.cause


def test_a_mismatch_that_was_accepted_is_no_error() -> None:
    lines = (
        "Installed CUDA version 12.2 does not match the version torch was compiled with 12.1 but "
        "since the APIs are compatible, accepting this combination",
        "/x/csrc/y.h:3:10: fatal error: curand_kernel.h: No such file or directory",
    )
    answer = first(*lines)
    assert "curand_kernel.h" in answer.cause
    refused = first("Installed CUDA version 12.2 does not match the version torch was compiled "
                    "with 11.8, unable to compile cuda/cpp extensions")  # fmt: skip
    assert refused.code == "FA884" and "12.2" in refused.cause and "11.8" in refused.cause


def test_underscores_that_markdown_took_for_emphasis() -> None:
    answer = first("x/_C.so: undefined symbol: *ZNK3c1017SymbolicShapeMeta18init*is_contiguousEv")
    assert answer.symbol == "_ZNK3c1017SymbolicShapeMeta18init_is_contiguousEv"
    assert answer.owner == "torch/c10"


def test_a_line_that_broke_between_the_words() -> None:
    answer = first("torch   2.1.2", "/x/flash_attn_2_cuda.so: undefined", f" symbol: {SET_DEVICE}")
    assert (answer.symbol, answer.direction) == (SET_DEVICE, "file-newer")


def test_a_symbol_in_a_text_is_judged_by_the_torch_of_the_text() -> None:
    answer = first("why do I get this with torch 2.9.1?", f"`{SET_DEVICE}`")
    assert answer.direction == "file-older" and "2.9.1" in answer.cause


def test_a_library_that_lacks_its_own_name_is_not_one_that_was_not_loaded() -> None:
    name = "_ZN18transformer_engine9to_stringERK15NVTEScalingMode"
    own = first(
        f"OSError: /x/transformer_engine/libtransformer_engine.so: undefined symbol: {name}"
    )
    assert own.code == "FA205" and "itself lacks it" in own.cause
    other = first(f"ImportError: /x/transformer_engine_torch.so: undefined symbol: {name}")
    assert other.code == "FA207"


@pytest.mark.parametrize(
    "step",
    [
        '  File "/usr/lib/python3/dist-packages/torch/__init__.py", line 150, in _load_global_deps',
        "    from torch._C import *  # noqa: F403",
    ],
)
def test_torch_itself_lacks_a_library(step: str) -> None:
    answer = first(step, "OSError: libcurand.so.10: cannot open shared object file: No such file")
    assert answer.kind == "missing-library" and answer.cause.startswith("It is torch itself")
    assert "imported first" not in said(answer)


@pytest.mark.parametrize("name", ["rotary_emb_ext", "block_sparse_attn_cuda"])
def test_a_compiled_module_whose_import_was_caught(name: str) -> None:
    answer = first(f"NameError: name '{name}' is not defined")
    assert answer.code == "FA886" and any(f"import {name}" in text for text in answer.help)
    assert first("NameError: name 'batch_size' is not defined").kind == "unrecognised"


def test_torchscript_says_the_same_of_an_operator() -> None:
    answer = first("terminate called after throwing an instance of 'torch::jit::ErrorReport'",
                   "  what():  ", "Unknown builtin op: torchvision::roi_align.")  # fmt: skip
    assert (answer.code, answer.owner) == ("FA886", "torchvision")


def test_a_package_that_asserts_its_library() -> None:
    answer = first("AssertionError: Could not find libtransformer_engine.so")
    assert (answer.kind, answer.owner) == ("damaged-file", "transformer-engine")


def test_no_release_is_advised_where_no_torch_is_known() -> None:
    answers = explain(["_ZNK3c105Error4whatEv"], None).answers
    assert not any("install" in command for command in answers[0].help)


def test_bitsandbytes_lacks_a_library_for_this_cuda() -> None:
    answer = first("CUDA SETUP: Detected CUDA version 121",
                   "CUDA SETUP: Required library version not found: libbitsandbytes_cuda121.so. "
                   "Maybe you need to compile it from source?")  # fmt: skip
    assert (answer.kind, answer.owner) == ("missing-library", "bitsandbytes")


def test_a_library_of_torch_that_is_missing_although_torch_was_imported() -> None:
    lines = ("import torch", "from point_ops import _C")
    lost = "cannot open shared object file: No such file or directory"
    answer = first(*lines, f"ImportError: libc10.so: {lost}")
    assert (answer.kind, answer.confidence) == ("wrong-torch", "medium")
    assert "Two causes fit" in answer.cause
    cpu = first(*lines, f"ImportError: libc10_cuda.so: {lost}")
    assert "a build without CUDA" in cpu.cause
    assert first(lines[1], f"ImportError: libc10.so: {lost}").kind == "import-order"


def test_a_word_that_sticks_to_a_name() -> None:
    answer = first(f"ImportError: /x/_C.so: undefined symbol: {SET_DEVICE}ImportError")
    assert answer.symbol == SET_DEVICE


def test_headers_that_torch_gave_up() -> None:
    answer = first("ops/roi.cu:3:10: fatal error: THC/THC.h: No such file or directory")
    assert answer.direction == "file-older" and "gave up by 1.11" in answer.cause
    # torch 2.15's wheel still has this one.
    there = first("ops/roi.cu:3:10: fatal error: THC/THCAtomics.cuh: No such file or directory")
    assert there.direction != "file-older" and "gave up" not in there.cause


def test_a_type_that_is_there_already() -> None:
    answer = first('ImportError: generic_type: cannot initialize type "Tuner": an object with that '
                   "name is already defined")  # fmt: skip
    assert answer.kind == "python-abi" and "twice" in answer.cause


def test_a_linker_that_misses_an_old_version_of_glibc_is_looking_in_the_wrong_place() -> None:
    answer = first(
        "/opt/conda/envs/x/compiler_compat/ld: /usr/local/cuda-12.1/lib64/libcudart.so.12: "
        "undefined reference to `dlopen@GLIBC_2.2.5'",
        "collect2: error: ld returned 1 exit status",
    )
    assert (answer.kind, answer.owner, answer.direction) == ("missing-library", "libc", "unknown")
    assert "no glibc is too old" in answer.cause and "conda's own" in said(answer)
    assert not any("apt" in command or "ln -s" in command for command in answer.help)


def test_a_linker_that_misses_a_versioned_name_speaks_of_the_link_line() -> None:
    answer = first("/usr/bin/ld: libfast.so: undefined reference to `cudaMalloc@libcudart.so.12'")
    assert (answer.kind, answer.owner) == ("versioned-symbol", "cudart")
    assert "link line" in answer.cause and "LD_LIBRARY_PATH" not in answer.cause


def test_a_build_on_windows_is_declined() -> None:
    answer = first("nvcc fatal   : Could not set up the environment for Microsoft Visual Studio")
    assert answer.kind == "windows" and "build on Windows" in answer.cause


def test_triton_needs_a_c_compiler() -> None:
    answer = first("RuntimeError: Failed to find C compiler. Please specify via CC.")
    assert (answer.owner, answer.code) == ("gcc", "FA883")


def test_a_package_that_says_which_library_it_lacks() -> None:
    assert first("FileNotFoundError: Shared library with base name 'llama' not found").code == (
        "FA880"
    )


def test_a_name_in_a_list_below_its_words() -> None:
    assert first("undefined symbol:", f"- {SET_DEVICE}").symbol == SET_DEVICE
