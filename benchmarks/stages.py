"""Time the readers inside one process: ``python -m benchmarks.stages FILE RUNS [PYTHON]``.

Prints one line a stage, its name and milliseconds (median of RUNS), separated by a tab.
Run by ``bench.py``, in a process of its own so that the imports count once.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable


def clock(work: Callable[[], object], runs: int) -> float:
    """Milliseconds that ``work`` takes, median of ``runs`` after one that is not counted."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def since(start: float) -> float:
    """Milliseconds since ``start``, a value of ``time.perf_counter()``."""
    return (time.perf_counter() - start) * 1000


def main(path: str, runs: int, python: str | None) -> None:
    """Print the table for one file in one environment."""
    start = time.perf_counter()
    from fa_forensics.facts.demangle import demangle
    from fa_forensics.facts.elf.dynamic import DynamicObject
    from fa_forensics.facts.elf.facts import ElfFacts, read_facts
    from fa_forensics.facts.environment import find_environment
    from fa_forensics.facts.fatbin.reader import read_file
    from fa_forensics.facts.owner import owner_of
    from fa_forensics.resolve.target import link_target

    print("imports of the readers", since(start), sep="\t")

    def facts() -> ElfFacts:
        dynamic = DynamicObject.open(path)
        try:
            return read_facts(dynamic)
        finally:
            dynamic.close()

    elf = facts()
    start = time.perf_counter()
    owners = {}
    for symbol in elf.undefined:
        name = symbol.name.decode("utf-8", "backslashreplace")
        text = demangle(name)
        owners[symbol.index] = text, owner_of(name, symbol.version, text)
    print("demangle, owners (first time)", since(start), sep="\t")
    print("facts/elf", clock(facts, runs), sep="\t")
    print("facts/fatbin", clock(lambda: read_file(path), runs), sep="\t")
    environment = find_environment(python, path, os.environ)
    around = clock(lambda: find_environment(python, path, os.environ), runs)
    print("facts/environment", around, sep="\t")
    if environment.torch is None:
        print("resolve", "no torch in this environment (--python PATH)", sep="\t")
        return
    linking = clock(lambda: link_target(path, elf, environment, owners, as_package=False), runs)
    print("resolve", linking, sep="\t")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
