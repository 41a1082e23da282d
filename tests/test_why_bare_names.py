"""``why`` on functions of torch that a text names without their parameters.

The signatures and their releases are those of ``nm -D`` over torch's wheels:
``c10_cuda_check_implementation`` took its line as an int up to 2.9 and as unsigned from 2.10 on,
``torch::Library::_def`` took c10's Tag up to 2.11 and headeronly's from 2.12 on.
"""

from __future__ import annotations

from support.asking import first, said

CHECK = "undefined symbol: c10::cuda::c10_cuda_check_implementation"
DEF = "ImportError: common_ops.abi3.so: undefined symbol: _ZN5torch7Library4_defE..."


def test_the_torch_that_a_wheel_was_built_for_tells_which_form_is_missing() -> None:
    answer = first(f"LMCache wheels are built against PyTorch <=2.8.0\n({CHECK})", "torch 2.10")
    assert (answer.kind, answer.direction) == ("symbol-drift", "file-older")
    assert (
        "int, bool) (torch 2.0.0" in answer.cause
        and "for a torch between releases" not in answer.cause
    )
    assert any("lmcache" in command for command in answer.help)


def test_a_package_that_was_built_for_the_torch_of_the_text_is_not_exchanged() -> None:
    """vllm 0.17.1 asks for torch 2.10, and 0.4.3 for 2.3.0."""
    answer = first(f"{CHECK}\nvllm 0.17.1, torch 2.10.0")
    assert not any("install" in command and "vllm" in command for command in answer.help)
    assert "another package's" in said(answer)


def test_the_forms_that_a_package_is_too_young_for_are_none_of_its() -> None:
    answer = first(DEF, "torch 2.11.0, sglang-kernel 0.4.6.post1")
    assert answer.direction == "file-newer"
    assert "2.12.0 and later" in answer.cause


def test_a_package_goes_by_the_name_that_the_text_has_it_by() -> None:
    named = first(DEF, "torch 2.11.0, sglang-kernel 0.4.6.post1")
    assert "sgl-kernel " not in said(named)
    unnamed = first(DEF)
    assert not any(" install " in command for command in unnamed.help)
    assert any("sgl-kernel|sglang-kernel" in command for command in unnamed.help)


def test_a_name_on_the_line_below_apples_words_is_read() -> None:
    """Apple's loader puts the name behind the colon, and people break the line there."""
    text = (
        "RuntimeError: Could not load libtorchcodec. Likely causes:\n"
        "OSError: dlopen(.../libtorchcodec_core8.dylib): Symbol not found:\n"
        "  _torch_dtype_float4_e2m1fn_x2\n  Expected in: .../torch/lib/libtorch_cpu.dylib"
    )
    answer = first(text, "torch 2.10.0, torchcodec 0.11.0, macOS")
    assert (answer.symbol, answer.direction) == ("torch_dtype_float4_e2m1fn_x2", "file-newer")
    assert any("torchcodec==0.10" in command for command in answer.help)


def test_mmdet_of_2_takes_mmcv_full_whose_wheel_alone_is_taken() -> None:
    """mmdet's table of versions: mmcv-full 1.x up to 2.28, mmcv 2 from 3.0 on."""
    file = "/x/lib/python3.8/site-packages/mmcv/_ext.cpython-38-x86_64-linux-gnu.so"
    text = f"ImportError: {file}: undefined symbol: _ZTIN3c1021AutogradMetaInterfaceE"
    answer = first(text, "torch 1.13.1, mmdet 2.7.0")
    built = [command for command in answer.help if "mmcv" in command and "install" in command]
    assert built and all("mmcv-full" in command for command in built)


def test_error_127_of_windows_in_other_words_is_a_missing_function() -> None:
    text = (
        "ImportError: DLL load failed while importing _C: The specified program could not be found."
    )
    assert "undefined symbol on Linux" in first(text, "torch 2.2.2, Windows").cause
