"""``--torch X`` says of real files what a real dlopen under that torch did.

Oracle: recorded loads of the real wheels under five CUDA builds of torch, on a machine
without a GPU. Here none of those torches is installed: the files are judged by the tables,
in the environment of another, CPU-only torch, whose own libraries must stay out of sight.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.inspecting import document_of
from support.material import husk_file, stub

from fa_forensics.facts.owner import is_cuda_library
from fixtures import husk

TRUTH = Path(__file__).parent.parent / "fixtures/truth"
HERE = "2.13.0+cpu"


@cache
def husk_of_wheel() -> dict[tuple[str, str], str]:
    return {(h.wheel, m.path): f"{h.name}:{m.path}" for h in husk.list_husks() for m in h.members}


@cache
def judged(identity: str, torch: str) -> dict[str, Any]:
    release = torch.partition("+")[0]
    document = document_of(husk_file(identity), stub(HERE).python, torch=(release,))
    (target,) = document["targets"]
    return dict(target)


ROWS = [
    pytest.param(row, id=f"{row['torch']} {husk_of_wheel()[row['wheel'], row['so']]}")
    for row in json.loads((TRUTH / "dlopen_truth.json").read_text())["rows"]
    if (row["wheel"], row["so"]) in husk_of_wheel()
]


def lost_library(result: str) -> str | None:
    """The library that a real load did not find, or None."""
    return result.split(":")[0] if "cannot open shared object file" in result else None


def test_the_recorded_loads_have_every_outcome() -> None:
    rows: list[Any] = [param.values[0] for param in ROWS]
    assert len(rows) >= 100
    assert len({row["torch"] for row in rows}) == 5
    assert sum(row["result"] == "OK" for row in rows) >= 15
    assert sum("undefined symbol" in row["result"] for row in rows) >= 30
    assert sum(is_cuda_library(lost_library(row["result"]) or "") for row in rows) >= 10


@pytest.mark.parametrize("row", ROWS)
def test_verdict_and_first_complaint_are_those_of_the_real_load(row: dict[str, Any]) -> None:
    target = judged(husk_of_wheel()[row["wheel"], row["so"]], row["torch"])
    failure = target["elf"]["first_failure"]
    assert target["torch"]["judged_by"] == "table"
    assert target["torch"]["version"] == row["torch"]
    assert target["confirm"]["status"] == "not-run"
    if row["result"] == "OK":
        assert failure is None
        assert target["verdict"] in ("loads", "links")
        assert target["missing"] == []
        assert not any(f["severity"] == "error" for f in target["findings"])
    else:
        assert oracles.short_text(failure) == oracles.short_text(row["result"])
        assert target["verdict"] == "fails"
        named = failure.split(": ")[2 if "undefined symbol" in failure else 0]
        assert named in json.dumps(target["findings"][0])
