"""``why`` on CUDA's libraries: names by their age, who misses a library, and what brings it."""

from __future__ import annotations

import re

import pytest
from support.inspecting import invoke

from fa_forensics.facts.cuda_names import (
    cuda_name_gone,
    cuda_name_since,
    first_torch_with,
    is_emitted,
)
from fa_forensics.facts.tables import read_table
from fa_forensics.why.tables import Tables

GONE = "cannot open shared object file: No such file or directory"


def first(text: str) -> tuple[str, str, dict[str, object]]:
    """(the cause and the notes, the commands, the answer) for a text of another machine."""
    document = invoke("why", "--elsewhere", "--format", "json", "--", text).document
    answer = document["answers"][0]
    return " ".join([answer["cause"], *answer["notes"]]), "\n".join(answer["help"]), answer


def test_names_of_the_table_agree_with_the_wheels_on_record() -> None:
    table = Tables().libraries
    assert table is not None
    for owner, versions in read_table("cuda_names.json")["since"].items():
        for version, names in versions.items():
            for name in names:
                having = {row.soname for row in table.exported_by(None, name)}
                assert having, (owner, version, name)
                assert cuda_name_since(owner, name) == version
    # CUDA 11.7, cuDNN 8.5 and newer are on record: what is said to be gone is in none of them.
    for name in ("cudnnSetFilterNdDescriptor_v3", "cudnnSetFilter4dDescriptor_v4",
                 "cudnnGetConvolutionForwardAlgorithm", "cudnnSetRNNDescriptor_v5"):  # fmt: skip
        assert cuda_name_gone("cudnn", name) is not None
        assert not table.exported_by(None, name)
    for name in ("cudnnGetConvolutionForwardAlgorithm_v7", "cudnnSetRNNDescriptor_v6"):
        assert cuda_name_gone("cudnn", name) is None and table.exported_by(None, name)


def test_the_first_torch_for_a_cuda() -> None:
    # PyTorch's page of previous versions: 1.2 for 9.2 and 10.0, 1.3 for 9.2 and 10.1.
    assert first_torch_with("10.1") == "1.3.0" and first_torch_with("9.2") == "0.4.1"
    assert first_torch_with("11.4") == "1.12.0" and first_torch_with("99.0") is None
    assert is_emitted("__cudaRegisterFatBinaryEnd") and not is_emitted("cudaMalloc")


@pytest.mark.parametrize("told", ["torch 1.0.1, CUDA 9.0", "PyTorch version: 0.4.1\nCUDA 10.1"])
def test_nvcc_of_a_newer_cuda_than_torch(told: str) -> None:
    text = f"ImportError: /w/nms/_nms.so: undefined symbol: __cudaRegisterFatBinaryEnd\n{told}"
    words, commands, answer = first(text)
    assert answer["direction"] == "file-newer" and answer["owner"] == "cudart"
    assert "CUDA 10.1" in words and "compiled again" in words
    assert "nvcc --version" in commands


def test_a_name_that_all_have_stays_open_without_versions() -> None:
    words, _, answer = first("./f.so: undefined symbol: __cudaPopCallConfiguration")
    assert "Two causes fit" in words and "CUDA 9.2" in words and "libcudart.so.11" not in words
    assert answer["confidence"] == "medium"


def test_the_library_that_the_text_names_counts() -> None:
    text = (
        "relocation error: /c/lib/python3.6/site-packages/torch/lib/libtorch.so: symbol "
        "cudnnRNNForwardTrainingEx, version libcudnn.so.7 not defined in file libcudnn.so.7 with "
        "link time reference"
    )
    words, commands, answer = first(text)
    assert "libcudnn.so.7" in words and "cuDNN 7.2" in words
    assert "libcudnn.so.8" not in words and "torch 1.13" not in words
    assert "pip install" not in commands and answer["direction"] == "file-newer"
    words, commands, _ = first(f"{text}\nJetson Xavier, JetPack 4.2, cuDNN: 7.1.5")
    assert "JetPack" in words and "7.1.5" in words and "nv_tegra_release" in commands
    assert "LD_LIBRARY_PATH" not in commands


def test_a_word_that_ends_like_a_board_is_none() -> None:
    text = f"Ignoring monitoring errors while exploring\nImportError: libcurand.so.10: {GONE}"
    assert "JetPack" not in first(text)[0]
    assert "JetPack" in first(f"ImportError: libcurand.so.10: {GONE}\nOrin, L4T 35.1")[0]


def test_a_name_that_cudnn_no_longer_has() -> None:
    file = "/c/site-packages/cupy/cuda/cudnn.cpython-36m-x86_64-linux-gnu.so"
    words, commands, answer = first(
        f"ImportError: {file}: undefined symbol: cudnnGetConvolutionForwardAlgorithm"
    )
    assert "cuDNN 8 and newer" in words and answer["direction"] == "file-older"
    assert "--no-cache-dir" in commands and "cupy" in commands


@pytest.mark.parametrize(
    ("name", "soname", "wheel"),
    [("ncclCommSplit", "", "nvidia-nccl-cu12>=2.18"),
     ("__nvJitLinkCreate_12_8", "libnvJitLink.so.12", "nvidia-nvjitlink-cu12>=12.8"),
     ("cublasSetEnvironmentMode", "libcublas.so.12", "nvidia-cublas-cu12>=12.9")],
)  # fmt: skip
def test_the_wheel_that_has_the_name_is_typed(name: str, soname: str, wheel: str) -> None:
    version = f", version {soname}" if soname else ""
    words, commands, _ = first(f"/x/torch/lib/libtorch_cuda.so: undefined symbol: {name}{version}")
    assert wheel in commands and "pip check" in words


def test_a_copy_of_the_system_is_not_replaced_by_a_wheel() -> None:
    text = "/usr/local/cuda/lib64/libcudnn_graph.so.9: undefined symbol: cudnnGetLibConfig"
    words, commands, _ = first(text)
    assert "/usr/local/cuda/lib64" in words and "leave LD_LIBRARY_PATH" in words
    assert "pip install" not in commands


def test_the_copy_that_ldd_shows_is_the_wheels() -> None:
    text = (
        "torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister\n"
        "apt has NCCL 2.20 now, but ldd says it is the one in nvidia/nccl that is used"
    )
    words, commands, _ = first(text)
    assert "site-packages/nvidia/nccl" in words and "system does not count" in words
    assert commands.startswith("python -m pip install") and "env -u" not in commands


def test_a_library_of_nvidia_was_not_compiled_here() -> None:
    text = (
        "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"
    )
    words, _, _ = first(f"{text}\nnvcc release 12.6")
    assert "what that compiles" not in words
    words, _, _ = first("./my_ext.so: undefined symbol: cublasGemmGroupedBatchedEx\nnvcc 12.6")
    assert "what that compiles needs cuBLAS of CUDA 12.5" in words


@pytest.mark.parametrize(
    "text",
    [f"After installing PyTorch: ImportError: libcudart.so.9.0: {GONE}",
     f"when i import torch, this happens: ImportError: libcudart.so.9.0: {GONE}",
     f'$ python -c "import torch"\nImportError: libcudart.so.9.0: {GONE}'],
)  # fmt: skip
def test_torch_itself_is_what_fails(text: str) -> None:
    words, commands, _ = first(text)
    assert "It is torch itself" in words and "cudatoolkit=9.0" in commands


def test_torch_and_then_another_is_not_torch_itself() -> None:
    text = f'$ python -c "import torch, my_cuda"\nImportError: libcudart.so.11.0: {GONE}'
    assert "torch itself that needs" not in first(text)[0]


def test_bitsandbytes_follows_torch() -> None:
    text = (
        f"Could not load bitsandbytes native library: libcublasLt.so.11: {GONE}\n"
        "CUDA Setup failed despite CUDA being available."
    )
    document = invoke("why", "--elsewhere", "--format", "json", "--", text).document
    assert len(document["answers"]) == 1
    words, commands, _ = first(text)
    assert "torch is a build for CUDA 11" in words and "BNB_CUDA_VERSION" in words
    assert "--upgrade" not in commands and "nvidia-cublas-cu11" in commands


def test_projects_with_wheels_of_their_own() -> None:
    frame = 'File "/e/lib/python3.12/site-packages/sgl_kernel/__init__.py", line 5, in <module>'
    text = f"{frame}\nImportError: libnvrtc.so.12: {GONE}\ntorch 2.9.0+cu130"
    _, commands, _ = first(text)
    assert "https://docs.sglang.ai/whl/cu130" in commands and "--upgrade" not in commands
    shown = "/e/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"
    words, commands, answer = first(f"{frame}\nImportError: libnvrtc.so.12: {GONE}\n{shown}")
    assert "cu130" in commands and answer["confidence"] == "medium" and "libnvrtc.so.13" in words


def test_a_relative_import_names_its_package() -> None:
    text = (
        'File "/e/lib/python3.11/site-packages/nunchaku/models/linear.py", line 8, in <module>\n'
        f"    from .._C.ops import attend\nImportError: libcudart.so.13: {GONE}"
    )
    words, commands, _ = first(text)
    assert "nunchaku._C.ops" in words and "WHEEL" in commands
    assert not re.search(r"install (?:\S+ )*nunchaku$", commands, re.MULTILINE)


def test_mmcv_with_operations_was_mmcv_full() -> None:
    address = "https://download.openmmlab.com/mmcv/dist/cu113/torch1.10.0/index.html"
    frame = 'File "/e/lib/python3.8/site-packages/mmcv/utils/ext_loader.py", line 13, in load_ext'
    text = f"pip install mmcv-full -f {address}\n{frame}\nImportError: libcudart.so.10.2: {GONE}"
    words, commands, answer = first(text)
    assert "CUDA 11.3 build" in words and answer["confidence"] == "medium"
    assert "mmcv-full" in commands and not re.search(r"mmcv mmcv$", commands, re.MULTILINE)
    _, commands, _ = first(
        f"{frame}\nImportError: libcudart.so.12: {GONE}\ntorch 2.1.0+cu118, mmcv 2.1.0"
    )
    assert "mmcv==2.1.0" in commands and "mmcv-full" not in commands


def test_nvrtc_of_the_same_cuda_is_put_on_the_path() -> None:
    words, commands, _ = first(f"ImportError: libnvrtc.so.12: {GONE}\ntorch 2.4.0+cu121")
    assert "does not look by itself" in words and "cuda_nvrtc" in commands
    _, commands, answer = first(f"OSError: libnvrtc-builtins.so.12.4: {GONE}")
    assert answer["owner"] == "nvrtc" and "nvidia-cuda-nvrtc-cu12==12.4.*" in commands


def test_a_system_library_by_distribution() -> None:
    _, commands, _ = first(f"ImportError: libnuma.so.1: {GONE}")
    assert commands.startswith("apt-get install libnuma1")
    assert "dnf install 'libnuma.so.1()(64bit)'" in commands
    _, commands, _ = first(f"OS: CentOS Linux 7\nImportError: libGL.so.1: {GONE}")
    assert commands.startswith("dnf install")


def test_an_old_jit_build_that_ninja_left_alone() -> None:
    done = "ninja: no work to do.\nLoading extension module cc..."
    text = f"{done}\nImportError: libcudart.so.9.2: {GONE}"
    assert "earlier build" in first(text)[0]


def test_wheels_of_cuda_12_tell_that_torch_is_no_old_one() -> None:
    listed = "nvidia-cublas-cu12 12.1.3.1\nnvidia-nccl-cu12 2.18.1"
    words, _, answer = first(f"ImportError: libtorch_cuda_cu.so: {GONE}\n{listed}")
    assert answer["direction"] == "file-older" and "is newer" in words


@pytest.mark.parametrize("name", ["__cudaUnregisterFatBinary", "cudaMemcpyAsync", "cudaGetDevice"])
def test_no_runtime_is_too_old_for_a_name_of_every_release(name: str) -> None:
    # CUDA 8 has these as well: HIPIFY's tables have no version in the column "added".
    text = f"/w/lib/nms/_ext/nms/_nms.so: undefined symbol: {name}\nCUDA 8.0"
    words, commands, answer = first(text)
    assert answer["owner"] == "cudart" and "older" not in words
    assert "not loaded" in words and "without CUDA" in words
    assert "torch.version.cuda" in commands and "grep NEEDED" in commands


def test_a_name_that_cusparse_dropped_beside_a_torch_of_its_time() -> None:
    # HIPIFY, CUSPARSE_API: csrgemm is removed in CUDA 11.0; torch 1.7 is the first for that.
    line = "ImportError: /w/spspmm_cuda.cpython-36m-x86_64-linux-gnu.so: undefined symbol: "
    words, commands, answer = first(f"{line}cusparseScsrgemm\ntorch 0.4.1")
    assert answer["owner"] == "cusparse" and "-lcusparse" in words and "Two causes" not in words
    assert "grep NEEDED" in commands
    words, _, _ = first(f"{line}cusparseScsrgemm")
    assert "CUDA 11.0 dropped it" in words and "Two causes fit" in words
    assert cuda_name_gone("cusparse", "cusparseScsrgemm2") is None
