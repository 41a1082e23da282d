"""``env`` on real environments: its time and memory, and its words held to what really happens.

FA_FORENSICS_REAL_ENVS names environments (directories, with colons between).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

ENVIRONMENTS = [path for path in os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":") if path]
ROOT = Path(__file__).parent.parent

#: Seconds for an environment of 5 GB, warm (the best of four runs), and bytes of memory at the
#: peak of the largest process.
SECONDS, MEMORY = 1.5, 150_000_000

needs_environments = pytest.mark.skipif(
    not ENVIRONMENTS, reason="FA_FORENSICS_REAL_ENVS names no environments"
)

#: What the environment's own Python says: versions, where names are imported from, what loads.
ORACLE = """
import ctypes, importlib.metadata, importlib.util, json, os, sys
names, files = json.load(sys.stdin)
out = {"versions": {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}}
out["specs"] = {}
for name in names:
    spec = importlib.util.find_spec(name)
    out["specs"][name] = spec and (spec.origin or list(spec.submodule_search_locations)[0])
out["broken"] = sorted(
    str(f) for d in importlib.metadata.distributions() for f in d.files or ()
    if f.size is not None and (not f.locate().exists() or f.locate().stat().st_size != f.size)
)
print(json.dumps(out))
"""
#: Runs a command; prints its seconds and the peak of its largest process in KiB.
MEASURE = """
import resource, subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
LOAD = """
import ctypes, os, sys
try:
    import torch
    for name in sys.argv[2:]:
        try:
            ctypes.CDLL(name)
        except OSError:
            pass
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    print(error)
    sys.exit(1)
"""


def command(place: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "fa_forensics", "env", "--python", place, *options]


VARIABLES = {"PATH": os.defpath, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}


@cache
def document(place: str) -> dict[str, Any]:
    # PYTHONPATH is how this package is found, and would be on the inspected sys.path too.
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from fa_forensics.cli import entry; "
        f"sys.argv = ['x', 'env', '--python', {place!r}, '--format', 'json']; entry()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd="/",
        env={"PATH": os.defpath, "HOME": "/nonexistent"},
    )  # fmt: skip
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def lines(place: str, layer: str) -> list[dict[str, Any]]:
    return [line for line in document(place)["lines"] if line["layer"] == layer]


@cache
def said_by_python(place: str) -> dict[str, Any]:
    names = sorted(
        {c["name"] for line in lines(place, "package") for c in line["facts"].get("copies", ())}
    )
    done = subprocess.run(
        [f"{place}/bin/python", "-I", "-c", ORACLE], input=json.dumps([names, []]), text=True,
        capture_output=True, check=True, timeout=120, cwd="/",
    )  # fmt: skip
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


@needs_environments
@pytest.mark.parametrize("place", ENVIRONMENTS)
def test_it_is_quick_and_small(place: str) -> None:
    best, peak = float("inf"), 0
    for _ in range(4):
        # A small process in between: a child of this one would count what this one holds.
        done = subprocess.run(
            [sys.executable, "-I", "-c", MEASURE, *command(place)],
            env=VARIABLES, cwd="/", capture_output=True, text=True, check=True,
        )  # fmt: skip
        seconds, kilobytes = done.stdout.split()
        best, peak = min(best, float(seconds)), max(peak, int(kilobytes) * 1024)
    print(f"{place}: {best:.2f} s, {peak / 1e6:.0f} MB")
    assert peak <= MEMORY
    assert best <= SECONDS


@needs_environments
@pytest.mark.parametrize("place", ENVIRONMENTS)
def test_versions_and_winners_are_those_of_the_environments_own_python(place: str) -> None:
    said = said_by_python(place)
    told: dict[str, str] = {}
    winners: dict[str, str] = {}
    for line in lines(place, "package"):
        facts = line["facts"]
        told.update(facts.get("versions", {}))
        if "source_version" in facts:
            told[facts["name"]] = facts["version"]
        for copy in facts.get("copies", ()):
            winners.setdefault(copy["name"], copy["path"])
    theirs = {name.lower().replace("_", "-").replace(".", "-"): v
              for name, v in said["versions"].items()}  # fmt: skip
    assert told == theirs
    for name, path in winners.items():
        origin = said["specs"][name]
        assert origin in (path, os.path.join(path, "__init__.py")), name


@needs_environments
@pytest.mark.parametrize("place", ENVIRONMENTS)
def test_files_are_as_recorded_where_importlib_metadata_says_so(place: str) -> None:
    said = said_by_python(place)["broken"]
    wrong = [line for line in lines(place, "package") if line["finding"] is not None
             and line["finding"]["code"] in ("FA801", "FA803")]  # fmt: skip
    assert bool(said) == bool(wrong)


@needs_environments
@pytest.mark.parametrize("place", ENVIRONMENTS)
def test_every_verdict_is_that_of_a_real_load(place: str) -> None:
    rows = lines(place, "artefact")
    assert rows
    for row in rows:
        facts = row["facts"]
        folder = os.path.dirname(facts["path"])
        siblings = [p["facts"]["path"] for p in rows
                    if os.path.dirname(p["facts"]["path"]) == folder
                    and os.path.basename(p["facts"]["path"]).startswith("lib")]  # fmt: skip
        first = [path for path in siblings if path != facts["path"]] if row["subject"].startswith(
            ("torchaudio", "torio")) else []  # fmt: skip
        done = subprocess.run(
            [f"{place}/bin/python", "-I", "-c", LOAD, facts["path"], *first],
            capture_output=True, text=True, timeout=300, cwd="/",
        )  # fmt: skip
        loads = facts["verdict"] in ("loads", "links")
        assert (done.returncode == 0) == loads, (row["subject"], row["text"], done.stdout)
