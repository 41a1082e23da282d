"""Renew fa_forensics/data/flash_attn_wheels.json from a checkout of flash-attention.

    git clone --filter=blob:none https://github.com/Dao-AILab/flash-attention
    python -m benchmarks.flash_wheels flash-attention           writes the table
    python -m benchmarks.flash_wheels flash-attention --check   says what it lacks, writes nothing

A release's wheels are the build matrix of ``.github/workflows/publish.yml`` at its tag, less what
the matrix excludes. Only the few forms of YAML that these matrices use are read; any other line is
an error, so that a new form is never read as something else.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "fa_forensics", "data", "flash_attn_wheels.json")
WORKFLOW, TEMPLATE = ".github/workflows/publish.yml", ".github/workflows/_build.yml"

#: The keys of the matrix that the wheels' names depend on.
KEYS = ("os", "python-version", "torch-version", "cuda-version", "cxx11_abi")
_PLATFORMS = {"ubuntu": "linux_x86_64", "ubuntu-arm": "linux_aarch64"}
_TAG = re.compile(r"v(\d+(?:\.\d+)*(?:\.post\d+)?)")
_LIST = re.compile(r"([\w-]+): *\[(.*)\]")
_PAIR = re.compile(r"(- +)?([\w-]+): *(['\"]?)([\w.-]+)\3")


class UnknownForm(Exception):
    """A line of the matrix that is none of the forms known here."""


def matrix_lines(text: str) -> Iterator[str]:
    """The lines of ``strategy: matrix:``, comments and blank lines left out."""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if re.fullmatch(r" *matrix: *", line)]
    if not starts:
        return
    depth = _indent(lines[starts[0]])
    for line in lines[starts[0] + 1 :]:
        bare = re.sub(r"(^| )#.*", "", line).rstrip()
        if not bare:
            continue
        if _indent(bare) <= depth:
            return
        yield bare.strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def read_matrix(text: str) -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """(values of each key, exclusions) of a workflow; empty without a matrix.

    Raises ``UnknownForm`` with the line that was not understood.
    """
    values: dict[str, list[str]] = {}
    exclusions: list[dict[str, str]] = []
    excluding = False
    for line in matrix_lines(text):
        found, pair = _LIST.fullmatch(line), _PAIR.fullmatch(line)
        if line == "exclude:":
            excluding = True
        elif found and not excluding:
            words = [word.strip().strip("'\"") for word in found[2].split(",")]
            values[found[1]] = [word for word in words if word]
        elif pair and excluding:
            if pair[1]:
                exclusions.append({})
            exclusions[-1][pair[2]] = pair[4]
        else:
            raise UnknownForm(line)
    return values, exclusions


def combinations(text: str) -> list[dict[str, str]]:
    """The jobs of a matrix: all combinations but those that match an exclusion whole."""
    values, exclusions = read_matrix(text)
    if not set(KEYS) <= set(values):
        return []
    jobs = (dict(zip(KEYS, row, strict=True)) for row in itertools.product(*map(values.get, KEYS)))  # type: ignore[arg-type]
    return [job for job in jobs if not any(e.items() <= job.items() for e in exclusions)]


def major_only(texts: Sequence[str]) -> bool:
    """Whether the workflow names wheels by CUDA's major version alone (``cu12``)."""
    for text in texts:
        named = re.search(r"tmpname=cu\$\{(\w+)\}torch", text)
        if named:
            made = re.search(rf'"{named[1]}=\$\(echo [^\n]*print ([^}}]*)\}}', text)
            if made is not None:
                return "$2" not in made[1]
    raise UnknownForm("the wheels' names are not made by tmpname=cu${...}torch")


def wheels_of(workflow: str, template: str) -> list[dict[str, Any]]:
    """The rows of one release: torch, cuda tag → toolkit, Pythons, flavours, platform."""
    short = None
    rows: dict[tuple[str, tuple[str, ...], str], dict[str, str]] = {}
    pythons: dict[tuple[str, str, str, str], list[str]] = {}
    flavours: dict[tuple[str, str, str], list[str]] = {}
    for job in combinations(workflow):
        if short is None:
            short = major_only((template, workflow))
        cuda = job["cuda-version"].split(".")
        tag = "cu" + ("".join(cuda[:1]) if short else "".join(cuda[:2]))
        system = job["os"]
        name = "ubuntu-arm" if system.endswith("-arm") else system.split("-")[0]
        if name not in _PLATFORMS:
            raise UnknownForm(f"os: {system}")
        key = (job["torch-version"], tag, job["cuda-version"], _PLATFORMS[name])
        seen = pythons.setdefault(key, [])
        if job["python-version"] not in seen:
            seen.append(job["python-version"])
        flavours.setdefault(key[:3], []).append(job["cxx11_abi"])
    for key, versions in pythons.items():
        if set(flavours[key[:3]]) != {"FALSE", "TRUE"}:
            raise UnknownForm(f"torch {key[0]} is built in one std::string flavour alone")
        rows.setdefault((key[0], tuple(versions), key[3]), {})[key[1]] = key[2]
    return [
        {"torch": torch, "cuda": cuda, "python": list(versions), "platform": platform}
        for (torch, versions, platform), cuda in rows.items()
    ]


def compact(releases: Mapping[str, tuple[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    """The table's two parts: the different matrices, and each release's date and matrix."""
    matrices: list[list[dict[str, Any]]] = []
    table: dict[str, list[object]] = {}
    for release in sorted(releases, key=release_order):
        date, rows = releases[release]
        if rows and rows not in matrices:
            matrices.append(rows)
        table[release] = [date, matrices.index(rows) if rows else None]
    return {"matrices": matrices, "releases": table}


def release_order(release: str) -> tuple[tuple[int, ...], int]:
    """2.8.0, 2.8.0.post1, 2.8.1: the order of releases."""
    numbers, _, post = release.partition(".post")
    return tuple(int(part) for part in numbers.split(".")), int(post) + 1 if post else 0


def read_checkout(checkout: str) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Every release of a checkout: its date and its rows."""
    releases = {}
    for line in _git(checkout, "tag", "--format=%(refname:short) %(creatordate:short)").split("\n"):
        tag, _, date = line.partition(" ")
        found = _TAG.fullmatch(tag)
        if found:
            workflow = _git(checkout, "show", f"{tag}:{WORKFLOW}", missing="")
            template = _git(checkout, "show", f"{tag}:{TEMPLATE}", missing="")
            releases[found[1]] = (date, wheels_of(workflow, template))
    return releases


def _git(checkout: str, *arguments: str, missing: str | None = None) -> str:
    command = ["git", "-C", checkout, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and missing is None:
        sys.exit(done.stderr.strip())
    return (missing or "") if done.returncode else done.stdout


def written(table: Mapping[str, Any]) -> str:
    """The table as text, a row a line, so that a change reads as one."""
    head = {key: value for key, value in table.items() if key not in ("matrices", "releases")}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    lines.append('"matrices": [')
    blocks = []
    for matrix in table["matrices"]:
        rows = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in matrix)
        blocks.append(f" [{rows}]")
    lines.append(",\n".join(blocks) + "],")
    rows = ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table["releases"].items())
    lines.append(f'"releases": {{\n {rows}}}')
    return "{\n" + "\n".join(lines) + "\n}\n"


def main(arguments: Sequence[str]) -> int:
    """Write the table, or with --check say whether it is the checkout's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", help="a clone of flash-attention with its tags")
    parser.add_argument("--check", action="store_true", help="only say what the table lacks")
    options = parser.parse_args(arguments)
    with open(TABLE, encoding="utf-8") as file:
        table = json.load(file)
    found = compact(read_checkout(options.checkout))
    if options.check:
        old = {name: _rows(table, name) for name in table["releases"]}
        new = {name: _rows(found, name) for name in found["releases"]}
        stale = [name for name in new if old.get(name) != new[name]]
        print(f"stale: {', '.join(stale)}" if stale else f"{len(new)} releases, none is stale")
        return 1 if stale else 0
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(written({**table, **found}))
    return 0


def _rows(table: Mapping[str, Any], release: str) -> tuple[object, object]:
    date, index = table["releases"][release]
    return date, None if index is None else table["matrices"][index]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
