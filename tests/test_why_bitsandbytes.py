"""Texts of bitsandbytes, which looks for its compiled libraries by their names itself."""

from __future__ import annotations

from support.asking import first, said

_CPU = "OSError: /c/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cpu.so: cannot open "
_CPU += "shared object file: No such file or directory"


def test_a_name_that_the_variable_put_together_is_told_as_such() -> None:
    """bitsandbytes 0.43.0, cextension.py: the number goes behind the variant's name."""
    answer = first(
        "Could not find the bitsandbytes CUDA binary at PosixPath('/u/bitsandbytes/bitsandbytes/"
        "libbitsandbytes_cuda118_nocublaslt121.so')",
        "Could not load bitsandbytes native library: /u/bitsandbytes/bitsandbytes/"
        "libbitsandbytes_cpu.so: cannot open shared object file: No such file or directory",
    )
    assert answer.owner == "bitsandbytes" and answer.code == "FA202"
    assert "libbitsandbytes_cuda121_nocublaslt.so" in answer.cause
    assert any("unset BNB_CUDA_VERSION" in command for command in answer.help)


def test_a_build_that_the_text_shows_is_not_called_none() -> None:
    lines = (
        "Could not find the bitsandbytes CUDA binary at PosixPath('/u/bitsandbytes/bitsandbytes/"
        "libbitsandbytes_cuda121.so')",
        "Could not load bitsandbytes native library: /u/bitsandbytes/bitsandbytes/"
        "libbitsandbytes_cpu.so: cannot open shared object file: No such file or directory",
    )
    assert "without compiling" in first(*lines).cause
    built = first(*lines, "cmake -DCOMPUTE_BACKEND=cuda -S . && make")
    assert "without compiling" not in said(built) and "libbitsandbytes_cuda121.so" in built.cause


def test_the_cpu_library_is_only_what_it_falls_back_to() -> None:
    plain = first(_CPU)
    assert plain.owner == "bitsandbytes" and "torch.version.hip" in said(plain)
    rocm = first(_CPU, "I have libbitsandbytes_hip.so there")
    assert "no build for ROCm" in rocm.cause
    assert not any("--upgrade" in command for command in rocm.help)


def test_a_library_that_prose_calls_missing_is_recognised() -> None:
    answer = first(
        "the loader searches for a non-existent .so file (libbitsandbytes_rocm83.so instead of "
        "libbitsandbytes_rocm713.so)",
        "torch 2.12.0a0+rocm7.13.0",
    )
    assert answer.owner == "bitsandbytes" and "83 of ROCm 7.13" in answer.cause
    other = first("bitsandbytes: libbitsandbytes_cuda125.so does not exist in the wheel")
    assert other.owner == "bitsandbytes"


def test_a_kernel_that_its_hip_sources_lack_is_not_left_out_by_hipify() -> None:
    answer = first(
        "Could not load bitsandbytes native library: /v/lib/python3.10/site-packages/bitsandbytes/"
        "libbitsandbytes_rocm62.so: undefined symbol: "
        "_Z36__device_stub__kOptimizer32bit1StateI12hip_bfloat16Li2EEvPT_S2_PfS3_ffffffiffbi",
        "built with -DCOMPUTE_BACKEND=hip, ROCm 6.2",
    )
    assert "hipif" not in said(answer) and "kernels.hip" in answer.cause
    assert not any(command.startswith("rm -rf build") for command in answer.help)
    assert "-DCOMPUTE_BACKEND=hip" in said(answer)


def test_the_part_of_transformer_engine_is_told_by_its_message() -> None:
    answer = first(
        "FileNotFoundError: Could not find shared object file for Transformer Engine torch lib."
    )
    assert answer.owner == "transformer-engine" and answer.code == "FA880"
    assert any("transformer-engine[pytorch]==" in command for command in answer.help)
    assert "PACKAGE" not in said(answer)


def test_the_number_of_a_rocm_library_is_torchs() -> None:
    """bitsandbytes' pull request 1878: built by hipconfig's ROCm, looked for by torch's."""
    at = "/u/bitsandbytes/bitsandbytes/libbitsandbytes_"
    lost = "cannot open shared object file: No such file or directory"
    pasted = (
        f"Could not find the bitsandbytes ROCm binary at PosixPath('{at}rocm63.so')",
        f"Could not load bitsandbytes native library: {at}cpu.so: {lost}",
    )
    for lines in (
        pasted,
        (*pasted, "torch+rocm6.3, ROCm 6.4.1"),
        (f"OSError: {at}rocm63.so: {lost}",),
    ):
        answer = first(*lines)
        assert (answer.owner, answer.code) == ("bitsandbytes", "FA202")
        assert "torch.version.hip" in answer.cause and "no build for ROCm" not in answer.cause
        assert "BNB_ROCM_VERSION" in said(answer) and "-DROCM_VERSION=63" in said(answer)
        assert "cuda" not in "\n".join(answer.help)


def test_the_form_that_names_the_file_had_found_cuda() -> None:
    """bitsandbytes/cextension.py of 0.46.0: an error, and no warning."""
    site = "/usr/local/lib/python3.12/dist-packages/bitsandbytes"
    answer = first(
        f"RuntimeError: Configured CUDA binary not found at {site}/libbitsandbytes_cuda129.so"
    )
    assert (answer.code, answer.owner) == ("FA202", "bitsandbytes")
    assert "CUDA 12.9" in answer.cause and "CPU library" not in answer.cause
    assert "did not find" not in answer.cause and "BNB_CUDA_VERSION" in said(answer)
    later = first(
        f"RuntimeError: Configured CUDA binary not found at {site}/libbitsandbytes_cuda130.so"
    )
    assert "CUDA 13.0" in later.cause


def test_the_warning_that_names_the_file_had_found_cuda_too() -> None:
    """cextension.py of 0.43: a warning, after which the library for the CPU is loaded."""
    answer = first(
        "Could not find the bitsandbytes CUDA binary at PosixPath('/usr/lib/python3/dist-packages/"
        "bitsandbytes/libbitsandbytes_cuda126.so')"
    )
    assert "CUDA 12.6" in answer.cause and "did not find the CUDA" not in answer.cause


def test_a_library_that_is_missing_on_a_jetson_is_for_another_processor() -> None:
    """Compute capability 8.7 is Jetson Orin's alone; wheels up to 0.42 hold x86-64 libraries."""
    answer = first(
        "CUDA SETUP: Highest compute capability among GPUs detected: 8.7",
        "CUDA SETUP: Detected CUDA version 114",
        "/usr/local/lib/python3.8/dist-packages/bitsandbytes/libbitsandbytes_cuda114.so: cannot "
        "open shared object file: No such file or directory",
    )
    assert answer.kind == "wrong-machine" and "Jetson Orin" in answer.cause
    assert answer.help[0].startswith("uname -m; file /usr/local/lib/python3.8/")
    assert not any("--upgrade" in command for command in answer.help)


def test_another_release_does_not_bring_the_library_of_torchs_cuda() -> None:
    answer = first(
        "CUDA SETUP: Loading binary /u/lib/python3.8/dist-packages/bitsandbytes/"
        "libbitsandbytes_cuda118.so...",
        "libcusparse.so.11: cannot open shared object file: No such file or directory",
        "torch cu118, CUDA 12.2 system, Python 3.8",
    )
    assert not any("--upgrade" in command for command in answer.help)
    assert any(c.endswith("pip install nvidia-cusparse-cu11") for c in answer.help)
    assert "CUDA 12.2 of the system" in answer.cause and "/cu128" not in said(answer)
