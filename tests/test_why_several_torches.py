"""``why`` where releases of a package are for certain torches, and where a file compiles itself.

The facts are those of the wheels on the package index (their files, their Requires-Dist and the
torch names that they need), of the projects' setup.py and of the cited reports.
"""

from __future__ import annotations

import pytest
from support.asking import first

SITE = "/usr/local/lib/python3.12/dist-packages"
COW = "_ZN3c104impl3cow23materialize_cow_storageERNS_11StorageImplE"
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"
ACCESS = "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv"
NAME = "_ZNK5torch8autograd4Node4nameEv"


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize(("torch", "release"), [("2.13.0", "1.5.1"), ("2.14.1", "1.5.1")])
def test_a_wheel_with_builds_for_several_torches_is_the_way(torch: str, release: str) -> None:
    """nixl-cu13 1.5.1 has nixl_ep_cpp_torch212, _torch213 and _torch214 (pytorch issue 187727)."""
    file = f"{SITE}/nixl_ep/nixl_ep_cpp.cpython-312-x86_64-linux-gnu.so"
    answer = first(missing(file, COW), f"torch {torch}, Python 3.12")
    assert any(f" nixl=={release}" in text for text in answer.help)
    assert not any(text.startswith("rm -rf build") for text in answer.help)
    alone = first(missing(file, COW))
    assert any(text.endswith("--upgrade --no-cache-dir nixl") for text in alone.help)


@pytest.mark.parametrize(
    ("torch", "release"), [("2.3.0", "0.0.7"), ("2.4.1", "0.0.8"), ("2.5.1", "0.0.9")]
)
def test_kernels_of_the_torch_that_is_there_are_taken(torch: str, release: str) -> None:
    """Requires-Dist of autoawq-kernels: 0.0.7 torch==2.3.1, 0.0.8 >=2.4.1, 0.0.9 >=2.5.1."""
    file = "/x/lib/python3.10/site-packages/awq_ext.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file, SET_DEVICE), f"torch {torch}, Python 3.10")
    kept = [text for text in answer.help if text.endswith(f"autoawq-kernels=={release}")]
    assert kept and "--no-deps" in kept[0]
    assert not any("--upgrade" in text for text in answer.help)
    notes = " ".join(first(missing(file, SET_DEVICE)).notes)
    assert f"{release} for torch {torch[:3]}" in notes


def test_a_module_that_is_compiled_at_its_first_use_is_removed_alone() -> None:
    """aiter/jit/core.py compiles a module where its file is not there (aiter issue 2843)."""
    file = f"{SITE}/aiter/jit/module_rmsnorm.so"
    symbol = "_ZN3c103hip28c10_hip_check_implementationEiPKcS2_ib"
    answer = first(missing(file, symbol), "aiter 0.1.12, Python 3.12, MI300X (gfx942)")
    assert f"rm {file}" in answer.help
    assert not any("pip install" in text for text in answer.help)


def test_an_old_python_takes_the_last_tag_that_serves_it() -> None:
    """detectron2's setup.py: v0.6 asks for Python 3.6, the newest source for a later one."""
    file = "/x/lib/python3.6/dist-packages/detectron2/_C.cpython-36m-x86_64-linux-gnu.so"
    symbol = "_ZN6caffe28TypeMeta21_typeMetaDataInstanceIdEEPKNS_6detail12TypeMetaDataEv"
    for told in ("", "torch 1.8 nightly cu101, Python 3.6.9"):
        answer = first(missing(file, symbol), told)
        assert any(text.endswith("/detectron2@v0.6") for text in answer.help), told
    assert any('"torch==1.7.1" --index-url' in text and "/cu101" in text for text in answer.help)


def test_the_newest_torchaudio_beside_an_older_torch_is_the_one_to_change() -> None:
    text = "Using the latest torchaudio with torch 2.9.0:\nSymbol not found: _torch_library_impl"
    answer = first(text, "torch 2.9.0, macOS arm64")
    assert any(text.endswith(" torchaudio==2.9.0") for text in answer.help)
    assert "Installing another torch" not in " ".join(answer.notes)


def test_uv_is_typed_where_uv_installs() -> None:
    """An environment of uv's has no pip (uv issue 12288)."""
    text = missing("[lib].cpython-312-x86_64-linux-gnu.so", ACCESS)
    answer = first(text, "CUDAExtension built with uv, Python 3.12, 2025-03")
    assert any(text.startswith("uv pip install ") for text in answer.help)
    assert not any("-m pip install" in text for text in answer.help)
    assert "--no-build-isolation" in " ".join(first(text).notes)


def test_the_directory_of_a_library_tells_the_torch_that_is_loaded() -> None:
    """metatensor has a directory for each torch; defaults' torch is cxx11 (metatensor 665)."""
    file = "/c/lib/python3.12/site-packages/metatensor/torch/torch-2.3/lib/libmetatensor_torch.so"
    text = f"I ran `conda install torch` and pip.\n{file}: undefined symbol: {NAME}"
    answer = first(text)
    assert answer.direction == "other-flavour" and "conda" in answer.cause
    assert any("--no-binary metatensor-torch" in text for text in answer.help)
    assert not any('"torch==' in text for text in answer.help)


def test_a_channel_of_pytorch_says_nothing_of_another_flavour() -> None:
    file = "/c/lib/python3.8/site-packages/metatensor/torch/torch-2.3/lib/libmetatensor_torch.so"
    text = f"conda install pytorch==2.3.0 -c pytorch\n{file}: undefined symbol: {NAME}"
    assert "conda's own" not in first(text).cause


def test_a_checkout_in_brackets_is_built_again_where_it_lies() -> None:
    """LMCache issue 1294: the sdist of the index is another copy than the one that is loaded."""
    file = "lmcache/c_ops.cpython-312-x86_64-linux-gnu.so"
    symbol = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
    told = "torch 2.7.0, lmcache 0.3.3 (source, pip install -e .), Python 3.12"
    answer = first(f"{file}: undefined symbol: {symbol}", told)
    assert any(text.endswith(" -e .") and "-delete" in text for text in answer.help)
    assert not any("--no-binary" in text for text in answer.help)


def test_the_page_of_the_torch_that_is_loaded_is_typed() -> None:
    """pytorch_scatter issue 259: the image had torch 1.10.0, whose own wheel was the cure."""
    text = missing(
        "/x/lib/python3.7/site-packages/torch_scatter/_scatter_cuda.so",
        "_ZNK2at6Tensor6narrowElll",
    )
    answer = first(text, "pytorch 1.9.1 cuda11.1, Python 3.7")
    assert any(t.endswith("/torch-X.Y.0+cuXYZ.html") for t in answer.help)
