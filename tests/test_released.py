"""``atlas diff`` and ``atlas releases``: what nm recorded of real builds, narrowed and shown."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from support import oracles
from support.inspecting import Run, invoke, one_sentence
from support.material import husk_file
from support.nm_records import WHOLE, recorded
from test_schema import VALIDATOR

from fa_forensics.atlas.store import Atlas
from fa_forensics.render.diff import SHOWN

OLD, NEW = "2.4.0", "2.9.1"
HUSK = "vllm_flash_attn-2.6.2:vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def diff(*arguments: str) -> dict[str, Any]:
    done = invoke("atlas", "diff", *arguments, "--format", "json")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    VALIDATOR.validate(document)
    return dict(document["difference"])


def text(*arguments: str) -> Run:
    return invoke("atlas", "diff", *arguments, "--no-color")


@cache
def exported(release: str, library: str) -> frozenset[str]:
    return frozenset(name for name, _ in recorded(release, library))


def side(found: dict[str, Any], plain: str, which: str) -> list[str]:
    """Every readable name of one side, in whichever list it is."""
    rows = [*found["resigned"], *found["flavour"], *found["generated"]]
    names = [*found[plain], *(name for row in rows for name in row[which])]
    return sorted(name["demangled"] for name in names)


@pytest.mark.parametrize("library", WHOLE)
@pytest.mark.parametrize("old, new", [(OLD, NEW), (NEW, OLD), ("2.2.2", "2.4.0")])
def test_a_librarys_difference_is_that_of_nms_lists(library: str, old: str, new: str) -> None:
    found = diff(old, new, "--library", library)
    gone = exported(old, library) - exported(new, library)
    come = exported(new, library) - exported(old, library)
    assert gone and come
    # A constructor's forms read alike and are one entry.
    assert side(found, "removed", "before") == sorted(set(oracles.cxxfilt(sorted(gone))))
    assert side(found, "added", "after") == sorted(set(oracles.cxxfilt(sorted(come))))


def test_a_namespace_narrows_to_what_is_in_it() -> None:
    found = diff("2.2.2", "2.3.0", "--namespace", "c10::cuda")
    assert found["removed"] == []
    assert {row["name"]: [n["demangled"] for n in row["after"]] for row in found["resigned"]}[
        "c10::cuda::SetDevice"
    ] == ["c10::cuda::SetDevice(signed char)"]


def test_used_by_a_file_is_what_nm_says_that_it_needs() -> None:
    path = husk_file(HUSK)
    found = diff(OLD, NEW, "--used-by", str(path))
    undefined = {name[0] for letter, name in oracles.nm_rows(path, "-u") if letter == "U"}
    for library in WHOLE:
        lost = undefined & exported(OLD, library) - exported(NEW, library)
        # What a torch of old exported of its static libstdc++ is no torch name: a file gets it
        # from libstdc++.so.
        names = {n for n in oracles.cxxfilt(sorted(lost)) if n.startswith(("c10::", "at::"))}
        assert names and names <= set(side(found, "removed", "before"))
    assert {n["symbol"] for n in found["removed"]} <= undefined
    assert found["used_by"] == [str(path)]
    said = " ".join(text(OLD, NEW, "--used-by", str(path)).stdout.split())
    assert said.endswith("built for 2.4.0, it does not load with 2.9.1")


def test_used_by_a_file_that_an_upgrade_leaves_alone_says_so() -> None:
    done = text("2.4.0", "2.4.1", "--used-by", str(husk_file(HUSK)))
    assert "nothing that is needed differs between 2.4.0 and 2.4.1" in done.stdout
    assert len(done.stdout.splitlines()) <= 6


def test_the_turn_of_the_flavour_is_one_sentence_unless_all_is_asked_for() -> None:
    arguments = ("2.6.0", "2.7.0", "--library", "libc10.so")
    short, long = text(*arguments).stdout, text(*arguments, "--verbose").stdout
    assert "changed from pre-cxx11 to cxx11" in short
    assert not [line for line in short.splitlines() if line.startswith("  ~ ")]
    turned = diff(*arguments)["flavour"]
    assert len([line for line in long.splitlines() if line.startswith("  ~ ")]) == len(turned) > 50


def test_long_lists_are_cut_and_say_by_how_much() -> None:
    found, shown = diff("2.8.0", "2.9.1"), text("2.8.0", "2.9.1").stdout
    assert len(found["added"]) > 1_000
    assert f"... and {len(found['added']) - SHOWN} more (--verbose lists all)" in shown
    assert len(shown) < 30_000
    assert max(map(len, shown.splitlines())) < 500
    everything = text("2.8.0", "2.9.1", "--verbose").stdout
    assert len([row for row in everything.splitlines() if row.startswith("  + ")]) >= len(
        found["added"]
    )


def test_a_minor_release_is_its_newest_patch() -> None:
    found = diff("2.8", "2.9", "--library", "libc10_cuda.so")
    assert (found["old"]["release"], found["new"]["release"]) == ("2.8.0", "2.9.1")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("2.4.7", "2.9.1"), "2.4.0, 2.4.1"),
        (("2.4.0", "soon"), "2.9.1"),
        (("2.4.0", "2.5.0", "--machine", "riscv64"), "aarch64 and x86_64"),
        (("2.4.0", "2.5.0", "--library", "libc11.so"), "libc10.so"),
        (("2.4.0", "2.5.0", "--namespace", "c11::cuda"), "c10::cuda"),
    ],
)
def test_what_is_not_known_is_a_wrong_usage_with_what_is(
    arguments: tuple[str, ...], said: str
) -> None:
    done = text(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert one_sentence(done)
    assert said in done.stderr
    refused = invoke("atlas", "diff", *arguments, "--format", "json")
    VALIDATOR.validate(json.loads(refused.stdout))


def test_every_release_of_the_table_has_a_row() -> None:
    document = json.loads(invoke("atlas", "releases", "--format", "json").stdout)
    VALIDATOR.validate(document)
    builds = Atlas.open().all_builds()
    assert {(r["release"], r["machine"]) for r in document["releases"]} == {
        (b.release, b.machine) for b in builds
    }
    lines = invoke("atlas", "releases", "--machine", "x86_64").stdout.splitlines()
    assert len(lines) == 1 + len(Atlas.open().releases("x86_64"))
    row = next(line for line in lines if line.startswith("2.4.0 "))
    assert row.split()[1:4] == ["2024-07-24", "12.1", "pre-cxx11"]


@pytest.mark.parametrize(
    "other", ["2.9.1+cu118", "2.9.1+cpu", "2.9.1-cxx11abi", "2.9.1.dev20260101"]
)
def test_a_build_whose_names_are_not_in_the_table_is_not_answered_by_another(other: str) -> None:
    done = text(other, NEW)
    assert done.code == 2
    assert (
        f"torch {other} is another build" in done.stderr and "name that one: 2.9.1" in done.stderr
    )
    assert text("2.9.1+cu128", NEW).code == 0
