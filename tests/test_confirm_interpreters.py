"""Which interpreters can confirm: old and new Pythons, and what is none."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fa_forensics.confirm.parent import absolute_paths, adapter_for, confirm

CHILD = Path(__file__).parent.parent / "fa_forensics" / "confirm" / "child.py"


def working_python(version: str) -> str:
    """The path of a Python release that runs; skips the test if there is none."""
    name = f"python{version}"
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    if subprocess.run([path, "-c", ""], capture_output=True).returncode != 0:
        pytest.skip(f"{name} is installed but does not run")
    return path


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    target = tmp_path_factory.mktemp("interpreters") / "good.so"
    source = Path(__file__).parent / "sources" / "confirm" / "good.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    return str(target)


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_child_runs_under(version: str, library: str) -> None:
    result = confirm(library, working_python(version), needs_torch=False)
    assert result.status == "loads", result
    assert f"under Python {version}." in result.detail
    assert result.stderr_tail == ""


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_a_python_too_old_is_named(version: str, library: str) -> None:
    result = confirm(library, working_python(version), needs_torch=False)
    assert result.status == "not-run"
    assert version in result.detail
    assert "3.8" in result.detail


def test_the_child_keeps_to_the_syntax_of_python_3_8() -> None:
    tree = ast.parse(CHILD.read_text(), feature_version=(3, 8))
    assert tree.body


def test_the_child_imports_nothing_but_the_standard_library() -> None:
    imported = set()
    for node in ast.walk(ast.parse(CHILD.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    assert "json" in imported
    assert imported <= set(sys.stdlib_module_names)


def script(folder: Path, text: str, mode: int = 0o755) -> str:
    path = folder / "python"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_missing_interpreter_is_named(library: str, tmp_path: Path) -> None:
    for python in (str(tmp_path / "python"), str(tmp_path), "no-such-python"):
        result = confirm(library, python, needs_torch=False)
        assert result.status == "not-run"
        assert result.detail == f"There is no Python interpreter {python} to load it with."


def test_an_interpreter_that_may_not_be_executed_is_told(library: str, tmp_path: Path) -> None:
    result = confirm(library, script(tmp_path, "#!/bin/sh\n", mode=0o644), needs_torch=False)
    assert result.status == "not-run"
    assert "cannot be started: Permission denied" in result.detail


def test_an_interpreter_of_another_format_is_told(library: str, tmp_path: Path) -> None:
    result = confirm(library, script(tmp_path, "\x7fELF nothing"), needs_torch=False)
    assert result.status == "not-run"
    assert "cannot be started: Exec format error" in result.detail


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\n", "no working Python: it exited with code 0 before it ran anything"),
        ("#!/bin/sh\necho oops >&2; exit 9\n", "it exited with code 9 before it ran anything"),
        ("#!/bin/sh\nkill -SEGV $$\n", "it crashed with SIGSEGV before it ran anything"),
        ('#!/bin/sh\n[ "$1" = -c ] && echo python 2.6\n', "is Python 2.6; loading a file"),
    ],
)
def test_a_program_that_is_no_python_is_told(
    library: str, tmp_path: Path, text: str, words: str
) -> None:
    result = confirm(library, script(tmp_path, text), needs_torch=False)
    assert result.status == "not-run"
    assert words in result.detail


def test_a_program_that_only_waits_is_told(library: str, tmp_path: Path) -> None:
    sleeper = script(tmp_path, "#!/bin/sh\nexec sleep 60\n")
    result = confirm(library, sleeper, needs_torch=False, timeout_s=1.0)
    assert result.status == "not-run"
    assert "it did not finish in time before it ran anything" in result.detail


def test_a_missing_file_is_not_run(tmp_path: Path) -> None:
    result = confirm(str(tmp_path / "gone.so"), sys.executable, needs_torch=False)
    assert (result.status, result.exit_code, result.steps) == ("not-run", None, ())
    assert str(tmp_path / "gone.so") in result.detail


def test_a_bare_name_is_looked_for_on_the_path_of_the_given_environment(
    library: str, tmp_path: Path
) -> None:
    script(tmp_path, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    result = confirm(library, "python", needs_torch=False, env={"PATH": str(tmp_path)})
    assert result.status == "loads"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("LD_LIBRARY_PATH", "lib:/usr/lib::$ORIGIN/x", "/here/lib:/usr/lib:/here:$ORIGIN/x"),
        ("LD_LIBRARY_PATH", "a;b", "/here/a:/here/b"),
        ("LD_LIBRARY_PATH", "", ""),
        ("LD_PRELOAD", "libm.so.6 ./x.so", "libm.so.6:/here/./x.so"),
        ("PYTHONPATH", "src::/opt", "/here/src::/opt"),
        ("PATH", "bin", "bin"),
    ],
)
def test_relative_search_paths_are_made_absolute(name: str, value: str, expected: str) -> None:
    assert absolute_paths({name: value}, "/here") == {name: expected}


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", "flash_attn_2_cuda"),
        ("vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", "vllm_flash_attn_2_cuda"),
        ("flash_attn_3/_C.abi3.so", "flash_attn_3._C"),
        ("fa3_fwd/_C.abi3.so", "fa3_fwd._C"),
        ("xformers/_C.so", "xformers._C"),
        ("xformers/_C_flashattention.so", "xformers._C_flashattention"),
        ("xformers/flash_attn_3/_C.so", "xformers.flash_attn_3._C"),
        ("torchvision/_C.so", None),
        ("_C.so", None),
        ("flash_attn/__init__.py", None),
    ],
)
def test_a_known_extension_is_told_by_its_module_name(path: str, module: str | None) -> None:
    found = adapter_for(os.path.join("/lib/python3.11/site-packages", path))
    assert (found["module"] if found else None) == module
