"""Libraries of NVIDIA and of Intel: what a remedy can do where the text is from."""

from __future__ import annotations

import pytest

from fa_forensics.facts.cuda_names import cudnn_part_not_brought, newest_cuda_of
from fa_forensics.report_why import Answer
from fa_forensics.why import explain


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes, *answer.help))


ITT = "{0}/site-packages/torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent"


@pytest.mark.parametrize(
    "prefix", ["/srv/job/.venv/lib/python3.10", "/home/u/.local/lib/python3.11", "/usr/lib/python3"]
)
def test_conda_brings_no_mkl_into_an_environment_of_pip(bare: str, prefix: str) -> None:
    answer = first(f"ImportError: {ITT.format(prefix)}", bare)
    assert answer.owner == "mkl" and answer.direction == "file-older"
    assert any('"mkl==2024.0.0"' in text for text in answer.help)
    assert "conda" not in said(answer)


def test_an_environment_of_conda_gets_its_mkl_from_conda(bare: str) -> None:
    answer = first(f"ImportError: {ITT.format('/opt/miniforge3/envs/a/lib/python3.8')}", bare)
    assert answer.help[0] == 'conda install "mkl<2024.1"'
    assert not any("pip install" in text for text in answer.help)


MISMATCH = "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"


@pytest.mark.parametrize(
    "version", ["nvidia-cudnn-cu13==9.20.0.48", "nvidia-cudnn-cu12 9.20.0.48", "torch 2.12.1+cu130"]
)
def test_a_wheel_of_cudnn_that_lacks_a_part_is_not_installed_again(bare: str, version: str) -> None:
    answer = first(f"{MISMATCH}\n\n{version}, system cuDNN 9.23", bare)
    wheel = "nvidia-cudnn-cu12" if "cu12" in version else "nvidia-cudnn-cu13"
    assert any(f'"{wheel}>=9.21,<10"' in text for text in answer.help)
    assert not any("--force-reinstall" in text for text in answer.help)
    assert "has cuDNN 9.23" in answer.cause and "whole cuDNN" not in said(answer)


def test_only_the_release_that_asks_for_it_lacks_the_part() -> None:
    # strings of libcudnn_graph.so.9: 9.19.1 does not name the part, 9.21.0 names and has it
    assert cudnn_part_not_brought("9.20.0.48") is not None
    assert all(cudnn_part_not_brought(v) is None for v in ("9.19.1.2", "9.21.0.82", "", "9.2.0.82"))


def test_the_systems_own_directories_are_looked_at_for_a_mix_of_cudnns(bare: str) -> None:
    answer = first(f"{MISMATCH}\n\ntorch 2.5.1", bare)
    assert "ldconfig -p | grep libcudnn" in answer.help


@pytest.mark.parametrize("torch", ["1.0", "1.0.0", "1.0.1"])
def test_a_torch_of_two_numbers_is_its_first_release(torch: str, bare: str) -> None:
    assert newest_cuda_of(torch) == "10.0"
    text = f"undefined symbol: __cudaPopCallConfiguration\n\nPytorch {torch}, Cuda 10.0"
    answer = first(text, bare)
    assert "at most" not in answer.cause and "CUDA 9.0" in answer.cause
    assert any("whl/cu100/torch_stable.html" in text for text in answer.help)


def test_a_message_in_three_lines_is_one_on_the_name(bare: str) -> None:
    text = (
        "Could not load library libcudnn_cnn_infer.so.8. \n"
        "   Error: /srv/dorado/v0.3.0.cuda118/bin/../lib/libnvrtc.so: \n"
        "      undefined symbol: nvrtcGetCUBIN\n"
    )
    answers = explain([text], bare, {}).answers
    assert [answer.owner for answer in answers] == ["nvrtc"]
    whole = said(answers[0])
    assert "CUDA 11.8" in whole and "/srv/dorado/v0.3.0.cuda118/lib" in answers[0].cause
    assert "has to leave LD_LIBRARY_PATH" not in whole and "pip install" not in whole


def test_a_part_that_is_not_found_stays_a_part_in_two_lines(bare: str) -> None:
    text = (
        "Could not load library libcudnn_cnn_infer.so.8.\n"
        "Error: libnvrtc.so: cannot open shared object file: No such file or directory\n"
    )
    owners = [answer.owner for answer in explain([text], bare, {}).answers]
    assert owners and set(owners) <= {"cudnn", "nvrtc"}


CUBLAS = (
    "OSError: /srv/envs/a/lib/python3.7/site-packages/nvidia/cublas/lib/libcublas.so.11: undefined "
    "symbol: cublasLtHSHMatmulAlgoInit, version libcublasLt.so.11\n\n"
)


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        ("export LD_LIBRARY_PATH=/srv/nvidia/cublas/lib solved it", False),
        ("LD_LIBRARY_PATH=/usr/local/cuda/lib64", True),
    ],
)
def test_a_variable_that_put_it_right_is_not_the_state_that_failed(
    bare: str, line: str, failed: bool
) -> None:
    assert ("is set in the text" in said(first(CUBLAS + line, bare))) == failed


def test_torch_itself_tells_that_the_variable_brings_the_other_cudnn(bare: str) -> None:
    answer = first(
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 7, 0) but "
        "found runtime version (8, 6, 0). PyTorch already comes bundled with cuDNN. Looks like "
        "your LD_LIBRARY_PATH contains incompatible version of cudnn\n\ntorch 2.0.1+cu118", bare,
    )  # fmt: skip
    assert "torch itself says where from" in answer.cause
    assert "from a wheel" not in said(answer) and "pip check" not in said(answer)


def test_condas_torch_has_its_cublas_from_conda(bare: str) -> None:
    answer = first(
        "OSError: /srv/conda/envs/a/lib/python3.8/site-packages/torch/lib/../../../../"
        "libcublas.so.11: symbol free_gemm_select version libcublasLt.so.11 not defined in file "
        "libcublasLt.so.11 with link time reference", bare,
    )  # fmt: skip
    assert not any("pip list" in text for text in answer.help)
    assert any(text.startswith("conda list") for text in answer.help)
    assert "pip check" not in said(answer)
