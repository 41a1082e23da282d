"""``why`` on pasted text: where it comes from, of here or of another machine, and what is said."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support import oracles
from support.inspecting import Run, invoke, one_sentence
from support.material import stub
from trees import make_prefix, make_venv

from fa_forensics.cli import main

T24 = "2.4.0+cu121"
DEVICE = "_ZN3c104cuda9SetDeviceEi"
FLASH = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def loaded(path: str, symbol: str = DEVICE) -> str:
    """A traceback's last lines about a file."""
    return f"    import flash_attn_2_cuda\nImportError: {path}: undefined symbol: {symbol}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of a stand-in torch 2.4.0 environment, with its own flash_attn_2_cuda."""
    shutil.copytree(stub(T24).root, tmp_path / "env", symlinks=True)
    (torch,) = (tmp_path / "env").glob("lib/python3.*/site-packages/torch")
    (torch.parent / FLASH).write_bytes(b"not read")
    return torch.parent


def run(tree: Path, text: str, *options: str) -> Run:
    python = tree.parents[2] / "bin/python3"
    return invoke("why", "--python", python, "--format", "json", *options, "--", text)


def answer_of(result: Run) -> dict[str, Any]:
    answer: dict[str, Any] = result.document["answers"][0]
    return answer


def test_a_file_of_this_environment_is_judged_by_its_torch(tree: Path) -> None:
    result = run(tree, loaded(str(tree / FLASH)))
    assert (result.code, result.document["note"]) == (0, None)
    answer = answer_of(result)
    assert (answer["kind"], answer["direction"]) == ("symbol-drift", "file-older")
    assert "older than torch 2.4.0+cu121" in answer["cause"]
    assert answer["source_line"].startswith("ImportError: ")


def test_a_path_that_was_shortened_is_found_by_its_end(tree: Path) -> None:
    result = run(tree, loaded(f".../site-packages/{FLASH}"))
    assert result.document["note"] is None
    assert answer_of(result)["direction"] == "file-older"


def test_a_file_that_is_not_here_is_judged_by_history_and_that_is_said(tree: Path) -> None:
    result = run(tree, loaded("/opt/other/flash_attn_2_cuda.abi3.so"))
    answer = answer_of(result)
    assert answer["direction"] == "unknown"
    assert "/opt/other/flash_attn_2_cuda.abi3.so is not on this machine" in result.document["note"]
    assert str(tree) not in "".join(answer["help"])


def test_another_torch_in_the_text_counts_before_the_one_here(tree: Path) -> None:
    result = run(tree, loaded("flash.so") + "\nPyTorch version: 2.0.1+cu118")
    assert answer_of(result)["direction"] == "file-newer"
    assert "the text names torch 2.0.1+cu118" in result.document["note"]
    assert result.document["torch"]["release"] == "2.0.1"
    assert result.document["environment"] is None


def test_another_python_in_the_text_shows_another_machine(tree: Path) -> None:
    result = run(tree, loaded(f"x/{FLASH.replace('311', '38')}"))
    assert "Python 3.8" in result.document["note"]


def test_here_and_elsewhere_settle_it(tree: Path) -> None:
    text = loaded("/opt/other/flash_attn_2_cuda.abi3.so")
    here = run(tree, text, "--here")
    assert here.document["note"] is None
    assert answer_of(here)["direction"] == "file-older"
    elsewhere = run(tree, loaded(str(tree / FLASH)), "--elsewhere")
    assert "--elsewhere" in elsewhere.document["note"]
    # Older and newer torches lack it, and there are far more of the newer ones.
    likely = answer_of(elsewhere)
    assert (likely["direction"], likely["confidence"]) == ("file-older", "medium")


def test_a_torch_that_is_asked_for_counts_before_the_text(tree: Path) -> None:
    result = run(tree, loaded("x.so") + "\nPyTorch version: 2.0.1", "--torch", "2.3.0")
    assert answer_of(result)["direction"] == "file-older"
    assert result.document["torch"]["release"] == "2.3.0"


# --- where the text comes from -------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> str:
    make_venv(tmp_path / "bare", make_prefix(tmp_path / "base"))
    return str(tmp_path / "bare/bin/python")


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_is_read(bare: str, arguments: list[str]) -> None:
    text = loaded("/x/_C.abi3.so", "_ZNK3c1011StorageImpl27throw_data_ptr_access_errorEv")
    result = CliRunner().invoke(main, ["why", "--python", bare, *arguments], input=text)
    assert result.exit_code == 0
    assert "torch 2.6.0 and later" in result.stdout


def test_a_file_is_read(bare: str, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"\xff\xfe noise\n" + loaded("/x/_C.so").encode() + b"\n")
    result = invoke("why", "--python", bare, "--format", "json", log)
    assert answer_of(result)["symbol"] == DEVICE


def test_a_directory_or_a_pipe_is_no_text(bare: str, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        result = invoke("why", "--python", bare, path)
        assert result.code == 2
        assert "cannot be read" in one_sentence(result)


def test_a_library_is_no_text_and_is_sent_to_inspect(bare: str, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(b"\x7fELF" + bytes(60))
    result = invoke("why", "--python", bare, tmp_path / "x.so")
    assert result.code == 2
    assert "fa-forensics inspect" in result.stderr


def test_forgotten_quotes_still_make_one_text(bare: str) -> None:
    words = f"ImportError: /x/_C.so: undefined symbol: {DEVICE}".split()
    result = invoke("why", "--python", bare, "--format", "json", "--", *words)
    (answer,) = result.document["answers"]
    assert answer["symbol"] == DEVICE


def test_nothing_recognised_is_an_answer_with_its_own_exit_code(bare: str) -> None:
    result = invoke("why", "--python", bare, "--format", "json", "it does not work, help")
    assert result.code == 4
    (answer,) = result.document["answers"]
    assert (answer["kind"], answer["code"]) == ("unrecognised", "FA899")
    assert "Paste the line that contains" in answer["cause"]


# --- several causes, and lines of tools ----------------------------------------------------------


def answers(bare: str, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = invoke(
        "why", "--python", bare, "--format", "json", "--", text
    ).document["answers"]
    return found


def test_independent_causes_each_have_an_answer_and_equal_ones_one(bare: str) -> None:
    text = "\n".join(
        [
            "[rank0]: ImportError: /x/a.abi3.so: undefined symbol: " + DEVICE,
            "[rank1]: ImportError: /x/a.abi3.so: undefined symbol: " + DEVICE,
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file",
        ]
    )
    kinds = [answer["kind"] for answer in answers(bare, text)]
    assert kinds == ["symbol-drift", "missing-library"]


def test_names_of_one_file_together_narrow_the_torch_it_was_built_on(bare: str) -> None:
    text = "\n".join(
        [
            "                 U _ZN3c1013MessageLogger6streamB5cxx11Ev",
            "                 U _ZN3c1013MessageLoggerC1EPKciib",
        ]
    )
    first = answers(bare, text)[0]
    assert any("torch 2.10.0 alone" in note for note in first["notes"])


def test_python_names_that_ldd_misses_are_no_error(bare: str) -> None:
    text = "\n".join(f"undefined symbol: {n}\t(./_C.so)" for n in ("PyObject_Str", "Py_IsTrue"))
    (answer,) = answers(bare, text)
    assert (answer["kind"], answer["direction"]) == ("python-abi", "none")
    assert answer["cause"].startswith("No error")


def test_torch_libraries_that_ldd_does_not_find_are_normal(bare: str) -> None:
    (answer,) = answers(bare, "\tlibc10.so => not found\n\tlibtorch_cpu.so => not found")
    assert answer["kind"] == "import-order"


def test_the_copy_that_ldd_shows_is_named(bare: str) -> None:
    text = "\n".join(
        [
            "ImportError: /x/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, "
            "version libnvJitLink.so.12",
            "$ ldd libcusparse.so.12",
            "\tlibnvJitLink.so.12 => /usr/local/cuda-12.0/lib64/libnvJitLink.so.12 (0x0000)",
        ]
    )
    (answer,) = answers(bare, text)
    assert any("/usr/local/cuda-12.0/lib64/libnvJitLink.so.12" in n for n in answer["notes"])


def test_a_cut_off_name_is_answered_by_what_begins_so(bare: str) -> None:
    (answer,) = answers(bare, f"ImportError: /x/a.so: undefined symbol: {DEVICE[:-2]}...")
    assert answer["kind"] == "symbol-drift" and answer["confidence"] != "high"
    assert DEVICE in [other["symbol"] for other in answer["overloads"]]


@pytest.mark.parametrize(
    ("name", "kind", "owner"),
    [
        ("THCState_getCurrentStream", "symbol-drift", "torch/torch_cuda"),
        ("rocblas_sgemm", "rocm", "rocblas"),
        ("sem_clockwait, version GLIBC_2.30", "glibc", "libc"),
        ("ffi_type_pointer, version LIBFFI_BASE_7.0", "versioned-symbol", "libffi"),
        ("iJIT_NotifyEvent", "versioned-symbol", "mkl"),
        ("nvte_gelu", "own-symbol", "extension"),
        ("_ZNSt10filesystem4path17replace_extensionERKS0_", "libstdcxx", "libstdc++"),
        ("cuStreamGetId", "gpu-driver", "cuda-driver"),
    ],
)
def test_whose_a_name_is_comes_before_any_talk_of_versions(
    bare: str, name: str, kind: str, owner: str
) -> None:
    (answer,) = answers(bare, f"ImportError: /x/a.abi3.so: undefined symbol: {name}")
    assert (answer["kind"], answer["owner"]) == (kind, owner)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("libc10_cuda.so: cannot open shared object file", "wrong-torch"),
        ("libc10_hip.so: cannot open shared object file", "rocm"),
        ("libcuda.so.1: cannot open shared object file", "gpu-driver"),
        ("libamdhip64.so.6: cannot open shared object file", "rocm"),
        ("libpython3.8.so.1.0: cannot open shared object file", "python-abi"),
        ("libGL.so.1: cannot open shared object file", "missing-library"),
        ("libcudnn.so.8: cannot open shared object file", "missing-library"),
        ("libtorch_cuda_cpp.so: cannot open shared object file", "missing-library"),
        ("libnothing_known.so.3: cannot open shared object file", "missing-library"),
    ],
)
def test_a_missing_library_is_judged_by_whose_it_is(bare: str, text: str, kind: str) -> None:
    (answer,) = answers(bare, f"ImportError: {text}: No such file or directory")
    assert answer["kind"] == kind


def test_a_cpu_torch_has_no_cuda_libraries(bare: str) -> None:
    text = (
        "ImportError: libc10_cuda.so: cannot open shared object file: No such file or directory\n"
        "PyTorch version: 2.5.1+cpu"
    )
    (answer,) = answers(bare, text)
    assert (answer["kind"], answer["code"]) == ("wrong-torch", "FA601")


def test_a_rocm_torch_has_no_cuda_libraries_either(bare: str) -> None:
    text = f"ImportError: /x/a.abi3.so: undefined symbol: {DEVICE}\nPyTorch version: 2.4.0+rocm6.1"
    (answer,) = answers(bare, text)
    assert (answer["kind"], answer["code"]) == ("wrong-torch", "FA601")


# --- the failing file itself, where it is here ---------------------------------------------------


def compiled(directory: Path, body: str, *options: str) -> Path:
    """A shared object made by the compiler from a line of C."""
    source, out = directory / "ext.c", directory / "ext.so"
    source.write_text(body)
    oracles.output_of("gcc", "-shared", "-fPIC", "-o", out, source, *options)
    return out


def test_a_file_that_no_longer_needs_the_name_was_replaced(bare: str, tmp_path: Path) -> None:
    file = compiled(tmp_path, "int here(void) { return 1; }")
    (answer,) = answers(bare, f"ImportError: {file}: undefined symbol: {DEVICE}")
    assert answer["confidence"] == "medium"
    assert "does not need this name" in answer["notes"][0]


def test_a_file_that_is_not_linked_with_the_driver_is_told_from_an_old_driver(
    bare: str, tmp_path: Path
) -> None:
    body = "int cuTensorMapEncodeTiled(void); int f(void) { return cuTensorMapEncodeTiled(); }"
    file = compiled(tmp_path, body)
    (answer,) = answers(bare, f"ImportError: {file}: undefined symbol: cuTensorMapEncodeTiled")
    assert (answer["code"], answer["direction"]) == ("FA210", "none")
    assert "linked without -lcuda" in answer["cause"]
