"""Runs of ``wheels`` for tests, as documents that keep to the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.inspecting import invoke
from support.inspecting import validator as schema


def wheels(*arguments: str | Path) -> dict[str, Any]:
    """The JSON document of a run in this process, held to the schema; its exit code with it."""
    result = invoke("wheels", *map(str, arguments), "--format", "json")
    document: dict[str, Any] = json.loads(result.stdout)
    schema().validate(document)
    return {**document, "code": result.code}


def query(*arguments: str | Path) -> dict[str, Any]:
    """The answer for an environment."""
    document = wheels(*arguments)
    answer: dict[str, Any] = document["query"]
    return {**answer, "code": document["code"]}


def judged(*arguments: str | Path) -> dict[str, Any]:
    """The judgement on the one wheel that was given."""
    document = wheels(*arguments)
    (wheel,) = document["wheels"]
    return {**wheel, "code": document["code"], "states": states(wheel)}


def states(wheel: dict[str, Any]) -> dict[str, str]:
    return {check["subject"]: check["state"] for check in wheel["checks"]}


def codes(found: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in found["findings"]]
