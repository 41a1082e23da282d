"""CUDA's libraries of a torch that is conda's, or that was built from source."""

from __future__ import annotations

from fa_forensics.facts.cuda_names import cuda_name_since
from fa_forensics.report_why import Answer
from fa_forensics.why import explain
from fa_forensics.why.texts.libraries.brought_text import image_cuda

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
    assert "has the right one beside it" in first(text, bare).cause


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


def test_the_name_that_came_with_an_update_is_none_of_the_first_release(bare: str) -> None:
    # ATen/cuda/CUDASparse.h of PyTorch: SpSV is of CUDA 11.3.0, SpSM of 11.3.1.
    assert cuda_name_since("cusparse", "cusparseSpSM_analysis") == "11.3.1"
    assert cuda_name_since("cusparse", "cusparseSpSV_analysis") == "11.3"
    file = "/fsx/conda/envs/one/lib/python3.10/site-packages/torch/lib/libtorch_cuda_cu.so"
    name = "cusparseSpSM_analysis, version libcusparse.so.11"
    answer = first(f"ImportError: {file}: undefined symbol: {name}", bare)
    # PyTorch's wheels of that time have cuSPARSE inside: the environment's torch is conda's.
    assert "CUDA 11.3.1" in answer.cause and not any(" pip " in c for c in answer.help)
    assert 'conda install -c nvidia "libcusparse>=11,<12"' in answer.help


def test_the_systems_older_cudnn_is_the_copy_that_is_loaded(bare: str) -> None:
    file = f"{SITE}/torch/lib/../../nvidia/cudnn/lib/libcudnn_cnn_infer.so.8"
    name = "_Z20traceback_iretf_implPKcRKN5cudnn16InternalStatus_tEb"
    text = f"symbol lookup error: {file}: undefined symbol: {name}, version libcudnn_ops_infer.so.8"
    assert "The text has cuDNN 8.3.2" in first(f"{text}\n\nsystem cuDNN 8.3.2", bare).cause
    assert "The text has cuDNN" not in first(f"{text}\n\nsystem cuDNN 8.9.7", bare).cause


def test_torch_of_2_5_and_newer_asks_for_its_nvjitlink_itself(bare: str) -> None:
    file = f"{SITE}/nvidia/cusparse/lib/libcusparse.so.12"
    name = "__nvJitLinkComplete_12_4, version libnvJitLink.so.12"
    text = f"ImportError: {file}: undefined symbol: {name}"
    told = said(first(f"{text}\n\ntorch 2.5.1, CUDA 12.2, Python 3.10", bare))
    assert "torch itself asks for nvidia-nvjitlink-cu12==12.4.127" in told
    assert "nothing ties" not in told and "nothing ties" in said(first(text, bare))


def test_the_cache_of_jit_builds_does_not_tell_one_torch_from_another(bare: str) -> None:
    file = "/home/me/.cache/torch_extensions/py38_cu111/cpu_adam/cpu_adam.so"
    answer = first(f"ImportError: {file}: undefined symbol: curandCreateGenerator", bare)
    assert "py38_cu111 names Python and CUDA alone" in said(answer)


def test_nvidias_image_tells_the_cuda_of_its_torch(bare: str) -> None:
    lines = (
        '  File "/usr/local/lib/python3.12/dist-packages/torchaudio/_extension/utils.py", line 56',
        "    torch.ops.load_library(paths[0])",
        "OSError: libcudart.so.13: cannot open shared object file: No such file or directory",
    )
    text = "\n".join(lines)
    answer = first(f"{text}\n\nnvcr.io/nvidia/pytorch:25.02-py3, torchaudio from pip", bare)
    assert answer.code == "FA602" and "torch is a CUDA 12 build" in answer.cause
    assert "one is enough" in said(first(text, bare))  # torch and torchaudio, or torchaudio alone
    # The images 24.05 to 25.06 are for CUDA 12, from 25.10 on for 13; others are not recorded.
    assert [image_cuda(one) for one in ("24.05", "25.06", "25.08", "25.10", "26.01")] == [
        "12", "12", "", "13", "13",
    ]  # fmt: skip


def test_condas_own_list_tells_the_torch_without_cuda(bare: str) -> None:
    text = (
        "OSError: libc10_cuda.so: cannot open shared object file: No such file or directory\n"
        "The following NEW packages will be INSTALLED:\n"
        "  pytorch            pkgs/main/linux-64::pytorch-1.10.2-cpu_py37hfa7516b_0\n"
        "  pytorch-scatter    pyg/linux-64::pytorch-scatter-2.0.9-py37_torch_1.10.0_cu113"
    )
    answer = first(text, bare)
    assert "pytorch 1.10.2 in a build for the CPU" in answer.cause and "ROCm" not in answer.cause
    assert 'conda install -c pytorch -c nvidia "pytorch=1.10.2=*cuda11.3*"' in answer.help
    assert 'conda install -c pyg "pytorch-scatter=*=*cpu*"' in answer.help
    assert not any("pip install" in command for command in answer.help)


def test_an_old_torch_is_given_a_build_in_the_projects_tree(bare: str) -> None:
    text = (
        "    from .kernels import rasterize_triangles_cpp\n"
        "ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory"
    )
    answer = first(f"{text}\n\nTorch 1.2.0, Python 3.6", bare)
    assert answer.help[0].endswith("python setup.py build_ext --inplace")
    assert not any("import ." in c for c in (*answer.help, *first(text, bare).help))


def test_the_cuda_of_the_text_leaves_the_toolkit_open(bare: str) -> None:
    text = "Error: OSError: CUDA_HOME environment variable is not set. pip install gsplat v1.4"
    answer = first(f"{text}\n\ntorch 2.1, CUDA 11.7 (conda), gsplat 1.4", bare)
    assert "12.1 is what fits" not in said(answer) and "CUDA 11.7" in said(answer)
    assert any("cuda-X.Y" in c and c.endswith("gsplat.git@v1.4.0") for c in answer.help)
    same = first(f"{text}\n\ntorch 2.1, CUDA 12.4, gsplat 1.4", bare)
    assert any("/usr/local/cuda-12.1 " in command for command in same.help)


def test_the_build_for_rocm_is_of_a_list_with_all_builds(bare: str) -> None:
    text = (
        "  File venv/lib/python3.8/site-packages/torchaudio/_extension.py:27, in <module>\n"
        "OSError: libtorch_hip.so: cannot open shared object file: No such file or directory"
    )
    answer = first(text, bare)
    assert "torchaudio" in answer.help[1] and "rocmX.Y" in answer.help[2]
    assert "plain pip install" not in said(answer) and "torch_stable.html" in said(answer)
