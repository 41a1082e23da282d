"""``why`` on packages whose operations were compiled without CUDA."""

from __future__ import annotations

import pytest
from support.asking import first, said


def test_mmcv_that_was_compiled_without_cuda_is_compiled_with_it() -> None:
    answer = first(
        "RuntimeError: ms_deform_attn_impl_forward: implementation for device cuda:0 not found.",
        "mmcv compiled on a login node without a GPU, cuda/11.7 loaded",
    )
    assert (answer.kind, answer.owner, answer.confidence) == ("wrong-torch", "mmcv", "high")
    assert "compiled without CUDA" in answer.cause and "TORCH_CUDA_ARCH_LIST" in said(answer)
    assert any("MMCV_WITH_OPS=1 FORCE_CUDA=1" in text for text in answer.help)


def test_mmcv_full_is_called_by_its_name_and_its_own_wheel_is_offered() -> None:
    answer = first(
        "RuntimeError: nms_impl: implementation for device cuda:0 not found.",
        "mmcv-full 1.7.1, torch 1.12.1+cu113",
    )
    assert "mmcv-full==1.7.1" in said(answer)
    assert "pip install mmcv-full -f" in said(answer) and "cu113/torch1.12.0" in said(answer)


@pytest.mark.parametrize(
    ("frame", "owner"),
    [
        ("/x/lib/python3.9/site-packages/detectron2/layers/roi_align.py", "detectron2"),
        ("/x/lib/python3.9/site-packages/torch_scatter/scatter.py", "torch-scatter"),
    ],
)
def test_the_package_is_that_of_the_frame_above(frame: str, owner: str) -> None:
    for words in ("GPU", "CUDA"):
        answer = first(
            f'  File "{frame}", line 58, in forward',
            f"RuntimeError: Not compiled with {words} support",
        )
        assert answer.owner == owner and any("FORCE_CUDA=1" in text for text in answer.help)


def test_tensors_on_the_cpu_and_other_devices_are_told_apart() -> None:
    cpu = first("roipoint_pool3d_forward_impl: implementation for device cpu not found")
    assert (cpu.kind, cpu.owner) == ("gpu-arch", "mmcv") and "on the CPU" in cpu.cause
    other = first("nms_impl: implementation for device npu:0 not found")
    assert "device npu" in other.cause and "FORCE_CUDA" not in said(other)


def test_programs_that_are_no_extensions_of_torch_are_left_alone() -> None:
    answer = first("XGBoostError: XGBoost version not compiled with GPU support.")
    assert answer.kind == "unrecognised"
