"""``why`` on public reports: what each is, whose the symbol is, since when, and what to type.

The expectations were written by reading each report and its outcome, not by running the tool.
Each text is asked twice: by itself, and with the versions of the report as collect_env prints
them. What a thread's own explanation had wrong must not come back.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.inspecting import validator

from fa_forensics.render.json import dumps, why_document
from fa_forensics.why import explain

DATA = Path(__file__).parent / "data"

#: Advice that is wrong everywhere, whatever the text says.
NEVER = (
    r"\bln -s",
    r"symlink",
    r"(?<![\w/])cp \S",
    r"LD_PRELOAD=",
    r"apt(-get)? install \S*libc6",
    r"(?i)(upgrade|update) (your |the )?glibc",
    r"install \S*nvidia-cuda-runtime-cu13",
    r"(?i)reinstall (the |your )?(nvidia |cuda )?driver",
    r"(?i)google|stack ?overflow|search the web",
    r"VTune|oneAPI",
)


def rows() -> list[dict[str, Any]]:
    lines = [
        line
        for path in sorted(DATA.glob("cases_*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


ROWS = rows()
TOLD = [row for row in ROWS if row.get("told")]


def first_answer(text: str, python: str) -> dict[str, Any]:
    document = json.loads(dumps(why_document(explain([text], python, {}))))
    validator().validate(document)
    answer: dict[str, Any] = document["answers"][0]
    return answer


def check(answer: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Hold an answer to what a row expects of it."""
    words = " ".join([answer["cause"], *answer["notes"]])
    commands = "\n".join(answer["help"])
    assert answer["kind"] in wanted["kind"], words
    for key in ("code", "owner", "direction", "confidence"):
        if wanted.get(key) is not None:
            assert answer[key] == wanted[key], (key, words)
    if "interval" in wanted:
        assert wanted["interval"] in answer["interval"], words
        assert bool(wanted["interval"]) == bool(answer["interval"]), words
    for text in wanted.get("says", ()):
        assert text in words
    for text in wanted.get("help", ()):
        assert text in commands
    for text in wanted.get("never", ()):
        assert text not in words + commands
    for pattern in NEVER:
        assert re.search(pattern, words + "\n" + commands) is None, pattern


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_report_by_itself(row: dict[str, Any], bare: str) -> None:
    check(first_answer(row["error"], bare), row)


@pytest.mark.parametrize("row", TOLD, ids=[row["id"] for row in TOLD])
def test_a_report_with_its_versions(row: dict[str, Any], bare: str) -> None:
    text = "\n".join([row["error"], "", "Collecting environment information...", *row["told"]])
    check(first_answer(text, bare), {**row, **row.get("then", {})})


def test_every_report_has_its_row() -> None:
    assert len({row["id"] for row in ROWS}) >= 88
