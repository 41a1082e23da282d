"""Time fa-forensics beside the tools one would use by hand: ``python benchmarks/bench.py [FILE]``.

Prints, for one extension file, the wall time of whole processes (median of N runs after one that
is not counted, milliseconds), their peak memory (MiB), and the time of the readers inside one
process. FILE is by default the largest flash-attention build under FA_FORENSICS_REAL_DIR, else
the shipped husk of one: same size, same tables, no code (cuobjdump cannot read a husk).

Standard library only. The limits are the project's own; ``--check`` exits 1 where one is missed.
"""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HUSK = "vllm_flash_attn-2.6.2"
SYMBOL = "_ZN3c104cuda9SetDeviceEi"

#: Whole process, warm: milliseconds and MiB.
LIMITS = {"inspect": (350.0, 100.0), "why": (300.0, 100.0), "--help": (150.0, 100.0)}


class Sample(NamedTuple):
    """One process: wall time in ms, peak memory in MiB, exit code (negative: a signal)."""

    wall_ms: float
    peak_mib: float
    code: int


def run_once(command: list[str], environ: dict[str, str]) -> Sample:
    """Run a command with its output thrown away.

    The peak is the kernel's ru_maxrss, which starts from the size of the process that spawned
    it: this one, a bare Python, is the floor of every figure.
    """
    quiet = [
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall = (time.perf_counter() - start) * 1000
    return Sample(wall, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status))


def measure(command: list[str], runs: int, environ: dict[str, str]) -> Sample:
    """The median run of ``runs``, after one that warms the caches; the highest peak of all."""
    run_once(command, environ)
    samples = [run_once(command, environ) for _ in range(runs)]
    return Sample(
        statistics.median(s.wall_ms for s in samples),
        max(s.peak_mib for s in samples),
        samples[0].code,
    )


def default_file() -> str:
    """The largest real flash-attention build at hand, else the husk."""
    root = os.environ.get("FA_FORENSICS_REAL_DIR", "")
    pattern = os.path.join(root, "**", "*flash_attn_2_cuda*.so")
    found = [p for p in glob.glob(pattern, recursive=True) if HUSK in p] if root else []
    if found:
        return found[0]
    dest = os.path.join(ROOT, "build", "fixtures")
    unpack = os.path.join(ROOT, "fixtures", "unpack.py")
    done = subprocess.run(
        [sys.executable, unpack, HUSK, dest], check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()[0]


def own_command() -> list[str]:
    """fa-forensics as it is installed beside this Python, else the module of this tree."""
    script = os.path.join(os.path.dirname(sys.executable), "fa-forensics")
    return [script] if os.path.exists(script) else [sys.executable, "-m", "fa_forensics"]


def cuobjdump() -> str | None:
    """The cuobjdump to compare with: FA_FORENSICS_CUOBJDUMP, PATH, CUDA_HOME."""
    named = os.environ.get("FA_FORENSICS_CUOBJDUMP", "").split(os.pathsep)[0]
    home = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
    return named or shutil.which("cuobjdump") or shutil.which("cuobjdump", path=home)


def commands(path: str, python: str | None) -> list[tuple[str, list[str] | str, str]]:
    """(what is printed, the command or why there is none, its limit's name)."""
    own, where = own_command(), ["--python", python] if python else []
    rows: list[tuple[str, list[str] | str, str]] = [
        ("fa-forensics inspect", [*own, "inspect", "--no-confirm", *where, path], "inspect"),
        ("fa-forensics why SYMBOL", [*own, "why", *where, SYMBOL], "why"),
        ("fa-forensics --help", [*own, "--help"], "--help"),
        ("python -c pass", [sys.executable, "-c", "pass"], ""),
    ]
    shell, nm, cxxfilt, ldd = (shutil.which(name) for name in ("sh", "nm", "c++filt", "ldd"))
    if shell and nm and cxxfilt:
        piped = [shell, "-c", '"$1" -D "$0" | "$2"', path, nm, cxxfilt]
        rows.append(("nm -D | c++filt", piped, ""))
    else:
        rows.append(("nm -D | c++filt", "not installed", ""))
    rows.append(("ldd -r", [ldd, "-r", path] if ldd else "not installed", ""))
    dump = cuobjdump()
    rows.append(("cuobjdump -lelf", [dump, "-lelf", path] if dump else "not installed", ""))
    return rows


def report(path: str, python: str | None, runs: int) -> bool:
    """Print both tables; return whether every limit was kept."""
    # An installed package has its bytecode; in a checkout the run that is not counted writes it.
    environ = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    if len(own_command()) > 1:
        environ["PYTHONPATH"] = ROOT
    print(f"{os.path.basename(path)}: {os.path.getsize(path) / 1e6:,.0f} MB, median of {runs} runs")
    print(f"\n{'whole process':28}{'ms':>9}{'peak MiB':>11}{'exit':>6}  limit")
    kept = True
    for label, command, limit in commands(path, python):
        if isinstance(command, str):
            print(f"{label:28}  ({command})")
            continue
        sample = measure(command, runs, environ)
        line = f"{label:28}{sample.wall_ms:9.1f}{sample.peak_mib:11.1f}{sample.code:6d}"
        if limit:
            ms, mib = LIMITS[limit]
            good = sample.wall_ms <= ms and sample.peak_mib <= mib
            kept = kept and good
            line += f"  {ms:.0f} ms, {mib:.0f} MiB: {'kept' if good else 'MISSED'}"
        print(line)
    print(f"\n{'inside one process':34}{'ms':>9}")
    command = [sys.executable, "-m", "benchmarks.stages", path, str(max(runs, 5))]
    stages = subprocess.run(
        [*command, *([python] if python else [])],
        cwd=ROOT,
        env=environ,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    for row in stages.stdout.splitlines():
        name, value = row.split("\t")
        number = value.replace(".", "", 1).isdigit()
        print(f"{name:34}{float(value):9.2f}" if number else f"{name:34}  ({value})")
    return kept


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", help="an extension file [default: see above]")
    parser.add_argument(
        "--python",
        default=os.environ.get("FA_FORENSICS_REAL_PYTHON"),
        help="the environment to resolve in [FA_FORENSICS_REAL_PYTHON]",
    )
    parser.add_argument("--runs", type=int, default=11, help="runs of each command [11]")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    options = parser.parse_args()
    path = os.path.abspath(options.file or default_file())
    kept = report(path, options.python, max(options.runs, 1))
    return 0 if kept or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
