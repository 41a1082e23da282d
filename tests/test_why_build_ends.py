"""``why`` on builds that a program of the toolkit, setup.py or pip ended by itself."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.atlas.headers import Headers
from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.why.texts.builds.pip_text import python_wheels
from fa_forensics.why.torch_names.history import order_key


@pytest.mark.parametrize(
    ("lines", "owner", "least"),
    [
        (("RuntimeError: causal_conv1d is only supported on CUDA 11.6 and above.  Note: make sure "
          "nvcc has a supported version by running nvcc -V.", "metadata-generation-failed"),
         "causal-conv1d", "11.6"),
        (('  File "setup.py", line 110, in <module>',
          '    raise RuntimeError("FlashAttention is only supported on CUDA 11")'),
         "flash-attn", "11"),
        (("FlashAttention is only supported on CUDA 11.7 and above.",), "flash-attn", "11.7"),
        (("RuntimeError: FlashAttention-3 is only supported on CUDA 12.3 and above",),
         "flash-attn-3", "12.3"),
        (("RuntimeError: magi_attention is only supported on CUDA 12.3 and above",
          "[end of output] egg_info did not run successfully"), "magi_attention", "12.3"),
    ],
)  # fmt: skip
def test_a_setup_that_asked_nvcc_for_its_release(
    lines: tuple[str, ...], owner: str, least: str
) -> None:
    answer = first(*lines)
    assert (answer.code, answer.owner) == ("FA883", owner)
    assert f"CUDA {least} or newer" in answer.cause and "nvcc that was found is older" in said(
        answer
    )
    assert "driver's" in said(answer)


def test_a_release_that_only_some_gpus_need() -> None:
    answer = first(
        "RuntimeError: CUDA 12.4 or higher is required for compute capability 8.9.",
        "PyTorch version: 2.5.1+cu124",
    )
    assert "For compute capability 8.9" in answer.cause and "CUDA 12.4" in answer.cause
    assert "CUDA_HOME=/usr/local/cuda-12.4" in said(answer) and "without 8.9" in said(answer)


def test_the_commands_are_those_of_the_system() -> None:
    answer = first(
        "C:\\Users\\u\\AppData\\Local\\Temp\\pip-install-x\\flash-attn_1\\setup.py: RuntimeError: "
        "FlashAttention is only supported on CUDA 11.7 and above. nvcc -V",
        "PyTorch version: 2.5.1+cu124",
    )
    assert "where nvcc" in said(answer) and "/usr/" not in said(answer)


def test_a_path_of_windows_anywhere_in_the_log_tells_the_system() -> None:
    answer = first(
        "Collecting flash_attn (from -r C:\\AI\\requirements.txt (line 16))",
        "  Getting requirements to build wheel ... error",
        "ModuleNotFoundError: No module named 'torch'",
    )
    assert "MAX_JOBS=" not in said(answer) and "Visual Studio" in said(answer)


def test_the_same_words_at_run_time_are_no_build() -> None:
    text = "RuntimeError: Green Context is only supported on CUDA 12.8+!"
    assert first(text).owner != "nvcc" and "nvcc" not in said(first(text))


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("THCState_getCurrentStream", "1.5"),
        ("THFloatBlas_gemv", "1.7"),
        ("THDoubleBlas_gemm", "1.7"),
        ("THCudaBlas_Sgemv", "1.6"),
        ("THCCeilDiv", "1.11"),
        ("THFloatTensor_data", "1.11"),
        ("THArgCheck", "1.11"),
    ],
)
def test_names_of_the_c_part_of_torch(name: str, release: str) -> None:
    assert not Headers.open().has(name)
    for line in (
        f"\u2018{name}\u2019 was not declared in this scope",
        f'a.cu(107): error: identifier "{name}" is undefined',
        f"{name} was not declared in this scope",
    ):
        answer = first(line)
        assert (answer.code, answer.direction) == ("FA883", "file-older"), line
        assert release in answer.cause
    assert ("much of it in the releases before" in answer.cause) == (name not in _EXACT)


_EXACT = frozenset(build_names()["gone"])


def test_python_bindings_of_torch_are_not_of_its_c_part() -> None:
    answer = first("a.cpp:1:2: error: 'THPVariable_Wrap' was not declared in this scope")
    assert "C part of old torches" not in answer.cause


@pytest.mark.parametrize(
    ("line", "words", "code"),
    [
        ("ptxas fatal   : Internal error: writing file", "disk", "FA883"),
        ("nvcc fatal   : Could not open output file '/tmp/tmpxft_1.ii'", "disk", "FA883"),
        ("ptxas fatal   : Memory allocation failure", "MAX_JOBS=1", "FA885"),
        ("ptxas fatal   : Unresolved extern function '_Z1fv'", "-rdc=true", "FA883"),
        ("nvcc fatal   : Don't know what to do with 'Files/x'", "blank", "FA883"),
        ("nvcc fatal   : Host compiler targets unsupported OS.", "host compiler", "FA883"),
        ("nvcc fatal   : Unknown option '-Wno-x'", "does not take an option", "FA883"),
        ("nvcc fatal   : Something that nobody knows", "do not tell", "FA883"),
    ],
)
def test_what_a_program_of_the_toolkit_says_when_it_stops(line: str, words: str, code: str) -> None:
    answer = first(line)
    assert answer.code == code and words in said(answer)


def test_a_crash_is_the_toolkits_and_hopper_files_are_for_hopper() -> None:
    answer = first(
        "nvcc error   : 'ptxas' died due to signal 11 (Invalid memory reference)",
        "GPU: NVIDIA L20",
        "FAILED: x/flash_fwd_hdimall_fp16_paged_sm90.cu.o",
    )
    assert (answer.code, answer.owner) == ("FA883", "nvcc")
    assert "ptxas of CUDA 12.8" in said(answer)
    assert answer.help[0].startswith("nvcc --version")


def test_what_setup_py_raised_is_told_where_nothing_knows_it() -> None:
    answer = first(
        "      ValueError: this project wants a blue moon",
        "      [end of output]",
        "error: metadata-generation-failed",
    )
    assert "blue moon" in answer.cause and answer.confidence == "low"
    assert "does not say why" not in answer.cause


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Failed building editable for vllm",
        "  \u00d7 Failed to download and build `vllm==0.6.3`",
        "\u00d7 Getting requirements to build editable did not run successfully.",
        "\u00d7 Preparing metadata (pyproject.toml) did not run successfully.",
    ],
)
def test_every_word_of_pip_and_uv_for_a_build_that_ended(line: str) -> None:
    answer = first(line)
    assert (answer.code, answer.confidence) == ("FA883", "low")
    assert "build.log" in said(answer)


def test_long_paths_and_long_commands_of_windows() -> None:
    path = "C:\\\\Temp\\\\pip-install-k\\\\flash-attn_f\\\\" + "a" * 230 + ".cpp"
    answer = first(
        f"OSError: [Errno 2] No such file or directory: '{path}'",
        "HINT: This error might have occurred since this system does not have Windows Long Path "
        "support enabled.",
    )
    assert answer.owner == "Windows" and "LongPathsEnabled" in said(answer)
    assert str(len(path.replace("\\\\", "/"))) in answer.cause
    command = first(
        '  File "C:\\Python311\\Lib\\subprocess.py", line 1538, in _execute_child',
        "FileNotFoundError: [WinError 206] The filename or extension is too long",
    )
    assert "32,767" in command.cause


def test_pips_list_tells_the_python_the_index_and_the_other_build() -> None:
    none = "Could not find a version that satisfies the requirement {} (from versions: {})"
    new = first(none.format("torchvision==0.20.1+cu121", "0.1.6, 0.2.0, 0.21.0, 0.22.0"))
    assert "Python 3.13" in new.cause and "3.9 to 3.12" in said(new)
    old = first(none.format("torch==2.5.0", "1.4.0, 1.13.1, 2.4.0, 2.4.1"))
    assert "last one for Python 3.8" in old.cause
    index = first(none.format("torch==2.5.1", "2.7.0+cu128, 2.7.1+cu128, 2.8.0+cu128"))
    assert "index for" not in index.cause and "cu128" in index.cause and "2.7.0" in index.cause
    local = first(none.format("torch==2.5.1+cu118", "2.5.0, 2.5.1, 2.6.0"))
    assert "whl/cu118" in said(local) and "newer than that release" not in said(local)
    alone = first(none.format("torch==2.5.1", "2.6.1, 2.7.0"))
    assert "the index that was asked begins there" in alone.cause


def test_each_python_begins_before_it_ends() -> None:
    for rows in python_wheels()["packages"].values():
        firsts = [order_key(start) for start, _ in rows.values()]
        assert firsts == sorted(firsts)
        for start, end in rows.values():
            assert end is None or order_key(start) < order_key(end)
