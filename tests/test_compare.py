"""``compare`` finds every difference that was planted between two machines, and nothing else."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.machines import (
    SITE,
    changed,
    elsewhere,
    env_report,
    extension,
    facts_of_line,
    line,
    line_of,
    shuffled,
)

import fa_forensics.render
from fa_forensics.cli import main
from fa_forensics.compare.effects import effect_of, effect_rows
from fa_forensics.compare.run import compare_documents
from fa_forensics.render.compare import compare_text
from fa_forensics.render.json import dumps
from fa_forensics.render.json_compare import compare_document
from fa_forensics.report_compare import EFFECTS, GROUPS, CompareReport

jsonschema = importlib.import_module("jsonschema")
SCHEMA = json.loads(
    (Path(fa_forensics.render.__file__).parent / "schema-v1.json").read_text(encoding="utf-8")
)
RUNNER = CliRunner()
Change = Callable[[dict[str, Any]], object]
TORCH = ("environment", "torch")


def setting(*path: str | int, to: object) -> Change:
    """A change of one field of a report."""

    def change(report: dict[str, Any]) -> None:
        place: Any = report
        for key in path[:-1]:
            place = place[key]
        assert place.get(path[-1]) != to
        place[path[-1]] = to

    return change


def fact(subject: str, *path: str, to: object) -> Change:
    """A change of one fact of a line."""
    return lambda report: setting(*path, to=to)(facts_of_line(report, subject))


def both(field: str, to: object) -> Change:
    """A change of torch, of which two parts of a report speak."""

    def change(report: dict[str, Any]) -> None:
        setting(*TORCH, field, to=to)(report)
        setting(field, to=to)(facts_of_line(report, "torch"))

    return change


def without(subject: str) -> Change:
    return lambda report: report["lines"].remove(line_of(report, subject))


def adding(row: dict[str, Any]) -> Change:
    return lambda report: report["lines"].append(row)


VARIABLES = ("environment", "variables")
FLASH = "flash_attn_2_cuda.so"

#: (what is planted, the group, subject and aspect it is told under, can it change the numbers)
PLANTED: list[tuple[Change, str, str, str, str]] = [
    (both("version", to="2.6.0+cu126"), "torch", "torch", "version", "can"),
    (both("cuda", to="12.6"), "torch", "torch", "CUDA", "can"),
    (fact("torch", "git_version", to="0000"), "torch", "torch", "git version", "can"),
    (fact("torch", "archs", to=["sm_80"]), "torch", "torch", "GPU architectures", "can"),
    (setting(*TORCH, "cxx11_abi", to="cxx11"), "torch", "torch", "C++ string flavour", "cannot"),
    (setting("environment", "python_version", to="3.11.9"), "python", "Python", "version",
     "unknown"),
    (setting("environment", "machine", to="aarch64"), "python", "Python", "machine", "can"),
    (fact("libcublasLt.so.12", "taken", "build_id", to="ab99"),
     "libraries", "libcublasLt.so.12", "build-id", "can"),
    (fact("libcudnn.so.9", "taken", "version", to="9.5.1"),
     "libraries", "libcudnn.so.9", "version", "can"),
    (fact("libnccl.so.2", "taken", "path", to="/usr/lib/libnccl.so.2"),
     "libraries", "libnccl.so.2", "taken from", "can"),
    (fact("libcudart.so.12", "taken", "version", to="12.6.77"),
     "libraries", "libcudart.so.12", "version", "cannot"),
    (fact("libcudart.so.12", "others", to=[{"path": "/usr/local/cuda/lib64/libcudart.so.12"}]),
     "libraries", "libcudart.so.12", "other copies", "cannot"),
    (without("libnccl.so.2"), "libraries", "libnccl.so.2", "", "can"),
    (lambda r: setting("build_id", to="ab98")(
        facts_of_line(r, "torch's libraries")["libraries"][0]["taken"]),
     "libraries", "libc10.so", "build-id", "can"),
    (fact(FLASH, "build_id", to="aa99"), "extensions", FLASH, "build-id", "can"),
    (fact(FLASH, "size_bytes", to=4097), "extensions", FLASH, "size in bytes", "unknown"),
    (fact(FLASH, "verdict", to="fails"), "extensions", FLASH, "verdict", "can"),
    (fact(FLASH, "gpu_code", to=["cubin sm_80"]), "extensions", FLASH, "GPU code", "can"),
    (fact(FLASH, "cxx11_abi", to="pre-cxx11"), "extensions", FLASH, "C++ string flavour",
     "cannot"),
    (fact(FLASH, "findings", to=[{"code": "FA504", "severity": "error", "title": "x"}]),
     "extensions", FLASH, "findings", "can"),
    (fact(FLASH, "toolkits", to=["CUDA 12.6"]), "extensions", FLASH, "toolkits", "can"),
    (without("xformers/_C.so"), "extensions", "xformers/_C.so", "", "can"),
    (adding(extension("vllm/_C.so", "aa03")), "extensions", "vllm/_C.so", "", "can"),
    (fact("driver", "version", to="560.35.03"), "driver", "driver", "version", "can"),
    (fact("driver", "kernel_module", to="545.23"), "driver", "driver", "kernel module", "can"),
    (fact("GPU", "capability", to="8.0"), "gpus", "GPUs", "kinds", "can"),
    (fact("GPU", "count", to=8), "gpus", "GPUs", "count", "can"),
    (fact("GPU", "memory_bytes", to=99_000_000_000), "gpus", "GPUs", "memory", "unknown"),
    (fact("glibc", "version", to="2.31"), "system", "glibc", "version", "can"),
    (fact("libstdc++", "version", to="3.4.28"), "system", "libstdc++", "version", "cannot"),
    (fact("cpu", "model", to="EPYC 9654"), "system", "cpu", "model", "can"),
    (fact("system", "distribution", to="Debian 12"), "system", "system", "distribution", "cannot"),
    (fact("system", "kernel", to="6.1.0"), "system", "system", "kernel", "cannot"),
    (fact("container", "container", to="Docker"), "system", "container", "container", "cannot"),
    (fact("nvcc", "version", to="12.6"), "toolkit", "nvcc", "version", "cannot"),
    (lambda r: line_of(r, "nvcc").update(
        state="wrong", finding={"code": "FA822", "severity": "error"}),
     "toolkit", "nvcc", "state", "cannot"),
    (setting(*VARIABLES, "NVIDIA_TF32_OVERRIDE", to="0"), "variables", "NVIDIA_TF32_OVERRIDE", "",
     "can"),
    (setting(*VARIABLES, "OMP_NUM_THREADS", to="1"), "variables", "OMP_NUM_THREADS", "", "can"),
    (lambda r: r["environment"]["variables"].pop("OMP_NUM_THREADS"),
     "variables", "OMP_NUM_THREADS", "", "can"),
    (setting(*VARIABLES, "CUDA_HOME", to="/opt/cuda"), "variables", "CUDA_HOME", "", "cannot"),
    (fact("flash-attn", "version", to="2.8.2"), "packages", "flash-attn", "version", "can"),
    (fact("flash-attn", "source_version", to="2.8.2"), "packages", "flash-attn", "source version",
     "can"),
    (fact("flash-attn", "installer", to="conda"), "packages", "flash-attn", "installer", "cannot"),
    (fact("distributions", "versions", "numpy", to="2.2.0"), "packages", "numpy", "version",
     "can"),
    (fact("distributions", "versions", "filelock", to="3.2"), "packages", "filelock", "version",
     "unknown"),
    (lambda r: line_of(r, "xformers").update(
        state="wrong", finding={"code": "FA801", "severity": "error"}),
     "packages", "xformers", "state", "can"),
    (adding(line("package", "numpy", {}, "wrong")), "packages", "numpy", "state", "can"),
    (adding(line("package", "apex", {"version": "0.1"})), "packages", "apex", "", "can"),
]  # fmt: skip


#: What follows from another planted difference, and a library that others are planted in.
HIDDEN = {
    ("libraries", "libnccl.so.2", ""), ("extensions", FLASH, "size in bytes"),
    ("packages", "flash-attn", "source version"), ("torch", "torch", "git version"),
    ("driver", "driver", "kernel module"),
}  # fmt: skip


def differences(report: CompareReport) -> list[tuple[str, str, str]]:
    return [(one.group, one.subject, one.aspect) for one in report.differences]


def test_there_are_at_least_thirty_planted_differences() -> None:
    assert len(PLANTED) >= 30
    assert len({row[1:4] for row in PLANTED}) >= 30


@pytest.mark.parametrize("row", PLANTED, ids=[f"{r[2]}-{r[3] or 'itself'}" for r in PLANTED])
def test_a_planted_difference_is_found_and_nothing_else(row: Any) -> None:
    change, group, subject, aspect, effect = row
    other = elsewhere(changed(change))
    report = compare_documents([("a.json", env_report()), ("b.json", other)])
    assert differences(report) == [(group, subject, aspect)]
    assert report.differences[0].effect == effect
    assert [held.reports for held in report.differences[0].held] == [(0,), (1,)]
    assert report.not_compared == () and report.unread == ()


def test_all_planted_differences_are_found_at_once() -> None:
    """Two changes of one field would hide each other: each place is changed once."""
    other = env_report()
    wanted = set()
    for change, group, subject, aspect, _effect in PLANTED:
        key = (group, subject, aspect)
        if key in wanted or key in HIDDEN:
            continue
        change(other)
        wanted.add(key)
    report = compare_documents([("a", env_report()), ("b", other)])
    assert set(differences(report)) == wanted
    assert len(wanted) >= 30


def test_the_same_machine_told_from_another_home_is_the_same() -> None:
    report = compare_documents([("a", env_report()), ("b", elsewhere(env_report()))])
    assert report.differences == () and report.same > 60


def test_the_order_of_lists_without_order_is_no_difference() -> None:
    report = compare_documents([("a", env_report()), ("b", shuffled(env_report()))])
    assert report.differences == ()


def test_the_order_of_sys_path_is_a_difference() -> None:
    rows = [{"origin": "PYTHONPATH", "path": "/src"}, {"origin": "site-packages", "path": SITE}]
    one = changed(fact("sys.path", "directories", to=rows))
    other = changed(fact("sys.path", "directories", to=rows[::-1]))
    report = compare_documents([("a", one), ("b", other)])
    assert differences(report) == [("python", "sys.path", "directories")]


@pytest.mark.parametrize("field", ["pid", "hostname", "mtime", "user"])
def test_what_differs_between_any_two_runs_is_no_difference(field: str) -> None:
    one, other = changed(fact("driver", field, to="1")), changed(fact("driver", field, to="2"))
    assert compare_documents([("a", one), ("b", other)]).differences == ()


def test_what_only_a_newer_release_looks_at_is_no_difference() -> None:
    def newer(report: dict[str, Any]) -> None:
        report["tool"]["version"] = "0.9.0"
        report["lines"].append(line("runtime", "something new", {"a": 1}))
        facts_of_line(report, "driver")["a new field"] = 1
        report["environment"]["variables"]["A_NEW_VARIABLE"] = "1"

    report = compare_documents([("a", env_report()), ("b", changed(newer))])
    assert report.differences == ()


def test_reports_of_other_commands_are_compared_in_what_both_say() -> None:
    inspected = {
        **{key: env_report()[key] for key in ("schema_version", "tool", "environment")},
        "targets": [
            {"path": f"{SITE}/{FLASH}", "member": None, "verdict": "fails", "findings": [],
             "skipped": [], "elf": {"build_id": "aa01", "needed": [], "libraries": [
                 {"soname": "libm.so.6", "path": "/lib/libm.so.6"}]}},
            {"path": "/tmp/other.so", "verdict": "loads", "elf": {"build_id": "aa09"}},
        ],
    }  # fmt: skip
    report = compare_documents([("a", env_report()), ("b", inspected)])
    assert differences(report) == [("extensions", FLASH, "verdict")]


def test_of_three_reports_the_odd_one_is_named() -> None:
    odd = changed(fact("driver", "version", to="560.35.03"))
    report = compare_documents([("a", env_report()), ("b", odd), ("c", env_report())])
    (difference,) = report.differences
    assert [(held.value, held.reports) for held in difference.held] == [
        ("550.54.15", (0, 2)), ("560.35.03", (1,))
    ]  # fmt: skip


def test_what_one_could_not_look_at_is_told_and_is_no_difference() -> None:
    def blind(report: dict[str, Any]) -> None:
        row = line_of(report, "driver")
        row.update(state="could-not-look", text="NVML is not installed", facts={})

    report = compare_documents([("a", env_report()), ("b", changed(blind))])
    assert report.differences == ()
    (line_,) = report.not_compared
    assert (line_.subject, line_.reason, line_.reports) == ("driver", "NVML is not installed", (1,))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({**env_report(), "schema_version": 2}, "schema version 2"),
        ({**env_report(), "schema_version": "1"}, "does not say which schema version"),
        ({"a": 1}, "no report of fa-forensics"),
        ([1], "no report of fa-forensics"),
        ({**env_report(), "error": {"message": "no such Python"}}, "no such Python"),
        ({"schema_version": 1, "tool": {"name": "fa-forensics"}, "releases": []}, "no"),
    ],
)
def test_a_report_that_cannot_be_used_is_told_and_the_others_are_compared(
    tmp_path: Path, document: object, words: str
) -> None:
    odd = changed(fact("driver", "version", to="560.35.03"))
    for name, content in (("a", env_report()), ("b", odd), ("c", document)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    paths = [str(tmp_path / f"{name}.json") for name in "abc"]
    result = RUNNER.invoke(main, ["compare", "--format", "json", *paths])
    assert result.exit_code == 3
    shown = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(shown)
    assert words in shown["unread"][0]["message"] and "\n" not in shown["unread"][0]["message"]
    assert [row["subject"] for row in shown["differences"]] == ["driver"]
    assert words in result.stderr


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"1e999"])
def test_what_is_no_json_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_text(json.dumps(env_report()))
    (tmp_path / "b.json").write_bytes(content)
    result = RUNNER.invoke(main, ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    assert result.exit_code == 3
    assert "b.json" in result.stderr and "Traceback" not in result.output


def test_a_pipe_a_directory_and_a_missing_file_are_one_sentence_each(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    names = [str(tmp_path / name) for name in ("pipe", "gone")] + [str(tmp_path)]
    result = RUNNER.invoke(main, ["compare", *names])
    assert result.exit_code == 3
    assert result.stderr.count("cannot be read") == 3


def test_one_report_is_too_few(tmp_path: Path) -> None:
    result = RUNNER.invoke(main, ["compare", str(tmp_path / "a.json")])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"lines": None}, {"lines": [1, None, {"layer": 1}]}, {"environment": 7},
        {"environment": {"site_dirs": 3, "prefix": 1, "torch": [], "variables": [1]}},
        {"lines": [{"layer": "copies", "subject": "x", "state": "ok", "facts": {"taken": 1}}]},
        {"lines": [{"layer": "\x1b[31m", "subject": "a\nb", "state": "ok", "facts": {"a": {}}}]},
    ],
)  # fmt: skip
def test_fields_of_another_shape_are_survived(wrong: dict[str, Any]) -> None:
    report = compare_documents([("a", env_report()), ("b", {**env_report(), **wrong})])
    text = compare_text(report, False, True, 100)
    assert "\x1b" not in text and "a\nb" not in text
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(dumps(compare_document(report))))


@pytest.mark.parametrize(
    ("change", "option", "code"),
    [
        (None, "note", 0),
        (fact("nvcc", "version", to="12.6"), "note", 1),
        (fact("nvcc", "version", to="12.6"), "warning", 0),
        (fact("driver", "version", to="1"), "warning", 1),
        (fact("driver", "version", to="1"), "never", 0),
    ],
)
def test_exit_codes(tmp_path: Path, change: Change | None, option: str, code: int) -> None:
    other = env_report() if change is None else changed(change)
    for name, content in (("a", env_report()), ("b", other)):
        (tmp_path / name).write_text(json.dumps(content))
    arguments = ["compare", "--fail-on", option, str(tmp_path / "a"), str(tmp_path / "b")]
    assert RUNNER.invoke(main, arguments).exit_code == code


def test_every_group_has_an_effect_and_every_row_is_whole() -> None:
    for group in GROUPS:
        assert effect_of(group, "anything", "at all").numbers in EFFECTS
    rows = effect_rows()
    assert {row.group for row in rows} == set(GROUPS)
    for row in rows:
        assert row.effect.numbers in EFFECTS
        assert row.effect.reason.endswith(".") and row.effect.reason[0].isalpha()
        assert row.effect.source or row.effect.numbers != "can" or row.group in (
            "extensions", "kernels", "packages", "variables"
        )  # fmt: skip
    keys = [row[:3] for row in rows]
    assert len(set(keys)) == len(keys)


def test_a_row_that_can_never_fit_is_not_in_the_table() -> None:
    for at, row in enumerate(effect_rows()):
        before = [r for r in effect_rows()[:at] if r.group == row.group]
        assert not any((r.subject, r.aspect) == ("*", "*") for r in before), row


def test_text_tells_files_that_differ_alike_together() -> None:
    def fails(report: dict[str, Any]) -> None:
        for subject in (FLASH, "xformers/_C.so"):
            facts_of_line(report, subject)["verdict"] = "fails"

    report = compare_documents([("a.json", env_report()), ("b.json", changed(fails))])
    text = compare_text(report, False, False, 100)
    assert f"!! {FLASH}, xformers/_C.so\n" in text and text.count("b.json: fails") == 1
    assert compare_text(report, False, True, 100).count("b.json: fails") == 2


def test_text_folds_what_is_only_in_one_report() -> None:
    one = changed(lambda r: r["lines"].extend(extension(f"p/{n}.so", "aa") for n in "abcd"))
    report = compare_documents([("a.json", one), ("b.json", env_report())])
    text = compare_text(report, False, False, 100)
    assert "only in a.json\n      p/a.so, p/b.so, p/c.so, p/d.so" in text
    assert "4 differences" in text
