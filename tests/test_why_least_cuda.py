"""Builds as torch's CUDA, the text's own source and the driver's place allow them."""

from __future__ import annotations

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain

MISMATCH = (
    "RuntimeError: The detected CUDA version (12.2) mismatches the version that was used to "
    "compile PyTorch ({}). Please make sure to use the same CUDA versions.\n"
    "ERROR: Failed building wheel for {}"
)


def first(text: str) -> Answer:
    return explain([text], None, {}).answers[0]


@pytest.mark.parametrize(
    ("cuda", "asked"),
    [("11.3", '"flash-attn<2.0"'), ("11.5", '"flash-attn<2.1.2"'), ("11.6", '"flash-attn<2.7"'),
     ("11.8", "flash-attn")],
)  # fmt: skip
def test_flash_attn_is_one_that_the_cuda_of_torch_compiles(cuda: str, asked: str) -> None:
    answer = first(MISMATCH.format(cuda, "flash-attn"))
    (build,) = (command for command in answer.help if " install " in command)
    assert build.endswith(f"--no-build-isolation {asked}")
    assert f"cuda-{cuda} " in build


@pytest.mark.parametrize(("cuda", "package"), [("10.2", "flash-attn"), ("11.8", "sageattention")])
def test_no_build_is_typed_where_no_toolkit_serves_both(cuda: str, package: str) -> None:
    answer = first(MISMATCH.format(cuda, package))
    assert not any(" install " in command for command in answer.help)


def test_a_newer_toolkit_of_the_same_major_version_builds_mamba() -> None:
    answer = first(MISMATCH.format("11.3", "mamba-ssm"))
    assert any("cuda-11.6 " in command for command in answer.help)


@pytest.mark.parametrize(
    ("said", "given"),
    [("flash-attn-v100 @ file:///[...]/git/flash-attention-v100", "."),
     ("sage-fork @ file:///home/u/git/sage-fork", "/home/u/git/sage-fork"),
     ("mamba-ssm @ git+https://github.com/u/mamba.git", "git+https://github.com/u/mamba.git")],
)  # fmt: skip
def test_a_build_takes_the_source_that_the_text_names(said: str, given: str) -> None:
    answer = first(
        f"  \u00d7 Failed to build `{said}`\n"
        "  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)\n"
        "      ModuleNotFoundError: No module named 'torch'"
    )
    (build,) = (command for command in answer.help if "--no-build-isolation" in command)
    assert build.endswith(f"uv pip install --no-build-isolation {given}")
    assert answer.owner == said.partition(" ")[0]


def test_the_drivers_library_is_no_download() -> None:
    text = "ImportError: /usr/lib/x86_64-linux-gnu/libcuda.so.1: file too short"
    answer = first(f"{text}\nvllm docker image")
    assert answer.owner == "cuda-driver" and "download" not in answer.cause
    assert "docker run --gpus all IMAGE" in answer.help
    assert any("RUN rm /usr/lib/x86_64-linux-gnu/libcuda.so.1" in note for note in answer.notes)
    assert not any(command.startswith("rm ") for command in answer.help)


def test_sizes_are_listed_through_links() -> None:
    answer = first("/usr/local/cuda/lib64/libcudnn.so: file not recognized: File truncated")
    (look,) = (command for command in answer.help if command.startswith("find "))
    assert "-size" not in look and "-exec ls -lL {} +" in look
    assert answer.code == "FA102"
