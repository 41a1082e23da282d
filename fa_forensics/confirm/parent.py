"""Confirm a verdict by a real dlopen: run `child.py` in the inspected environment and judge it.

`confirm` never raises for what the file, the interpreter or torch may do: all of it is data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fa_forensics.confirm.judge import how_it_ended, judge, messages, signal_name, tail_text
from fa_forensics.confirm.model import Confirmation, Step
from fa_forensics.confirm.process import Ending, run

PROBE_S = 5.0  # to ask an interpreter for its version

__all__ = ["Confirmation", "Step", "confirm"]


def confirm(
    path: str,
    python: str,
    *,
    needs_torch: bool,
    timeout_s: float = 60.0,
    env: Mapping[str, str] | None = None,
    preload: Sequence[str] = (),
) -> Confirmation:
    """Load `path` in a child process of the interpreter `python` and say what happened.

    `needs_torch`: import torch first, as a program that uses the file does. `env` is the child's
    whole environment, the caller's own if None. `preload` is opened before `path`, as a package
    does with its own libraries. This executes code: the file's static
    initialisers and its libraries', torch, and the package of a known kernel.
    """
    if not sys.platform.startswith("linux"):
        return Confirmation("not-run", "A file can be loaded for real on Linux only.")
    folder = current_folder()
    if folder is None:
        for one in (path, *preload, *([python] if "/" in python else [])):
            if not os.path.isabs(one):
                return Confirmation("not-run", f"The current folder is gone, and {one} with it.")
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        return Confirmation("not-run", f"There is no file {path} to load.")
    interpreter = find_interpreter(python, env)
    if interpreter is None:
        return Confirmation("not-run", f"There is no Python interpreter {python} to load it with.")
    environment = dict(os.environ if env is None else env)
    if folder is not None:  # else a relative search path leads nowhere, as it does from the child
        environment = absolute_paths(environment, folder)
    nonce = os.urandom(16).hex()
    job = {
        "path": path,
        "nonce": nonce,
        "needs_torch": needs_torch,
        "timeout_s": timeout_s,
        "adapter": adapter_for(path),
        "preload": [os.path.abspath(library) for library in preload],
    }
    try:
        ending = run(lambda fd: command(interpreter, job, fd), environment, timeout_s)
    except OSError as error:
        text = error.strerror or str(error)
        return Confirmation("not-run", f"The interpreter {python} cannot be started: {text}.")
    if not messages(ending.report, nonce):
        return never_started(interpreter, environment, ending)
    return judge(path, ending, timeout_s, nonce)


def current_folder() -> str | None:
    """The current folder; None if it was deleted or cannot be read."""
    try:
        return os.getcwd()
    except OSError:
        return None


def command(interpreter: str, job: Mapping[str, Any], report_fd: int) -> Sequence[str]:
    """The command line of the child."""
    import json

    child = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
    return [interpreter, "-B", child, json.dumps({**job, "report_fd": report_fd})]


def find_interpreter(python: str, env: Mapping[str, str] | None) -> str | None:
    """The interpreter's absolute path, its symbolic links kept (a venv's Python is one)."""
    import shutil

    if "/" in python:
        python = os.path.abspath(python)
        return python if os.path.isfile(python) else None
    return shutil.which(python, path=None if env is None else env.get("PATH"))


def absolute_paths(env: Mapping[str, str], folder: str) -> dict[str, str]:
    """The environment with relative search paths made absolute, for the child runs elsewhere.

    ld.so takes an empty item of LD_LIBRARY_PATH for the current folder (ld.so(8)). An empty item
    of PYTHONPATH stays: it must not make the child import a folder that merely lies about.
    """
    result = dict(env)
    for name, separators in (("LD_LIBRARY_PATH", ":;"), ("LD_PRELOAD", ": "), ("PYTHONPATH", ":")):
        value = result.get(name)
        if not value:
            continue
        for other in separators[1:]:
            value = value.replace(other, separators[0])
        items = value.split(separators[0])
        result[name] = separators[0].join(absolute_item(name, one, folder) for one in items)
    return result


def absolute_item(name: str, item: str, folder: str) -> str:
    """One item of a search path, absolute where it names a place relative to the folder."""
    if item.startswith(("/", "$")):  # ld.so expands $ORIGIN and its like by itself
        return item
    if name == "LD_LIBRARY_PATH":
        return os.path.join(folder, item) if item else folder
    if name == "LD_PRELOAD":  # a bare name is looked for as a needed library is
        return os.path.join(folder, item) if "/" in item else item
    return os.path.join(folder, item) if item else item


def adapter_for(path: str) -> dict[str, Any] | None:
    """How to launch a kernel of this file; None if no such thing is known."""
    import json

    stem = os.path.basename(path).split(".")[0]
    parts = [*os.path.dirname(path).split("/"), stem]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "adapters.json")) as file:
        adapters: list[dict[str, Any]] = json.load(file)["adapters"]
    names = {tuple(one["module"].split(".")): one for one in adapters}
    for length in range(max(len(name) for name in names), 0, -1):  # the longest name is the truest
        found = names.get(tuple(parts[-length:]))
        if found is not None:
            return found
    return None


def never_started(interpreter: str, env: Mapping[str, str], ending: Ending) -> Confirmation:
    """No step was reported: the interpreter is too old, broken, or no Python at all."""
    version = None if ending.timed_out else old_version(interpreter, env)
    if version:
        detail = f"{interpreter} is Python {version}; loading a file for real takes 3.8 or later."
    else:
        ended = how_it_ended(ending)
        detail = f"{interpreter} is no working Python: it {ended} before it ran anything."
    return Confirmation(
        "not-run",
        detail,
        signal=signal_name(ending.signal),
        exit_code=ending.exit_code,
        elapsed_ms=ending.elapsed_ms,
        stdout_tail=tail_text(ending.stdout_tail),
        stderr_tail=tail_text(ending.stderr_tail),
    )


def old_version(interpreter: str, env: Mapping[str, str]) -> str | None:
    """Such as "2.7", of a Python too old to read the child; None for anything else."""
    script = "import sys; print('python %d.%d' % sys.version_info[:2])"
    try:
        said = run(lambda _: [interpreter, "-c", script], env, PROBE_S).stdout_tail
    except OSError:  # it started a moment ago; if it is gone now, its version is moot
        return None
    words = tail_text(said).split()
    if len(words) != 2 or words[0] != "python":
        return None
    major, _, minor = words[1].partition(".")
    if not (major.isdecimal() and minor.isdecimal()) or (int(major), int(minor)) >= (3, 8):
        return None
    return words[1]
