"""``why``: a name of NVIDIA's libraries that every release has is lacked by no older copy."""

from __future__ import annotations

import pytest
from support.asking import first, said

MISSING = "ImportError: {file}: undefined symbol: {name}"
TORCH = "/x/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"


@pytest.mark.parametrize("versions", ["", "torch 2.0", "torch 2.4.0, CUDA 12.1"])
def test_a_name_of_every_release_is_a_library_that_is_not_linked(versions: str) -> None:
    """cuRAND's own functions are as old as cuRAND; DeepSpeed's file did not list it."""
    file = "/x/site-packages/deepspeed/ops/quantizer_op.so"
    answer = first(MISSING.format(file=file, name="curandCreateGenerator"), versions)
    assert (answer.code, answer.owner) == ("FA210", "curand")
    assert "-lcurand" in answer.cause and "older" not in answer.cause


@pytest.mark.parametrize(
    ("name", "version", "owner"),
    [("nvtxMarkA", "libnvToolsExt.so.1", "nvtx"), ("nvshmem_malloc", "NVSHMEM", "nvshmem"),
     ("cudaGraphNodeGetType", "libcudart.so.13", "cudart")],
)  # fmt: skip
def test_no_copy_is_called_older_where_every_release_has_the_name(
    name: str, version: str, owner: str
) -> None:
    """NVTX 1 has marks, NVSHMEM 1.0.1 the heap's functions, the first libcudart.so.13 all."""
    answer = first(MISSING.format(file=TORCH, name=f"{name}, version {version}"))
    assert answer.owner == owner and answer.confidence == "medium"
    assert "is not too old" in answer.cause and "is older" not in said(answer)
    assert not any(">=" in command for command in answer.help)


def test_a_name_that_came_later_is_lacked_by_an_older_copy() -> None:
    """nm -D of NVIDIA's wheels: ncclCommRegister is in 2.19.3 and not in 2.18.1."""
    answer = first(MISSING.format(file=TORCH, name="ncclCommRegister"))
    assert "older" in answer.cause


@pytest.mark.parametrize("name", ["ncclcommregister", "ncclCommRegister"])
def test_a_title_in_small_letters_names_the_function_of_nccl(name: str) -> None:
    answer = first(f"[Bug]: undefined symbol: {name} when run docker built from source")
    assert (answer.symbol, answer.owner) == ("ncclCommRegister", "nccl")


def test_the_two_halves_of_nvshmem_are_told_apart() -> None:
    line = "NVSHMEM device library version does not match with NVSHMEM host library version"
    answer = first(line)
    assert (answer.owner, answer.code) == ("nvshmem", "FA204")
    assert "NVSHMEM_DIR" in said(answer) and "linked into" in answer.cause


def test_a_library_of_cudnn_9_on_windows_is_not_that_of_a_torch_with_cudnn_8() -> None:
    """torch has cuDNN 9 since 2.4; CTranslate2 asks for it since 4.5 (its CHANGELOG)."""
    line = "Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!"
    answer = first(line, "torch 2.0.0+cu118, whisperX, Windows")
    words = said(answer)
    assert answer.owner == "cudnn" and "brings cuDNN 8" in answer.cause
    assert "LD_LIBRARY_PATH" not in words and any("where " in one for one in answer.help)
    assert any("ctranslate2" in command and "<4" in command for command in answer.help)


@pytest.mark.parametrize(("rocm", "another"), [("7.10", False), ("6.4", True)])
def test_the_rocm_in_the_name_of_bitsandbytes_library_is_read_as_its_makers_write_it(
    rocm: str, another: bool
) -> None:
    """ROCm 7.10 is 80: ten times the major release and the minor one."""
    file = "/x/site-packages/bitsandbytes/libbitsandbytes_rocm80.so"
    error = f"OSError: {file}: cannot open shared object file: No such file or directory"
    assert ("besides" in first(error, f"ROCm {rocm}").cause) is another
