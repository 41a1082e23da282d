"""What a person reads: order, wrapping, escapes and colours of the text renderers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import render_samples as samples

from fa_forensics.render.style import pieces
from fa_forensics.render.terminal import inspect_text
from fa_forensics.render.why import why_text
from fa_forensics.report import Confirm, Evidence, Finding, GpuCode, Report, Skipped, TargetReport
from fa_forensics.report_why import WhyReport

SNAPSHOTS = Path(__file__).parent / "snapshots"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
#: What stands before the text of a line: a fact's or an answer's label, a bar with its word.
LABEL = re.compile(r"^(ok loads: |   \|  (needs|has  |     )  |   [A-Za-z ]{11}|[a-z ]{12}|  --> )")
HOSTILE = "lib\x1b[31m\n  --> trusted\u202eos.\udcff\x07\x9b2J"
SHOWN = r"lib\x1b[31m\x0a  --> trusted\u202eos.\xff\x07\x9b2J"

ALL_TARGETS = (samples.HEALTHY, samples.FAILING, samples.UNREADABLE, samples.IN_WHEEL)
ALL_ANSWERS = (samples.DRIFT_ANSWER, samples.LIBRARY_ANSWER)


def plain(*targets: TargetReport, verbose: bool = False, width: int = 100) -> str:
    return inspect_text(samples.report(*targets), False, verbose, width)


def every_text(color: bool, width: int) -> list[str]:
    return [
        inspect_text(samples.report(*ALL_TARGETS), color, False, width),
        inspect_text(samples.report(*ALL_TARGETS), color, True, width),
        why_text(samples.why(*ALL_ANSWERS), color, width),
    ]


LAYOUTS: dict[str, Callable[[], str]] = {
    "healthy": lambda: plain(samples.HEALTHY),
    "failing": lambda: plain(samples.FAILING),
    "failing_verbose": lambda: plain(samples.FAILING, verbose=True),
    "failing_narrow": lambda: plain(samples.FAILING, width=60),
    "failing_color": lambda: inspect_text(samples.report(samples.FAILING), True, False, 100),
    "several": lambda: plain(samples.HEALTHY, samples.UNREADABLE, samples.IN_WHEEL),
    "several_verbose": lambda: plain(samples.HEALTHY, samples.UNREADABLE, verbose=True),
    "unreadable": lambda: plain(samples.UNREADABLE),
    "why": lambda: why_text(samples.why(*ALL_ANSWERS), False, 100),
}


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_layout_is_the_recorded_one(name: str) -> None:
    """Layout has no outside oracle: a change must be looked at (UPDATE_SNAPSHOTS=1 records)."""
    path = SNAPSHOTS / f"render_{name}.txt"
    text = LAYOUTS[name]()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_verdict_stands_before_findings_and_findings_before_facts() -> None:
    lines = plain(samples.FAILING).splitlines()
    assert lines[0].startswith("environment: Python 3.11.7, torch 2.4.0+cu121")
    verdict = next(i for i, line in enumerate(lines) if line.startswith("!! fails: "))
    first = next(i for i, line in enumerate(lines) if line.startswith("error[FA201]: "))
    second = next(i for i, line in enumerate(lines) if line.startswith("error[FA202]: "))
    facts = next(i for i, line in enumerate(lines) if line.startswith("   file "))
    assert verdict == 2
    assert verdict < first < second < facts


def test_finding_has_object_evidence_notes_and_help_in_this_order() -> None:
    text = plain(samples.FAILING)
    block = text[text.index("error[FA201]") : text.index("error[FA202]")].splitlines()
    starts = [" ".join(line.split()[:2]) for line in block]
    arrow = f"--> {samples.NAME}"
    assert [starts[0].partition(":")[0], *starts[1:]] == [
        "error[FA201]", arrow, "| needs", "| has", "= note:", "= help:", "= help:", "",
    ]  # fmt: skip


def test_healthy_file_takes_at_most_twelve_lines() -> None:
    header, blank, *lines = plain(samples.HEALTHY).splitlines()
    assert header.startswith("environment: ")
    assert blank == ""
    assert lines[0].startswith("ok loads: ")
    assert len(lines) <= 12


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 200])
def test_only_a_part_that_cannot_be_cut_is_wider_than_the_window(width: int) -> None:
    for text in every_text(False, width):
        for line in text.splitlines():
            if len(line) <= max(width, 40) or "= help: " in line:
                continue
            rest = LABEL.sub("", line).removeprefix("in ")
            # A number and what it counts stay together: "(8 with no provider)".
            assert len(pieces(rest)) == 1 or rest[0] in "(0123456789", line


@pytest.mark.parametrize("width", [40, 60, 100])
def test_commands_and_symbols_are_never_cut(width: int) -> None:
    text = plain(samples.FAILING, width=width)
    lines = text.splitlines()
    for command in samples.DRIFT.help:
        assert f"   = help: {command}" in lines
    full = plain(samples.FAILING, width=width, verbose=True).splitlines()
    for _, symbol, demangled in samples.MISSING:
        assert any(symbol in line for line in lines), symbol
        assert any(demangled in line for line in full), demangled
    assert (
        why_text(samples.why(samples.DRIFT_ANSWER), False, width).count(
            "type        pip install 'torch==2.1.2'\n"
        )
        == 1
    )


def test_no_line_ends_in_a_space_and_the_text_in_one_newline() -> None:
    for width in (40, 77, 100):
        for text in every_text(False, width):
            assert text.endswith("\n")
            assert not text.endswith("\n\n")
            assert [line for line in text.split("\n") if line != line.rstrip()] == []


def test_without_colour_there_is_no_escape_sequence_and_only_ascii() -> None:
    for text in every_text(False, 100):
        assert "\x1b" not in text
        assert text.isascii()


def test_colour_changes_nothing_but_colours() -> None:
    for bare, coloured in zip(every_text(False, 80), every_text(True, 80), strict=True):
        assert coloured != bare
        assert ANSI.sub("", coloured) == bare
        # Each sequence that starts a colour is ended before the line is.
        for line in coloured.splitlines():
            codes = ANSI.findall(line)
            assert codes[1::2] == ["\x1b[0m"] * (len(codes) // 2)
            assert len(codes) % 2 == 0


def hostile_target() -> TargetReport:
    finding = Finding(
        "FA201",
        "error",
        "low",
        f"no {HOSTILE}",
        (
            Evidence("needs", HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),
            Evidence(f"found {HOSTILE}"),
        ),
        (HOSTILE,),
        (f"cat {HOSTILE}",),
    )
    library = {"soname": HOSTILE, "path": None, "tried": [HOSTILE], "found_by": HOSTILE}
    found = {"soname": HOSTILE + "2", "path": f"/x/{HOSTILE}", "found_by": HOSTILE}
    return replace(
        samples.FAILING,
        path=HOSTILE,
        member=HOSTILE,
        headline=HOSTILE,
        findings=(finding,),
        skipped=(Skipped(HOSTILE, HOSTILE),),
        elf={
            **samples.ELF,
            "machine": HOSTILE,
            "soname": HOSTILE,
            "needed": [HOSTILE, HOSTILE + "2"],
            "rpath": [HOSTILE],
            "compilers": [HOSTILE, f"GCC: ({HOSTILE}) {HOSTILE}"],
            "python_tag": HOSTILE,
            "module_name": HOSTILE,
            "libraries": [library, found],
            "versions_needed": [{"file": HOSTILE, "version": HOSTILE}],
        },
        undefined=tuple(
            replace(bound, symbol=HOSTILE, demangled=HOSTILE + "()", owner=HOSTILE)
            for bound in samples.BOUND
        ),
        missing=(HOSTILE,),
        links_with=(HOSTILE,),
        gpu_code=(GpuCode(HOSTILE, HOSTILE, 1, 1),),
        toolkits=(HOSTILE,),
        confirm=Confirm("refuted", f"a\n{HOSTILE}"),
    )


def test_names_from_the_file_cannot_reach_the_terminal_or_forge_a_line() -> None:
    environment = {**samples.ENVIRONMENT, "prefix": HOSTILE, "found_by": HOSTILE}
    report = Report("0", environment, (hostile_target(),))
    answer = replace(
        samples.DRIFT_ANSWER,
        symbol=HOSTILE,
        demangled=HOSTILE + "()",
        owner=HOSTILE,
        provider=HOSTILE,
        cause=HOSTILE,
        exported_by=(HOSTILE,),
        help=(HOSTILE,),
        notes=(HOSTILE,),
    )
    texts = [
        inspect_text(report, False, True, 100),
        why_text(WhyReport("0", environment, (answer,)), False, 100),
    ]
    for text in texts:
        assert [c for c in text if not (c.isprintable() or c == "\n")] == []
        assert [line for line in text.splitlines() if line.strip().startswith("--> trusted")] == []
    assert f"   = help: cat {SHOWN}" in texts[0].splitlines()


def test_spaces_at_the_end_of_a_name_can_be_seen() -> None:
    text = plain(replace(samples.HEALTHY, path="/tmp/a.so "))
    assert "   file       /tmp/a.so\\x20\n" in text


def test_confidence_is_said_when_it_is_not_high() -> None:
    low = replace(samples.DRIFT, confidence="low", severity="warning", title="perhaps")
    assert "warning[FA201]: perhaps (low confidence)\n" in plain(
        replace(samples.HEALTHY, findings=(low,))
    )


def test_libraries_that_are_not_found_come_first_and_verbose_lists_where_they_were_sought() -> None:
    libraries = [
        {"soname": "libc10.so", "path": "/e/site-packages/torch/lib/libc10.so", "tried": []},
        {"soname": "libcudart.so.11.0", "path": None, "tried": ["/lib64", "/usr/lib64"]},
    ]
    elf = {
        **samples.ELF, "needed": ["libc10.so", "libcudart.so.11.0"], "libraries": libraries
    }  # fmt: skip
    target = replace(samples.HEALTHY, elf=elf)
    first = "   needs      libcudart.so.11.0: not found\n"
    assert first + "              torch/lib: libc10.so\n" in plain(target)
    assert "libcudart.so.11.0: not found; tried /lib64, /usr/lib64\n" in plain(target, verbose=True)


def test_gpu_code_is_ordered_and_other_kinds_are_named() -> None:
    images = [("ptx", "compute_90"), ("lto-ir", "lto_90"), ("cubin", "sm_100"), ("cubin", "sm_90a")]
    images.append(("cubin", "sm_90"))
    target = replace(samples.HEALTHY, gpu_code=tuple(GpuCode(k, a, 2, 512) for k, a in images))
    expected = "sm_90 x2, sm_90a x2, sm_100 x2, compute_90 x2, lto-ir lto_90 x2 (2.5 KiB)"
    assert f"   GPU code   {expected}\n" in plain(target)
    assert "   GPU code   none found\n" in plain(replace(target, gpu_code=()))


def test_undefined_names_are_counted_by_owner_and_by_provider() -> None:
    text = plain(samples.FAILING)
    assert "   undefined  15 symbols: torch 10 (8 with no provider), libc 2, cudart 1," in text


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        (None, "environment: none looked at"),
        (
            {"python_version": "3.12.1", "torch": None, "torch_problem": "torch is not installed"},
            "environment: Python 3.12.1, no torch (torch is not installed)",
        ),
        (
            {"python_version": "3.12.1", "torch": {"version": "2.13.0", "cxx11_abi": True}},
            "environment: Python 3.12.1, torch 2.13.0 (no CUDA, cxx11)",
        ),
        (
            {"python_version": "3.12.1", "torch": {"version": "2.9.1", "hip": "6.4"}},
            "environment: Python 3.12.1, torch 2.9.1 (ROCm 6.4)",
        ),
    ],
)
def test_environment_is_one_line(environment: dict[str, object] | None, line: str) -> None:
    report = Report("0.1.0", environment, ())
    assert inspect_text(report, False, False, 100) == line + "\n"


def test_other_torches_and_what_was_left_aside_are_said_when_verbose() -> None:
    environment = {**samples.ENVIRONMENT, "notes": ["/x has no torch"], "other_torches": ["/y"]}
    report = Report("0.1.0", environment, ())
    assert "note" not in inspect_text(report, False, False, 100)
    lines = inspect_text(report, False, True, 100).splitlines()
    assert lines[1:] == ["  note: /x has no torch", "  note: another torch lies in /y"]


def test_what_was_skipped_and_why_nothing_ran_is_always_said() -> None:
    text = plain(replace(samples.FAILING, confirm=Confirm("not-run", "switched off")))
    assert "   skipped    gpu-arch: no CUDA device is visible to this machine\n" in text
    assert "   confirm    not-run: switched off\n" in text


def test_a_damaged_table_of_releases_is_always_said() -> None:
    target = replace(samples.HEALTHY, skipped=(Skipped("atlas", "torch.trie is cut short"),))
    assert "   skipped    atlas: torch.trie is cut short\n" in plain(target)


def test_file_that_could_not_be_read_says_each_thing_once() -> None:
    message = "/home/ada/notes.txt is not an ELF file: it starts with the bytes 68 65"
    target = TargetReport(
        path="/home/ada/notes.txt",
        member=None,
        verdict="inconclusive",
        headline=message,
        skipped=(Skipped("file", message),),
        problem=message,
    )
    assert plain(target).splitlines()[2:] == [f"?? inconclusive: {message}"]
    hinted = plain(replace(target, hint="give it the .so file")).splitlines()[2:]
    assert hinted == [f"?? inconclusive: {message}", "   = help: give it the .so file"]
    # A name that the headline does not say, and another reason, are news.
    text = plain(samples.UNREADABLE)
    assert "   file       /home/ada/broken.so\n" in text
    assert "   skipped    fatbin: the file is cut short\n" in text
    assert "   = help: fetch it again\n" in text
    member = plain(replace(target, path="/home/ada/a.whl", member="notes.txt"))
    assert "   file       notes.txt in /home/ada/a.whl\n" in member


@pytest.mark.parametrize(
    ("code", "status"), [("FA503", "stopped"), ("FA502", "disagrees"), (None, "stopped")]
)
def test_cuobjdump_is_not_told_twice(code: str | None, status: str) -> None:
    witness = replace(samples.WITNESS, status=status)
    findings = () if code is None else (replace(samples.DRIFT, code=code),)
    text = plain(replace(samples.HEALTHY, findings=findings, cuobjdump=witness))
    row = f"   cuobjdump  {status} (see {code} above)\n"
    assert (row in text) == (code is not None)
    assert (f"   cuobjdump  {status}: cuobjdump 13.5 gave up" in text) == (code is None)


def run_python(code: str, **variables: str) -> str:
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(root), str(root / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path, "PATH": os.environ.get("PATH", ""), **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_text_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "import render_samples as s; from fa_forensics.render.terminal import inspect_text;"
        "from fa_forensics.render.json import dumps, inspect_document;"
        "r = s.report(s.FAILING, s.IN_WHEEL);"
        "print(inspect_text(r, True, True, 90), dumps(inspect_document(r)))"
    )
    assert run_python(code, PYTHONHASHSEED="1") == run_python(code, PYTHONHASHSEED="2")


def test_terminal_renderer_imports_nothing_but_the_report() -> None:
    """Start-up time counts: beyond the report's types only this package is loaded."""
    code = (
        "import sys, fa_forensics.report; before = set(sys.modules);"
        "import fa_forensics.render.terminal; print(*sorted(set(sys.modules) - before))"
    )
    loaded = run_python(code).split()
    assert loaded
    assert [name for name in loaded if not name.startswith("fa_forensics.render")] == []
