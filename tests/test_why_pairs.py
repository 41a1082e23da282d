"""``why`` on packages and torches that belong together, and the index that has them."""

from __future__ import annotations

import pytest
from support.asking import first, said

BANNER = "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:"
DETECTED = (
    "The detected CUDA version ({}) mismatches the version that was used to compile",
    "PyTorch ({}). Please make sure to use the same CUDA versions.",
)


def banner(built: str, have: str, python: str = "3.10.11", runs: str = "3.10.12") -> list[str]:
    cuda = built.partition("+cu")[2]
    return [
        BANNER,
        f"    PyTorch {built} with CUDA {cuda[:-1]}0{cuda[-1]} (you have {have})",
        f"    Python  {python} (you have {runs})",
    ]


def test_xformers_comes_from_the_index_of_torchs_cuda_where_pips_own_has_another() -> None:
    # xformers 0.0.22.post7 on the package index is built for CUDA 12.1
    answer = first(*banner("2.0.1+cu118", "2.1.0+cu118"))
    assert '"xformers==0.0.22.post7" --index-url INDEX' in answer.help[0]
    assert '"torch==2.0.1+cu118" --index-url INDEX' in answer.help[1]
    assert "One of the two" in said(answer) and "/cu118" in said(answer)
    same = first(*banner("2.0.1+cu118", "2.1.0+cu121"))
    assert same.help[0].endswith('"xformers==0.0.22.post7"')
    assert "CUDA's major version differs" in same.cause


def test_a_torch_without_cuda_is_replaced_by_the_build_of_its_index_on_every_system() -> None:
    # what Windows gets from the package index is torch 2.1.0+cpu again
    for more in ("Windows 11", ""):
        answer = first(*banner("2.1.0+cu121", "2.1.0+cpu"), more)
        assert '"torch==2.1.0+cu121" --index-url INDEX' in answer.help[0]
        assert answer.code == "FA601" and "/cu121" in said(answer)


def test_another_python_matters_only_where_xformers_has_a_file_for_each() -> None:
    old = first(*banner("2.0.1+cu118", "2.1.0+cu118", runs="3.11.4"))
    assert "second mismatch" in said(old)
    new = first(*banner("2.10.0+cu128", "2.11.0+cu130", runs="3.13.9"))
    assert "plays no part" in said(new) and "xformers>=0.0.35" in new.help[0]


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ("building flash-attn", "--no-build-isolation flash-attn"),
        ("ERROR: Failed building wheel for torch-scatter", "--no-build-isolation torch-scatter"),
        ("pip install -e . of vllm", "--no-build-isolation -e ."),
        ("pip install git+https://github.com/NVIDIA/apex", "git+https://github.com/NVIDIA/apex"),
        ("mmcv compiled on a login node", "FORCE_CUDA=1 MAX_JOBS="),
    ],
)
def test_the_package_that_the_text_builds_stands_in_the_command(told: str, wanted: str) -> None:
    lines = [line.format(number) for line, number in zip(DETECTED, ("11.8", "12.4"), strict=True)]
    answer = first(*lines, told)
    assert any(wanted in text for text in answer.help)
    assert "PACKAGE" not in said(answer)


def test_the_projects_own_wheels_need_no_nvcc() -> None:
    lines = [line.format(number) for line, number in zip(DETECTED, ("10.1", "12.1"), strict=True)]
    scatter = first(*lines, "ERROR: Failed building wheel for torch-scatter")
    assert "data.pyg.org/whl/torch-X.Y.0+cu121.html" in said(scatter)
    known = first(*lines, "Failed building wheel for torch-scatter", "torch 2.3.1+cu121")
    assert "data.pyg.org/whl/torch-2.3.0+cu121.html" in said(known)
    assert "fa-forensics wheels" in said(first(*lines, "building flash-attn"))


def test_two_packages_that_are_installed_leave_it_open_which_is_built() -> None:
    lines = [line.format(number) for line, number in zip(DETECTED, ("11.8", "12.4"), strict=True)]
    answer = first(*lines, "pip install flash-attn", "pip install causal-conv1d")
    assert "PACKAGE is what was being installed" in said(answer)


def test_cuda_path_counts_behind_cuda_home() -> None:
    lines = [line.format(number) for line, number in zip(DETECTED, ("12.3", "11.8"), strict=True)]
    answer = first(*lines)
    assert "$CUDA_PATH" in answer.help[0] and "then CUDA_PATH" in said(answer)


def test_a_library_of_the_toolkit_is_brought_to_the_linker() -> None:
    answer = first(
        "c++ cpu_adam.o -shared -lcurand -o cpu_adam.so",
        "FAILED: cpu_adam.so",
        "/usr/bin/ld: cannot find -lcurand",
        "torch 2.3.1+cu121",
    )
    assert "sudo apt-get install libcurand-dev-12-1" in answer.help
    assert any(text.startswith("export LIBRARY_PATH=") for text in answer.help)
    assert answer.help[-1] == "rm -rf ~/.cache/torch_extensions/*/cpu_adam"


def test_an_unknown_extension_of_an_old_torch_is_compiled_without_its_old_build_directory() -> None:
    answer = first(
        "    from frnn import _C",
        "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file",
        "torch 2.2.0+cu118",
    )
    assert any(text.startswith("rm -rf build") for text in answer.help)
    assert "installed again as it is" in said(answer)


def test_a_source_file_is_not_what_pip_installs() -> None:
    answer = first(
        "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)",
        "/x/flash-attention/hopper/instantiations/flash_fwd_hdimall_fp16_sm90.cu",
    )
    assert not any(text.endswith(".cu") for text in answer.help)
