"""Shims and wrapper scripts are followed; what is no Python, or cannot be read, is named."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from trees import environ, interpreter_bytes, make_prefix, make_venv, shared_object

from fa_forensics.errors import EnvironmentNotFound
from fa_forensics.facts.environment import Environment, find_environment


def look(python: str | os.PathLike[str], **variables: str | os.PathLike[str]) -> Environment:
    return find_environment(os.fspath(python), None, environ(**variables))


def test_pyenv_shim_is_followed_to_the_selected_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "pyenv"
    for version in ("3.10.13", "3.11.7"):
        make_prefix(root / "versions" / version, version[:4])
    shim = root / "shims" / "python"
    shim.parent.mkdir()
    for name in ("python", "python3.10"):
        (shim.parent / name).write_text(
            f'#!/usr/bin/env bash\nexport PYENV_ROOT="{root}"\n'
            f'exec "{root}/libexec/pyenv" exec "$program" "$@"\n'
        )
        (shim.parent / name).chmod(0o755)
    (root / "version").write_text("3.11.7\n")
    work = tmp_path / "work" / "deep"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    assert look(shim).prefix == str(root / "versions" / "3.11.7")
    (tmp_path / "work" / ".python-version").write_text("3.10.13\n")
    assert look(shim).prefix == str(root / "versions" / "3.10.13")
    assert look(shim, PYENV_VERSION="3.11.7").prefix == str(root / "versions" / "3.11.7")
    with pytest.raises(EnvironmentNotFound, match="selects here .3.11.7. has no python3.10") as no:
        look("python3.10", PYENV_VERSION="3.11.7", PATH=shim.parent)
    assert no.value.hint == (
        f"give the interpreter itself: --python {root}/versions/3.10.13/bin/python3.10"
    )


def test_an_empty_argument_names_no_environment() -> None:
    with pytest.raises(EnvironmentNotFound, match="an empty argument names no Python environment"):
        look("")


def test_wrapper_script_is_followed_to_the_python_it_starts(tmp_path: Path) -> None:
    binary = make_prefix(tmp_path / "base")
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nset -e\nexec "{binary}" "$@"\n')
    assert look(wrapper).prefix == str(tmp_path / "base")
    wrapper.write_text('#!/bin/sh\nexec /no/bin/python3 "$@"\n')
    with pytest.raises(EnvironmentNotFound, match="starts /no/bin/python3, which does not exist"):
        look(wrapper)
    wrapper.write_text(f'#!/bin/sh\nexec "{wrapper}" "$@"\n')  # starts itself
    with pytest.raises(EnvironmentNotFound, match="is a script, not a Python interpreter"):
        look(wrapper)


@pytest.mark.parametrize("name", ["python", "python2", "wrapper"])
@pytest.mark.parametrize("line", ['exec "{}" "$@"', "exec '{}' -B \"$@\"", 'exec -a "$0" {} "$@"'])
def test_wrapper_of_a_python_below_a_pyenv_root_is_no_shim(
    tmp_path: Path, name: str, line: str
) -> None:
    """Judged is the Python it starts, whatever pyenv selects and whatever its own name."""
    root = tmp_path / ".pyenv"
    binary = make_prefix(root / "versions" / "3.12.1", "3.12")
    make_prefix(root / "versions" / "3.11.7", "3.11")
    wrapper = tmp_path / name
    wrapper.write_text(f"#!/bin/sh\n# not exec /usr/bin/python3\n{line.format(binary)}\n")
    found = look(wrapper, PYENV_VERSION="3.11.7", PYENV_ROOT=root)
    assert (found.prefix, found.version_short) == (str(root / "versions" / "3.12.1"), "3.12")


@pytest.mark.parametrize(
    "body",
    [
        "exec something-else",
        'exec "$HOME/.pyenv/versions/3.12.1/bin/python" "$@"',
        'export PYENV_ROOT=/opt/pyenv\nexec python3.12 "$@"',
        '[ -n "$OLD" ] && exec python3.9 "$@"\nexec {} "$@"',
        'if true; then\n  exec /opt/bin/python3.9 "$@"\nfi\nexec {} "$@"',
        "# pyenv: exec {}",
    ],
)
def test_script_that_does_not_plainly_name_its_python_is_refused(tmp_path: Path, body: str) -> None:
    wrapper = tmp_path / "python2"
    wrapper.write_text(f"#!/bin/sh\n{body.format(make_prefix(tmp_path / 'base'))}\n")
    with pytest.raises(EnvironmentNotFound) as caught:
        look(wrapper, PATH=tmp_path / "base" / "bin")
    assert caught.value.message == (
        f"{wrapper} is a script, not a Python interpreter, and it does not plainly say which one "
        "it starts"
    )


@pytest.mark.parametrize(
    "text", ["\n", " ", "exec /", "exec /\n", "exec -a ", "exec '/\n", "exec "]
)
def test_hostile_script_costs_little_time(tmp_path: Path, text: str) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text("#!" + text * (100_000 // len(text)))
    start = time.process_time()
    with pytest.raises(EnvironmentNotFound, match="is a script, not a Python interpreter"):
        look(wrapper)
    assert time.process_time() - start < 5


def test_script_may_name_the_program_that_pyenv_runs(tmp_path: Path) -> None:
    root = tmp_path / "pyenv"
    make_prefix(root / "versions" / "3.12.1", "3.12")
    wrapper = tmp_path / "tool"
    wrapper.write_text(f'#!/bin/sh\nPYENV_ROOT={root}\nexec pyenv exec python3.12 "$@"\n')
    found = look(wrapper, PYENV_VERSION="3.12.1")
    assert found.prefix == str(root / "versions" / "3.12.1")


@pytest.mark.parametrize("place", ["pyvenv.cfg", "x.pth", "patchlevel.h", "python"])
def test_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, place: str) -> None:
    site = make_venv(tmp_path / "env", make_prefix(tmp_path / "base"))
    include = tmp_path / "base" / "include" / "python3.11"
    include.mkdir(parents=True)
    folder = {"x.pth": site, "patchlevel.h": include, "python": tmp_path}
    pipe = folder.get(place, tmp_path / "env") / place
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    if place == "pyvenv.cfg":
        with pytest.raises(EnvironmentNotFound, match=f"{pipe} is not a regular file"):
            look(tmp_path / "env")
    elif place == "python":
        with pytest.raises(EnvironmentNotFound, match=f"{pipe} is not a regular file"):
            look(pipe)
    else:
        notes = (f"cannot read {pipe}: not a regular file",) if place == "x.pth" else ()
        assert look(tmp_path / "env").notes == notes


@contextmanager
def closed(directory: Path) -> Iterator[None]:
    """A directory that whoever runs the tests, root too, may not look into."""
    directory.chmod(0)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65_534)
        yield
    finally:
        if root:
            os.seteuid(0)
        directory.chmod(0o755)


def test_place_that_may_not_be_looked_at_is_not_said_to_be_absent() -> None:
    # Below /tmp itself: pytest's own directories are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        binary = make_prefix(top / "private" / "base")
        make_venv(top / "env", binary)
        cases = {
            top / "private" / "base": f"{top}/private/base",
            top / "private" / "absent": f"{top}/private/absent",
            top / "private": f"{top}/private",
            top / "env": f"{binary}, which {top}/env/bin/python leads to",
        }
        make_prefix(top / "conda")
        variables = environ(VIRTUAL_ENV=top / "private", CONDA_PREFIX=top / "conda")
        messages = {}
        with closed(top / "private"):
            for place in cases:
                with pytest.raises(EnvironmentNotFound) as caught:
                    look(place)
                messages[place] = caught.value.message
            notes = find_environment(None, None, variables).notes
    assert messages == {
        place: f"this user may not look at {what}: permission denied"
        for place, what in cases.items()
    }
    assert notes == (f"VIRTUAL_ENV is {top}/private, which this user may not look into: not used",)


def test_removed_current_directory_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "pyenv"
    make_prefix(root / "versions" / "3.11.7")
    (root / "shims").mkdir()
    (root / "shims" / "python3").write_text(
        f'#!/bin/sh\nexport PYENV_ROOT="{root}"\nexec "{root}/libexec/pyenv" exec "$program" "$@"\n'
    )
    (root / "shims" / "python3").chmod(0o755)
    (root / "version").write_text("3.11.7\n")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    variables = {"PATH": f"{os.pathsep}{root / 'shims'}", "PYTHONPATH": "src"}
    assert look("python3", **variables).prefix == str(root / "versions" / "3.11.7")
    with pytest.raises(EnvironmentNotFound, match="./python3 does not exist"):
        look("./python3")
    with pytest.raises(EnvironmentNotFound, match=". is a directory with no Python in it"):
        look(".")
    assert find_environment(None, "x.so", environ(VIRTUAL_ENV="env")).python == sys.executable


def test_refusals_are_one_sentence(tmp_path: Path) -> None:
    make_prefix(tmp_path / "base")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    (tmp_path / "nothing").write_bytes(b"")
    (tmp_path / "base" / "bin" / "tool").write_bytes(shared_object())
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "python").write_bytes(interpreter_bytes())
    (tmp_path / "dangling").symlink_to(tmp_path / "removed" / "bin" / "python3.11")
    (tmp_path / "loop").symlink_to("loop")
    cases = {
        "missing": "does not exist",
        "empty": "is a directory with no Python in it",
        "text": "is no Python interpreter: .* is not an ELF file",
        "nothing": r"is empty \(0 bytes\)",
        "base/bin/tool": "is no Python interpreter: the file is another program",
        "dangling": "which does not exist: its Python was removed",
        "loop": "which does not exist",
    }
    for name, message in cases.items():
        with pytest.raises(EnvironmentNotFound, match=message) as caught:
            look(tmp_path / name)
        assert "\n" not in caught.value.message and caught.value.exit_code == 2
    with pytest.raises(EnvironmentNotFound, match="no program named no-such-python is on PATH"):
        look("no-such-python")
