"""Failures that a person tells of in words of their own, and sentences that break off."""

from __future__ import annotations

import pytest

from fa_forensics.facts.paste import read_paste
from fa_forensics.facts.python_names import exports, followed_by, names_followed

_DEEP_GEMM = "importing `vllm.third_party.deep_gemm._C` failed with an undefined `{}` symbol."


def _first(text: str) -> tuple[str, str | None]:
    mentions = read_paste(text).mentions
    return (mentions[0].what, mentions[0].symbol) if mentions else ("", None)


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        (_DEEP_GEMM.format("c10::ValueError"), "c10::ValueError"),
        (
            "libc10_cuda.so doesn't contain the symbol\n"
            "` c10::cuda::CUDACachingAllocator::allocator`",
            "c10::cuda::CUDACachingAllocator::allocator",
        ),
        ("import sgl_kernel dies, it lacks the symbol c10::SymInt::sym_ne", "c10::SymInt::sym_ne"),
        ("vllm fails, libnccl does not export the symbol `ncclWinRegister`", "ncclWinRegister"),
        ("the _C extensions fail to import with\nundefined HIP/c10 symbols", None),
        ("deepspeed's ops fail to load with missing ATen symbols", None),
    ],
)
def test_a_missing_name_is_read_from_a_sentence(text: str, symbol: str | None) -> None:
    assert _first(text) == ("symbol-in-words", symbol)


@pytest.mark.parametrize(
    "text",
    [
        "no undefined symbols, all good",
        "there are no missing c10 symbols, and nothing fails",
        "We fixed the undefined `c10::ValueError` symbol error in 2.5",
        "the undefined torch symbols no longer make the import fail",
        "Could an undefined `c10::ValueError` symbol be the reason?",
        "This may lead to unresolved torch symbols, and imports fail",
        "debug symbols are missing for torch, gdb fails",
        "_PyThreadState_UncheckedGet is not used by pybind11 any more",
        "the module is not found, and I don't see a .so file",
        "I do see a .so file, and the module can be imported",
        "I cannot open",
    ],
)
def test_what_is_denied_past_or_asked_is_no_failure(text: str) -> None:
    assert _first(text) == ("", None)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("OSError: libnvrtc.so: cannot open shared", "missing-library"),
        ("ImportError: libcudart.so.12: cannot op...", "missing-library"),
        ("ImportError: /x/vllm/_C.abi3.so: undefined sym", "undefined-symbol"),
        ("RuntimeError: CUDA error: no kernel ima", "no-kernel-image"),
        ("OSError: /x/libfoo.so: invalid ELF", "invalid-elf"),
        ("ImportError: /x/a.so: cannot allocate memory in sta", "static-tls"),
    ],
)
def test_a_sentence_that_the_end_of_the_text_breaks_off_is_read(text: str, what: str) -> None:
    mention = read_paste(text).mentions[0]
    assert mention.what == what
    assert mention.line in text


def test_a_decorated_name_of_a_link_is_its_own_function() -> None:
    text = (
        '"class at::Tensor __cdecl fusedssim(float,class at::Tensor &)" '
        "(?fusedssim@@YA?AVTensor@at@@MAEAV12@@Z)\n_C.pyd : fatal error LNK1120"
    )
    assert _first(text) == ("linker-undefined", "fusedssim(float, at::Tensor &)")
    torchs = text.replace("fusedssim", "c10::f", 1)
    assert _first(torchs)[0] == "windows-build"


def test_a_file_that_is_seen_and_not_imported_may_be_another_pythons() -> None:
    text = (
        'the "torchao.prototype.mxfp8_cuda" extension cannot be found (import error).\n'
        "i do see a .so file for it, built with Python 3.10"
    )
    mention = read_paste(text).mentions[0]
    assert mention.what == "file-not-taken"
    assert mention.detail["module"] == "torchao.prototype.mxfp8_cuda"
    assert mention.detail["built"] == "3.10"


def test_names_that_are_followed_are_gone_from_a_python_on_record() -> None:
    for name in names_followed():
        assert exports(name, "3.12") and not exports(name, "3.13")
        assert set(followed_by(name)) <= {"pybind11", "cython"}
    text = "The pybind11 build fails on Python 3.13\n_PyThreadState_UncheckedGet"
    assert _first(text) == ("python-name-gone", "_PyThreadState_UncheckedGet")


@pytest.mark.parametrize(
    "text",
    [
        "Cannot find DGL C++ graphbolt library at /x/libgraphbolt_pytorch_2.4.1.dylib",
        "Cannot find DGL C++ graphbolt library at C:\\x\\graphbolt_pytorch_2.4.1.dll",
        "`Cannot find DGL C++ graphbolt library` for torch 2.4.1",
    ],
)
def test_dgl_has_a_file_for_each_torch_on_every_system(text: str) -> None:
    mention = read_paste(text).mentions[0]
    assert (mention.what, mention.detail["torch"]) == ("torch-named-library", "2.4.1")


def test_a_capital_e_beside_cpm_kernels_is_its_own_wording() -> None:
    said = "RuntimeError: CUDA {}rror: no kernel image is available\ncpm_kernels 1.0.11"
    assert _first(said.format("E"))[0] == "cpm-kernels"
    assert _first(said.format("e"))[0] == "no-kernel-image"


def test_a_tensor_without_storage_at_a_call_names_the_extension() -> None:
    error = "RuntimeError: Cannot access data pointer of Tensor that doesn't have storage"
    mention = read_paste(f"deep_gemm.bf16_gemm_nt(a, b, d)\n{error}").mentions[0]
    assert (mention.what, mention.detail["call"]) == ("no-storage", "deep_gemm")
    assert read_paste(error).mentions == ()
