"""Texts that rules of a paste were read into, and that say something else."""

from __future__ import annotations

import pytest
from support.asking import first, said

_NO_CODE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
_FILE = "ImportError: /x/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
_CONSTRUCTOR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"


@pytest.mark.parametrize(
    "words",
    [
        "This was fixed in pytorch main (commit 1a2b3c4d). I have torch 2.4.0.",
        "The docs of torch main, cuda page, say so. I use pip's torch 2.4.0+cu121.",
        "torch 2.4.0 from pip. It works for others with pytorch master with CUDA 12.4",
    ],
)
def test_main_beside_a_release_is_not_the_torch_that_is_loaded(words: str) -> None:
    assert (
        "built from source" not in first(f"{words} {_FILE}: undefined symbol: {_CONSTRUCTOR}").cause
    )


@pytest.mark.parametrize(
    "text",
    [
        "In PyTorch 2.3, how do I call c10::cuda::set_device(int device)? I miss a documentation.",
        "error: no matching function for call to 'at::native::foo(const at::Tensor&)' missing",
        "Removed c10::Half::foo(float const&) from the docs, the symbols page is updated",
    ],
)
def test_a_function_that_is_spoken_of_is_no_missing_symbol(text: str) -> None:
    assert first(text).code == "FA899"


def test_a_name_that_is_there_is_not_the_missing_one() -> None:
    words = "c10::Error::Error(c10::SourceLocation, std::string) is there in my libc10.so"
    answer = first(f"{_FILE}: undefined symbol (see below)", words)
    assert answer.code == "FA607" and "leaves out which" in answer.cause


@pytest.mark.parametrize(
    ("words", "gpu"),
    [
        ("batch 2080 and 3090 samples fail, on a V100", "V100"),
        ("Works on A100 however my server with same card throws this.", "A100"),
    ],
)
def test_counts_and_the_same_card_elsewhere(words: str, gpu: str) -> None:
    assert f"for {gpu}" in first(f"{_NO_CODE}. {words}").cause


def test_a_fault_that_is_denied_is_none() -> None:
    text = "Works ok on A100. Doesn't crash on T4. Crashes on V100 and P100."
    answer = first(f"{_NO_CODE}. {text}")
    assert "T4" not in said(answer) and "V100" in said(answer)


def test_built_for_a_gpu_is_not_built_on_it() -> None:
    words = " ".join(
        said(first(f"{_NO_CODE}. Compiled for A100 and H100; crash on GTX 1080.")).split()
    )
    assert "built or set up on" not in words and "runs on A100" not in words


@pytest.mark.parametrize(
    "words", ["libtorch 2.2.1, not cxx11-abi", "libtorch-cxx11-abi or libtorch?"]
)
def test_a_download_that_is_asked_about_or_denied_has_no_flavour(words: str) -> None:
    error = "undefined reference to `c10::Error::Error(c10::SourceLocation, std::string)'"
    assert "is cxx11, and the file" not in first(error, words).cause
    assert "this torch is cxx11" not in first(error, words).cause


@pytest.mark.parametrize("folder", ["/tmp/pip-req-build-abc", "/home/conda/feedstock_root/work"])
def test_a_directory_that_is_gone_is_not_typed(folder: str) -> None:
    answer = first(
        f"Processing {folder}", " error: subprocess-exited-with-error",
        " python setup.py egg_info did not run", "ModuleNotFoundError: No module named 'torch'",
    )  # fmt: skip
    assert folder not in "\n".join(answer.help)


def test_a_torch_of_python_2_that_python_3_finds_was_not_built_wrongly() -> None:
    file = "/usr/local/lib/python2.7/dist-packages/torch/_C.so"
    answer = first(f"ImportError: {file}: undefined symbol: PyString_FromString", "Python 3.6.9")
    assert "compiled for Python 2" in " ".join(answer.cause.split())
    assert "/path/to/pytorch" not in said(answer)


@pytest.mark.parametrize(
    "words",
    ["My tensorflow needs cudnn 6.", "It does not link against cudnn 6.",
     "The other environment of a colleague uses cudnn 6;"],
)  # fmt: skip
def test_a_cudnn_of_another_program_is_not_what_the_file_looks_for(words: str) -> None:
    error = (
        "ImportError: /x/site-packages/foo/_C.so: undefined symbol: cudnnSetConvolutionGroupCount"
    )
    answer = first(error, f"{words} torch 1.0.0 from source, cuDNN 7.0.3")
    assert "cuDNN 6" not in said(answer)


def test_the_libtorch_of_conda_forge_is_not_to_be_removed() -> None:
    error = "libtorch_cpu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"
    conda = said(first(f"ImportError: /home/u/miniforge3/envs/a/lib/{error}"))
    assert "conda list" in conda and "is to go" not in conda
    assert "is to go" in said(first(f"ImportError: /usr/local/lib/{error}"))
