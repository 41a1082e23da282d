"""``why`` on nightlies by their minor version, names in lists, and torches that cannot be meant.

The releases are those of ``nm -D`` over torch's wheels; torch-xla's wheels those of its issues
4133, 5608, 6771 and 8603; torch's code for GPUs that of its release notes.
"""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.paste import read_paste

SITE = "/x/lib/python3.10/site-packages"
METRIC = "_ZN5torch4lazy13MetricFnValueEd"  # pre-cxx11, 1.11.0 to 2.6.0
SCHEMA = "_ZN5torch3jit17parseSchemaOrNameERKSsb"  # pre-cxx11, 2.4.0 to 2.6.0
RECORD = "_ZN2at14RecordFunctionC1ENS_11RecordScopeEb"  # 1.8.0 to 1.11.0


@pytest.mark.parametrize(
    ("text", "torch"),
    [
        ("torch 2.7 nightly (January 2025)", "2.7.0.dev"),
        ("PyTorch 2.7.0 nightly cu128", "2.7.0.dev+cu128"),
        ("torch 2.7.1, torch_xla 2.7 nightly", "2.7.1"),
        ("torch 2.7.0", "2.7.0"),
    ],
)
def test_a_nightly_is_no_release(text: str, torch: str) -> None:
    assert read_paste(f"ImportError: x.so: undefined symbol: {METRIC}\n{text}").versions[
        "torch"
    ] == torch  # fmt: skip


def test_a_nightly_of_torch_xla_gets_the_pair() -> None:
    file = f"{SITE}/_XLAC.cpython-310-x86_64-linux-gnu.so"
    answer = first(
        "import torch_xla", f"ImportError: {file}: undefined symbol: {METRIC}",
        "torch 2.7 nightly (January 2025), torch_xla 2.7 nightly, Python 3.10",
    )  # fmt: skip
    assert any('"torch==2.7.0" torch-xla==2.7.0' in command for command in answer.help)
    assert not any("--no-deps" in command for command in answer.help)


def test_of_2023_the_torch_of_the_same_bucket_is_typed() -> None:
    file = f"{SITE}/_XLAC.cpython-38-x86_64-linux-gnu.so".replace("3.10", "3.8")
    answer = first(
        f"ImportError: {file}: undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev",
        "torch nightly (pip, cu118), torch_xla nightly, Python 3.8, 2023-09",
    )
    assert any("wheels/cuda/11.8/torch-nightly+" in command for command in answer.help)
    assert "2.6.0+cxx11" not in said(answer) and "one number for both" not in said(answer)


def test_no_torch_without_code_for_the_gpu_is_typed() -> None:
    """sm_120 came with 2.7; the name in this flavour ended with 2.6."""
    answer = first(
        f"ImportError: {SITE}/vllm/_C.abi3.so: undefined symbol: {SCHEMA}",
        "torch 2.8.0.dev+cu128 nightly, vllm wheel, Python 3.10, RTX 5070 Ti",
    )
    assert not any('"torch==' in command for command in answer.help)
    assert any(" vllm" in command for command in answer.help)
    older = first(f"ImportError: {SITE}/vllm/_C.abi3.so: undefined symbol: {SCHEMA}", "RTX 4090")
    assert any('"torch==2.6.0"' in command for command in older.help)


def test_a_signature_that_came_back_is_the_one_after() -> None:
    """RecordFunction(RecordScope) is of 1.6, 1.7 and, again, of 1.12 and later."""
    file = "/Users//miniforge3/lib/python3.9/site-packages/torchaudio/lib/libtorchaudio.so"
    answer = first(
        f"OSError: dlopen({file}, 0x0006): Symbol not found: _{RECORD}",
        "torch nightly (August 2022), torchaudio 0.14.0.dev20220603, Python 3.9, macOS",
    )
    assert "in 1.12.0 the parameter `bool` was dropped" in said(answer)
    assert any(" torch torchaudio" in command for command in answer.help)
    assert "cuXYZ" not in said(answer) and "for one CUDA" not in said(answer)


NAMES = """$ nm -C {0}/libx.so | grep c10::
                 U c10::WarningUtils::get_warnAlways()
                 U c10::warn(c10::Warning const&)
                 U c10::Warning::Warning(std::variant<c10::Warning::UserWarning, \
c10::Warning::DeprecationWarning>, c10::SourceLocation, char const*, bool)"""


@pytest.mark.parametrize("more", ["", "torch 2.1 at run time"])
def test_of_a_list_the_name_that_says_most_comes_first(more: str) -> None:
    """The first two are of 2.0 and later, the third of 2.2 and later."""
    answer = first(NAMES.format("/opt/y"), more)
    assert (answer.symbol or "").startswith("_ZN3c107WarningC1ESt7variant")
    assert answer.direction == "file-newer"


def test_a_checkout_built_for_the_torch_before_is_cleaned() -> None:
    """at::NonVariableTypeMode::is_enabled() is of 1.1.0 alone."""
    answer = first(
        "ImportError: ...audio/_torch_sox.cpython-36m-x86_64-linux-gnu.so: ",
        "undefined symbol: _ZN2at19NonVariableTypeMode10is_enabledEv",
        "torch upgraded from 1.1.0 to a later build, torchaudio from source, Python 3.6",
    )
    assert answer.direction == "file-older"
    assert any("rm -rf build" in command for command in answer.help)
    assert not any("--upgrade" in command or '"torch==' in command for command in answer.help)


def test_torch_before_1_4_gets_a_torch_sparse_of_its_time() -> None:
    answer = first(
        "x/lib/python3.6/site-packages/torch_sparse/unique_cuda.cpython-36m-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN3c106Device8validateEv",
        "torch 1.2, torch_sparse, Python 3.6",
    )
    assert any(command.endswith("'torch-sparse<0.5'") for command in answer.help)


def test_thc_is_ported_and_old_wheels_are_for_old_pythons() -> None:
    answer = first(
        "fatal error: THC/THC.h: No such file or directory", "torch 2.2.1+cu121, Python 3.10.10"
    )
    assert "AT_CUDA_CHECK" in said(answer) and "no wheels for Python 3.10:" in said(answer)
