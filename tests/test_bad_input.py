"""Bad input gets one clear sentence, an exit code of 2 or 3, a legal document, no traceback."""

from __future__ import annotations

import os
import re
import shutil
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.damage import cut
from support.inspecting import Run, invoke, one_sentence
from support.material import husk_file, husks_of, stub, tiny_file
from trees import make_prefix, make_venv

from fa_forensics.facts.elf.facts import machine_name

TORCH = "2.4.0+cu121"
SMALL = "torchaudio-2.4.1:torchaudio/lib/_torchaudio.so"


def python() -> str:
    return str(stub(TORCH).python)


def inspect(path: str | os.PathLike[str], form: str = "text") -> Run:
    return invoke("inspect", "--python", python(), "--format", form, "--", path)


# --- what the file is ---------------------------------------------------------------------------

NOT_ELF = {
    "text": "a Git LFS pointer",
    "empty": r"is empty \(0 bytes\)",
    "pe-dll": "a Windows program or DLL",
    "mach-o": "a macOS library",
    "cut-in-header": r"ends inside its ELF header \(40 bytes\)",
}

STARTS = {
    b"PK\x03\x04" + bytes(60): "a zip archive",
    b"<!DOCTYPE html><html>404 Not Found</html>": "an HTML page",
    b"<html><body>": "an HTML page",
    b"#!/bin/sh\nexit 0\n": "a script",
    b"!<arch>\nlib.o/": "a static library",
    b"/* GNU ld script\nGROUP ( libx.so.1 )": "a linker script",
    b"\xca\xfe\xba\xbe" + bytes(60): "a macOS universal library",
    b"\x7fEL": r"starts with the bytes 7f 45 4c",
    b"\0" * 5000: r"starts with the bytes 00 00",
}


@pytest.mark.parametrize("name", NOT_ELF)
def test_a_file_that_is_no_elf_file_is_called_what_it_is(name: str) -> None:
    result = inspect(tiny_file(name))
    assert result.code == 3
    assert re.search(NOT_ELF[name], one_sentence(result))
    (target,) = inspect(tiny_file(name), "json").document["targets"]
    assert target["verdict"] == "inconclusive"
    assert target["elf"] is None
    assert target["skipped"][0]["rule"] == "file"
    assert re.search(NOT_ELF[name], target["problem"])


@pytest.mark.parametrize(
    "content", STARTS, ids=[text.replace(" ", "-") for text in STARTS.values()]
)
def test_lookalikes_are_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    path.write_bytes(content)
    result = inspect(path)
    assert result.code == 3
    assert re.search(STARTS[content], one_sentence(result))


@pytest.mark.parametrize(("name", "machine"), [("big-endian", 22), ("elf-32", 3), ("aarch64", 183)])
def test_a_file_for_another_machine_fails_with_one_cause(name: str, machine: int) -> None:
    result = inspect(tiny_file(name), "json")
    assert result.code == 3
    assert machine_name(machine) in one_sentence(result)
    (target,) = result.document["targets"]
    assert target["verdict"] == "fails"
    assert [f["code"] for f in target["findings"] if f["severity"] == "error"] == ["FA101"]
    assert target["elf"]["machine"] == machine_name(machine)


def test_an_object_file_is_no_library() -> None:
    result = inspect(tiny_file("relocatable"), "json")
    assert result.code == 3
    one_sentence(result)
    (target,) = result.document["targets"]
    assert target["findings"][0]["code"] == "FA104"
    assert target["elf"]["type"] == "relocatable"
    assert target["elf"]["compilers"], "what can be read is still reported"


# --- what the path is ---------------------------------------------------------------------------


def _fifo(place: Path) -> Path:
    os.mkfifo(place / "fifo.so")
    return place / "fifo.so"


def _socket(place: Path) -> Path:
    os.chdir(place)  # the path of a socket may have 108 bytes only
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.so")
    return place / "socket.so"


def _loop(place: Path) -> Path:
    (place / "loop.so").symlink_to("loop.so")
    return place / "loop.so"


def _dead_link(place: Path) -> Path:
    (place / "dead.so").symlink_to("gone.so")
    return place / "dead.so"


def _empty_directory(place: Path) -> Path:
    (place / "empty").mkdir()
    return place / "empty"


def _directory_without_extension(place: Path) -> Path:
    (place / "pure.py").write_text("x = 1\n")
    shutil.copy(tiny_file("whole"), place / "libplain.so.1")
    return place


PLACES: dict[str, tuple[Callable[[Path], Path], int, str]] = {
    "missing": (lambda place: place / "nowhere.so", 2, "does not exist"),
    "empty directory": (_empty_directory, 2, "holds nothing to inspect"),
    "directory without extension": (_directory_without_extension, 2, "holds nothing to inspect"),
    "below a file": (lambda place: tiny_file("whole") / "x.so", 2, "does not exist"),
    "name too long": (lambda place: place / ("a" * 300 + ".so"), 2, "does not exist"),
    "fifo": (_fifo, 3, "is not a regular file"),
    "socket": (_socket, 3, "cannot read"),
    "loop": (_loop, 3, "Too many levels of symbolic links"),
    "dead link": (_dead_link, 3, "does not exist"),
    "zeros": (lambda place: Path("/dev/zero"), 3, "is not a regular file"),
    "null": (lambda place: Path("/dev/null"), 3, "is not a regular file"),
    "memory": (lambda place: Path("/proc/self/mem"), 3, "is empty"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_path_that_leads_to_no_file_gets_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # put back afterwards what a maker changes
    make, code, words = PLACES[name]
    path = make(tmp_path)
    result = inspect(path)
    assert result.code == code
    assert words in one_sentence(result)
    document = inspect(path, "json").document
    if code == 2:
        assert document["targets"] == []
        assert words in document["error"]["message"]
        assert document["error"]["exit_code"] == 2
    else:
        assert words in document["targets"][0]["problem"]


def test_a_file_that_may_not_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    path = tmp_path / "secret.so"
    shutil.copy(tiny_file("whole"), path)
    path.chmod(0)
    result = inspect(path)
    assert result.code == 3
    assert "Permission denied" in one_sentence(result)


def test_one_bad_file_does_not_hide_what_is_said_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "bad.so").write_bytes(b"nothing")
    result = invoke(
        "inspect", "--python", python(), "--format", "json", tmp_path / "bad.so", tiny_file("whole")
    )
    assert result.code == 3
    bad, good = result.document["targets"]
    assert bad["verdict"] == "inconclusive" and good["verdict"] == "loads"
    result = invoke(
        "inspect", "--python", python(), tmp_path / "bad.so", tiny_file("missing-symbol")
    )
    assert result.code == 1, "a true finding is not hidden by a file that could not be read"
    assert "bad.so" in one_sentence(result)


# --- how much of it is there --------------------------------------------------------------------

LENGTHS = (0, 1, 3, 4, 15, 16, 20, 51, 52, 63, 64, 65, 120, 500, 1_000, 4_095, 4_096, 10_000)


@pytest.mark.parametrize("size", LENGTHS)
def test_a_file_cut_to_a_few_bytes_is_reported(size: int, tmp_path: Path) -> None:
    path = cut(husk_file(SMALL), tmp_path / "_torchaudio.so", size)
    result = inspect(path, "json")
    assert result.code == 3
    one_sentence(result)
    (target,) = result.document["targets"]
    assert target["verdict"] in ("fails", "inconclusive")


@pytest.mark.parametrize("percent", range(5, 100, 10))
def test_what_is_left_of_a_file_cut_short_is_still_read(percent: int, tmp_path: Path) -> None:
    whole = inspect(husk_file(SMALL), "json").document["targets"][0]
    size = husk_file(SMALL).stat().st_size
    path = cut(husk_file(SMALL), tmp_path / "_torchaudio.so", size * percent // 100)
    result = inspect(path, "json")
    assert result.code == 3
    assert "cut short" in one_sentence(result)
    (target,) = result.document["targets"]
    codes = {f["code"]: f["severity"] for f in target["findings"]}
    # What the loader maps of this file ends at 78 %: behind it only section data is lost.
    assert codes["FA102"] == ("error" if percent < 78 else "warning")
    assert target["verdict"] == "fails"
    assert target["elf"]["machine"] == "x86_64"
    names = {u["symbol"] for u in target["undefined"]}
    assert names <= {u["symbol"] for u in whole["undefined"]}
    # Its dynamic section, which leads to all tables, lies at 76 %.
    assert len(names) == (0 if percent < 76 else len(whole["undefined"]))
    if percent < 78:
        assert all(symbol["provider"] is None for symbol in target["undefined"])


def test_a_whole_file_is_not_called_cut_short(tmp_path: Path) -> None:
    size = husk_file(SMALL).stat().st_size
    target = inspect(cut(husk_file(SMALL), tmp_path / "a.so", size), "json").document["targets"][0]
    assert "FA102" not in {f["code"] for f in target["findings"]}
    short = inspect(cut(husk_file(SMALL), tmp_path / "b.so", size - 1), "json")
    assert short.document["targets"][0]["findings"][0]["code"] == "FA102"


# --- wheels -------------------------------------------------------------------------------------


def test_a_wheel_for_another_machine_is_read_and_fails(tmp_path: Path) -> None:
    wheel = tmp_path / "fa3_fwd-0.0.3-cp39-abi3-manylinux_2_24_aarch64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(husk_file(husks_of("aarch64")[0]), "fa3_fwd/_C.abi3.so")
    result = inspect(wheel, "json")
    assert result.code == 3
    assert "aarch64" in one_sentence(result)
    (target,) = result.document["targets"]
    assert target["member"] == "fa3_fwd/_C.abi3.so"
    assert (target["verdict"], target["findings"][0]["code"]) == ("fails", "FA101")
    assert len(target["undefined"]) > 50 and target["gpu_code"]


@pytest.mark.parametrize(
    ("content", "code"), [(b"", 3), (b"no zip", 3), (b"PK\x03\x04" + bytes(200), 3)]
)
def test_a_wheel_that_is_no_archive_gets_one_sentence(
    content: bytes, code: int, tmp_path: Path
) -> None:
    wheel = tmp_path / "flash_attn-2.5.8-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(content)
    result = inspect(wheel, "json")
    assert result.code == code
    assert wheel.name in one_sentence(result)
    assert result.document["targets"] == [] or result.document["targets"][0]["problem"]


def test_a_windows_wheel_says_which_wheel_to_take(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1.0-cp311-cp311-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(tiny_file("pe-dll"), "x/_C.cp311-win_amd64.pyd")
    result = inspect(wheel)
    assert result.code == 3
    assert "win_amd64" in one_sentence(result)
    assert "manylinux" in result.stderr


# --- the environment ----------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python environment without torch."""
    make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    return tmp_path / "env/bin/python"


def test_without_a_torch_the_file_is_still_read(bare: Path) -> None:
    path = husk_file("autoawq_kernels-0.0.9:awq_ext.cpython-311-x86_64-linux-gnu.so")
    result = invoke("inspect", "--python", bare, "--format", "json", path)
    assert result.code == 3
    assert "no torch in" in one_sentence(result)
    assert "--python" in result.stderr
    (target,) = result.document["targets"]
    assert target["verdict"] == "inconclusive"
    assert any("torch" in skip["reason"] for skip in target["skipped"])
    assert any(u["demangled"].startswith("c10::") for u in target["undefined"])
    assert target["confirm"]["status"] == "not-run" and target["confirm"]["detail"]


def test_why_without_a_torch_says_whose_the_symbol_is(bare: Path) -> None:
    result = invoke("why", "--python", bare, "--format", "json", "_ZN3c104cuda9SetDeviceEi")
    assert (result.code, result.stderr) == (0, ""), "the table of releases has the answer"
    (answer,) = result.document["answers"]
    assert answer["owner"] == "torch/c10_cuda"
    assert "2.2.2" in answer["exported_by"] and answer["provider"] is None
    assert any("no torch in" in note for note in answer["notes"])


@pytest.mark.parametrize(
    "wrong", ["/nonexistent/bin/python", "/etc/passwd", "/dev/null", "/tmp", "", "\x1b[31m"]
)
@pytest.mark.parametrize("command", ["inspect", "why"])
def test_a_python_that_is_none_is_a_usage_error(command: str, wrong: str) -> None:
    argument = str(tiny_file("whole")) if command == "inspect" else "cudaFree"
    result = invoke(command, "--python", wrong, "--format", "json", argument)
    assert result.code == 2
    assert "\x1b" not in one_sentence(result)
    key = "targets" if command == "inspect" else "answers"
    assert result.document[key] == [] and result.document["error"]["exit_code"] == 2


# --- symbols ------------------------------------------------------------------------------------

NO_SYMBOLS = [
    "", " ", "not a symbol!", "ImportError", "_ZN", "_ZNot_mangled", "1abc", "a-b", "\x1b[31m",
    "\0", "_ZN3c104cuda9SetDevice", "ünïcödé", "$(rm -rf /)", "x" * 100_000, "::", "()",
    "_Z1f" + "1AIiE" * 20_000,
]  # fmt: skip


#: Beginnings of mangled names: what they could be is told, and that they are not whole.
CUT_OFF = [text for text in NO_SYMBOLS if text.startswith("_Z") and text != "_ZN"]


@pytest.mark.parametrize("text", NO_SYMBOLS, ids=[repr(t)[:24] for t in NO_SYMBOLS])
def test_a_text_that_is_no_symbol_is_called_unrecognised_or_cut_off(text: str) -> None:
    result = invoke("why", "--python", python(), "--format", "json", "--", text)
    (answer,) = result.document["answers"]
    assert "\x1b" not in result.stdout + result.stderr
    if text in CUT_OFF:
        assert result.code == 0 and answer["confidence"] != "high"
    else:
        assert (result.code, answer["kind"]) == (4, "unrecognised")
        assert "paste" in answer["cause"].lower()


@pytest.mark.parametrize("arguments", [("inspect",), ("inspect", "--nonsense", "x"), ("x",)])
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.code == 2
    assert result.stdout == "" and "Usage:" in result.stderr
