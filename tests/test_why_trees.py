"""``why`` on files that pip did not put where they lie: what is removed, built again, and where.

Facts of packages: pip download of the sources of exllamav2 and auto-gptq, AutoGPTQ's issue 500,
the modules of flash-attn's setup.py at v1.0.9, k2's installation pages.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.rules.remedy import row_of
from fa_forensics.why.ways.trees import cmake_tree, jit_directory

SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"
SITE = "/usr/local/lib/python3.11/dist-packages"


def missing(file: str, symbol: str = SET_DEVICE) -> str:
    return f"ImportError: {file}: undefined symbol: {symbol}"


@pytest.mark.parametrize(
    ("file", "directory"),
    [
        ("/a/fused_kernels/build/scaled_softmax_cuda.so", "/a/fused_kernels/build"),
        ("/home/u/.cache/torch_extensions/py310_cu121/upfirdn2d/upfirdn2d.so",
         "/home/u/.cache/torch_extensions/py310_cu121/upfirdn2d"),
        ("~/.cache/torch_extensions/fused/fused.so", "~/.cache/torch_extensions/fused"),
        ("/a/build/libfoo.so", ""),
        ("/a/build/_C.cpython-38-x86_64-linux-gnu.so", ""),
        (".../build/foo.so", ""),
        ("build/foo.so", ""),
        ("/x/site-packages/q/build/foo.so", ""),
    ],
)  # fmt: skip
def test_the_directory_that_the_start_of_a_program_fills(file: str, directory: str) -> None:
    assert jit_directory(file) == directory


def test_a_kernel_compiled_at_the_start_is_removed_and_not_installed() -> None:
    file = "/a/Megatron/megatron/fused_kernels/build/scaled_softmax_cuda.so"
    for versions in ("", "torch version: 2.0.1+cu118"):
        answer = first(missing(file), versions)
        assert "rm -rf /a/Megatron/megatron/fused_kernels/build" in answer.help
        assert not [text for text in answer.help if " install " in text and '"torch' not in text]
        assert "next start" in said(answer) and "Where pip compiled" not in said(answer)


def test_a_library_in_a_checkouts_build_directory_is_built_there_again() -> None:
    row = row_of("k2")
    assert cmake_tree("/s/k2-master-2/b3/lib/libk2context.so", row) == (
        "/s/k2-master-2", "/s/k2-master-2/b3",
    )  # fmt: skip
    for installed in (
        "/opt/conda/envs/k2/lib/libk2context.so",
        "/x/lib/python3.8/site-packages/k2/lib64/libk2context.so",
        "/usr/lib/k2/x/libk2context.so",
    ):
        assert cmake_tree(installed, row) == ("", "")
    grow = "_ZN3c1015SmallVectorBaseIjE8grow_podEPvmm"
    answer = first(missing("/s/k2-master-2/b3/lib/libk2context.so", grow), "PyTorch 1.10.0+cu102")
    assert answer.direction == "file-newer"
    assert "cmake -S /s/k2-master-2 -B /s/k2-master-2/b3 " in answer.help[0]


@pytest.mark.parametrize(
    ("file", "where"),
    [
        ("/home/u/detectron2/detectron2/_C.cpython-38-x86_64-linux-gnu.so",
         "(most likely /home/u/detectron2)"),
        ("/home/u/DCNv2/_ext.cpython-38-x86_64-linux-gnu.so", "(/home/u/DCNv2 or one above it)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("versions", ["", "torch 2.0.1+cu118"])
def test_a_command_that_removes_modules_says_where_it_belongs(
    file: str, where: str, versions: str
) -> None:
    answer = first(missing(file), versions)
    assert any(" -delete " in text for text in answer.help)
    assert where in said(answer)


def test_a_package_whose_sources_the_index_lacks_is_built_from_its_repository() -> None:
    """pip download --no-binary exllamav2 takes 0.0.4; auto-gptq's sources do not build."""
    for module in ("exllamav2_ext", "exllama_kernels"):
        answer = first(missing(f"{SITE}/{module}.cpython-311-x86_64-linux-gnu.so"))
        assert any("git+https://github.com/" in text for text in answer.help)
        assert "--no-binary" not in said(answer)


def test_flash_attns_first_module_is_of_its_first_releases() -> None:
    file = "/x/lib/python3.8/site-packages/flash_attn_cuda.cpython-38-x86_64-linux-gnu.so"
    allocator = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
    for versions in ("", "torch 1.13.1+cu117"):
        answer = first(missing(file, allocator), versions)
        assert any(text.endswith("--no-binary flash-attn 'flash-attn<2'") for text in answer.help)
        assert "fa-forensics wheels" not in answer.help and ".whl" not in said(answer)
    pinned = first(missing(file, allocator), "torch 1.13.1+cu117", "flash-attn==1.0.4")
    assert any(text.endswith("--no-binary flash-attn flash-attn==1.0.4") for text in pinned.help)


THP = "THPVariableClass"


@pytest.mark.parametrize(
    "versions", ["", "DCNv2 compiled with torch 1.4 (cu101); it runs with a newer torch"]
)
def test_what_something_was_compiled_with_is_not_the_torch_that_runs(versions: str) -> None:
    """Builds of torch 1.4 list no library of torch (release notes of 1.5.0)."""
    answer = first(missing("/home/b/DCNv2/_ext.cpython-38-x86_64-linux-gnu.so", THP), versions)
    assert (answer.code, answer.direction) == ("FA607", "file-older")
    assert "torch 1.4 or before" in answer.cause and "1.4.0 exports" not in answer.cause
    assert ("the text says" in answer.cause) == bool(versions)
    assert " -delete " in answer.help[0]


def test_a_python_that_torch_14_has_no_wheel_for_is_no_old_build() -> None:
    answer = first(missing("/home/b/DCNv2/_ext.cpython-311-x86_64-linux-gnu.so", THP))
    assert answer.direction != "file-older"


@pytest.mark.parametrize(
    ("torch", "has"), [("2.2.2", True), ("2.4.0", False)]
)  # fmt: skip
def test_the_torch_of_a_build_is_compared_with_the_names_life(torch: str, has: bool) -> None:
    """SetDevice(int) is in 2.1 and 2.2."""
    file = "/x/lib/python3.10/site-packages/q/_C.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file), f"q was compiled with torch {torch}")
    assert ("which has the name" in said(answer)) == has
    assert ("no such name" in said(answer)) != has


def test_a_lowest_release_that_is_asked_for_leaves_out_the_older_side() -> None:
    file = "/x/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file, "_ZN3c104cuda9SetDeviceEa"), "requirements (torch>=2.4.0)")
    assert answer.direction == "file-older"


def test_the_release_of_a_package_with_wheels_for_an_old_torch() -> None:
    """AutoGPTQ's issue 454: 0.4.2 is the one for torch 2.0."""
    file = "/x/dist-packages/exllama_kernels.cpython-310-x86_64-linux-gnu.so"
    answer = first(missing(file), "torch 2.0.1+cu118")
    assert any("auto-gptq==0.4.2 --extra-index-url" in text for text in answer.help)
    assert answer.direction == "file-newer" and "Where pip compiled" not in said(answer)


def test_a_projects_wheels_are_told_for_torches_that_have_some() -> None:
    """detectron2's page has torch 1.8 to 1.10; k2's has one page for each release since 1.6."""
    old = "/x/site-packages/detectron2/_C.cpython-39-x86_64-linux-gnu.so"
    assert "dl.fbaipublicfiles" not in said(first(missing(old), "torch 2.0.1+cu118"))
    page = "pre-compiled-cuda-wheels-linux/2.0.1.html"
    assert page in said(first(missing("/x/site-packages/_k2.cpython-39.so"), "torch 2.0.1+cu118"))


def test_a_report_of_a_day_asks_for_no_torch_of_years_later() -> None:
    """torch 2.0.0 is of March 2023, 2.1.0 of October."""
    file = "/x/lib/python3.8/site-packages/flash_attn_cuda.cpython-38-x86_64-linux-gnu.so"
    allocator = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
    answer = first(missing(file, allocator), "Python 3.8, April 2023")
    assert 'python -m pip install "torch>=2.0.0,<2.1.0"' in answer.help


def test_another_module_that_is_not_built_is_told_of() -> None:
    file = "/d/detectron2/detectron2/_C.cpython-310-x86_64-linux-gnu.so"
    text = "Cannot import 'detrex._C', therefore 'MultiScaleDeformableAttention' is not available"
    assert "detrex has a compiled part of its own" in said(first(text, missing(file)))
    assert "part of its own" not in said(first(missing(file)))


def test_the_torch_of_an_image_can_be_a_pre_release() -> None:
    lines = (
        '  File "/usr/local/lib/python3.8/dist-packages/mmcv/utils/ext_loader.py", line 13, in x',
        f"undefined symbol: {SET_DEVICE}",
        "PyTorch installed by docker image, torch version: 2.1, mmcv version: 2.1.0",
    )
    answer = first(*lines)
    assert answer.code == "FA607" and "a0 in torch.__version__" in said(answer)
    assert any(text.startswith("MMCV_WITH_OPS=1") for text in answer.help)
