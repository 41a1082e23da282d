"""``why`` on torch and a package that are builds for different makers, CUDA versions or places."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

BANNER = (
    "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
    "    PyTorch {built} with CUDA 1208 (you have {have})\n"
    "    Python  3.10.19 (you have 3.13.11)\n"
)


@pytest.mark.parametrize("have", ["2.11.0+rocm7.13.0", "2.10.0+rocm6.4", "2.9.1+rocm6.3"])
def test_a_cuda_xformers_never_loads_in_a_rocm_torch_and_torch_stays(have: str) -> None:
    answer = first(BANNER.format(built="2.10.0+cu128", have=have))
    assert "ROCm" in answer.cause and "CUDA" in answer.cause
    assert not any('"torch==' in text for text in answer.help)
    assert any("uninstall" in text and "xformers" in text for text in answer.help)


def test_a_rocm_xformers_beside_a_cuda_torch_is_told_too() -> None:
    answer = first(BANNER.format(built="2.9.0+rocm6.4", have="2.9.0+cu128"))
    assert "built for ROCm" in answer.cause and not any("torch==" in t for t in answer.help)


INDEX = "https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("built", "have", "wanted"),
    [
        ("2.10.0+cu128", "2.9.1+rocm6.3", '"xformers==0.0.33.post2" --index-url {INDEX}/rocm6.3'),
        ("2.10.0+cu128", "2.11.0+rocm6.4", '"xformers>=0.0.35" --index-url {INDEX}/rocm6.4'),
        ("2.9.0+rocm6.4", "2.9.0+cu128", '"xformers==0.0.33.post1"'),
        ("2.9.0+rocm6.4", "2.9.0+cu126", '"xformers==0.0.33.post1" --index-url {INDEX}/cu126'),
        ("2.9.0+rocm6.4", "1.9.0+cu111", ""),
    ],
)
def test_xformers_of_the_other_maker_is_named_with_its_release(
    built: str, have: str, wanted: str
) -> None:
    """Without a release, --no-deps takes the newest, which is for another torch."""
    wanted = wanted.format(INDEX=INDEX)
    answer = first(BANNER.format(built=built, have=have))
    installs = [command for command in answer.help if " install " in command]
    assert all(command.endswith(wanted) for command in installs)
    assert len(installs) == bool(wanted)
    assert bool(wanted) != any("No release of xformers is known" in note for note in answer.notes)
    assert (INDEX in wanted) == any("torch's own index" in note for note in answer.notes)


def test_torchaudio_comes_from_torchs_index_in_the_release_that_is_there() -> None:
    line = (
        "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA "
        "versions. PyTorch has CUDA version 11.8 whereas TorchAudio has CUDA version 11.7. Please "
        "install the TorchAudio version that matches your PyTorch version."
    )
    answer = first(line, "torchaudio 2.0.2, torch cu118")
    assert "11.7" in answer.cause and "11.8" in answer.cause
    wanted = '"torchaudio==2.0.2" --index-url https://download.pytorch.org/whl/cu118'
    assert any(wanted in text for text in answer.help)
    alone = first(line)
    assert all("cuXYZ" not in text for text in alone.help)


@pytest.mark.parametrize(
    ("torch", "wanted"),
    [
        ("", "torch torchvision --index-url https://download.pytorch.org/whl/cuXYZ"),
        ("torch 2.1.0+cu118", '"torchvision==0.16.0" --index-url'),
    ],
)
def test_an_operator_without_cuda_is_taken_from_torchs_index(torch: str, wanted: str) -> None:
    line = (
        "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' "
        "backend. This could be because the operator doesn't exist for this backend"
    )
    answer = first(line, torch)
    assert "without CUDA" in answer.cause
    assert any(wanted in text for text in answer.help)
    assert not any("--upgrade" in text for text in answer.help)


def test_an_operator_without_code_for_the_cpu_is_no_cpu_build() -> None:
    line = "Could not run 'fbgemm::foo' with arguments from the 'CPU' backend."
    assert "CPU build" not in said(first(line))


def test_torchvision_imports_torch_itself() -> None:
    line = (
        "/home/me/.local/lib/python3.10/site-packages/torchvision/io/image.py:13: UserWarning: "
        "Failed to load image Python extension: libc10_cuda.so: cannot open shared object file: "
        "No such file or directory"
    )
    answer = first(line)
    assert "imports torch itself" in answer.cause and "import MODULE" not in said(answer)
    assert any("torch torchvision" in text for text in answer.help)
    assert any("warning" in note for note in answer.notes)


def test_an_extension_that_does_not_import_torch_may_be_early() -> None:
    answer = first("ImportError: libc10_cuda.so: cannot open shared object file: No such file")
    assert "Two causes fit" in answer.cause


def test_two_directories_of_packages_are_told_apart() -> None:
    text = (
        '  File "/home/u/.conda/envs/y/lib/python3.7/site-packages/torchvision/ops/boxes.py", '
        "line 36, in nms\n    return torch.ops.torchvision.nms(boxes, scores, iou_threshold)\n"
        '  File "/home/u/.local/lib/python3.7/site-packages/torch/_ops.py", line 61, in '
        "__getattr__\n    op = torch._C._jit_get_operation(qualified_op_name)\n"
        "RuntimeError: No such operator torchvision::nms\n"
    )
    answer = first(text)
    assert "torch is taken from /home/u/.local" in answer.cause
    assert any(command.startswith("PYTHONNOUSERSITE=1") for command in answer.help)
    same = text.replace("/home/u/.local/", "/home/u/.conda/envs/y/")
    assert "mixed" not in first(same).cause
    # The torch that is there stays: of the release that the text tells, or that is installed.
    assert not any("install --force-reinstall torch " in command for command in answer.help)
    assert any('"torch==$(' in command for command in answer.help)
    assert any("cuXYZ" in note for note in answer.notes)
    told = first(text, "torch 1.8.0+cu111").help[-1]
    index = "https://download.pytorch.org/whl/cu111"
    assert "--no-deps" in told and told.endswith(f'"torchvision==0.9.0" --index-url {index}')


@pytest.mark.parametrize(
    ("text", "torch"),
    [
        ("installing audacitorch reinstalled torch as 1.9.1", "1.9.1"),
        ("pip replaced torch with 2.1.0+cpu", "2.1.0+cpu"),
        ("someone reinstalled torch and 1.9.1 of x", None),
    ],
)
def test_the_torch_that_pip_put_there_is_the_one_that_counts(text: str, torch: str | None) -> None:
    assert read_paste(text).versions.get("torch") == torch


def test_index_of_a_partner_is_explained_where_it_is_typed() -> None:
    line = "OSError: libtorch_cuda_cpp.so: cannot open shared object file: No such file"
    for more in ("torchaudio, Python 3.7", "torchaudio, torch 1.9.1, Python 3.7"):
        answer = first(line, more)
        if any("cuXYZ" in text for text in answer.help):
            assert any("cuXYZ" in note for note in answer.notes), more


#: A name that every torch since 1.1 exports, in a file that lists no library of torch.
NAME = "_ZTIN3c1021AutogradMetaInterfaceE"


@pytest.mark.parametrize(
    ("more", "left", "order"),
    [
        ("Python 3.8", True, True),
        ("Python 3.11", False, False),
        ("Python 3.8, torch 1.4.0", False, True),
    ],
)
def test_a_file_without_torchs_libraries_is_built_again(more: str, left: bool, order: bool) -> None:
    file = "/e/lib/python3/site-packages/torch_points_kernels/points_cpu.so"
    answer = first(f"ImportError: {file}: undefined symbol: {NAME}", more)
    assert ("1.4 or before, whose" in answer.cause) is left
    assert any("import torch; import" in text for text in answer.help) is order
    again = any("torch-points-kernels" in text for text in answer.help)
    assert again is ("1.4.0" not in more)


def test_a_gpu_that_torchs_cuda_has_no_code_for_turns_the_order_round() -> None:
    line = (
        "The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch "
        "(11.8)."
    )
    answer = first(line, "RTX 5070 (sm_120), PyTorch 2.1.2+cu118, building tiny-cuda-nn")
    typed = "\n".join(answer.help)
    assert "whl/cu128" in typed and "cuda-11.8" not in typed
    assert typed.index("torch==") < typed.index("tiny-cuda-nn")
    older = first(line, "RTX 3090, PyTorch 2.1.2+cu118, building tiny-cuda-nn")
    assert "cuda-11.8" in "\n".join(older.help)


def test_the_package_of_the_versions_line_is_what_is_built() -> None:
    line = (
        "The detected CUDA version (12.2) mismatches the version that was used to compile\n"
        "      PyTorch (11.7). Please make sure to use the same CUDA versions."
    )
    answer = first(line, "flash-attn source build, nvcc 12.2, torch +cu117")
    assert "PACKAGE" not in said(answer) and "fa-forensics wheels" in said(answer)


def test_mamba_ssm_is_no_conda() -> None:
    line = (
        "pip install mamba-ssm --no-build-isolation\n"
        "      <string>:118: UserWarning: mamba_ssm was requested, but nvcc was not found.  Are "
        "you sure your environment has nvcc available?"
    )
    answer = first(line, "mamba_ssm-2.2.4, torch 2.5.1+cu124")
    typed = "\n".join(answer.help)
    assert "CONDA_PREFIX" not in typed and "mamba-ssm==2.2.4" in typed
    assert "cuda-toolkit-12-4" in said(answer) and "devel" in said(answer)


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/home/me/detectron2/detectron2/layers/csrc/ROIAlign/ROIAlign.h", True),
        ("/tmp/pip-req-build-x/detectron2/layers/csrc/ROIAlign/ROIAlign.h", False),
    ],
)
def test_a_checkout_is_compiled_again_where_it_lies(path: str, there: bool) -> None:
    answer = first(f"RuntimeError: Not compiled with GPU support (ROIAlign_forward at {path}:71)")
    typed = "\n".join(answer.help)
    assert ("-e /home/me/detectron2" in typed) is there and "FORCE_CUDA=1" in typed
    assert ("git+https" in typed) is not there


def test_a_build_directory_of_a_project_is_removed_by_the_path_of_the_text() -> None:
    file = ".../megatron/fused_kernels/build/scaled_masked_softmax_cuda.so"
    answer = first(
        f"ImportError: {file}: undefined symbol: _ZN3c106detail19maybe_wrap_dim_slowEllb",
        "apex 0.1, torch 1.11.0+cu113, torchvision 0.12.0+cu113",
    )
    typed = "\n".join(answer.help)
    assert "rm -rf megatron/fused_kernels/build" in typed and "NVIDIA/apex" not in typed
    assert "torchvision==0.13.0" in typed


def test_a_gpu_that_torchs_cuda_leaves_out_is_told_too() -> None:
    line = (
        "The detected CUDA version (12.4) mismatches the version that was used to compile PyTorch "
        "(13.0)."
    )
    typed = "\n".join(first(line, "GPU: Tesla V100, torch 2.9.0+cu130, building apex").help)
    assert "cuda-13" not in typed and "whl/cu12" in typed and "cuda-12.4" in typed


def test_an_operator_of_torchs_own_is_no_packages() -> None:
    line = "Could not run 'aten::empty.memory_format' with arguments from the '{}' backend."
    on_cuda = first(line.format("CUDA"))
    assert on_cuda.owner == "torch" and "for the CPU" in on_cuda.cause
    other = first(line.format("QuantizedCPU"))
    assert other.owner == "torch" and other.kind == "api-change"


def test_a_cpu_torch_and_its_pair_are_changed_together() -> None:
    line = (
        "/e/lib/python3.10/site-packages/torchvision/io/image.py:13: UserWarning: Failed to load "
        "image Python extension: libc10_cuda.so: cannot open shared object file: No such file"
    )
    answer = first(line, "torch 2.1.0+cpu")
    assert any("torch==2.1.0 torchvision==0.16.0" in text for text in answer.help)


def test_a_package_that_says_of_itself_that_it_has_no_cuda() -> None:
    """NATTEN issue 34: the sentence goes on, and the subject is the package."""
    answer = first(
        "RuntimeError: NATTEN is not compiled with CUDA! Please make sure you installed correctly "
        "by referring to shi-labs.com/natten.\nnatten 0.14.6, torch 1.11.0+cu102, Python 3.8.10"
    )
    assert answer.owner == "natten" and answer.cause.startswith("An operation of natten has")
    assert any("natten==0.14.6" in command for command in answer.help)
    assert "torch230cu121" not in said(answer)  # wheels of that form begin with torch 2.1
    prose = first("It is not compiled with CUDA, as far as I see. PyTorch is.")
    assert prose.code == "FA899"
