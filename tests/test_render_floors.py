"""The floors of a file in words: what it needs, where that is met, and what is not met here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import render_samples as samples

from fa_forensics.render.floors import floor_rows, floor_sentences
from fa_forensics.render.markdown import inspect_markdown
from fa_forensics.render.terminal import inspect_text
from fa_forensics.report import TargetReport


def version(family: str, needs: str, release: str | None, **more: Any) -> dict[str, Any]:
    facts = {"family": family, "needs": needs, "library": "lib.so", "release": release,
             "brought_by": None, "here": None, "met": None, "path": None}  # fmt: skip
    return {**facts, **more}


GLIBC = version("GLIBC", "GLIBC_2.34", "2.34", here="GLIBC_2.36", met=True, path="/l/libc.so.6",
                brought_by="glibc 2.34 (RHEL 9)")  # fmt: skip
GLIBCXX = version("GLIBCXX", "GLIBCXX_3.4.29", "11.1")
CXXABI = version("CXXABI", "CXXABI_1.3.9", "5.1")


def target(**changes: Any) -> TargetReport:
    """A file of Ubuntu 22.04 in a wheel that is tagged so."""
    facts: dict[str, Any] = {
        "systems": ["Ubuntu 22.04", "Debian 12", "RHEL 9", "Amazon Linux 2023"],
        "versions": [GLIBC, GLIBCXX, CXXABI],
        "unversioned": {"count": 0, "needs": None, "release": None},
        "manylinux": {"tag": "manylinux_2_34_x86_64", "aliases": [], "libraries_outside": [],
                      "names_forbidden": []},
        "claimed": None,
        "stable_abi": None,
    }  # fmt: skip
    return replace(samples.HEALTHY, floors={**facts, **changes})


def claimed(*tags: str) -> dict[str, Any]:
    return {"python_tags": [], "abi_tags": [], "platform_tags": list(tags), "source": "WHEEL"}


def stable(python: str | None, *outside: str) -> dict[str, Any]:
    return {"outside": list(outside), "python": python, "newest": []}


NEEDS = "glibc 2.34, libstdc++ of GCC 11.1: Ubuntu 22.04, Debian 12, RHEL 9 or newer"
TAG = "manylinux_2_34_x86_64 by its symbol versions"


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, [NEEDS, TAG]),
        ({"claimed": claimed("manylinux_2_34_x86_64")}, [NEEDS, TAG]),
        ({"claimed": claimed("linux_x86_64")},
         [NEEDS, f"{TAG}; its wheel is tagged linux_x86_64"]),
        ({"systems": []}, ["glibc 2.34, libstdc++ of GCC 11.1", TAG]),
        ({"versions": [{**GLIBC, "here": "GLIBC_2.28", "met": False}]},
         ["glibc 2.34 (here 2.28): Ubuntu 22.04, Debian 12, RHEL 9 or newer", TAG]),
        ({"versions": [{**GLIBCXX, "here": "GLIBCXX_3.4.25", "met": False}], "systems": []},
         ["libstdc++ of GCC 11.1, GLIBCXX_3.4.29 (here GLIBCXX_3.4.25)", TAG]),
        ({"versions": [version("GLIBCXX", "GLIBCXX_3.4.99", None)], "systems": []},
         ["GLIBCXX_3.4.99", TAG]),
        ({"unversioned": {"count": 3, "needs": "GLIBCXX_3.4.31", "release": "13.1"},
          "systems": []},
         ["glibc 2.34, libstdc++ of GCC 11.1, GCC 13.1 for names without a version", TAG]),
        ({"versions": [], "systems": []}, [TAG]),
        ({"stable_abi": stable("3.9")}, [NEEDS, TAG, "Python's stable ABI: Python 3.9 or newer"]),
        ({"stable_abi": stable(None)}, [NEEDS, TAG, "Python's stable ABI: no name of Python"]),
        ({"stable_abi": stable("3.9", "_PyLong_Sign")},
         [NEEDS, TAG, "Python's stable ABI: not kept to (1 name outside it)"]),
    ],
)  # fmt: skip
def test_floors_in_words(changes: dict[str, Any], sentences: list[str]) -> None:
    assert floor_sentences(target(**changes)) == sentences


def test_all_systems_and_every_version_stand_in_the_verbose_report() -> None:
    rows = [" ".join(parts) for label, parts in floor_rows(target(), verbose=True)]
    assert rows[0].endswith("RHEL 9, Amazon Linux 2023 or newer")
    assert (
        "GLIBC_2.34 of lib.so, brought by glibc 2.34 (RHEL 9); here GLIBC_2.36 in /l/libc.so.6"
        in rows
    )


def test_a_report_without_floors_says_nothing_of_them() -> None:
    bare = replace(samples.HEALTHY, floors=None)
    assert floor_rows(bare, verbose=True) == []
    assert "floors" not in inspect_text(samples.report(bare), False, True, 100)


def test_the_text_and_the_markdown_report_have_them() -> None:
    report = samples.report(target())
    assert "floors     glibc 2.34, libstdc++ of GCC 11.1" in inspect_text(report, False, False, 100)
    assert "### Needs at least\n\n- glibc 2.34" in inspect_markdown(report)


def test_names_from_a_hostile_file_are_escaped() -> None:
    evil = target(versions=[version("GLIBC", "GLIBC_\x1b[31m", None, here="GLIBC_\x1b", met=False)])
    assert "\x1b" not in inspect_text(samples.report(evil), False, True, 100)
