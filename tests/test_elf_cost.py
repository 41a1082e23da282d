"""Listing the symbols of a 254 MB file touches its tables, not its payload."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.material import HUGE, husk_file

ROOT = Path(__file__).parent.parent

CHILD = """
import json, resource, sys, time
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import read_facts
before = resource.getrusage(resource.RUSAGE_SELF)
start = time.perf_counter()
dynamic = DynamicObject.open(sys.argv[1])
facts = read_facts(dynamic)
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "size": facts.size, "undefined": len(facts.undefined), "defined": len(facts.defined),
    "seconds": time.perf_counter() - start,
    "grown_kb": after.ru_maxrss - before.ru_maxrss, "peak_kb": after.ru_maxrss,
}))
"""


def test_reading_a_huge_file_is_cheap_in_memory_and_time() -> None:
    path = husk_file(HUGE)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        capture_output=True, text=True, check=True, cwd=ROOT, timeout=60,
    )  # fmt: skip
    cost = json.loads(done.stdout)
    assert cost["size"] == path.stat().st_size == 254_188_512
    assert cost["undefined"] > 300 and cost["defined"] > 1000
    # A hole that is read fills pages too, so a reader of the payload would show here.
    assert cost["grown_kb"] < 30_000
    assert cost["peak_kb"] < 80_000
    assert cost["seconds"] < 2  # about 0.03 s; generous for a busy machine
