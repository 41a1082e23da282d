"""Releases in text and JSON: one file's place, tables of several files and several torches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import render_samples as samples

from fa_forensics.render.json import inspect_document
from fa_forensics.render.terminal import inspect_text
from fa_forensics.report import Finding, JudgedTorch, TargetReport

FOLDER = "/e/lib/python3.11/site-packages/audio"


def plain(*targets: TargetReport, verbose: bool = False, width: int = 100) -> str:
    return inspect_text(samples.report(*targets), False, verbose, width)


def asked(text: str, version: str, judged_by: str = "table") -> JudgedTorch:
    return JudgedTorch(text, version, "2.9.1", "12.8", "cxx11", judged_by, "its wheel")


def placed(name: str, *releases: str) -> TargetReport:
    place = replace(samples.PLACE, links_with=releases, links_text=f"{releases[0]} and so on")
    return replace(samples.FAILING, path=f"{FOLDER}/{name}", releases=place, links_with=releases)


def table(text: str, head: str) -> list[list[str]]:
    """The words of each row of the table that begins with ``head``."""
    lines = text.split(f"\n{head} ", 1)[1].split("\n\n", 1)[0].splitlines()
    return [line.split() for line in lines]


def test_the_window_and_what_bounds_it_take_a_line_each() -> None:
    lines = plain(samples.FAILING, width=160).splitlines()
    assert "   links with torch 2.1.0 to 2.1.2" in lines
    (built,) = [line for line in lines if line.startswith("   built on ")]
    assert built == (
        "   built on   torch 2.1 (window 2.1.0 to 2.1.2: c10::cuda::SetDevice(int) came in 2.1.0; "
        "at::_ops::_pad_enum::call went in 2.2.0)"
    )
    assert "confidence" not in built
    low = replace(samples.FAILING, releases=replace(samples.PLACE, confidence="low"))
    assert "; low confidence)" in plain(low, width=200)
    quiet = plain(replace(samples.FAILING, findings=()))
    assert "   built on   torch 2.1 (window 2.1.0 to 2.1.2)\n" in quiet
    whole = plain(samples.FAILING, verbose=True)
    assert "   built on   torch 2.1 (window 2.1.0 to 2.1.2)\n" in whole
    assert "   evidence   c10::cuda::SetDevice(int) came in 2.1.0.\n" in whole


def test_verbose_lists_what_each_release_lacks() -> None:
    text = plain(samples.FAILING, verbose=True, width=120)
    assert "   lacking    torch 2.0.0 to 2.0.1: 1 name: _ZN3c104cuda9SetDeviceEi\n" in text
    assert "torch 2.3.0: 2 names:" in text
    assert "lacking" not in plain(samples.FAILING)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"symbols": 0}, "links with any torch: it needs no name of it"),
        ({"links_with": ()}, "links with no published torch release (2.0.0 to 2.3.0, x86_64)"),
    ],
)
def test_no_window_is_said_in_words(changes: dict[str, Any], words: str) -> None:
    text = plain(replace(samples.FAILING, releases=replace(samples.PLACE, **changes)))
    assert f"   {words}\n" in text


def test_the_stable_abi_has_a_floor_and_no_ceiling() -> None:
    text = plain(replace(samples.FAILING, stable_abi=True))
    assert "links with torch 2.1.0 to 2.1.2, by the stable ABI: a floor, no ceiling" in text


def test_what_was_judged_against_is_named_with_its_source() -> None:
    text = plain(replace(samples.FAILING, torch=asked("2.9", "2.9.1+cu128")), width=200)
    assert (
        "   judged     against torch 2.9.1+cu128 (CUDA 12.8, cxx11), by the table of its exports: "
        "its wheel\n"
    ) in text
    here = replace(samples.FAILING, torch=asked("2.9", "2.9.1+cu128", "installed"))
    assert "by its own libraries here" in plain(here, width=200)


def test_several_files_make_a_table_of_minor_releases() -> None:
    text = plain(placed("a.so", "2.1.0", "2.1.1", "2.1.2"), placed("b.so", "2.1.2"))
    assert table(text, "links with torch")[:3] == [
        ["2.0", "2.1", "2.2"],
        ["a.so", ".", "x", "."],
        ["b.so", ".", "/", "."],
    ]


def test_many_files_alike_share_a_row() -> None:
    files = [placed(f"f{i:02}.so", "2.2.0", "2.2.1", "2.2.2") for i in range(13)]
    rows = table(plain(*files, placed("z.so", "2.3.0")), "links with torch")
    assert [row[0] for row in rows[1:3]] == ["f00.so", "z.so"]
    assert rows[1][1:4] == ["and", "12", "more"]


def test_a_healthy_package_has_no_table() -> None:
    healthy = [
        replace(placed(name, "2.1.2"), verdict="loads", findings=(), missing=())
        for name in ("a.so", "b.so")
    ]
    assert "links with torch" not in plain(*healthy)
    assert "links with torch" in plain(*healthy, verbose=True)


def test_several_torches_make_a_table_of_verdicts_with_the_reasons_below() -> None:
    good = replace(samples.HEALTHY, torch=asked("2.4.0", "2.4.0+cu121"))
    bad = replace(samples.FAILING, path=good.path, torch=asked("2.9.1", "2.9.1+cu128"))
    text = plain(good, bad)
    assert table(text, "torch") == [["2.4.0", "2.9.1"], [samples.NAME, "loads", "fails", "(8)"]]
    assert f"!! torch 2.9.1: {bad.headline.rstrip('.').split(',')[0]}" in " ".join(text.split())
    assert "ok torch 2.4.0" not in text
    assert text.count("error[") == 0
    assert plain(good, bad, verbose=True).count("error[") == 2


def test_a_window_too_narrow_for_the_table_gets_a_line_for_each_pair() -> None:
    reports = [replace(samples.HEALTHY, torch=asked(f"2.{n}.0+cxx11abi", "x")) for n in range(9)]
    text = plain(*reports, width=60)
    assert f"{samples.NAME}  2.8.0+cxx11abi  loads\n" in text


def test_a_claim_of_the_package_is_told_of_its_first_file_only() -> None:
    claim = Finding("FA701", "warning", "high", "x 1 claims torch>=2", notes=("So it is.",))
    files = [
        replace(placed(name, "2.1.2"), findings=(claim,), verdict="links") for name in ("a", "b")
    ]
    assert plain(*files).count("warning[FA701]") == 1
    assert plain(*files, verbose=True).count("warning[FA701]") == 2


def test_the_document_holds_the_place_whole() -> None:
    document: Any = inspect_document(samples.report(samples.FAILING))
    (target,) = document["targets"]
    place = target["releases"]
    assert place["missing"][0] == {
        "releases": ["2.0.0", "2.0.1"], "symbols": ["_ZN3c104cuda9SetDeviceEi"],
    }  # fmt: skip
    assert (place["best"], place["confidence"], place["together"]) == ("2.1.0", "high", 1)
    assert place["exported_by"] == {
        "_ZN3c104cuda9SetDeviceEi": ["2.1.0", "2.1.1", "2.1.2", "2.2.0", "2.2.1", "2.2.2"]
    }
    assert target["torch"] is None
    judged: Any = inspect_document(
        samples.report(replace(samples.FAILING, torch=asked("2.9", "2.9.1+cu128")))
    )
    assert judged["targets"][0]["torch"]["judged_by"] == "table"


def test_a_parameter_list_that_fills_lines_is_left_out_of_the_evidence_unless_verbose() -> None:
    long = ", ".join(["std::vector<at::Tensor, std::allocator<at::Tensor> > (at::Tensor)"] * 4)
    said = f"torch 2.5.0 does not export torch::f({long}) const, which it needs (2.2.0 and later)"
    target = replace(samples.FAILING, releases=replace(samples.PLACE, evidence=(said,)))
    brief, whole = (" ".join(plain(target, verbose=on).split()) for on in (False, True))
    assert "torch::f(...) const, which it needs (2.2.0 and later)" in brief
    assert long in whole and long not in brief
