"""How many compilations this machine can run at once: cores and memory, as flash-attn counts."""

from __future__ import annotations

import os
from typing import NamedTuple

from fa_forensics.facts.flash_limits import build_costs

_MEMINFO = "/proc/meminfo"
_CGROUP_LIMIT = "/sys/fs/cgroup/memory.max"


class BuildMachine(NamedTuple):
    """Cores this process may use, and bytes of memory that are free; None: not known."""

    cores: int | None
    free_bytes: int | None


def read_build_machine() -> BuildMachine:
    """What the operating system says; a container's memory limit counts too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    known = [size for size in (_available(_MEMINFO), _limit(_CGROUP_LIMIT)) if size is not None]
    return BuildMachine(cores, min(known, default=None))


def jobs(machine: BuildMachine) -> int | None:
    """The value for MAX_JOBS: one job for so much memory and so many cores; None if unknown."""
    memory, cores = build_costs()
    if machine.cores is None or machine.free_bytes is None:
        return None
    return max(1, min(machine.cores // cores, machine.free_bytes // memory))


def _available(path: str) -> int | None:
    for line in _text(path).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10  # kB, meaning KiB
    return None


def _limit(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None  # "max" is no limit


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(1 << 16)
    except (OSError, ValueError):
        return ""  # another system, or no cgroup: then it is not known
