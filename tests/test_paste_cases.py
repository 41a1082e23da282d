"""Pasted text: every public report is read, and read alike in every dress it may be pasted in."""

from __future__ import annotations

import html
import json
import urllib.parse
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from fa_forensics.facts.paste import read_paste

DATA = Path(__file__).parent / "data"
CASES: dict[str, str] = {
    row["id"]: row["error"]
    for file in sorted(DATA.glob("cases_*.jsonl"))
    for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())
}
REPORT = """Collecting environment information...
PyTorch version: 2.3.0+cu121
CUDA used to build PyTorch: 12.1
OS: Ubuntu 22.04.3 LTS (x86_64)
Libc version: glibc-2.35
Python version: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 535.129.03
[pip3] torch==2.3.0
"""
DRESSES: dict[str, Callable[[str], str]] = {
    "a rank": lambda e: f"[rank3]: {e}",
    "an engine": lambda e: f"(EngineCore pid=1) ERROR 08-20 14:02:10 [core.py:586] {e}",
    "docker": lambda e: f"vllm-1  | {e}",
    "kubernetes": lambda e: f"2024-08-20T14:02:10.1Z stderr F {e}",
    "a report behind": lambda e: f"{e}\n\n{REPORT}",
    "a report before": lambda e: f"{REPORT}\n{e}",
    "mail": lambda e: f"> {e}",
    "pytest": lambda e: f"E       {e}",
    "HTML": html.escape,
    "an address": lambda e: urllib.parse.quote(e, safe=""),
    "a JSON log": lambda e: json.dumps({"log": e + "\n"}),
    "a repr": lambda e: f"x failed with ImportError({e!r})",
    "Markdown": lambda e: e.replace("_", "\\_"),
    "backticks": lambda e: f"`{e}`",
    "quotes": lambda e: f'"{e}"',
    "colours": lambda e: f"\x1b[31m{e}\x1b[0m",
    "Chinese": lambda e: f"\u62a5\u9519\uff1a{e}\u3002\u600e\u4e48\u89e3\u51b3",
    "a traceback": lambda e: f'Traceback:\n  File "/srv/a.py", line 3\n    import x_cuda\n{e}',
    "a post": lambda e: f"# {e}\n\nHello, I have this problem:\n```\n{e}\n```\nthanks",
    "carriage returns": lambda e: f"hi\r\n{e}\r\nbye",
    "a full stop": lambda e: f"{e}.",
    "twice": lambda e: f"{e}\n{e}",
}

Reading = list[tuple[str, str | None, str | None, str | None, str | None]]


def reading(text: str) -> Reading:
    return [(m.what, m.symbol, m.version, m.library, m.file) for m in read_paste(text).mentions]


@cache
def undressed(case: str) -> Reading:
    return reading(CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_every_report_is_read(case: str) -> None:
    assert undressed(case)


@pytest.mark.parametrize("dress", DRESSES)
def test_reports_are_read_alike_in_every_dress(dress: str) -> None:
    different = {
        case: reading(DRESSES[dress](error))
        for case, error in CASES.items()
        if reading(DRESSES[dress](error)) != undressed(case)
    }
    assert different == {}
