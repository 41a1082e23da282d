"""``why`` on logs of builds, banners that hide an error, crashes and Windows."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.why import explain


def test_a_library_that_the_linker_lacks_is_the_cause_of_the_missing_file() -> None:
    answer = first(
        "[rank2]: /usr/bin/ld: cannot find -lcurand: No such file or directory",
        "[rank2]: collect2: error: ld returned 1 exit status",
        "[rank2]: ninja: build stopped: subcommand failed.",
        "[rank0]: ImportError: /root/.cache/torch_extensions/py311_cu124/cpu_adam/cpu_adam.so: "
        "cannot open shared object file: No such file or directory",
    )
    assert (answer.kind, answer.code, answer.owner) == (
        "missing-library", "FA883", "libcurand.so",
    )  # fmt: skip
    assert "never made" in answer.cause and "CUDA_HOME" in said(answer)


def test_a_header_that_the_compiler_lacks() -> None:
    answer = first("csrc/x.cu:1:10: fatal error: cusparse.h: No such file or directory")
    assert answer.code == "FA883" and "cusparse.h" in answer.cause
    python = first("src/x.c:1:10: fatal error: Python.h: No such file or directory")
    assert "python3-dev" in said(python)


@pytest.mark.parametrize(
    "lines",
    [
        ("The detected CUDA version (11.8) mismatches the version that was used to compile",
         "PyTorch (12.1). Please make sure to use the same CUDA versions."),
        ("The detected CUDA version (11.8) mismatches the version that was used to compile "
         "PyTorch (12.1).",),
    ],
)  # fmt: skip
def test_a_toolkit_of_another_major_version(lines: tuple[str, ...]) -> None:
    answer = first("RuntimeError:", *lines)
    assert (answer.kind, answer.code, answer.owner) == ("wrong-torch", "FA884", "nvcc")
    assert "11.8" in answer.cause and "12.1" in answer.cause
    assert "CUDA_HOME=/usr/local/cuda-12.1" in said(answer)


def test_torch_that_a_build_does_not_find_is_installed_all_the_same() -> None:
    answer = first(
        "Collecting flash-attn",
        "  x Getting requirements to build wheel did not run successfully.",
        '      File "<string>", line 22, in <module>',
        "  ModuleNotFoundError: No module named 'torch'",
        "note: This error originates from a subprocess",
    )
    assert (answer.kind, answer.code, answer.owner) == ("wrong-torch", "FA884", "flash-attn")
    assert "--no-build-isolation flash-attn" in answer.help[1]


def test_the_torch_of_an_isolated_build_is_the_proof() -> None:
    answer = first(
        "  Installing build dependencies: started",
        "  Running command pip subprocess to install build dependencies",
        "  Collecting torch>=1.5",
        "    Using cached torch-1.11.0-cp37-cp37m-manylinux1_x86_64.whl (750.6 MB)",
        "  Installing build dependencies: finished with status 'done'",
        "  Building wheel for torch-discounted-cumsum (pyproject.toml): started",
        "  Successfully built torch-discounted-cumsum",
        "PyTorch version: 1.8.1",
    )
    assert (answer.kind, answer.code) == ("wrong-torch", "FA884")
    assert "1.11.0" in answer.cause and "1.8.1" in answer.cause
    assert answer.direction == "file-newer" and "--no-build-isolation" in answer.help[0]


def test_a_compiler_that_was_killed_is_memory() -> None:
    answer = first("c++: fatal error: Killed signal terminated program cc1plus")
    assert answer.code == "FA885" and "MAX_JOBS" in answer.help[0]


WHEEL = (
    "ERROR: flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-{} is not a supported wheel on "
    "this platform."
)


def test_a_wheel_that_pip_refuses_is_read_by_its_name() -> None:
    answer = first(WHEEL.format("linux_x86_64.whl"))
    assert (answer.kind, answer.code, answer.owner) == ("python-abi", "FA887", "flash-attn")
    assert answer.confidence == "medium"
    assert "Python 3.10 on linux_x86_64" in answer.cause and "Renaming" in answer.cause


@pytest.mark.parametrize(
    ("platform", "told", "kind", "words"),
    [
        ("linux_x86_64.whl", "Python version: 3.11.4", "python-abi", "here is Python 3.11"),
        ("linux_aarch64.whl", "Python version: 3.10.4", "wrong-machine", "it is for aarch64"),
        ("win_amd64.whl", "Python version: 3.10.4", "wrong-machine", "it is for Windows"),
        ("manylinux_2_35_x86_64.whl", "Python version: 3.10.4\nLibc version: glibc-2.31",
         "glibc", "it asks for glibc 2.35"),
    ],
)  # fmt: skip
def test_a_refused_wheel_is_held_against_the_python_that_is_told(
    platform: str, told: str, kind: str, words: str
) -> None:
    answer = first(WHEEL.format(platform), told)
    assert (answer.kind, answer.confidence) == (kind, "high")
    assert words in answer.cause


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("OSError: CUDA_HOME environment variable is not set.", "nvcc"),
        ("RuntimeError: FlashAttention is only supported on CUDA 11.7 and above.", "flash-attn"),
        (
            "RuntimeError: The current installed version of g++ (13.2.0) is greater than the "
            "maximum required version by CUDA 12.1. Please make sure to use an adequate version of "
            "g++ (>=6.0.0, <13.0).",
            "gcc",
        ),
        ("#error -- unsupported GNU version! gcc versions later than 12 are not supported!", "gcc"),
    ],
)
def test_what_a_build_needs_is_named(line: str, owner: str) -> None:
    answer = first(line)
    assert (answer.code, answer.owner, answer.confidence) == ("FA883", owner, "high")


def test_the_banner_of_xformers_is_read_and_a_patch_release_of_python_is_harmless() -> None:
    answer = first(
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
        "    PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.3.0+cu121)",
        "    Python  3.10.13 (you have 3.10.6)",
    )
    assert (answer.kind, answer.owner, answer.direction) == (
        "wrong-torch", "xformers", "file-older",
    )  # fmt: skip
    assert '"xformers==0.0.26.post1"' in answer.help[0] and '"torch==2.1.0+cu121"' in answer.help[1]
    assert "patch release plays no part" in said(answer)


def test_a_banner_whose_versions_agree_is_not_explained_away() -> None:
    answer = first(
        "xFormers can't load C++/CUDA extensions. xFormers was built for:",
        "    PyTorch 2.5.1+cu124 with CUDA 1204 (you have 2.5.1+cu124)",
        "    Python  3.12.7 (you have 3.12.7)",
    )
    assert answer.confidence == "low" and "XFORMERS_MORE_DETAILS=1" in answer.help[0]


def test_another_python_is_told_where_torch_agrees() -> None:
    answer = first(
        "xFormers can't load C++/CUDA extensions. xFormers was built for:",
        "    PyTorch 2.8.0 with CUDA 1209 (you have 2.8.0)",
        "    Python  3.12.3 (you have 3.10.12)",
    )
    assert (answer.kind, answer.code, answer.confidence) == ("python-abi", "FA401", "medium")


def test_variants_of_kernels_are_placed_around_the_torch_here() -> None:
    text = (
        "FileNotFoundError: Cannot find a build variant for this system in kernels-community/x. "
        "Available variants: torch27-cxx11-cu126-x86_64-linux, torch28-cxx11-cu128-x86_64-linux"
    )
    newer = first(text, "PyTorch version: 2.9.1+cu128")
    assert (newer.kind, newer.code, newer.direction) == ("symbol-drift", "FA887", "file-older")
    older = first(text, "PyTorch version: 2.6.0+cu124")
    assert older.direction == "file-newer" and "2.7, 2.8" in older.cause


def test_a_crash_without_a_word_of_the_loader_is_of_low_confidence() -> None:
    answer = first("Segmentation fault (core dumped)")
    assert (answer.code, answer.confidence) == ("FA303", "low")
    assert "does not mean that a file fits" in said(answer)


def test_an_exception_that_nobody_caught_is_quoted() -> None:
    answers = explain(
        ["terminate called after throwing an instance of 'c10::Error'\n  what():  bad thing\n"
         "Aborted (core dumped)"], None, where="elsewhere",
    ).answers  # fmt: skip
    assert "bad thing" in answers[0].cause and answers[0].confidence == "low"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ImportError: DLL load failed while importing flash_attn_2_cuda: The specified procedure "
         "could not be found.", "undefined symbol on Linux"),
        ("OSError: [WinError 126] The specified module could not be found. Error loading "
         '"C:\\x\\torch\\lib\\fbgemm.dll"', "is missing"),
        ("ImportError: DLL load failed: 找不到指定的模块。", "is missing"),
    ],
)  # fmt: skip
def test_windows_is_recognised_and_declined(line: str, words: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.code) == ("windows", "FA889")
    assert words in answer.cause and "cannot look into" in answer.cause


@pytest.mark.parametrize(
    "line", ["", "it is broken", "Traceback (most recent call last):", "\x00\x01"]
)
def test_nothing_is_guessed(line: str) -> None:
    answer = first(line or " ")
    assert (answer.kind, answer.code, answer.owner) == ("unrecognised", "FA899", None)
    assert "undefined symbol" in answer.cause


def test_toolkits_of_one_major_version_are_refused_for_setuptools_or_an_old_torch() -> None:
    """pytorch pull request 97602: Version has .major since setuptools 49.4.0."""
    error = (
        "RuntimeError:\nThe detected CUDA version (%s) mismatches the version that was used to "
        "compile\nPyTorch (11.7). Please make sure to use the same CUDA versions.\npytorch 1.13.1"
    )
    minor = first(error % "11.8")
    assert "49.4.0" in said(minor) and "Within one major version" not in minor.cause
    assert any("cuda-11.7" in command for command in minor.help)
    assert "49.4.0" not in said(first(error % "12.1"))
