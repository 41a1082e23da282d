"""Several targets in one run: failing ones first and whole, healthy ones in a line each."""

from __future__ import annotations

from dataclasses import replace

import pytest
import render_samples as samples

from fa_forensics.render.several import names_of, shortened
from fa_forensics.render.terminal import inspect_text
from fa_forensics.report import Skipped, TargetReport

FOLDER = "/e/lib/python3.11/site-packages/audio/lib"


def plain(*targets: TargetReport, verbose: bool = False, width: int = 100) -> str:
    return inspect_text(samples.report(*targets), False, verbose, width)


def healthy(name: str, **changes: object) -> TargetReport:
    return replace(samples.HEALTHY, path=f"{FOLDER}/{name}", **changes)  # type: ignore[arg-type]


def failing(name: str) -> TargetReport:
    return replace(
        samples.FAILING, path=f"{FOLDER}/{name}", headline=f"{name} is broken", releases=None
    )


def test_failing_ones_come_first_in_the_given_order_then_a_line_for_each_healthy_one() -> None:
    text = plain(healthy("a.so"), failing("z.so"), healthy("c.so"), failing("b.so"))
    said = "every name this file needs is provided by torch 2.4.0 and the libraries here"
    assert text.index("!! fails: z.so is broken\n") < text.index("!! fails: b.so is broken\n")
    assert text.endswith(
        f"\n\nok loads: a.so - {said}\nok loads: c.so - {said}\n"
        "\n4 files: 2 fail (z.so, b.so), 2 load\n"
    )
    # Whole: each failing one has its facts, and only these have.
    assert text.count("\n   file       ") == 2
    assert text.count("\n   GPU code   ") == 2


def test_verbose_shows_healthy_ones_whole_too() -> None:
    text = plain(healthy("a.so"), failing("z.so"), verbose=True)
    assert text.index("!! fails: ") < text.index("ok loads: every name")
    assert text.count("\n   file       ") == 2
    assert text.endswith("\n2 files: 1 fails (z.so), 1 loads\n")


def test_one_healthy_target_is_shown_whole() -> None:
    assert "\n   file       " in plain(samples.HEALTHY)
    assert "1 file" not in plain(samples.HEALTHY)


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({}, False),
        ({"verdict": "links"}, False),
        ({"findings": (replace(samples.DRIFT, severity="note"),)}, False),
        ({"findings": (replace(samples.DRIFT, severity="warning"),)}, True),
        ({"problem": "only a part was read"}, True),
        ({"verdict": "inconclusive"}, True),
        ({"verdict": "no-gpu-code"}, True),
    ],
)
def test_only_what_is_healthy_is_cut_to_a_line(changes: dict[str, object], whole: bool) -> None:
    text = plain(healthy("a.so", **changes), healthy("b.so"))
    assert ("\n   file       " in text) == whole


def test_one_line_names_what_could_not_be_looked_at() -> None:
    skipped = (Skipped("atlas", "no table"), Skipped("gpu", "x"), Skipped("gpu", "y"))
    lines = plain(healthy("a.so", skipped=skipped), healthy("b.so")).splitlines()
    line = next(line for line in lines if line.startswith("ok loads: a.so - "))
    assert line.endswith(" (skipped: atlas, gpu)")
    assert len(line) <= 100


def test_count_names_ten_bad_files_at_most_and_says_each_kind() -> None:
    bad = [failing(f"f{i}.so") for i in range(12)]
    other = healthy("n.so", verdict="no-gpu-code")
    text = plain(*bad, other, healthy("l.so", verdict="links"), healthy("a.so"), width=400)
    names = ", ".join(f"f{i}.so" for i in range(10))
    assert text.endswith(
        f"\n15 files: 12 fail ({names}, 2 more), 1 without GPU code (n.so), 1 links, 1 loads\n"
    )


def test_names_are_as_short_as_they_stay_apart() -> None:
    here = healthy("a.so")
    there = replace(here, path="/e/lib/python3.11/site-packages/other/a.so")
    assert names_of([here, healthy("b.so")]) == [["a.so"], ["b.so"]]
    assert names_of([here, there]) == [["audio/lib/a.so"], ["other/a.so"]]
    one = replace(here, path="/d/x.whl", member="p/a.so")
    two = replace(here, path="/d/x.whl", member="p/b.so")
    assert names_of([one, two]) == [["a.so"], ["b.so"]]
    assert names_of([one, replace(two, path="/d/y.whl")]) == [
        ["a.so", "in x.whl"],
        ["b.so", "in y.whl"],
    ]
    assert names_of([one, here]) == [["p/a.so", "in x.whl"], ["audio/lib/a.so"]]
    assert names_of([one, replace(two, member="q/a.so")]) == [["p/a.so"], ["q/a.so"]]


def test_count_repeats_no_archive_that_tells_nothing_apart() -> None:
    one = replace(failing("x"), path="/d/x.whl", member="p/a.so")
    other = replace(one, path="/d/y.whl", member="p/b.so")
    assert plain(one, other).endswith("\n2 files: 2 fail (a.so, b.so)\n")
    twin = replace(one, path="/d/y.whl")
    assert plain(one, twin).endswith("\n2 files: 2 fail (p/a.so in x.whl, p/a.so in y.whl)\n")


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (80, "all 3 symbols of f(int, char) have a provider, the release it was made for"),
        (70, "all 3 symbols of f(int, char) have a provider"),
        (44, "all 3 symbols of f(int, char) have a ..."),
        (32, "all 3 symbols of ..."),
        (6, ""),
        (-5, ""),
    ],
)
def test_headline_is_cut_at_a_clause_else_at_a_word_but_never_in_a_name(
    room: int, text: str
) -> None:
    headline = "all 3 symbols of f(int, char) have a provider, the release it was made for."
    assert shortened(headline, room) == text
