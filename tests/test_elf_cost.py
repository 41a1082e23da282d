"""Listing the symbols of a 254 MB file touches its tables, not its payload."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.material import HUGE, husk_file

ROOT = Path(__file__).parent.parent

# VmHWM, not ru_maxrss: the latter counts the test process that the child was forked from.
CHILD = """
import json, sys, time
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import read_facts
def peak_kb():
    rows = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(rows["VmHWM"].split()[0])
before = peak_kb()
start = time.process_time()
dynamic = DynamicObject.open(sys.argv[1])
facts = read_facts(dynamic)
print(json.dumps({
    "size": facts.size, "undefined": len(facts.undefined), "defined": len(facts.defined),
    "seconds": time.process_time() - start, "grown_kb": peak_kb() - before, "peak_kb": peak_kb(),
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
