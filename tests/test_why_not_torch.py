"""``why`` on CUDA's libraries where torch is no measure: other packages, other copies, conda."""

from __future__ import annotations

import pytest
from support.inspecting import invoke

from fa_forensics.facts.tables import read_table
from fa_forensics.why.nvidia.places import toolkit_of_path
from fa_forensics.why.nvidia.without_torch import releases_for, row_without_torch

GONE = "cannot open shared object file: No such file or directory"


def first(text: str) -> tuple[str, str, dict[str, object]]:
    """(the cause and the notes, the commands, the answer)."""
    document = invoke("why", "--elsewhere", "--format", "json", "--", text).document
    answer = document["answers"][0]
    return " ".join([answer["cause"], *answer["notes"]]), "\n".join(answer["help"]), answer


def test_a_lookup_in_an_old_copy_is_no_mix_of_cudnns() -> None:
    # nvrtcGetCUBIN is not in NVRTC 9.2; cuDNN 8 looks it up in the copy that it opened.
    said, commands, answer = first(
        "Could not load library libcudnn_cnn_infer.so.8. Error: "
        "/usr/local/cuda-9.2/lib64/libnvrtc.so: undefined symbol: nvrtcGetCUBIN"
    )
    assert answer["owner"] == "nvrtc" and "CUDA 9.2" in said
    assert "two cuDNN releases" not in said and "torch" not in str(answer["cause"])
    assert "LD_LIBRARY_PATH" in commands and answer["direction"] == "file-newer"


@pytest.mark.parametrize(
    ("path", "toolkit"),
    [("/usr/local/cuda-11.1/lib64/libnvrtc.so", "11.1"), ("/sw/cuda/8.0/lib64/x.so", "8.0"),
     ("/usr/local/cuda/lib64/libcudart.so", None), ("/opt/barracuda-1.2/x.so", None)],
)  # fmt: skip
def test_a_toolkits_directory_names_its_version(path: str, toolkit: str | None) -> None:
    assert toolkit_of_path(path) == toolkit


def test_a_name_with_a_librarys_version_is_not_torchs_own() -> None:
    # libtorch_cuda_cu.so of 1.13.0+cu117 has cuSPARSE inside, which has nothing to say here.
    said, commands, answer = first(
        "conda install pytorch pytorch-cuda=11.6 -c pytorch -c nvidia\n"
        "libcusparse  12.1.0.106  0  nvidia\ntorch 1.13.0\n"
        "ImportError: /c/lib/python3.10/site-packages/torch/lib/libtorch_cuda_cu.so: "
        "undefined symbol: cusparseSpSM_analysis, version libcusparse.so.11"
    )
    assert "not missing" not in said and answer["provider"] is None
    assert "12.1.0.106" in said and '"libcusparse>=11,<12"' in commands
    assert "pip install" not in commands and "conda list" in commands


def test_a_file_of_cupy_is_not_measured_by_torch() -> None:
    said, commands, _ = first(
        "ImportError: /e/lib/python3.8/site-packages/cupy_backends/cuda/libs/cublas.cpython-38-"
        "x86_64-linux-gnu.so: undefined symbol: cublasSetWorkspace_v2, version libcublas.so.11"
    )
    assert "CuPy" in said and "import torch" not in commands and "torch 1.13.0" not in said
    assert "| grep cublas" in commands


def test_onnx_runtime_has_releases_for_each_cuda() -> None:
    text = f"Failed to load library libonnxruntime_providers_cuda.so with error: {{}}: {GONE}\n{{}}"
    said, commands, answer = first(
        text.format("libcublasLt.so.11", "onnxruntime-gpu 1.17.1\nnvcc version 12.2")
    )
    assert "CUDA of torch" not in said and answer["direction"] == "file-older"
    assert '"onnxruntime-gpu>=1.19.0"' in commands
    said, commands, _ = first(text.format("libcublasLt.so.12", "nvcc version 11.8"))
    assert '"onnxruntime-gpu>=1.7.0,<1.19.0"' in commands


def test_the_table_of_other_packages_is_in_order() -> None:
    for row in read_table("without_torch.json")["rows"]:
        majors = [int(one[0]) for one in row.get("cuda", ())]
        assert majors == sorted(majors)
        found = row_without_torch(f"/e/site-packages/{row['folders'][0]}/x.so")
        assert found is not None and found["title"] == row["title"]
        assert not majors or releases_for(row, str(majors[-1]))
    assert row_without_torch("/e/site-packages/flash_attn_2_cuda.so") is None


def test_a_part_of_cudnn_is_not_in_the_process_after_torch() -> None:
    # readelf -d libtorch_cuda.so of torch 2.4.0 lists libcudnn.so.9 and none of its parts.
    said, commands, _ = first(
        f"transformer_engine failed: libcudnn_graph.so.9: {GONE}\nnvidia-cudnn-cu12  9.5.1.17"
    )
    assert "torch's own libraries need" not in said and "9.5.1.17" in said
    assert '("cudnn",)' in commands and "--force-reinstall" not in commands
    said, _, _ = first(f"ImportError: libcudnn.so.9: {GONE}")
    assert "torch's own libraries need libcudnn.so.9" in said


def test_an_untold_torch_is_newer_or_another_build() -> None:
    said, commands, answer = first(f"import torch-sparse\nOSError: libtorch_cuda_cu.so: {GONE}")
    assert answer["direction"] == "unknown" and "another build" in said
    assert "torch.version.cuda" in commands and "torch-sparse" in said


def test_the_compilers_cuda_says_what_the_runtime_has_to_be() -> None:
    # cudaGetDriverEntryPointByVersion came with CUDA 12.5.
    text = "undefined symbol: cudaGetDriverEntryPointByVersion, version libcudart.so.12\nnvcc {}"
    said, commands, _ = first(text.format("12.8"))
    assert "CUDA 12.8" in said and "driver has no part" in said
    assert "torch.version.cuda" in commands
    assert "which has the name" not in first(text.format("12.4"))[0]


def test_a_name_that_all_on_record_have_can_be_missing_from_an_older_copy() -> None:
    text = "/e/lib/python3.{}/site-packages/a/x.so: undefined symbol: cudnnSetConvolutionGroupCount"
    said, commands, answer = first(text.format(10))
    assert "Two causes fit" in said and "no version of these is too old" not in said
    assert "readelf -d" in commands and "torch 1.13" not in said
    said, _, answer = first(text.format(5))
    assert "older copy is the likelier" in said and answer["code"] == "FA204"


def test_a_torch_of_another_maker_has_no_cuda() -> None:
    said, commands, _ = first(
        f"torch_npu 2.5.1\n    import torchvision._C\nImportError: libcudart.so.12: {GONE}"
    )
    assert "Huawei" in said and "imported first" not in said and "--index-url" not in commands
    # transformers asks for it in every environment.
    said, _, _ = first(
        "if is_torch_npu_available():\nNo module named 'torch_npu'\n    import torchvision._C\n"
        f"ImportError: libcudart.so.12: {GONE}"
    )
    assert "Huawei" not in said


def test_a_jetson_is_not_sent_to_conda() -> None:
    said, commands, _ = first(
        'Jetson Xavier\n  File "/h/site-packages/torch/__init__.py", line 8, in <module>\n'
        f"    from torch._C import *\nImportError: libcurand.so.10.0: {GONE}"
    )
    assert "JetPack" in said and "CUDA 10.0" in said and "conda" not in commands
