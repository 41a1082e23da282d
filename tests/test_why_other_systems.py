"""Wheels of another system, limits of the process, and libraries that are not torch's own."""

from __future__ import annotations

import sys

import pytest

from fa_forensics.facts.paste import read_paste
from fa_forensics.report_why import Answer
from fa_forensics.rules.remedy import row_of
from fa_forensics.rules.wheel_pages import page_of
from fa_forensics.why import explain


def first(text: str) -> Answer:
    """The first answer to a text."""
    return explain([text], sys.executable, {}).answers[0]


UV = (
    "error: Failed to determine installation plan\n"
    "  Caused by: A URL dependency is incompatible with the current platform: "
    "https://x.org/v2.8.3/flash_attn-2.8.3%2Bcu12torch2.8cxx11abiTRUE-cp312-cp312-{tag}.whl\n"
    "hint: The wheel is compatible with {made}, but you're {here}"
)


def test_a_linux_wheel_on_windows_is_told_by_uv_as_by_pip() -> None:
    uv = UV.format(
        tag="linux_x86_64", made="Linux (`linux_x86_64`)", here="on Windows (`win_amd64`)"
    )
    pip = (
        "ERROR: flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl is not a "
        "supported wheel on this platform.\n\nWindows 11, Python 3.12"
    )
    for text in (uv, pip):
        answer = first(text)
        assert (answer.kind, answer.code, answer.owner) == ("wrong-machine", "FA887", "flash-attn")
        assert "it is for Linux, and Windows is what runs here" in answer.cause
        assert "WSL 2" in " ".join(answer.notes)


def test_uv_names_the_two_pythons() -> None:
    answer = first(
        UV.format(
            tag="linux_x86_64", made="CPython 3.12 (`cp312`)", here="using CPython 3.10 (`cp310`)"
        )
    )
    assert answer.code == "FA887"
    assert "CPython 3.12 (cp312), and CPython 3.10 (cp310)" in answer.cause


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (">>> resource.setrlimit(resource.RLIMIT_AS, (10**9, -1))", "RLIMIT_AS"),
        ("$ ulimit -v 4000000", "ulimit -v unlimited"),
    ],
)
def test_a_limit_in_the_text_is_the_one_cause(line: str, command: str) -> None:
    answer = first(
        f"{line}\n>>> import torch\nImportError: libtorch_cuda.so: failed to map segment from "
        "shared object"
    )
    assert "noexec" not in answer.cause + " ".join((*answer.help, *answer.notes))
    assert any(command in text for text in answer.help)


def test_a_libtorch_for_cxx_is_taken_off_the_path_and_nothing_is_built() -> None:
    answer = first(
        "ImportError: /home/u/libtorch/lib/libtorch_python.so: undefined symbol: PyThread_tss_alloc"
        "\n\ntorch 1.8.1, Python 3.6"
    )
    assert "C++ libtorch in /home/u/libtorch" in answer.cause
    assert not any("install" in text for text in answer.help)


def test_the_python_that_runs_is_the_text_s() -> None:
    text = (
        "    from .pt_ocl import *\nImportError: Python version mismatch: module was compiled for "
        "Python 3.12, but the interpreter version is incompatible: 3.9.8 (main, Feb 26 2024)"
    )
    assert read_paste(text).versions["python"] == "3.9"
    assert first(text).owner == "pt_ocl"


def test_a_project_without_pages_for_a_torch_is_not_said_to_have_one() -> None:
    row = row_of("mmcv")
    assert page_of(row, "cu121", "2.4").endswith("cu121/torch2.4.0/index.html")
    assert page_of(row, "cu128", "2.4") == page_of(row, "cu121", "2.5") == ""
    answer = first(
        'File "/tmp/pip-install-94_ddasy/mmcv_78846168ecdf4cfb942ff5e2c8407d6b/setup.py", line 4\n'
        "RuntimeError:\nThe detected CUDA version (11.8) mismatches the version that was used to "
        "compile\nPyTorch (12.8). Please make sure to use the same CUDA versions."
    )
    assert any(text.endswith(" mmcv") for text in answer.help)
    assert not any("openmmlab" in note for note in answer.notes)


def test_an_older_wheel_for_an_older_glibc_comes_from_the_project_s_page() -> None:
    answer = first(
        "OSError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.33' not found (required by "
        "/u/lib/python3.10/site-packages/libpyg.so)\n\ntorch 2.8.0+cu128, pyg-lib 0.5.0+pt28cu128, "
        "Ubuntu 20.04"
    )
    assert '"pyg-lib<0.5.0" -f https://data.pyg.org/whl/torch-2.8.0+cu128.html' in answer.help[0]
    assert answer.help[1].endswith("pyg-lib.git@0.5.0")


def test_the_release_that_lacks_image_so_is_not_installed_again() -> None:
    answer = first(
        "/u/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension:\n"
        "torchvision-0.14.1-cp38-cp38-manylinux2014_aarch64.whl\nimage.so is missing"
    )
    assert "torchvision-0.14.1-cp38-cp38-manylinux2014_aarch64.whl" in answer.cause
    assert not any("torchvision==0.14.1" in text for text in answer.help)


def test_conda_s_own_libstdcxx_is_the_first_way_in_a_conda_environment() -> None:
    answer = first(
        "ImportError: /usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found "
        "(required by /home/u/lib/python3.10/site-packages/torch/lib/libtorch_python.so)\n\n"
        "PyTorch 1.12.1.post200 (conda-forge), Ubuntu 20.04.5"
    )
    assert "ends at GLIBCXX_3.4.28" in answer.cause
    assert answer.help[1] == 'conda install -c conda-forge "libstdcxx-ng>=12.1"'
