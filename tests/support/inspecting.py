"""Runs of ``inspect`` and ``why`` for tests: through the library, as JSON, through the shell."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.material import husk_file, stub

import fa_forensics.render
from fa_forensics.pipeline import Options, inspect
from fa_forensics.render.json import dumps, inspect_document

ROOT = Path(__file__).parent.parent.parent


@cache
def validator() -> Any:
    """A validator of schema version 1."""
    jsonschema = importlib.import_module("jsonschema")  # it ships no types
    path = Path(fa_forensics.render.__file__).parent / "schema-v1.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def document_of(path: Path, python: Path, **options: Any) -> dict[str, Any]:
    """The JSON document of an inspection without confirmation, checked against the schema."""
    report = inspect([str(path)], Options(python=str(python), confirm=False, **options), {})
    document: dict[str, Any] = json.loads(dumps(inspect_document(report)))
    validator().validate(document)
    return document


@cache
def husk_under(identity: str, version: str) -> dict[str, Any]:
    """The target object of a husk inspected under a stand-in torch."""
    (target,) = document_of(husk_file(identity), stub(version).python)["targets"]
    return dict(target)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the command line in a process of its own."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """stdout as a JSON document that keeps to the schema."""
        loaded: dict[str, Any] = json.loads(self.stdout)
        validator().validate(loaded)
        return loaded


def run(
    *arguments: str | bytes | os.PathLike[str],
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
) -> Run:
    """``python -m fa_forensics ARGUMENTS`` in a clean environment."""
    variables = {
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8", **(environment or {}),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "fa_forensics", *arguments],
        capture_output=True, env=variables, cwd=cwd or ROOT, timeout=timeout,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Run(
        done.returncode,
        done.stdout.decode("utf-8", "surrogateescape"),
        done.stderr.decode("utf-8", "surrogateescape"),
    )


def invoke(*arguments: str | os.PathLike[str]) -> Run:
    """The command line inside this process; an exception that leaves it fails the test."""
    from click.testing import CliRunner

    from fa_forensics.cli import main

    try:
        runner = CliRunner(mix_stderr=False)  # type: ignore[call-arg, unused-ignore]
    except TypeError:  # click 8.2 and later keep the two apart always
        runner = CliRunner()
    result = runner.invoke(main, [os.fspath(part) for part in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Run(result.exit_code, result.stdout, result.stderr)


def one_sentence(run: Run) -> str:
    """The message on stderr, checked to be one sentence and at most one line of help."""
    lines = run.stderr.splitlines()
    assert 1 <= len(lines) <= 2, run.stderr
    assert lines[0].startswith("fa-forensics: ") and len(lines[0]) > 20
    assert len(lines) == 1 or lines[1].startswith("  help: ")
    assert "Traceback (most recent" not in run.stderr + run.stdout
    return lines[0].removeprefix("fa-forensics: ")
