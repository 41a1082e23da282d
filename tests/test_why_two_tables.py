"""Types that pybind11 does not find, builds that are left, and libraries as they were then."""

from __future__ import annotations

import pytest

from fa_forensics.facts.owner import library_then
from fa_forensics.facts.paste import read_paste
from fa_forensics.why import explain

_INTERNALS = "system pybind11 v2 (pybind11_internals_v5) beside PyTorch's own v3 (v11)"


def _answer(text: str):  # type: ignore[no-untyped-def]
    return explain([text], None, {}).answers[0]


@pytest.mark.parametrize(
    "text",
    [
        'import then fails with `type "RedOpType" is already registered` or '
        '`unknown base type "c10d::Backend"`',
        'ImportError: generic_type: type "BackendX" referenced unknown base type "c10d::Backend"',
    ],
)
def test_c10d_is_torchs_own_and_two_internals_mean_another_pybind11(text: str) -> None:
    alone, told = _answer(text), _answer(f"{text}\n{_INTERNALS}")
    assert alone.code == told.code == "FA893"
    assert "not torch's" not in alone.cause
    assert "(torch)" in alone.cause
    assert "another pybind11 than torch's" in told.cause
    assert any("torch/include" in note for note in told.notes)
    assert not any("no cure" in note for note in (*alone.notes, *told.notes))


def test_the_torch_before_an_upgrade_is_not_the_one_that_runs() -> None:
    text = (
        "If you have torch=1.1.0 ... After you install an upgraded torch, and you finish "
        "installation of torchaudio it will not overwrite _torch_sox.cpython-36m-x86_64-linux-gnu"
        ".so.\nImportError: ...audio/_torch_sox.cpython-36m-x86_64-linux-gnu.so: \n"
        "undefined symbol: _ZN2at19NonVariableTypeMode10is_enabledEv"
    )
    versions = read_paste(text).versions
    assert versions.get("before:torch") == "1.1.0"
    assert "torch" not in versions
    answer = _answer(text)
    assert (answer.code, answer.direction) == ("FA201", "file-older")
    assert any("clean" in line and "rm -rf build" in line for line in answer.help)
    assert not any("torch==1.1.0" in line for line in answer.help)


@pytest.mark.parametrize(
    ("owner", "release", "demangled", "library"),
    [
        # what the wheels of these releases have in torch/lib
        ("torch/torch_cpu", "1.0", "typeinfo for at::TensorImpl", "libcaffe2.so"),
        ("torch/torch_cpu", "1.1.0", "torch::jit::parseSchema()", "libtorch.so"),
        ("torch/torch_cpu", "1.4.0", "at::zeros()", "libtorch.so"),
        ("torch/torch_cpu", "1.5.0", "at::zeros()", "libtorch_cpu.so"),
        ("torch/torch_cpu", "2.4.0+cu121", "at::zeros()", "libtorch_cpu.so"),
        ("torch/c10", "1.0.0", "c10::Error::what()", "libc10.so"),
    ],
)
def test_torchs_libraries_are_named_as_in_that_release(
    owner: str, release: str, demangled: str, library: str
) -> None:
    assert library_then(owner, release, demangled) == library


def test_a_library_of_torchs_own_is_no_file_that_lists_too_little() -> None:
    text = (
        "ImportError: /home/u/lib/python3.7/site-packages/torch/lib/libtorch.so.1: undefined "
        "symbol: _ZTIN2at10TensorImplE\ntorch 1.0"
    )
    assert "among its needs" not in _answer(text).cause
