"""What people say without pasting a message: read where it tells of a failure, and nowhere else."""

from __future__ import annotations

import pytest
from support.asking import first, said

SAID = [
    # (text, code, owner)
    ("libcudart.so.13 required when torch-backend=cu129 on vllm v0.22.0", "FA202", "cudart"),
    ("auto-gptq 0.5.0 has libcudart.so.12 issue, 0.4.2 works", "FA202", "cudart"),
    ("cannot find libnvJitLink.so.12", "FA202", "nvJitLink"),
    ("libtorch_cuda_cu.so not found with torch 2.0", "FA202", "torch/torch_cuda"),
    ("libc10.so not found when I import causal_conv1d_cuda", "FA202", "torch/c10"),
    ("bitsandbytes libcudart not found", "FA202", "cudart"),
    ("找不到 libcublas.so.11", "FA202", "cublas"),
    ("Where can I find libnvJitLink.so.12?", "FA202", "nvJitLink"),
    ("libamdhip64.so.6 not found torch rocm6.2", "FA202", "hip"),
    ("what provides __nvJitLinkAddData_12_1?", "FA204", "nvJitLink"),
    ("libnccl.so.2 undefined ncclCommRegister", "FA204", "nccl"),
    ("hipblasGetStream undefined exllama rocm", "FA204", "hipblas"),
    ("PyThreadState_UncheckedGet undefined with python 3.13", "FA402", "python"),
    ("Does torch 2.5 export c10::cuda::SetDevice?", "FA201", "torch/c10_cuda"),
    ("GLIBC 2.32 missing on ubuntu 20.04 with flash-attn 2.8.3", "FA203", "libc"),
    ("can't allocate memory in static TLS block libgomp", "FA107", "libgomp.so"),
    ("libtorch_cpu.so cannot enable executable stack", "FA105", "torch"),
    ("ELFCLASS32 libcuda", "FA101", "cuda-driver"),
    ("flash attention says only supports ampere on my T4", "FA507", "flash-attn"),
    ("sm_120 not supported by torch 2.5.1", "FA504", "torch"),
    ("driver too old for cuda 12.8, driver 535", "FA506", "cuda-driver"),
    ("vllm._C missing", "FA880", "vllm"),
    ("apex fused_layer_norm_cuda not found", "FA880", "apex"),
    ("flash_attn broken after upgrading torch to 2.8", "FA606", "flash-attn"),
    ("my flash attention doesn't work since I updated pytorch", "FA606", "flash-attn"),
    ("升级torch之后 xformers 报错", "FA606", "xformers"),
    ("xformers wasn't built with CUDA support", "FA886", "xformers"),
    ("ImportError flash_attn_2_cuda undefined symbol", "FA886", "flash-attn"),
]


@pytest.mark.parametrize(("text", "code", "owner"), SAID)
def test_a_sentence_is_read_as_the_message_that_it_stands_for(
    text: str, code: str, owner: str
) -> None:
    answer = first(text)
    assert (answer.code, answer.owner) == (code, owner)


@pytest.mark.parametrize("text", [text for text, _, _ in SAID if "xformers was" not in text])
def test_a_sentence_is_never_as_sure_as_a_message(text: str) -> None:
    assert first(text).confidence in ("medium", "low")


def test_what_is_read_from_words_says_so() -> None:
    assert "in words of its own" in said(first("cannot find libnvJitLink.so.12"))


@pytest.mark.parametrize(
    "text",
    [
        "I fixed the undefined symbol by installing torch 2.3",
        "flash-attn 2.8.3 supports torch 2.8",
        "How do I install flash-attn on Ubuntu 20.04 with GLIBC 2.31?",
        "Our CI needs docker and libssl",
        "does vllm need libnccl.so.2?",
        "the driver is 535 and everything works",
        "the driver is not too old",
        "cudaMalloc returned an error",
        "what does c10::Error mean?",
        "sm_120 support was added in torch 2.7",
        "after setting LD_LIBRARY_PATH libcudart.so.12 is found",
        "no symbols are missing",
        "PyObject is required",
        "I upgraded torch to 2.8 and flash-attn works",
        "The wheel is for x86_64 and there is one for aarch64",
        "the aarch64 wheel cannot run on x86_64, as expected",
        "libtorch.so error handling",
        "vllm._C missing? no, it is there",
        "driver 535 is too old? No, it's fine",
        "flash_attn failed before upgrading torch but works after upgrading torch",
        "When I install torch 2.8, pip reports an error about flash-attn requirements",
        "our CUDA kernels don't support sm_70 with torch 2",
        "undefined behaviour in cudaMemcpyAsync",
        "the function ncclCommInitRank lacks documentation",
        "I installed libcudart.so.12 from conda and flash-attn works now",
        "libcudart.so.12 => /usr/local/cuda/lib64/libcudart.so.12",
    ],
)
def test_a_sentence_of_no_failure_is_none(text: str) -> None:
    assert first(text).code == "FA899"


@pytest.mark.parametrize(
    ("text", "owner", "direction"),
    [
        ("flash-attn 2.7.4.post1+cu12torch2.5cxx11abiFALSE with torch 2.6", "flash-attn", "older"),
        ("vllm 0.8.5 and torch 2.7.1", "vllm", "older"),
        ("xformers 0.0.30, torch 2.6.0, RTX 3090", "xformers", "newer"),
        ("torchvision 0.21.0 torch 2.5.1", "torchvision", "newer"),
    ],
)
def test_versions_alone_tell_of_a_package_for_another_torch(
    text: str, owner: str, direction: str
) -> None:
    """vllm 0.8.5 and xformers 0.0.30 pin torch (2.6.0, 2.7.0) in their wheels' metadata."""
    answer = first(text)
    assert (answer.owner, answer.direction) == (owner, f"file-{direction}")
    assert answer.confidence == "low" and "No failure in this text" in answer.cause


@pytest.mark.parametrize(
    "text", ["vllm 0.8.5 and torch 2.6.0", "xformers 0.0.30, torch 2.7.0", "flash-attn 2.8.3"]
)
def test_versions_that_fit_are_nothing_to_answer(text: str) -> None:
    assert first(text).code == "FA899"


def test_a_symbol_left_out_is_answered_by_the_releases() -> None:
    answer = first(
        "ImportError flash_attn_2_cuda undefined symbol, torch 2.6.0+cu124, "
        "flash-attn==2.7.4.post1+cu12torch2.5cxx11abiFALSE"
    )
    assert (answer.code, answer.direction) == ("FA886", "file-older")
    assert "is built for torch 2.5" in answer.cause


def test_a_class_stands_for_its_constructor() -> None:
    """nm -DC on libc10.so: torch 2.13.0 exports c10::ValueError::ValueError, 2.4.0 does not."""
    answer = first("undefined symbol: c10::ValueError with torch 2.11.0")
    assert answer.direction == "file-newer" and "2.13.0" in answer.cause


@pytest.mark.parametrize(
    ("text", "code", "owner"),
    [
        ("libcudart.so.12", "FA202", "cudart"),
        ("libc10.so", "FA202", "torch/c10"),
        ("GLIBCXX_3.4.30", "FA203", "libstdc++"),
        ("GLIBC_2.32", "FA203", "libc"),
        ("c10::ValueError", "FA201", "torch/c10"),
    ],
)
def test_a_name_alone_is_what_is_asked_for(text: str, code: str, owner: str) -> None:
    answer = first(text)
    assert (answer.code, answer.owner) == (code, owner)


@pytest.mark.parametrize(
    ("text", "command"),
    [("FA201", "fa-forensics explain FA201"),
     ("sm_120", "fa-forensics inspect --gpu 12.0 FILE_OR_PACKAGE"),
     ("compute_90", "fa-forensics inspect --gpu 9.0 FILE_OR_PACKAGE")],
)  # fmt: skip
def test_what_is_no_symbol_at_all_gets_the_command_that_answers_it(text: str, command: str) -> None:
    answer = first(text)
    assert answer.code == "FA899" and answer.help == (command,)
