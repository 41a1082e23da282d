"""The tables of this package: JSON files in ``data/``, each with its source and date."""

from __future__ import annotations

import os
from typing import Any

_DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")


def read_table(name: str) -> Any:
    """What a table holds, for example ``gpus.json``. Callers keep what they make of it."""
    import json

    with open(os.path.join(_DATA, name), encoding="utf-8") as file:
        return json.load(file)
