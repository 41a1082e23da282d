"""Which CPython exports a name: the table, held against the Python that runs the tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.asking import first

from fa_forensics.facts.python_names import exports, known_pythons, python_spans


@pytest.mark.parametrize(
    ("name", "version", "there"),
    [
        ("PyThread_tss_create", "3.6.9", False),
        ("PyThread_tss_create", "3.7", True),
        ("PySlice_Unpack", "3.6.0", False),
        ("PySlice_Unpack", "3.6.1", True),
        ("_PyThreadState_UncheckedGet", "3.5.0", False),
        ("_PyThreadState_UncheckedGet", "3.6", True),
        ("PyString_AsString", "2.7", True),
        ("PyString_AsString", "3.8", False),
        ("PyObject_CallOneArg", "3.10", False),
        ("PyWeakref_GetRef", "3.13", True),
        ("Py_NoSuchName", "3.11", False),
        ("PyWeakref_GetRef", "3.99", None),
    ],
)
def test_a_name_is_there_from_its_version_on(name: str, version: str, there: bool | None) -> None:
    assert exports(name, version) is there


def own_names() -> set[str]:
    """What nm lists of this interpreter's own names."""
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    library = Path(sysconfig.get_config_var("LIBDIR") or "") / (
        sysconfig.get_config_var("INSTSONAME") or "none"
    )
    for file in (library, Path(sys.executable).resolve()):
        if file.is_file():
            done = subprocess.run(
                [nm, "-D", "--defined-only", str(file)], capture_output=True, text=True, check=False
            )
            names = {line.split()[-1] for line in done.stdout.splitlines() if line.split()}
            if "Py_Initialize" in names:
                return names
    pytest.skip("this Python exports nothing")


def test_the_table_says_of_this_python_what_nm_says() -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    if version not in known_pythons():
        pytest.skip(f"Python {version} is not in the table")
    names = own_names()
    table = {name for name in names if python_spans(name)}
    wrong = {name for name in table if not exports(name, version)}
    # Builds differ by options (debug, tracing); a handful of private names goes with them.
    assert len(wrong) <= 5, sorted(wrong)
    missing = {n for n in ("PyThread_tss_create", "PyFrame_GetCode", "Py_NewRef") if n not in names}
    assert all(not exports(name, version) for name in missing)


def test_a_name_of_a_newer_python_says_which() -> None:
    answer = first(
        "ImportError: /x/site-packages/foo/_C.so: undefined symbol: PyFrame_GetCode\n"
        "Python version: 3.8.10 (64-bit runtime)"
    )
    assert (answer.kind, answer.code, answer.owner) == ("python-abi", "FA402", "python")
    assert answer.direction == "file-newer"
    assert "since 3.9" in answer.cause and "3.8.10" in answer.cause


def test_a_name_that_went_says_which_python_had_it_last() -> None:
    answer = first(
        "ImportError: /x/_C.so: undefined symbol: _PyUnicode_Ready\nPython version: 3.12.3"
    )
    assert answer.direction == "file-older"
    assert "up to 3.11" in answer.cause


def test_a_name_of_python_2_is_told_as_one() -> None:
    answer = first("ImportError: ./spam.so: undefined symbol: PyString_AsString")
    assert "Python 2" in answer.cause and answer.kind == "python-abi"


def test_a_name_that_every_python_has_is_no_matter_of_versions() -> None:
    answer = first("undefined symbol: PyObject_GetAttrString (./libfoo.so)")
    assert answer.direction == "none"
    assert "ldd -r" in " ".join((answer.cause, *answer.notes))
