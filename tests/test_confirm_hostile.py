"""The confirmation of files that work against it, and of a caller that is stopped meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fa_forensics.confirm.model import Confirmation
from fa_forensics.confirm.parent import confirm

ROOT = Path(__file__).parent.parent
SOURCES = Path(__file__).parent / "sources" / "confirm"
Build = Callable[..., str]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Compile one of the C sources to a shared object; gives its path."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")

    def compile_one(name: str, *options: str) -> str:
        target = tmp_path / f"{name}.so"
        source = str(SOURCES / f"{name}.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", target, source, *options], check=True)
        return str(target)

    return compile_one


def load(path: str, timeout_s: float = 60.0, **variables: str) -> Confirmation:
    env = {**os.environ, **variables}
    return confirm(path, sys.executable, needs_torch=False, timeout_s=timeout_s, env=env)


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


@pytest.mark.parametrize("size", [13, 1 << 20])
def test_bytes_written_on_the_report_do_not_hide_the_load(build: Build, size: int) -> None:
    result = load(build("litter", f"-DSIZE={size}", "-DCOUNT=1"))
    assert (result.status, result.exit_code) == ("loads", 0)


def test_a_report_filled_to_its_limit_is_damaged_and_not_held_against_the_file(
    build: Build,
) -> None:
    result = load(build("litter", "-DSIZE=1048576", "-DCOUNT=5"))
    assert (result.status, result.exit_code) == ("not-run", 0)
    assert "the report was damaged" in result.detail


def test_a_file_that_closes_the_report_is_not_blamed_for_the_childs_own_error(
    build: Build,
) -> None:
    result = load(build("shut"))
    assert result.status == "not-run"
    assert "the file closed the descriptor that the report goes through" in result.detail


def test_nothing_is_written_to_a_file_opened_in_place_of_the_report(
    build: Build, tmp_path: Path
) -> None:
    file = tmp_path / "own"
    result = load(build("shut", "-DREUSE"), SHUT_FILE=str(file))
    assert result.status == "not-run"
    assert "the file closed the descriptor that the report goes through" in result.detail
    assert file.read_bytes() == b""


def test_a_forged_happy_end_is_not_believed(build: Build) -> None:
    result = load(build("forge"))
    assert (result.status, result.signal) == ("crashed", "SIGABRT")
    assert "crashed with SIGABRT while dlopening forge.so" in result.detail


@pytest.mark.parametrize("options", [(), ("-DWAIT",)])
def test_a_process_in_a_session_of_its_own_is_ended_too(
    build: Build, tmp_path: Path, options: tuple[str, ...]
) -> None:
    note = tmp_path / "pid"
    result = load(build("daemon", *options), timeout_s=5.0, DAEMON_PID_FILE=str(note))
    assert result.status == ("hung" if options else "loads")
    assert is_gone(int(note.read_text()))


def from_a_deleted_folder(folder: Path, *arguments: str) -> str:
    """What a confirmation says in a process whose current folder is gone."""
    script = (
        "import os, sys\n"
        "from fa_forensics.confirm.parent import confirm\n"
        "os.rmdir(os.getcwd())\n"
        "result = confirm(sys.argv[1], sys.executable, needs_torch=False, preload=sys.argv[2:])\n"
        "print(result.status, result.detail)\n"
    )
    folder.mkdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": "lib:"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout


def test_a_deleted_current_folder_does_not_matter_to_absolute_paths(
    build: Build, tmp_path: Path
) -> None:
    assert from_a_deleted_folder(tmp_path / "gone", build("good")).startswith("loads good.so")


def test_a_deleted_current_folder_is_told_where_a_path_needs_it(
    build: Build, tmp_path: Path
) -> None:
    said = from_a_deleted_folder(tmp_path / "gone", "good.so")
    assert said == "not-run The current folder is gone, and good.so with it.\n"
    said = from_a_deleted_folder(tmp_path / "gone", build("good"), "lib.so")
    assert said == "not-run The current folder is gone, and lib.so with it.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_caller_that_is_stopped_leaves_no_process_and_no_folder(
    build: Build, tmp_path: Path, number: signal.Signals
) -> None:
    script = (
        "import signal, sys\n"
        "from fa_forensics.confirm.parent import confirm\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "confirm(sys.argv[1], sys.executable, needs_torch=False)\n"
    )
    path, note, folder = build("hang"), tmp_path / "pid", tmp_path / "tmp"
    folder.mkdir()
    variables = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "HANG_PID_FILE": str(note)}
    command = [sys.executable, "-c", script, path]
    with subprocess.Popen(
        command, env={**os.environ, **variables}, stderr=subprocess.DEVNULL
    ) as caller:
        for _ in range(600):
            if note.exists() and note.read_text():
                break
            time.sleep(0.05)
        started = list(folder.iterdir())
        caller.send_signal(number)
        assert caller.wait(20) == (143 if number == signal.SIGTERM else -signal.SIGINT)
    assert len(started) == 1
    assert list(folder.iterdir()) == []
    assert is_gone(int(note.read_text()))
