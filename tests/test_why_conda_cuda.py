"""CUDA's libraries of a torch that is conda's, or that was built from source."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why import explain

SITE = "/e/lib/python3.11/site-packages"
BATCHED = "undefined symbol: cublasGemmGroupedBatchedEx, version libcublas.so.12"


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def said(answer: Answer) -> str:
    return " ".join((answer.cause, *answer.notes, *answer.help))


def test_pytorch_cuda_is_a_package_of_conda_and_holds_cuda_to_its_release(bare: str) -> None:
    """The name is of CUDA 12.5; pytorch-cuda 12.1 depends on libcublas below 12.2."""
    text = f"ImportError: {SITE}/cuequivariance_ops/lib/libcue_ops.so: {BATCHED}"
    answer = first(f"{text}\npytorch 2.5.1, pytorch-cuda 12.1", bare)
    assert answer.owner == "cublas" and "brought by torch" not in said(answer)
    assert not any("pip install" in command for command in answer.help)
    assert any("conda list" in command for command in answer.help)
    assert any('"cuda-version>=12.5,<13"' in command for command in answer.help)
    assert "an older release of the package that fails" in said(answer)


def test_condas_library_can_be_of_another_number(bare: str) -> None:
    file = f"{SITE}/torch/lib/libtorch_cuda_cu.so"
    text = f"ImportError: {file}: undefined symbol: cusparseSpSM_analysis, version "
    told = "conda install pytorch torchvision pytorch-cuda=11.7 -c pytorch -c nvidia\n"
    answer = first(f"{told}{text}libcusparse.so.11\ntorch 1.13.0, Python 3.10", bare)
    assert "has no libcusparse.so.11 at all" in answer.cause
    assert "env -u LD_LIBRARY_PATH python -c 'import torch'" in answer.help


def test_a_torch_from_source_has_its_toolkits_libraries(bare: str) -> None:
    file = ".../torch/lib/libtorch_cuda.so"
    name = "cublasLtGroupedMatrixLayoutCreate"
    text = f"ImportError: {file}: undefined symbol: {name}, version libcublasLt.so.13\n"
    answer = first(f"{text}torch built from source against the CUDA 13.4 preview toolkit", bare)
    assert answer.owner == "cublasLt" and "lies beside torch" not in said(answer)
    assert "faulty and not too old" in answer.cause and " pip " not in " ".join(answer.help)
    assert any(c.startswith("nm -D") and "/usr/local/cuda-13.4/" in c for c in answer.help)
    assert "lies beside torch" in first(text, bare).cause


def test_the_toolkit_of_the_text_is_the_older_cupti(bare: str) -> None:
    file = f"{SITE}/torch/lib/libtorch_cpu.so"
    text = f"ImportError: {file}: undefined symbol: cuptiActivityEnableDriverApi, version "
    answer = first(f"{text}libcupti.so.12\ntorch 2.8.0, local CUDA 12.4", bare)
    assert "The text has CUDA 12.4" in answer.cause
    assert any("export LD_LIBRARY_PATH=" in c and "cuda_cupti" in c for c in answer.help)
    newer = first(f"{text}libcupti.so.12\ntorch 2.8.0, local CUDA 12.6", bare)
    assert "The text has CUDA" not in newer.cause


def test_a_package_that_asks_for_one_torch_is_installed_with_it(bare: str) -> None:
    """PyPI's vllm for CUDA 12 asks for the torch that PyPI has for CUDA 12."""
    text = (
        "    from vllm import cuda_utils\nImportError: libcudart.so.12: cannot open shared object "
    )
    answer = first(f"{text}file: No such file or directory\nvllm 0.2.2, Python 3.10", bare)
    again = [c for c in answer.help if '"vllm==0.2.2"' in c and "--no-deps" not in c]
    assert len(again) == 1 and "was not imported first" not in answer.cause


def test_a_library_of_condas_cudatoolkit_is_put_back_by_it(bare: str) -> None:
    path = "/home/a/anaconda3/lib/python3.8/site-packages/torch/lib/../../../../{}"
    old = first(f"OSError: {path.format('libcufft.so.10')}: invalid ELF header", bare)
    assert any(c.endswith("--force-reinstall cudatoolkit") for c in old.help)
    new = first(f"OSError: {path.format('libcublas.so.12')}: invalid ELF header", bare)
    assert not any("cudatoolkit" in c for c in new.help)


def test_the_build_for_torchs_cuda_takes_the_nvcc_of_that_cuda(bare: str) -> None:
    text = "    import flash_attn_2_cuda\nImportError: libcudart.so.12: cannot open shared object "
    answer = first(f"{text}file: No such file or directory\ntorch 2.1.0+cu118", bare)
    assert "CUDA_HOME" in said(answer) and "fa-forensics wheels" in answer.help
