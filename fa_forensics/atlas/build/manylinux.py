"""``data/manylinux.json`` from the policies that auditwheel ships.

``python -m fa_forensics.atlas.build.manylinux POLICY.json VERSION DATE [--check]``: POLICY.json is
``auditwheel/policy/manylinux-policy.json`` of an installed auditwheel. ``--check`` writes nothing:
its exit code 1 says that the shipped table is another.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

MACHINES = ("x86_64", "aarch64")
TABLE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "data",
    "manylinux.json",
)
_ABOUT = (
    "The manylinux policies (PEP 600), oldest first. Each allows what the ones before it allow and "
    "what it adds: symbol versions by machine and family, libraries that every such system has. "
    "forbids: names of an allowed library that may not be used (they come and go with its "
    "versions); allows_names: those of them that a policy gives free. A policy has no entry for a "
    "machine that it does not serve."
)
_SOURCE = (
    "auditwheel, src/auditwheel/policy/manylinux-policy.json (pypa, MIT), made from the libraries "
    "of distributions by mayeut/pep600_compliance"
)


def compact(policies: Sequence[Mapping[str, Any]], version: str, date: str) -> dict[str, Any]:
    """The table from auditwheel's list of policies. Raises ``ValueError`` if they do not nest."""
    ordered = sorted(
        (p for p in policies if p["name"] != "linux"), key=lambda p: int(p["priority"]),
        reverse=True,
    )  # fmt: skip
    versions: dict[tuple[str, str], set[str]] = {}
    libraries: set[str] = set()
    forbidden = {soname: set(names) for soname, names in ordered[0]["blacklist"].items()}
    rows = []
    for policy in ordered:
        row: dict[str, Any] = {"name": policy["name"], "aliases": list(policy["aliases"])}
        row["adds"] = {
            machine: _added(versions, machine, policy["symbol_versions"][machine])
            for machine in MACHINES
            if machine in policy["symbol_versions"]
        }
        if not libraries <= set(policy["lib_whitelist"]):
            raise ValueError(f"{policy['name']} takes a library back")
        row["libraries"] = sorted(set(policy["lib_whitelist"]) - libraries)
        libraries = set(policy["lib_whitelist"])
        freed = {}
        for soname, names in forbidden.items():
            now = set(policy["blacklist"].get(soname, ()))
            if not now <= names:
                raise ValueError(f"{policy['name']} forbids more names of {soname}")
            if names - now:
                freed[soname] = sorted(names - now)
            forbidden[soname] = now
        row["allows_names"] = freed
        rows.append(row)
    forbids = {soname: sorted(names) for soname, names in ordered[0]["blacklist"].items()}
    return {
        "about": _ABOUT,
        "source": f"{_SOURCE}; auditwheel {version}",
        "date": date,
        "forbids": forbids,
        "policies": rows,
    }


def _added(
    known: dict[tuple[str, str], set[str]], machine: str, families: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    added = {}
    for family, names in sorted(families.items()):
        before = known.get((machine, family), set())
        if not before <= set(names):
            raise ValueError(f"versions of {family} are taken back on {machine}")
        known[machine, family] = set(names)
        new = sorted(set(names) - before)
        if new or not before:
            added[family] = new
    return added


def written(table: Mapping[str, Any]) -> str:
    """The table as text, one policy a line."""
    head = {key: value for key, value in table.items() if key != "policies"}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n".join("    " + json.dumps(row) for row in table["policies"])
    return "\n".join(["{", *lines, '  "policies": [', rows, "  ]", "}", ""])


def main(arguments: Sequence[str]) -> int:
    """Write or check the shipped table; the exit code."""
    names = [argument for argument in arguments if not argument.startswith("-")]
    if len(names) != 3 or set(arguments) - set(names) - {"--check"}:
        print("usage: POLICY.json AUDITWHEEL_VERSION DATE [--check]", file=sys.stderr)
        return 2
    with open(names[0], encoding="utf-8") as file:
        text = written(compact(json.load(file), names[1], names[2]))
    if "--check" in arguments:
        with open(TABLE, encoding="utf-8") as file:
            shipped, made = json.load(file), json.loads(text)
        same = all(shipped[key] == made[key] for key in ("forbids", "policies"))
        print(f"{TABLE} {'is up to date' if same else 'is another than this policy makes'}")
        return 0 if same else 1
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
