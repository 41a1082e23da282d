"""``why`` on files of programs' own, badly packed wheels, projects' own names and kernel lists."""

from __future__ import annotations

import pytest
from support.asking import first, said

LFS = (
    "app: error while loading shared libraries: .../tools/linux/libtorch_cpu.so: invalid ELF "
    "header\n$ cat .../libtorch_cpu.so\nversion https://git-lfs.github.com/spec/v1\n"
    "oid sha256:be\nsize 497868624"
)


def test_a_pointer_of_git_lfs_printed_below_the_refusal_is_told_as_one() -> None:
    answer = first(LFS)
    assert "git lfs pull" in said(answer)
    assert "497868624" in said(answer)
    assert "pip install" not in " ".join(answer.help)


def test_torchs_library_in_a_programs_own_directory_is_not_put_back_by_pip() -> None:
    answer = first("ImportError: /opt/app/linux/libtorch_cpu.so: invalid ELF header")
    assert not any("pip" in command for command in answer.help)


def test_a_wheel_without_its_own_record_opens_and_was_packed_badly() -> None:
    answer = first(
        "Processing ./torch_scatter-2.1.2-cp311-cp311-linux_x86_64.whl\nERROR: torch-scatter has "
        "an invalid wheel, could not read 'torch_scatter-2.1.2.dist-info/WHEEL' file: "
        "KeyError(\"There is no item named 'torch_scatter-2.1.2.dist-info/WHEEL' in the archive\")"
    )
    assert "web page" not in said(answer)
    assert any("torch-scatter==2.1.2" in command for command in answer.help)


def test_a_blank_within_the_path_does_not_end_it() -> None:
    answer = first(
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by "
        "/h/lib/python3.10/site-packages /pytorch_quantization/cuda_ext.so)"
    )
    assert "site-packages/pytorch_quantization/cuda_ext.so" in " ".join(answer.help)


def test_tiny_cuda_nn_is_built_from_its_repository_with_its_own_variable() -> None:
    answer = first(
        "nvcc fatal : Unsupported gpu architecture 'compute_89'\n\ntorch 1.10, tiny-cuda-nn, "
        "CUDA 11.3, RTX 4090"
    )
    commands = [text for text in answer.help if "pip install" in text]
    assert commands and all("NVlabs/tiny-cuda-nn" in text for text in commands)
    assert any('TCNN_CUDA_ARCHITECTURES="86"' in text for text in commands)


def test_an_errors_name_without_a_blank_is_no_part_of_the_path() -> None:
    answer = first(
        "ImportError:../.local/lib/python3.10/site-packages/X/ext.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _Z27ms_deform_attn_cuda_forwardRKN2at6TensorES2_S2_S2_S2_i"
    )
    assert not any("ImportError" in command for command in answer.help)


@pytest.mark.parametrize("place", ["/w/xfrm2/third_party", "/w/xformers/third_party"])
def test_flash_attention_3_below_xformers_is_xformers_own(place: str) -> None:
    line = f"CUDA error ({place}/flash-attention/hopper/flash_fwd_launch_template.h:188): "
    assert first(f"{line}no kernel image is available for execution on the device").owner == (
        "xformers"
    )


def test_the_patch_release_beside_a_path_counts() -> None:
    answer = first(
        "python: symbol lookup error: /usr/lib/python3.6/site-packages/torch/lib/"
        "libtorch_python.so: undefined symbol: PySlice_Unpack\n\ntorch 1.0.1, Python 3.6.0"
    )
    assert answer.confidence == "high"
    assert any(">=3.6.1,<3.7" in command for command in answer.help)


def test_both_gpus_of_one_name_are_in_the_list_where_torch_has_code_for_both() -> None:
    answer = first(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n\n"
        "torch 1.7, mish-cuda, CUDA 10.2, TITAN X"
    )
    assert answer.owner == "mish-cuda"
    assert any('"5.2;6.1"' in command for command in answer.help)


def test_causal_conv1d_is_built_beside_mamba_for_a_gpu_that_neither_lists() -> None:
    answer = first(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n\n"
        "mamba-ssm, Python 3.11, GPU 3x Tesla P40"
    )
    assert sum("compute_61" in command for command in answer.help) == 2


def test_a_package_imported_from_its_sources_was_not_installed_by_the_text() -> None:
    answer = first(
        '  File "/home/x/git/flash-attention/flash_attn/__init__.py", line 3, in <module>\n'
        "    import flash_attn_2_cuda\nModuleNotFoundError: No module named 'flash_attn_2_cuda'"
    )
    assert "The text installs it" not in said(answer)
    assert "PYTHONPATH" in said(answer)


def test_an_index_of_rocm_with_three_numbers_keeps_them() -> None:
    answer = first(
        "OSError: libc10_hip.so: cannot open shared object file: No such file or directory\n\n"
        "torch 2.0.1, torch-scatter, ROCm 5.4.2"
    )
    assert any(command.endswith("whl/rocm5.4.2") for command in answer.help)
