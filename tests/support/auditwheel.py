"""auditwheel as a witness: the policy that it names for one file. It ships no types."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

from fa_forensics.facts.elf.facts import ElfFacts


@cache
def policies_of(machine: str) -> Any:
    """auditwheel's policies for a machine."""
    policy = importlib.import_module("auditwheel.policy")
    glibc = importlib.import_module("auditwheel.libc").Libc.GLIBC
    machines = importlib.import_module("auditwheel.architecture").Architecture
    return policy.WheelPolicies(libc=glibc, arch=getattr(machines, machine))


def auditwheels_tag(path: Path, machine: str) -> Any:
    """The policy of the symbol versions that a file needs."""
    elfutils = importlib.import_module("auditwheel.elfutils")
    versions: dict[str, set[str]] = {}
    with path.open("rb") as stream:
        reader = importlib.import_module("elftools.elf.elffile").ELFFile(stream)
        for file, version in elfutils.elf_find_versioned_symbols(reader):
            versions.setdefault(file, set()).add(version)
    return policies_of(machine).versioned_symbols_policy(versions)


def libraries_outside(elf: ElfFacts, policy: Any) -> set[str]:
    """The needed libraries that a policy does not have; none for plain linux."""
    if policy == policies_of(elf.machine).linux:
        return set()
    return {name for name in elf.needed if "ld-linux" not in name} - policy.whitelist
