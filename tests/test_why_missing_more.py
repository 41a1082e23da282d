"""``why`` on missing libraries: those that are there, in a container, and inside torch's wheel."""

from __future__ import annotations

import pytest
from support.asking import first, said
from test_why_libraries import GONE

OPS = "libcudnn_ops_infer.so.8"
NOT_LOADED = f"Could not load library {OPS}. Error: {OPS}: {GONE}\n"
WHEEL = "/h/.local/lib/python3.8/site-packages/nvidia/cudnn/lib"


def test_a_part_of_cudnn_that_the_text_shows_is_there_and_not_to_be_installed() -> None:
    answer = first(f'{NOT_LOADED}find / -name "{OPS}"\n{WHEEL}/{OPS}')
    assert f"export LD_LIBRARY_PATH={WHEEL}:" in answer.help[0]
    assert "pip install" not in said(answer) and "cuDNN at hand is 9" not in answer.cause
    assert "not found" not in first(f"{NOT_LOADED}ls {WHEEL}/{OPS}: No such file").help[0]


@pytest.mark.parametrize("time", ["April 2023", "torch 2.0.1"])
def test_before_torch_2_4_the_cudnn_at_hand_is_8(time: str) -> None:
    words = said(first(f"{NOT_LOADED}faster-whisper, {time}"))
    assert "cuDNN at hand is 9" not in words and "torch>=2.4.0" not in words
    assert "LD_LIBRARY_PATH=" in words
    assert "cuDNN at hand is 9" in said(first(f"{NOT_LOADED}faster-whisper, torch 2.5.1"))


@pytest.mark.parametrize(
    ("command", "handed_in"),
    [("docker run -d -p 1:1 image", False), ("podman run image", False),
     ("docker run --gpus all image", True), ("docker run --runtime=nvidia image", True),
     ("docker run -d \\\n  --gpus all image", True)],
)  # fmt: skip
def test_a_container_without_a_gpu_has_no_driver(command: str, handed_in: bool) -> None:
    answer = first(f"OSError: libcuda.so.1: {GONE}\n\n{command}\nDriver Version: 535.183.06")
    assert answer.owner == "cuda-driver"
    assert ("this machine has no driver" in answer.cause) == handed_in
    assert any(" run --rm --" in command for command in answer.help) != handed_in


@pytest.mark.parametrize(
    ("torch", "inside"),
    # Requires-Dist of PyTorch's own wheels: none of NVIDIA's up to 2.1.2+cu118.
    [("1.13.1+cu116", True), ("2.1.2+cu118", True), ("2.2.0+cu118", False), ("1.13.1", False)],
)
def test_torchs_own_index_had_cuda_11_inside_up_to_2_1(torch: str, inside: bool) -> None:
    answer = first(f"ImportError: libcudart.so.11.0: {GONE}\ntorch {torch}, pip install flash-attn")
    assert ("was imported before torch" in answer.cause) != inside
    assert ("/lib64" in said(answer)) == inside
    assert ("pip show nvidia-cuda-runtime-cu11" in said(answer)) != inside


def test_what_lies_in_torch_lib_under_its_own_name_comes_with_torch() -> None:
    answer = first(f"    import my_ext\nImportError: libcublas.so.11: {GONE}\ntorch 2.0.1+cu118")
    assert "torch/lib" in answer.cause and "import torch; import my_ext" in answer.help[0]
    assert "nvidia-cublas-cu11" not in said(answer)


def test_a_package_that_imports_torch_itself_leaves_no_order_of_imports() -> None:
    step = '  File ".../envs/s/lib/python3.9/site-packages/pytorch3d/ops/ball_query.py", line 10\n'
    answer = first(f"{step}    from pytorch3d import _C\nImportError: libc10_cuda.so: {GONE}")
    assert "Two causes" not in answer.cause and "pytorch3d is a build with CUDA" in answer.cause
    assert '"torch==$(' in answer.help[1]
    other = step.replace("pytorch3d", "my_ops")
    answer = first(f"{other}    from my_ops import _C\nImportError: libc10_cuda.so: {GONE}")
    assert "Two causes" in answer.cause


def test_a_build_for_another_cuda_has_two_ways_out() -> None:
    text = f"    from vllm import cuda_utils\nImportError: libcudart.so.12: {GONE}\n"
    answer = first(f"{text}vllm==0.2.2, torch2.1.0+cuda118, python3.8")
    # The name of the file in vLLM's release (vllm-project/vllm#1596).
    assert answer.help[0].endswith("v0.2.2/vllm-0.2.2+cu118-cp38-cp38-manylinux1_x86_64.whl")
    assert answer.help[1].endswith(" torch==2.1.0")
    # No release of torch 1.13 on the package index is one for CUDA 12.
    answer = first(f"{text}vllm==0.2.2, torch 1.13.1+cu117")
    assert not any(command.endswith("torch==1.13.1") for command in answer.help)
    assert '"vllm==$(' in said(first(text))
    # The package index has another build of torch for arm, which GB10 and GH200 are part of.
    text = f"    import my_ext\nImportError: libcudart.so.12: {GONE}\ntorch 2.9.1+cu130"
    assert any(command.endswith("torch==2.9.1") for command in first(text).help)
    assert "torch==2.9.1" not in said(first(f"{text}\nNVIDIA GB10"))
    assert "torch==2.9.1" not in said(first(f"{text}\nmachine: aarch64"))


def test_ctranslate2_is_held_at_the_cudnn_of_its_time() -> None:
    text = "RuntimeError: Library libcublas.so.11 is not found or cannot be loaded\n"
    answer = first(f"{text}cuda 12.1 installed, October 2023, faster-whisper / ctranslate2")
    words = said(answer)
    assert '"ctranslate2>=4.0.0,<4.5.0" "faster-whisper>=1.0.0"' in words
    assert '"nvidia-cudnn-cu11==8.*"' in words and "LD_LIBRARY_PATH=" in words
    assert '"ctranslate2>=4.0.0"' in said(first(f"{text}cuda 12.4, torch 2.5.1"))


def test_a_torch_that_is_named_pins_its_cudnn() -> None:
    step = '  File "/h/pypoetry/virtualenvs/t/lib/python3.8/site-packages/torch/__init__.py"\n'
    text = f"{step}    from torch._C import *\nImportError: libcudnn.so.8: {GONE}\n"
    words = said(first(f"{text}torch 2.0.1"))
    assert '"nvidia-cudnn-cu11==8.5.0.96"' in words and "Poetry" in words  # Requires-Dist of 2.0.1
    assert '"nvidia-cudnn-cu12==8.*"' in said(first(text))


def test_a_known_fault_of_one_build_is_put_right_by_the_next() -> None:
    text = f"Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: {GONE}\n"
    answer = first(f"{text}torch 2.0.0+cu118")  # pytorch/pytorch#97041
    assert "torch==2.0.1 --index-url" in answer.help[0] and answer.owner == "nvrtc"
    assert "#97041" not in said(first(f"{text}torch 2.1.0+cu121"))
    assert "2.0.0+cu118" in said(first(text))


def test_a_torch_without_cuda_on_arm_is_replaced_from_its_own_index() -> None:
    """PyPI has torch for aarch64 without CUDA; its own index has all CUDAs of 2.9 for it."""
    answer = first(
        "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        "OS                           : Ubuntu 24.04.3 LTS (aarch64)",
        "PyTorch version              : 2.9.1+cpu",
        "vllm (pip)",
    )
    assert answer.code == "FA601" and "vllm" in answer.cause
    assert '"torch==2.9.1" --index-url' in answer.help[0] and "/whl/cu12" in answer.help[0]


def test_the_loaders_message_may_end_early_with_more_lines_below() -> None:
    rest = "torch nightly, CUDA 12.9, Python 3.12"
    for cut in ("cannot open shared", "cannot open shared object"):
        answer = first(f"OSError: libnvrtc.so: {cut}\n\n{rest}")
        assert answer.owner == "nvrtc" and answer.kind == "missing-library"
    assert first(f"OSError: libnvrtc.so: {GONE}\n\n{rest}").owner == "nvrtc"
