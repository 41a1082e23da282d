"""``why`` on GPU and driver errors whose program only its words or an option tell.

Words of CTranslate2: src/cuda/utils.h; its CHANGELOG: wheels of 4.0.0 and later are for CUDA 12.
bitsandbytes on Windows: the DLLs and the metadata of its wheels.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

OLD_DRIVER = (
    "RuntimeError: CUDA failed with error CUDA driver version is insufficient for CUDA runtime "
    "version"
)
NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


@pytest.mark.parametrize("more", ["", "torch 2.1.1"])
def test_ctranslate2s_words_are_not_torchs(more: str) -> None:
    answer = first(OLD_DRIVER, "Driver Version: 515.105.01", "CUDA Version: 11.7", more)
    assert "CTranslate2" in answer.cause and "525.60.13" in answer.cause
    assert any('"ctranslate2==3.24.0"' in command for command in answer.help)
    assert not any('"torch' in command for command in answer.help)


def test_a_new_driver_is_not_too_old_for_it() -> None:
    answer = first(OLD_DRIVER, "Driver Version: 550.54.14", "CUDA Version: 12.4")
    assert "ctranslate2" not in " ".join(answer.help)


def test_an_option_tells_whose_kernel_it_was() -> None:
    answer = first(NO_KERNEL, "Card is a 1660S", " --medvram --xformers")
    assert answer.owner == "xformers" and "7.5" in answer.cause
    assert "Without --xformers" in said(answer)


def test_an_option_says_nothing_of_a_gpu_that_torch_may_lack() -> None:
    answer = first(NO_KERNEL, "GTX 960M", "--xformers")
    assert answer.owner != "xformers"


@pytest.mark.parametrize(("torch", "wanted"), [("", ""), ("1.13.1", "==0.43.1"),
                                               ("2.1.2", "==0.45.5")])  # fmt: skip
def test_bitsandbytes_on_windows_leaves_torch_alone(torch: str, wanted: str) -> None:
    answer = first(
        "Error no kernel image is available for execution on the device at line 167 in file "
        r"D:\ai\tool\bitsandbytes\csrc\ops.cu",
        "GTX 1070 Ti, Windows 10",
        f"torch {torch}" if torch else "",
    )
    install = next(command for command in answer.help if " install " in command)
    assert "--no-deps" in install and install.endswith(f"bitsandbytes{wanted}")
    assert "whl/cu118" in said(answer) and "8-bit" in said(answer)


def test_a_relative_name_is_never_typed_behind_import() -> None:
    answer = first(
        "    from .kernels import rasterize_triangles_cpp",
        "ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory",
    )
    assert not any("import ." in command for command in answer.help)
    assert "most likely imported before torch" in answer.cause
