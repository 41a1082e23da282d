"""Reports that anybody may have edited: told or compared, never a traceback."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from support.machines import env_report

from fa_forensics.compare.run import compare_documents
from fa_forensics.render.compare import compare_text
from fa_forensics.render.json import dumps
from fa_forensics.render.json_compare import compare_document

VALUES: list[Any] = [
    None, 1, -1.5, True, "", "a\x1b[31m\n", "/" * 50, [], {}, [None, [1]], {"a": {"b": [{}]}},
    10**30, float("inf"), "\ud800",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from places(item, (*path, at))


@pytest.mark.parametrize("seed", range(4))
def test_any_field_may_hold_anything(seed: int) -> None:
    draw = random.Random(seed)
    paths = list(places(env_report()))[1:]
    for _ in range(150):
        document = copy.deepcopy(env_report())
        path = draw.choice(paths)
        holder: Any = document
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = draw.choice(VALUES)
        report = compare_documents([("a", env_report()), ("b", document)])
        assert len(report.reports) + len(report.unread) == 2
        assert "\x1b" not in compare_text(report, False, True, 100)
        dumps(compare_document(report))
