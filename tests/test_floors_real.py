"""Whole environments: every shared object's manylinux tag and claim of the stable ABI.

FA_FORENSICS_REAL_ENVS names the environments, with colons between them. Oracles: auditwheel and
abi3audit, as far as they are installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.auditwheel import auditwheels_tag, libraries_outside

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, read_facts
from fa_forensics.facts.manylinux import satisfied
from fa_forensics.facts.stable_abi import stable_abi

pytestmark = pytest.mark.real
ENVIRONMENTS = [Path(p) for p in os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":") if p]


def objects() -> Iterator[tuple[Path, ElfFacts]]:
    """Every shared object of the environments that is for one of the machines of the table."""
    for environment in ENVIRONMENTS:
        for path in sorted(environment.rglob("*.so*")):
            if path.is_symlink() or not path.is_file():
                continue
            try:
                dynamic = DynamicObject.open(str(path))
            except ForensicsError:
                continue  # a linker script, a text of that name
            try:
                facts = read_facts(dynamic)
            finally:
                dynamic.close()
            if facts.machine in ("x86_64", "aarch64"):
                yield path, facts


def test_every_file_satisfies_the_policy_that_auditwheel_names() -> None:
    if not ENVIRONMENTS:
        pytest.skip("FA_FORENSICS_REAL_ENVS names no environment")
    pytest.importorskip("auditwheel")
    wrong, count = [], 0
    for path, elf in objects():
        needs = [(file, version) for file, version, _ in elf.versions_needed]
        names = [s.name.decode("utf-8", "backslashreplace") for s in elf.undefined]
        ours = satisfied(elf.machine, elf.needed, needs, names)
        policy = auditwheels_tag(path, elf.machine)
        count += 1
        if ours.tag != policy.name or set(ours.libraries_outside) != libraries_outside(elf, policy):
            wrong.append((path, ours, policy.name))
    assert wrong == []
    assert count > 50
    print(f"{count} of {count} files", file=sys.stderr)


def test_claims_of_the_stable_abi_hold_where_abi3audit_says_so() -> None:
    if not ENVIRONMENTS:
        pytest.skip("FA_FORENSICS_REAL_ENVS names no environment")
    pytest.importorskip("abi3audit")
    audit = importlib.import_module("abi3audit._audit").audit
    extract = importlib.import_module("abi3audit._extract")
    checked = 0
    for path, elf in objects():
        names = [s.name.decode("utf-8", "backslashreplace") for s in elf.undefined if s.bind != 2]
        names = [name for name in names if name.startswith(("Py", "_Py"))]
        if not path.name.endswith(".abi3.so") or not names:
            continue
        ours = stable_abi(names)
        for found in extract.SharedObjectExtractor(extract.SharedObjectSpec(str(path))):
            theirs = audit(found)
            outside = {s.name for s in theirs.non_abi3_symbols if s.visibility != "weak"}
            assert outside == set(ours.outside), path
            if ours.floor is not None:
                assert (theirs.computed.major, theirs.computed.minor) == ours.floor, path
            checked += 1
    print(f"{checked} files that claim the stable ABI", file=sys.stderr)
