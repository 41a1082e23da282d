"""``why`` on public reports: what each is, whose the symbol is, since when, and what to type.

The expectations were written by reading each report and its outcome, not by running the tool.
Each text is asked twice: by itself, and with the versions of the report as collect_env prints
them. What a thread's own explanation had wrong must not come back.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fa_forensics.facts.interpreter import this_python
from fa_forensics.render.json import dumps, why_document
from fa_forensics.why import explain

DATA = Path(__file__).parent / "data"

#: Advice that is wrong everywhere, whatever the text says.
NEVER = (
    r"\bln -s",
    r"\bsymlink",
    r"(?<!\w)cp \S",
    r"LD_PRELOAD",
    r"apt(-get)? install \S*libc6",
    r"upgrade (your )?glibc",
    r"install nvidia-cuda-runtime-cu13",
    r"reinstall (the|your) (nvidia )?driver",
    r"google|stack ?overflow|search the web",
    r"VTune|oneAPI",
)
