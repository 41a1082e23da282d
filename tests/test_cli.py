"""The command line: streams, exit codes, formats, help; in own processes where it matters."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.inspecting import ROOT, husk_under, invoke, run
from support.material import husk_file, stub, tiny_file

import fa_forensics
from fa_forensics.cli import exit_code
from fa_forensics.report import Finding, Report, TargetReport

TORCH = "2.4.0+cu121"
FAILING = "autoawq_kernels-0.0.4:awq_ext.cpython-311-x86_64-linux-gnu.so"
LINKING = "autoawq_kernels-0.0.9:awq_ext.cpython-311-x86_64-linux-gnu.so"


def python() -> str:
    return str(stub(TORCH).python)


# --- exit codes ---------------------------------------------------------------------------------


def report(*targets: tuple[str, list[str], str | None]) -> Report:
    """(verdict, severities, problem) of each target."""
    return Report("1", None, tuple(
        TargetReport("x", None, verdict, "h", problem=problem, findings=tuple(
            Finding("FA000", severity, "high", "t") for severity in severities))
        for verdict, severities, problem in targets
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "fail_on", "code"),
    [
        ([("loads", [], None)], "error", 0),
        ([("fails", ["error"], None)], "error", 1),
        ([("fails", ["error"], None)], "never", 0),
        ([("links", ["warning"], None)], "error", 0),
        ([("links", ["warning"], None)], "warning", 1),
        ([("links", ["note"], None)], "warning", 0),
        ([("links", ["note"], None)], "note", 1),
        ([("inconclusive", [], None)], "error", 4),
        ([("inconclusive", [], "cannot read")], "error", 3),
        ([("fails", ["error"], "cut short")], "error", 3),
        ([("loads", [], None), ("inconclusive", [], "cannot read")], "error", 3),
        ([("fails", ["error"], None), ("inconclusive", [], "cannot read")], "error", 1),
        ([("loads", [], None), ("inconclusive", [], None)], "error", 4),
        ([("inconclusive", [], None), ("inconclusive", [], "cannot read")], "error", 3),
    ],
)
def test_exit_codes_are_those_of_the_public_table(
    targets: list[tuple[str, list[str], str | None]], fail_on: str, code: int
) -> None:
    assert exit_code(report(*targets), fail_on) == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["inspect", str(FAILING)], 1),
        (["inspect", "--fail-on", "never", str(FAILING)], 0),
        (["inspect", str(LINKING)], 0),
        (["why", "cudaMalloc"], 0),
    ],
)
def test_exit_codes_of_real_runs(arguments: list[str], code: int) -> None:
    parts = [str(husk_file(part)) if ":" in part else part for part in arguments]
    result = run(parts[0], "--python", python(), *parts[1:])
    assert (result.code, result.stderr) == (code, "")
    assert result.stdout


# --- streams and formats ------------------------------------------------------------------------


def test_json_in_a_process_of_its_own_is_the_document_and_nothing_else() -> None:
    result = run(
        "inspect", "--no-confirm", "--python", python(), "--format", "json", husk_file(FAILING)
    )
    assert result.stderr == ""
    (target,) = result.document["targets"]
    assert target == husk_under(FAILING, TORCH)
    result.stdout.encode("ascii")
    assert result.stdout.endswith("}\n")


def test_several_targets_stand_in_the_order_they_were_given() -> None:
    paths = [str(husk_file(LINKING)), str(tiny_file("whole")), str(husk_file(FAILING))]
    result = invoke("inspect", "--python", python(), "--format", "json", *paths)
    assert [target["path"] for target in result.document["targets"]] == paths


def test_a_directory_is_searched_for_extensions(tmp_path: Path) -> None:
    for name in ("a/_C.abi3.so", "b/c/ext.cpython-311-x86_64-linux-gnu.so"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(tiny_file("wrong-init-name"), tmp_path / name)
    (tmp_path / "readme.txt").write_text("nothing")
    result = invoke("inspect", "--python", python(), "--format", "json", tmp_path)
    assert len(result.document["targets"]) == 2


def test_text_is_plain_in_a_pipe_and_coloured_on_demand() -> None:
    arguments = ["inspect", "--python", python(), str(husk_file(FAILING))]
    plain = run(*arguments)
    assert "\x1b" not in plain.stdout
    colored = run(*arguments, "--color")
    assert "\x1b[" in colored.stdout
    assert run(*arguments, "--no-color", environment={"FORCE_COLOR": "1"}).stdout == plain.stdout


def test_the_text_leads_with_the_verdict_and_gives_the_evidence() -> None:
    text = run("inspect", "--python", python(), husk_file(FAILING)).stdout
    assert "fails" in text
    assert "error[FA201]" in text
    assert "_ZN3c104cuda9SetDeviceEi" in text
    assert "SetDevice(signed char)" in text
    assert "not-run" in text, "why nothing was loaded is always printed"


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "fa_forensics", "inspect", "--python", python(), "-v",
               str(husk_file(FAILING))]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b"" and process.returncode in (0, 1)


def test_an_ascii_terminal_gets_no_encoding_error() -> None:
    for locale in ("C", "POSIX"):
        result = run(
            "inspect", "--python", python(), husk_file(FAILING),
            environment={"LC_ALL": locale, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )  # fmt: skip
        assert (result.code, result.stderr) == (1, "")
        assert "2.1.0 - 2.2.2" in result.stdout and "\\u20" not in result.stdout


# --- what is executed ---------------------------------------------------------------------------


def test_nothing_of_the_environment_or_the_file_is_executed() -> None:
    """The stand-in torch raises when it is imported, and loading a husk kills the process."""
    result = run("inspect", "--python", python(), "--format", "json", husk_file(LINKING))
    confirm = result.document["targets"][0]["confirm"]
    assert confirm["status"] == "not-run"
    assert "--confirm" in confirm["detail"]


def test_no_confirm_says_that_it_was_switched_off() -> None:
    result = invoke(
        "inspect", "--python", python(), "--no-confirm", "--format", "json", tiny_file("whole")
    )
    assert "--no-confirm" in result.document["targets"][0]["confirm"]["detail"]


def test_confirm_loads_the_file_for_real() -> None:
    base = os.path.realpath(sys.executable)
    for name, status, verdict in (
        ("whole", "confirmed", "loads"),
        ("missing-symbol", "confirmed", "fails"),
        ("init-segfault", "refuted", "fails"),
    ):
        result = invoke(
            "inspect", "--python", base, "--confirm", "--format", "json", tiny_file(name)
        )
        (target,) = result.document["targets"]
        assert (target["confirm"]["status"], target["verdict"]) == (status, verdict), name


# --- finding the environment --------------------------------------------------------------------


def test_the_environment_is_that_of_virtual_env() -> None:
    tree = stub(TORCH)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        result = run(
            "inspect", "--format", "json", husk_file(LINKING),
            environment={variable: str(tree.root)},
        )  # fmt: skip
        environment = result.document["environment"]
        assert environment["torch"]["version"] == TORCH
        assert environment["found_by"] == variable


def test_a_file_in_an_environment_is_judged_there(tmp_path: Path) -> None:
    """Without any choice, a file among the packages of an environment brings that one along."""
    tree = stub(TORCH)
    copy = tmp_path / "env"
    shutil.copytree(tree.root, copy, symlinks=True)
    target = copy / "lib/python3.11/site-packages/awq_ext.cpython-311-x86_64-linux-gnu.so"
    shutil.copy(husk_file(LINKING), target)
    result = run("inspect", "--no-confirm", "--format", "json", target)
    assert result.document["environment"]["torch"]["version"] == TORCH


# --- help and version ---------------------------------------------------------------------------


def test_version_and_help() -> None:
    assert run("--version").stdout == f"fa-forensics, version {fa_forensics.__version__}\n"
    for arguments in (("--help",), ("-h",), ("inspect", "--help"), ("why", "-h")):
        result = run(*arguments)
        assert (result.code, result.stderr) == (0, "")
        assert result.stdout.startswith("Usage: ")
    assert "Exit codes: 0" in run("--help").stdout


HEAVY = (
    "elftools",
    "lief",
    "torch",
    "numpy",
    "zipfile",
    "importlib.metadata",
    "pathlib",
    "cxxfilt",
)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nsys.argv = ['fa-forensics', '--help']\n"
        "from fa_forensics.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.stderr == "[]\n"


def test_inspecting_imports_no_library_that_serves_only_rare_files() -> None:
    code = (
        "import sys, json\nfrom fa_forensics.pipeline import Options, inspect\n"
        "inspect([sys.argv[1]], Options(python=sys.argv[2], confirm=False), {})\n"
        "rare = ('lief', 'elftools', 'zipfile', 'importlib.metadata', 'torch', 'numpy')\n"
        "print(json.dumps([m for m in rare if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(husk_file(LINKING)), python()],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == []
