"""The confirmation: real loads in a child process, and every way such a child can end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fa_forensics.confirm.model import Confirmation
from fa_forensics.confirm.parent import confirm

SOURCES = Path(__file__).parent / "sources" / "confirm"
FAKE = SOURCES / "fake"
CHILD = Path(__file__).parent.parent / "fa_forensics" / "confirm" / "child.py"
SHORT_S = 4.0  # for a child that must be stopped; long enough to start Python on a busy machine
Build = Callable[..., str]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile one of the C sources to a shared object, once; gives its path."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("confirm")

    def compile_one(name: str, *options: str, to: str | None = None) -> str:
        target = folder / (to or f"{name}.so")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source = str(SOURCES / f"{name}.c")
            command = ["gcc", "-shared", "-fPIC", "-o", str(target), source, *options]
            subprocess.run(command, check=True)
        return str(target)

    return compile_one


def load(path: str, timeout_s: float = 60.0, **variables: str) -> Confirmation:
    """Confirm without torch, under the Python that runs the tests."""
    env = {**os.environ, **variables}
    return confirm(path, sys.executable, needs_torch=False, timeout_s=timeout_s, env=env)


def load_with_torch(path: str, timeout_s: float = 60.0, **variables: str) -> Confirmation:
    """Confirm with the fake torch of the tests."""
    env = {**os.environ, "PYTHONPATH": str(FAKE), "FAKE_TORCH": "ok", **variables}
    return confirm(path, sys.executable, needs_torch=True, timeout_s=timeout_s, env=env)


def loader_says(path: str, env: Mapping[str, str] | None = None) -> str:
    """The oracle: what a plain dlopen in another process says."""
    script = (
        "import ctypes, os, sys\n"
        "try: ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)\n"
        "except OSError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, path]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout[:-1]


def steps(result: Confirmation) -> dict[str, str]:
    return {step.name: step.status for step in result.steps}


def test_a_good_library_loads_and_is_seen_mapped(build: Build) -> None:
    path = build("good")
    result = load(path)
    assert (result.status, result.exit_code, result.signal) == ("loads", 0, None)
    assert os.path.realpath(path) in set(result.mapped_after) - set(result.mapped)
    assert any("libc.so" in one for one in result.mapped)
    assert steps(result) == {
        "start": "ok",
        "import-torch": "not-run",
        "maps": "ok",
        "dlopen": "ok",
        "maps-after": "ok",
        "device": "not-run",
        "kernel": "not-run",
    }
    assert result.loader_text is None
    assert "good.so loads under Python" in result.detail


@pytest.mark.parametrize(("source", "signal"), [("segfault", "SIGSEGV"), ("abort", "SIGABRT")])
def test_a_crash_in_a_static_initialiser_names_signal_and_step(
    build: Build, source: str, signal: str
) -> None:
    result = load(build(source))
    assert (result.status, result.signal, result.exit_code) == ("crashed", signal, None)
    assert steps(result)["dlopen"] == "unfinished"
    assert f"crashed with {signal} while dlopening {source}.so" in result.detail
    assert (result.kernel_status, result.kernel_detail) == ("not-run", "the file was not loaded")


def test_what_a_dying_library_said_is_kept(build: Build) -> None:
    assert "c10::Error" in load(build("abort")).stderr_tail


@pytest.mark.parametrize("code", [0, 7])
def test_exit_in_a_static_initialiser_is_not_taken_for_success(build: Build, code: int) -> None:
    result = load(build("exit", f"-DCODE={code}", to=f"exit{code}.so"))
    assert (result.status, result.exit_code, result.signal) == ("exited", code, None)
    assert f"exited with code {code} while dlopening" in result.detail


def test_a_hang_is_stopped_with_every_process_it_started(build: Build, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    started = time.monotonic()
    result = load(build("hang"), timeout_s=SHORT_S, HANG_PID_FILE=str(note))
    assert time.monotonic() - started < SHORT_S + 6
    assert (result.status, result.signal, result.exit_code) == ("hung", None, None)
    assert "did not finish within 4 s while dlopening hang.so" in result.detail
    dlopen = next(step for step in result.steps if step.name == "dlopen")
    assert dlopen.status == "unfinished"
    assert dlopen.ms > 1000
    assert is_gone(int(note.read_text()))


def is_gone(pid: int) -> bool:
    """Whether a process is dead or a zombie, or becomes so within five seconds."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


def test_a_process_left_behind_does_not_hold_the_verdict_up(build: Build) -> None:
    result = load(build("leave"))
    assert result.status == "loads"
    assert result.elapsed_ms < 30_000


def test_a_forked_copy_that_goes_on_reports_nothing(build: Build) -> None:
    """The report is read to the end of the pipe, that is until both copies are gone."""
    dones = [line for line in report_of(build("twice")) if line["step"] == "done"]
    assert len(dones) == 1
    assert load(build("twice")).status == "loads"


def test_ten_megabytes_of_chatter_neither_block_nor_pile_up(build: Build) -> None:
    result = load(build("chatter"))
    assert result.status == "loads"
    last = f"{10 * 1024 * 16 - 1:055d}\n"
    assert result.stdout_tail.endswith(f"stdout {last}")
    assert result.stderr_tail.endswith(f"stderr {last}")
    assert len(result.stdout_tail) == len(result.stderr_tail) == 64 * 1024


def test_endless_chatter_is_stopped_and_bounded(build: Build) -> None:
    result = load(build("endless"), timeout_s=SHORT_S)
    assert result.status == "hung"
    assert 0 < len(result.stderr_tail) <= 64 * 1024
    assert "\ufffd again" in result.stderr_tail


def test_an_undefined_symbol_is_told_in_the_loaders_own_words(build: Build) -> None:
    path = build("undefined")
    result = load(path)
    assert (result.status, result.exit_code) == ("load-failed", 0)
    assert result.loader_text == loader_says(path)
    assert "undefined symbol: " in str(result.loader_text)
    assert str(result.loader_text) in result.detail
    assert result.mapped_after == ()


@pytest.fixture
def without_its_library(build: Build, tmp_path: Path) -> str:
    """A library whose needed libanswer.so is in no place that the loader looks at."""
    library = build("good", "-Wl,-soname,libanswer.so", to="libanswer.so")
    path = build("needs", library)
    shutil.copy(path, tmp_path / "needs.so")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(library, tmp_path / "elsewhere" / "libanswer.so")
    return str(tmp_path / "needs.so")


def test_a_missing_library_is_told_in_the_loaders_own_words(without_its_library: str) -> None:
    result = load(without_its_library)
    assert result.status == "load-failed"
    assert result.loader_text == loader_says(without_its_library)
    assert "libanswer.so: cannot open shared object file" in str(result.loader_text)


def test_a_relative_library_path_means_what_it_means_to_the_caller(
    without_its_library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(without_its_library).parent)
    env = {**os.environ, "LD_LIBRARY_PATH": "elsewhere"}
    assert loader_says(without_its_library, env) == ""
    assert load("needs.so", LD_LIBRARY_PATH="elsewhere").status == "loads"


def test_a_file_that_is_no_library_is_told_in_the_loaders_own_words(tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("not an ELF file, though long enough to hold an ELF header: " + "." * 80)
    result = load(str(path))
    assert (result.status, result.loader_text) == ("load-failed", loader_says(str(path)))


def test_a_file_name_that_is_no_utf8_loads(build: Build, tmp_path: Path) -> None:
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9 'x'.so"))
    shutil.copy(build("good"), path)
    result = load(path)
    assert result.status == "loads"
    assert path in result.mapped_after


def test_torch_is_imported_first_and_its_version_told(build: Build) -> None:
    result = load_with_torch(build("good"))
    assert (result.status, result.torch_version) == ("loads", "2.99.0+fake")
    assert result.detail.endswith("with torch 2.99.0+fake.")
    assert [step.name for step in result.steps][:4] == ["start", "import-torch", "maps", "dlopen"]
    assert result.kernel_status == "not-run"
    assert result.kernel_detail == "torch sees no CUDA device"


@pytest.mark.parametrize(
    ("how", "signal", "exit_code", "words"),
    [
        ("raise", None, 0, "torch does not import: ImportError: libcudart.so.12: cannot open"),
        ("segfault", "SIGSEGV", None, "crashed with SIGSEGV while importing torch"),
        ("exit", None, 3, "exited with code 3 while importing torch"),
        ("hang", None, None, "did not finish within 4 s while importing torch"),
    ],
)
def test_a_torch_that_does_not_import_is_not_held_against_the_file(
    build: Build, how: str, signal: str | None, exit_code: int | None, words: str
) -> None:
    timeout_s = SHORT_S if how == "hang" else 60.0
    result = load_with_torch(build("good"), timeout_s=timeout_s, FAKE_TORCH=how)
    assert result.status == "torch-import-failed"
    assert (result.signal, result.exit_code) == (signal, exit_code)
    assert words in result.detail
    assert "dlopen" not in steps(result)


def test_a_missing_torch_is_told(build: Build, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": ""}
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "$@"\n')
    script.chmod(0o755)
    if has_torch(str(script)):
        pytest.skip("the Python that runs the tests has a torch of its own")
    result = confirm(build("good"), str(script), needs_torch=True, env=env)
    assert result.status == "torch-import-failed"
    assert "No module named 'torch'" in result.detail


def has_torch(python: str) -> bool:
    script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return subprocess.run([python, "-c", script]).returncode == 0


def test_an_empty_folder_named_torch_is_no_torch(build: Build, tmp_path: Path) -> None:
    if has_torch(sys.executable):
        pytest.skip("the Python that runs the tests has a torch of its own")
    (tmp_path / "torch").mkdir()
    result = load_with_torch(build("good"), PYTHONPATH=str(tmp_path))
    assert result.status == "torch-import-failed"
    assert "folder named torch" in result.detail


def test_the_child_runs_where_nothing_of_the_callers_can_be_imported(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build("good")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('the wrong torch')\n")
    monkeypatch.chdir(tmp_path)
    result = load_with_torch(path, PYTHONPATH=f":{FAKE}")
    said = dict(line.split(" ", 1) for line in result.stdout_tail.splitlines())
    assert result.status == "loads"
    assert str(CHILD.parent) not in said["sys.path"]
    assert said["cwd"].endswith(" []")
    assert not said["cwd"].startswith(str(tmp_path))
    assert said["core"] == "(0, 0)"
    assert not Path(said["cwd"].removesuffix(" []")).exists()


@pytest.fixture
def extension(build: Build) -> str:
    """A library under the name of a known extension, where Python finds it."""
    return build("good", to="installed/flash_attn_2_cuda.so")


def kernel(extension: str, how: str, timeout_s: float = 60.0, **variables: str) -> Confirmation:
    path = os.pathsep.join([str(FAKE), os.path.dirname(extension)])
    env = {"PYTHONPATH": path, "FAKE_CUDA": "1", "FAKE_KERNEL": how, **variables}
    return load_with_torch(extension, timeout_s=timeout_s, **env)


@pytest.mark.parametrize("how", ["right", "tuple"])
def test_a_right_kernel_is_told_with_its_tolerance(extension: str, how: str) -> None:
    result = kernel(extension, how)
    assert (result.status, result.kernel_status) == ("loads", "ok")
    assert result.device == "Fake H100, compute capability 9.0"
    assert "float16: largest difference from float32 0.001, allowed 0.005" in result.kernel_detail
    assert "bfloat16: largest difference from float32 0.001, allowed 0.03" in result.kernel_detail


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("wrong", "failed", "wrong result of flash_attn.flash_attn_func in float16"),
        ("nan", "failed", "largest difference from float32 nan"),
        ("raise", "failed", "no kernel image is available for execution on the device"),
        ("segfault", "crashed", "crashed with SIGSEGV while launching a kernel"),
        ("hang", "hung", "did not finish within 4 s while launching a kernel"),
        ("no-einops", "not-run", "import flash_attn failed: ImportError: No module named 'einops'"),
        ("unused", "not-run", "import flash_attn did not load the file under test"),
    ],
)
def test_a_file_loads_whatever_its_kernel_does(
    extension: str, how: str, status: str, words: str
) -> None:
    result = kernel(extension, how, timeout_s=SHORT_S if how == "hang" else 60.0)
    assert (result.status, result.kernel_status) == ("loads", status)
    assert words in result.kernel_detail


def test_a_kernel_of_another_copy_is_not_launched(build: Build, extension: str) -> None:
    other = build("good", to="elsewhere/flash_attn_2_cuda.so")
    path = os.pathsep.join([str(FAKE), os.path.dirname(extension)])
    result = kernel(other, "segfault", PYTHONPATH=path)
    assert (result.status, result.kernel_status) == ("loads", "not-run")
    assert result.kernel_detail == (
        f"import flash_attn_2_cuda would load {extension}, not the file under test"
    )


def test_a_file_that_is_not_installed_is_not_launched(extension: str) -> None:
    result = kernel(extension, "segfault", PYTHONPATH=str(FAKE))
    assert (result.status, result.kernel_status) == ("loads", "not-run")
    assert "finds no module flash_attn_2_cuda" in result.kernel_detail


def test_a_broken_driver_leaves_the_verdict_on_the_file_alone(extension: str) -> None:
    result = kernel(extension, "right", FAKE_CUDA="broken")
    assert (result.status, result.device) == ("loads", None)
    assert result.kernel_status == "not-run"
    assert "CUDA unknown error" in result.kernel_detail


def test_an_unknown_file_has_no_kernel_to_launch(build: Build) -> None:
    result = load_with_torch(build("good"), FAKE_CUDA="1")
    assert (result.status, result.kernel_status) == ("loads", "not-run")
    assert "no kernel of this file is known" in result.kernel_detail


def report_of(path: str) -> list[dict[str, Any]]:
    """The messages of a child that is run without the parent."""
    read_end, write_end = os.pipe()
    job: dict[str, Any] = {"path": path, "report_fd": write_end, "nonce": "n", "needs_torch": False}
    job |= {"timeout_s": 60, "adapter": None}
    command = [sys.executable, "-B", str(CHILD), json.dumps(job)]
    subprocess.run(command, pass_fds=(write_end,), check=False)
    os.close(write_end)
    with open(read_end) as report:
        return [json.loads(line) for line in report if line != "\n"]


def test_every_risky_step_is_reported_before_it_is_taken(build: Build) -> None:
    lines = report_of(build("segfault"))
    assert [(line["step"], line["status"]) for line in lines] == [
        ("start", "ok"),
        ("import-torch", "not-run"),
        ("maps", "begin"),
        ("maps", "ok"),
        ("dlopen", "begin"),
    ]
