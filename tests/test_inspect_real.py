"""Whole real files in real environments: nm, c++filt, ldd -r and a real dlopen agree with us.

``FA_FORENSICS_REAL_DIR`` holds unpacked wheels (``make test-real`` fetches them) and
``FA_FORENSICS_REAL_ENVS`` names environments with a real torch, separated by colons. The
dlopen runs the code of the files.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from support import oracles
from support.material import require

from fa_forensics.pipeline import Options, inspect
from fa_forensics.report import TargetReport

pytestmark = pytest.mark.real

_DIR = os.environ.get("FA_FORENSICS_REAL_DIR", "")
ENVIRONMENTS = [e for e in os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":") if e]
FILES = sorted(
    path
    for path in Path(_DIR or "/nonexistent").rglob("*.so")
    if "cuobj" not in str(path) and "aarch64" not in str(path) and "envs" not in path.parts
)
_NO_FILES = "FA_FORENSICS_REAL_DIR names no directory with real files"
_NO_ENVIRONMENTS = "FA_FORENSICS_REAL_ENVS names no environment with a real torch"

files = pytest.mark.parametrize(
    "path",
    FILES or [pytest.param(None, marks=pytest.mark.skip(_NO_FILES))],
    ids=lambda path: "/".join(path.parts[-3:]) if path else "none",
)
environments = pytest.mark.parametrize(
    "environment",
    ENVIRONMENTS or [pytest.param(None, marks=pytest.mark.skip(_NO_ENVIRONMENTS))],
    ids=lambda environment: os.path.basename(environment) if environment else "none",
)


@cache
def static_report(path: Path, environment: str | None) -> TargetReport:
    options = Options(python=environment, confirm=False)
    return inspect([str(path)], options).targets[0]


@files
def test_undefined_symbols_are_those_of_nm(path: Path) -> None:
    expected = sorted(name for _, name in oracles.nm_rows(path, "-u"))
    found = sorted(
        (s.symbol, s.version or "", "@" if s.version else "")
        for s in static_report(path, None).undefined
    )
    assert found == expected


@files
def test_undefined_symbols_read_as_cxxfilt_writes_them(path: Path) -> None:
    require("c++filt")
    rows = static_report(path, None).undefined
    done = subprocess.run(
        ["c++filt", "-i"],
        input="".join(f"{row.symbol}\n" for row in rows),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [row.demangled for row in rows] == done.stdout.splitlines()


@files
@environments
def test_missing_symbols_are_those_that_ldd_calls_undefined(path: Path, environment: str) -> None:
    report = static_report(path, environment)
    sites = list(Path(environment).glob("lib/python3*/site-packages"))
    # ldd starts no Python: it must be told where torch's libraries lie, and it has no Py*.
    search = [site / "torch" / "lib" for site in sites]
    search += [lib for site in sites for lib in sorted(site.glob("nvidia/*/lib"))]
    search += [site / "cusparselt" / "lib" for site in sites]
    text = oracles.output_of(
        "ldd", "-r", path, check=False, LD_LIBRARY_PATH=":".join(map(str, search))
    )
    weak = {s.symbol for s in report.undefined if s.bind == "weak"}
    own = re.escape(f"({path})")
    undefined = set(re.findall(rf"undefined symbol: ([^\s,]+)[^\n]*{own}", text))
    undefined |= set(re.findall(r"symbol (\S+) version \S+ not defined", text))
    expected = {s for s in undefined if not re.match("_?Py", s)} - weak
    assert {s for s in report.missing if not re.match("_?Py", s)} == expected


@files
@environments
def test_a_real_dlopen_agrees_with_the_verdict(path: Path, environment: str) -> None:
    static = static_report(path, environment)
    report = inspect([str(path)], Options(python=environment, confirm=True)).targets[0]
    assert report.confirm.status == "confirmed", report.confirm.detail
    if static.verdict == "fails":
        # Not only that it fails: the loader's own words, as they were predicted.
        assert "the very text that was predicted" in report.confirm.detail
        assert report.verdict == "fails"
    else:
        assert static.verdict in ("loads", "links")
        assert report.verdict == "loads"
