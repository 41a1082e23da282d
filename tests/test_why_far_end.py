"""``why`` on the torch that is typed for one name of a file, and on the index that has it.

The releases are those of ``nm -D`` over torch's wheels; the needs of vllm and fbgemm-gpu those of
their wheels.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

SITE = "/x/lib/python3.9/site-packages"
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"  # 2.1.0 to 2.2.2


def missing(file: str, symbol: str) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize("more", ["", "vllm 0.2.3, torch 2.4.0"])
def test_vllm_of_the_time_of_torch_2_1_gets_that_torch(more: str) -> None:
    """vllm 0.2.2 to 0.4.0 ask for torch 2.1, and c10::optional ended with it."""
    file = f"{SITE}/vllm/_C.cpython-39-x86_64-linux-gnu.so"
    answer = first(missing(file, SET_DEVICE), more)
    assert any('"torch==2.1.2"' in command for command in answer.help)
    assert "2.2.2" not in " ".join(answer.help)


def test_a_span_of_releases_is_no_sure_pin() -> None:
    answer = first(missing(f"{SITE}/x/_C.so", SET_DEVICE), "torch 2.4.0")
    assert "for the file's other names it has to be near" in said(answer)
    assert "2.1.2 in place of 2.2.2" in said(answer)


def test_the_release_of_a_checked_out_tree_is_that_of_the_wheel() -> None:
    """vllm 0.16.0 asks for torch 2.9.1; the name came with 2.10."""
    answer = first(
        "git checkout v0.16.0",
        "VLLM_USE_PRECOMPILED=1 uv pip install --editable .",
        missing("/h/vllm/vllm/_C.abi3.so", "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"),
    )
    assert answer.direction == "file-newer" and "torch 2.9.1" in answer.cause
    assert "python -m pip download --no-deps vllm==0.16.0" in answer.help
    assert "X.Y.Z" not in said(answer)


def test_fbgemm_goes_with_the_torch_of_its_minor_version() -> None:
    answer = first(
        missing(f"{SITE}/fbgemm_gpu/fbgemm_gpu_py.so", "_ZN3c104impl8GPUTrace13gpuTraceStateE"),
        "torch 1.12.1+cu113",
    )
    assert any(command.endswith("fbgemm-gpu==0.2.0") for command in answer.help)
    assert "1.13.0 has no build for the CUDA of the text's torch (cu113)" in said(answer)


def test_a_pair_is_taken_from_the_index_of_the_texts_cuda() -> None:
    """The package index has torch 1.12.0 for CUDA 10.2, and fbgemm-gpu 0.2.0 needs CUDA 11."""
    symbol = "_ZN2at6detail20computeStorageNbytesEN3c108ArrayRefIlEES3_mm"  # 1.12.0 and later
    answer = first(missing(f"{SITE}/fbgemm_gpu/fbgemm_gpu_py.so", symbol), "torch 1.11+cu113")
    pair = '"torch==1.12.0" fbgemm-gpu==0.2.0 --extra-index-url'
    assert any(pair in c and c.endswith("/whl/cu113") for c in answer.help)


def test_cuda_spelt_out_behind_a_release_is_its_build() -> None:
    symbol = (
        "_ZN2at4_ops9_pad_enum4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEElNS5_8optionalIdEE"
    )
    answer = first("same, torch2.2.0+cuda11.8:", f"undefined symbol: {symbol}")
    assert any('"torch==2.1.2"' in c and c.endswith("/whl/cu118") for c in answer.help)


def test_a_build_again_in_the_same_checkout_kept_its_old_objects() -> None:
    answer = first(
        missing("...audio/_torch_sox.cpython-36m-x86_64-linux-gnu.so",
                "_ZN2at19NonVariableTypeMode10is_enabledEv"),  # 1.1.0 alone
        "torch upgraded from 1.1.0, then torchaudio installed again from source in the same "
        "checkout",
    )  # fmt: skip
    assert any("setup.py clean --all" in command for command in answer.help)
    assert "torch==1.1.0" not in " ".join(answer.help)
