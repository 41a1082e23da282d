"""Names of Python's C interface that are missing: Python 2 and 3, programs that embed Python."""

from __future__ import annotations

import pytest
from support.asking import first, said


@pytest.mark.parametrize("name", ["_Py_ZeroStruct", "PyString_FromString", "PyInt_AsLong"])
def test_a_name_of_python_2_is_one_however_it_is_spelt(name: str) -> None:
    """CPython 2.7: Include/boolobject.h has _Py_ZeroStruct for False."""
    answer = first(f"ImportError: /p/pkg/csimdag.so: undefined symbol: {name}")
    assert answer.owner == "python" and answer.symbol == name
    assert "compiled for Python 2" in answer.cause


def test_a_name_of_c_with_an_underscore_and_a_z_is_whole() -> None:
    answer = first("ImportError: /p/pkg/_C.so: undefined symbol: my_ZBUFFER_init")
    assert answer.symbol == "my_ZBUFFER_init"


def test_the_record_that_begins_with_3_6_does_not_date_a_name() -> None:
    """CPython 3.2 to 3.5 have _Py_Dealloc too (Objects/object.c)."""
    two = first("ImportError: /p/_x.so: undefined symbol: _Py_Dealloc", "Python 2.7.12")
    assert "compiled for Python 3." in two.cause and "3.6" not in two.cause
    early = first("ImportError: /p/_x.so: undefined symbol: _Py_Dealloc", "Python 3.5.2")
    assert "Two causes fit" in early.cause and early.confidence == "medium"


def test_a_module_of_torchs_ffi_is_built_by_its_own_script() -> None:
    answer = first(
        "ImportError: /h/net/roi_align/_ext/roi_align/_roi_align.so: undefined symbol: _Py_Dealloc"
    )
    assert "cd /h/net/roi_align && rm -rf _ext && python build.py" in answer.help


def test_a_program_of_cxx_that_embeds_python_is_told_from_a_python() -> None:
    answer = first(
        "terminate called after throwing an instance of 'pybind11::error_already_set'",
        "  what():  ImportError: /e/lib/python3.10/lib-dynload/unicodedata.cpython-310-x86_64-linux"
        "-gnu.so: undefined symbol: _PyUnicode_Ready",
    )
    assert answer.owner == "python" and "C++ program" in answer.cause
    assert "python3.10-config --embed --ldflags" in answer.help
    assert "--export-dynamic" in said(answer)
