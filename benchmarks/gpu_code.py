"""Time the readers of GPU code: ``python benchmarks/gpu_code.py FILE... [--runs N] [--check]``.

For each file: listing the images inside one process, with the file in memory and after it was
dropped from it; listing as a whole process beside ``cuobjdump -lelf``; and the kernel inventory,
grouped, with its peak memory. Medians of N runs. ``--check`` exits 1 where a limit is missed:
milliseconds for a file of up to 300 MB, and of more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.bench import ROOT, Sample, cuobjdump, run_once

LARGE = 300_000_000
#: (up to 300 MB, more): milliseconds; cold is a multiple of the warm limit.
LIST_MS, COLD_TIMES, TIMES_CUOBJDUMP = (10.0, 100.0), 3.0, (3.0, 10.0)
KERNELS_MS, KERNELS_MIB = 500.0, 200.0

_INVENTORY = """
import sys, time
sys.path.insert(0, {root!r})
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.kernel_names import kernels_view
from fa_forensics.facts.fatbin.kernels import read_kernels
from fa_forensics.facts.fatbin.reader import read_device_code
start = time.perf_counter()
with ElfImage({path!r}) as image:
    found = read_kernels(image, read_device_code(image))
read = time.perf_counter()
view = kernels_view(found)
print((read - start) * 1000, (time.perf_counter() - start) * 1000, len(found.kernels))
"""


def drop(path: str) -> None:
    """Ask the kernel to forget what it holds of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def clock(work: Callable[[], object], runs: int, before: Callable[[], object]) -> float:
    """Milliseconds, median of ``runs``; ``before`` runs ahead of each, outside the clock."""
    times = []
    for _ in range(runs):
        before()
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def whole(command: list[str], runs: int) -> Sample:
    """The median run of a command, after one that is not counted."""
    environ = {**os.environ, "PYTHONPATH": ROOT}
    first = run_once(command, environ)
    # A tool that takes many seconds is not run again: the first run was cold only in part.
    samples = [first] if first.wall_ms > 5000 else [run_once(command, environ) for _ in range(runs)]
    return sorted(samples)[len(samples) // 2]._replace(
        peak_mib=max(sample.peak_mib for sample in samples)
    )


def inventory(path: str, runs: int) -> tuple[float, float, int, float]:
    """Milliseconds to read and to read and group the kernels, how many, and the peak in MiB."""
    import subprocess

    rows = []
    code = _INVENTORY.format(root=ROOT, path=path)
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        rows.append([float(word) for word in done.stdout.split()])
    peak = run_once([sys.executable, "-c", code], {**os.environ}).peak_mib
    read, grouped, count = (statistics.median(column) for column in zip(*rows, strict=True))
    return read, grouped, int(count), peak


def row(label: str, value: float, unit: str, limit: float | None = None) -> bool:
    """Print one line; returns whether the limit was kept."""
    line = f"  {label:44}{value:10.1f} {unit:4}"
    kept = limit is None or value <= limit
    if limit is not None:
        line += f" {limit:g} {unit}: {'kept' if kept else 'MISSED'}"
    print(line.rstrip(), flush=True)
    return kept


def report(path: str, runs: int) -> bool:
    """Print the table of one file; returns whether every limit was kept."""
    from fa_forensics.facts.fatbin.reader import read_file

    large = int(os.path.getsize(path) > LARGE)
    images = len(read_file(path).images)
    size = os.path.getsize(path) / 1e6
    print(f"{os.path.basename(path)}: {size:,.0f} MB, {images:,} images, median of {runs} runs")
    limit = LIST_MS[large]
    warm = clock(lambda: read_file(path), runs, lambda: None)
    kept = row("list, warm, in process", warm, "ms", limit)
    cold = clock(lambda: read_file(path), runs, lambda: drop(path))
    kept &= row("list, cold, in process", cold, "ms", COLD_TIMES * limit)
    read_file(path)
    ours = whole([sys.executable, "-m", "fa_forensics.facts.fatbin", path], runs)
    row("list, whole process", ours.wall_ms, "ms")
    exe = cuobjdump()
    if exe:
        theirs = whole([exe, "-lelf", path], runs)
        stopped = "" if theirs.code == 0 else f" (exit {theirs.code}: did not finish)"
        row(f"cuobjdump -lelf{stopped}", theirs.wall_ms, "ms")
        times = theirs.wall_ms / ours.wall_ms
        good = times >= TIMES_CUOBJDUMP[large]
        said = f"{TIMES_CUOBJDUMP[large]:g} x: {'kept' if good else 'MISSED'}"
        print(f"  {'cuobjdump takes':44}{times:10.1f} x    {said}")
        kept &= good
    read, grouped, count, peak = inventory(path, runs)
    row(f"kernel inventory, {count:,} kernels", read, "ms")
    kept &= row("kernel inventory, grouped", grouped, "ms", None if large else KERNELS_MS)
    kept &= row("kernel inventory, peak memory", peak, "MiB", KERNELS_MIB)
    return kept


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", help="files with GPU code")
    parser.add_argument("--runs", type=int, default=7, help="runs of each [7]")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    options = parser.parse_args()
    kept = True
    for path in options.files:
        kept &= report(os.path.abspath(path), max(1, options.runs))
    return 0 if kept or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
