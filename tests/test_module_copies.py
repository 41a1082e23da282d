"""Which copy of a module wins, held to what Python itself finds in the same directories."""

from __future__ import annotations

import importlib.machinery
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from fa_forensics.facts.environment import find_environment
from fa_forensics.facts.module_copies import (
    EDITABLE,
    NAMESPACE,
    PACKAGE,
    SOURCE,
    copies_of,
    extension_suffixes,
    source_version,
)

SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)

#: What a directory may hold under a name, each made by a function of the directory.
LAYOUTS = {
    "package": lambda d: (d / "m").mkdir(exist_ok=True) or (d / "m" / "__init__.py").touch(),
    "namespace": lambda d: (d / "m").mkdir(exist_ok=True),
    "own": lambda d: (d / ("m" + SUFFIXES[0])).touch(),
    "plain": lambda d: (d / "m.so").touch(),
    "other": lambda d: (d / "m.cpython-26-x86_64-linux-gnu.so").touch(),
    "source": lambda d: (d / "m.py").touch(),
    "bytecode": lambda d: (d / "m.pyc").touch(),
}

ORACLE = """
import importlib.util, json, sys
out = []
for paths in json.load(sys.stdin):
    sys.path[:] = paths
    sys.path_importer_cache.clear()
    spec = importlib.util.find_spec("m")
    origin = None if spec is None else spec.origin
    if spec is not None and origin is None:
        origin = list(spec.submodule_search_locations)[0]
    out.append(origin)
print(json.dumps(out))
"""


def python_finds(cases: list[list[str]]) -> list[str | None]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ORACLE], input=json.dumps(cases), text=True,
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    found: list[str | None] = json.loads(done.stdout)
    return found


def test_the_winner_is_the_one_that_python_finds(tmp_path: Path) -> None:
    names = sorted(LAYOUTS)
    subsets = [c for size in range(3) for c in itertools.combinations(names, size)]
    chosen = random.Random(5).sample(list(itertools.product(subsets, subsets)), 250)
    cases = []
    for at, pair in enumerate(chosen):
        places = []
        for side, layouts in zip("ab", pair, strict=True):
            directory = tmp_path / f"{at}{side}"
            directory.mkdir()
            for layout in layouts:
                LAYOUTS[layout](directory)
            places.append(str(directory))
        cases.append(places)
    for places, origin in zip(cases, python_finds(cases), strict=True):
        copies = copies_of("m", places, ("", ""), SUFFIXES)
        winner = copies[0].path if copies else None
        if origin is not None and os.path.basename(origin).startswith("__init__."):
            origin = os.path.dirname(origin)
        assert winner == origin, (places, sorted(os.listdir(places[0])))


def test_the_suffixes_are_those_of_this_python() -> None:
    environment = find_environment(sys.executable, None, {})
    if environment.implementation == "cpython" and environment.version_short < "3.15":
        assert extension_suffixes(environment) == SUFFIXES


def test_an_editable_install_comes_after_all_directories(tmp_path: Path) -> None:
    site, source = tmp_path / "site", tmp_path / "source" / "m"
    (site).mkdir()
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("__version__ = '2'\n")
    (site / "__editable___m_finder.py").write_text(f"MAPPING: dict = {{'m': '{source}'}}\n")
    (only,) = copies_of("m", [str(site)], ["site-packages"], SUFFIXES)
    assert (only.path, only.origin, only.version) == (str(source), EDITABLE, "2")
    (site / "m").mkdir()
    assert copies_of("m", [str(site)], ["site-packages"], SUFFIXES)[0].kind == PACKAGE
    (site / "m" / "__init__.py").touch()
    first, second = copies_of("m", [str(site)], ["site-packages"], SUFFIXES)
    assert first.path == str(site / "m") and second.origin == EDITABLE


def test_one_directory_under_two_names_is_one_copy(tmp_path: Path) -> None:
    (tmp_path / "a" / "m").mkdir(parents=True)
    (tmp_path / "a" / "m" / "__init__.py").touch()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert len(copies_of("m", [str(tmp_path / "a"), str(tmp_path / "b")], [], SUFFIXES)) == 1


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("__version__ = '2.6.3'\n", "2.6.3"),
        ('__version__ = version = "1.2"\n', "1.2"),
        ("__version__: str = '3'\n", "3"),
        ("import x\n__version__ = x.y\n", None),
        ("__version__ = f'{1}'\n", None),
        ("# __version__ = '9'\n", None),
        ("    __version__ = '9'\n", None),
        ("__version__ = '1'; raise SystemExit\n", "1"),
        ("__version__ = (((((\n__version__ = '4'\n", "4"),
        ("\x00__version__ = '9'\n", None),
        ("", None),
    ],
)
def test_a_version_is_read_and_never_run(tmp_path: Path, text: str, version: str | None) -> None:
    (tmp_path / "__init__.py").write_text(text)
    assert source_version(str(tmp_path), PACKAGE)[0] == version


def test_a_version_module_stands_in_for_an_init_without_one(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("from .version import __version__\n")
    (tmp_path / "version.py").write_text("__version__ = '0.19.0+cu121'\n")
    assert source_version(str(tmp_path), PACKAGE) == (
        "0.19.0+cu121", str(tmp_path / "version.py")
    )  # fmt: skip
    assert source_version(str(tmp_path), NAMESPACE) == (None, None)


def test_a_pipe_for_a_source_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.py")
    assert source_version(str(tmp_path / "m.py"), SOURCE) == (None, None)
    assert copies_of("m", [str(tmp_path)], [], SUFFIXES) == ()
