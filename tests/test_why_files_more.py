"""Files for other systems and machines: what the text tells of package, image and build."""

from __future__ import annotations

import pytest
from support.asking import first, said


def test_a_musl_file_is_of_the_package_that_the_text_names() -> None:
    answer = first(
        "OSError: libc.musl-x86_64.so.1: cannot open shared object file: No such file or directory",
        "llama-cpp-python==0.3.1, Python 3.12",
    )
    assert answer.owner == "llama-cpp-python" and "PACKAGE" not in said(answer)
    assert any("--no-binary llama-cpp-python" in command for command in answer.help)


def test_an_archive_that_cmake_fetches_is_replaced_by_its_own_variable() -> None:
    """CMake, FetchContent: FETCHCONTENT_SOURCE_DIR_<uppercaseName>."""
    answer = first(
        "/usr/bin/ld: _deps/libtorch-src/lib/libtorch_cpu.so: error adding symbols: file in wrong "
        "format",
        "aarch64",
    )
    assert any("-DFETCHCONTENT_SOURCE_DIR_LIBTORCH=" in command for command in answer.help)
    assert not any("--force-reinstall" in command for command in answer.help)


def test_a_damaged_file_of_an_image_is_pulled_again() -> None:
    line = "OSError: /h/.local/lib/python3.8/site-packages/nvidia/curand/lib/libcurand.so.10: "
    answer = first(line + "invalid ELF header", "Docker image")
    assert "pull it again" in said(answer) and "nvidia-curand-cu12" in said(answer)
    assert "pull it again" not in said(first(line + "invalid ELF header"))


def test_a_system_copy_in_a_conda_environment_gets_the_environments_own() -> None:
    answer = first(
        "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `CXXABI_1.3.15' not found "
        "(required by .../scipy/optimize/_core.so)",
        "conda env, torch 2.11.0",
    )
    assert any("LD_LIBRARY_PATH=$CONDA_PREFIX/lib " in command for command in answer.help)
    assert not any("conda create" in command for command in answer.help)


def test_what_brings_libpython_is_told() -> None:
    answer = first(
        "    from torch._C import *",
        "ImportError: libpython3.7m.so.1.0: cannot open shared object file: No such file or "
        "directory",
        "Python 3.7",
    )
    assert "apt-get install libpython3.7" in said(answer) and "--enable-shared" in said(answer)


def test_static_tls_of_a_program_without_torch_imports_no_torch() -> None:
    answer = first(
        "ImportError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static "
        "TLS block",
        "Jetson TX2, Python 3.6.9, tensorflow with CUDA 10.2",
    )
    assert not any("import torch" in command for command in answer.help)
    assert "runpy.run_path" in said(answer) and "LD_PRELOAD=" not in said(answer)


def test_the_package_whose_import_finds_no_static_tls_goes_first() -> None:
    frame = '  File "/e/lib/python3.8/site-packages/cv2/__init__.py", line 153, in bootstrap'
    error = "ImportError: dlopen: cannot load any more object with static TLS"
    shown = ('    native_module = importlib.import_module("cv2")', "    loaded = load_it()")
    for step in shown:
        for told in ("", "Python 3.8, torch and opencv"):
            answer = first(frame, step, error, told)
            assert answer.owner == "cv2" and "import cv2,torch" in answer.help[0]
            assert "MODULE" not in said(answer)
    unknown = first(error, "Python 3.8, torch and opencv")
    assert "import MODULE,torch" in unknown.help[0]
    assert "MODULE is what the program imports and fails at" in said(unknown)


def test_a_library_beside_a_wheel_is_loaded_by_the_wheels_own_package() -> None:
    """glibc.rtld.optional_static_tls is in glibc since 2.32; JetPack 5 is an Ubuntu 20.04."""
    error = "cannot allocate memory in static TLS block"
    for libs, module in (("scikit_learn", "sklearn"), ("opencv_python", "cv2"), ("spam", "spam")):
        text = f"ImportError: {libs}.libs/libgomp-d22c30c5.so.1.0.0: {error}"
        answer = first(text, "torch 2.1.0")
        assert answer.owner == libs.replace("_", "-")
        assert f"import {module}'" in answer.help[0] and "GLIBC_TUNABLES" in answer.help[1]
        jetson = first(text, "Jetson AGX Orin, JetPack 5.1.2")
        assert f"import {module}'" in jetson.help[0] and "GLIBC_TUNABLES" not in said(jetson)


def test_a_cut_file_is_no_lfs_pointer_and_cudnn_is_in_no_toolkit() -> None:
    """A pointer has more bytes than an ELF header, so that the loader has other words for it."""
    answer = first("/usr/local/cuda/lib64/libcudnn.so.6: file too short")
    assert "LFS" not in said(answer) and "cuDNN, which no CUDA toolkit brings" in said(answer)
    assert "links" in said(answer)
    toolkits = first("/usr/local/cuda/lib64/libcublas.so.12: file too short")
    assert "toolkit's or the distribution's" in said(toolkits)


def test_a_v100s_is_volta() -> None:
    for name in ("Tesla V100S", "V100S-PCIE-32GB", "Tesla V100S-PCIE-32GB"):
        answer = first(
            "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
            f"flash-attn 2.6.0, {name}, driver 470.57.02",
        )
        assert "compute capability 7.0" in answer.cause and "Turing" not in said(answer)


@pytest.mark.parametrize(
    "text",
    [
        "OSError: cannot allocate memory in static TLS block",
        "ImportError: cannot allocate memory in static TLS block\n    import torch",
        '  File "a.py", line 1, in <module>\n    import torch\n'
        "ImportError: dlopen: cannot load any more object with static TLS",
        "ImportError: /e/lib/python3.8/site-packages/torch/lib/libgomp.so.1: dlopen: cannot load "
        "any more object with static TLS",
        "ImportError: lib/python3.8/site-packages/torch/lib/libgomp-d22c30c5.so.1: cannot allocate "
        "memory in static TLS block",
    ],
)
def test_module_is_explained_wherever_it_is_typed(text: str) -> None:
    answer = first(text)
    assert answer.code == "FA107"
    typed = any("MODULE" in command for command in answer.help)
    assert typed == any("MODULE is what" in note for note in answer.notes), answer.help


def test_an_old_torch_of_condas_is_put_back_by_conda() -> None:
    text = (
        "ImportError: /home/u/anaconda3/lib/python3.6/site-packages/torch/lib/libTHC.so.1: cannot "
        "read file data"
    )
    answer = first(f"{text}\npytorch 0.1.11, Python 3.6")
    assert not any("pip" in command for command in answer.help)
    assert not any(command.startswith("conda clean") for command in answer.help)
    gone, again = answer.help[-2:]
    assert gone.startswith("rm -rf ") and "/pkgs/pytorch-" in gone
    assert again.endswith("--force-reinstall pytorch")
    alone = said(first(text))
    assert "importlib.metadata" not in alone and "package cache" in alone
