"""Which manylinux policy a file satisfies, by its symbol versions, and what it needs besides.

The table is ``data/manylinux.json``, made from auditwheel's policies (PEP 600).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from fa_forensics.facts.tables import read_table
from fa_forensics.records import dataclass

Versions = dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: ``manylinux_2_17``, its other names, what it allows on each machine.

    ``versions`` maps a machine to family → versions without the family ("2.17").
    """

    name: str
    aliases: tuple[str, ...]
    versions: dict[str, Versions]
    libraries: frozenset[str]
    forbids: dict[str, frozenset[str]]

    @property
    def glibc(self) -> tuple[int, int]:
        """The glibc that the name promises to need: (2, 17)."""
        _, major, minor = self.name.split("_")
        return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The tag of the oldest policy whose symbol versions suffice a file.

    ``tag`` is ``linux_x86_64`` where no policy does. ``libraries_outside`` are the needed
    libraries that no such system has to have: a wheel of that tag brings them, or asks for a
    package that does. ``names_forbidden`` are names of system libraries that the policy bars.
    """

    tag: str
    aliases: tuple[str, ...]
    libraries_outside: tuple[str, ...]
    names_forbidden: tuple[str, ...]


@lru_cache(maxsize=1)
def policies() -> tuple[Policy, ...]:
    """All policies, oldest first."""
    table = read_table("manylinux.json")
    versions: dict[str, Versions] = {}
    libraries: frozenset[str] = frozenset()
    forbids = {soname: frozenset(names) for soname, names in table["forbids"].items()}
    found = []
    for row in table["policies"]:
        libraries |= frozenset(row["libraries"])
        served = {}
        for machine, families in row["adds"].items():
            known = versions.setdefault(machine, {})
            for family, added in families.items():
                known[family] = known.get(family, frozenset()) | frozenset(added)
            served[machine] = dict(known)
        for soname, names in row["allows_names"].items():
            forbids[soname] -= frozenset(names)
        found.append(Policy(row["name"], tuple(row["aliases"]), served, libraries, dict(forbids)))
    return tuple(found)


def satisfied(
    machine: str,
    needed: Iterable[str],
    versions: Iterable[tuple[str, str]],
    undefined: Iterable[str],
) -> Satisfied:
    """The tag that a file satisfies.

    ``versions`` are (library, version) pairs that it needs, ``undefined`` its undefined names.
    The loader's own versions do not count, nor do versions of libraries without a rule.
    """
    wanted = [version.partition("_") for file, version in versions if not _is_loader(file)]
    libraries = [soname for soname in needed if not _is_loader(soname)]
    names = frozenset(undefined)
    for policy in policies():
        allowed = policy.versions.get(machine)
        if allowed is None:
            continue
        if any(family in allowed and rest not in allowed[family] for family, _, rest in wanted):
            continue
        return Satisfied(
            tag=f"{policy.name}_{machine}",
            aliases=tuple(f"{alias}_{machine}" for alias in policy.aliases),
            libraries_outside=tuple(s for s in libraries if s not in policy.libraries),
            names_forbidden=tuple(
                sorted(
                    name
                    for soname, barred in policy.forbids.items()
                    if soname in libraries
                    for name in barred & names
                )
            ),
        )
    return Satisfied(f"linux_{machine}", (), (), ())


def beyond(
    machine: str, glibc: tuple[int, int], versions: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """The needed versions that a tag which promises this glibc does not allow.

    A tag between two policies (manylinux_2_30) allows what the older one does. Empty where no
    policy is that old: nothing is known of such a tag. What is needed of a library that the
    wheel brings itself (libstdc++-1a2b3c4d.so.6) is no need of the system.
    """
    known = [p for p in policies() if p.glibc <= glibc and machine in p.versions]
    if not known:
        return ()
    allowed = known[-1].versions[machine]
    found = []
    for file, version in versions:
        family, _, rest = version.partition("_")
        if is_system_library(file) and family in allowed and rest not in allowed[family]:
            found.append(version)
    return tuple(dict.fromkeys(found))


def is_system_library(soname: str) -> bool:
    """Whether a library is one that every system of a policy has; the loader's own is none."""
    return soname in policies()[-1].libraries


def _is_loader(soname: str) -> bool:
    """Whether a soname is the loader's own, which every policy has."""
    return soname.startswith("ld-linux") or soname in ("ld64.so.1", "ld64.so.2")
