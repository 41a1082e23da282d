"""Files that are really mapped are held against the prediction, symbol by symbol."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.material import require

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.environment import find_environment
from fa_forensics.resolve.environment_process import open_linker
from fa_forensics.resolve.mapped import compare_mapped
from fa_forensics.resolve.resolution import Resolution


def build(directory: Path, name: str, source: str, *flags: str) -> Path:
    require("gcc")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(path), *flags],
        input=source,
        text=True,
        check=True,
    )
    return path.resolve()


@pytest.fixture
def predicted(tmp_path: Path) -> tuple[Path, Path, Resolution]:
    """(file, its library, resolution): the file needs ``first`` and ``second`` of libdep.so."""
    dep = build(
        tmp_path / "predicted",
        "libdep.so",
        "int first(void){return 1;} int second(void){return 2;}",
        "-Wl,-soname,libdep.so",
    )
    path = build(
        tmp_path,
        "libuser.so",
        "int first(void); int second(void); int use(void){return first()+second();}",
        str(dep),
        f"-Wl,-rpath,{dep.parent}",
    )
    environment = find_environment(sys.executable, None, {})
    linker = open_linker(environment)
    dynamic = DynamicObject.open(str(path))
    try:
        return path, dep, linker.resolve(str(path), tuple(dynamic.symbols()))
    finally:
        dynamic.close()
        linker.close()


def mapped_files() -> list[str]:
    with open("/proc/self/maps") as maps:
        names = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    return sorted(os.path.realpath(name) for name in names if ".so" in name)


def test_a_real_process_maps_what_was_predicted(predicted: tuple[Path, Path, Resolution]) -> None:
    path, dep, resolution = predicted
    ctypes.CDLL(str(path))
    mapped = mapped_files()
    assert str(dep) in mapped
    rows = compare_mapped(resolution, mapped, loaded=True)
    assert [row for row in rows if "libdep" in row.predicted] == []


def test_a_library_of_the_same_soname_from_elsewhere_is_searched_for_the_symbols(
    predicted: tuple[Path, Path, Resolution], tmp_path: Path
) -> None:
    _, dep, resolution = predicted
    other = build(
        tmp_path / "other",
        "libdep-1a2b.so",
        "int first(void){return 1;}",
        "-Wl,-soname,libdep.so",
    )
    rows = compare_mapped(resolution, [str(other)], loaded=True)
    row = next(row for row in rows if row.predicted == str(dep))
    assert (row.actual, row.symbols, row.lacking) == (str(other), 2, ("second",))


def test_a_provider_that_is_mapped_from_nowhere_is_said_to_be_absent(
    predicted: tuple[Path, Path, Resolution],
) -> None:
    _, dep, resolution = predicted
    rows = compare_mapped(resolution, [], loaded=True)
    row = next(row for row in rows if row.predicted == str(dep))
    assert (row.actual, row.lacking) == (None, None)


def test_before_the_load_only_what_torch_should_have_mapped_counts(
    predicted: tuple[Path, Path, Resolution],
) -> None:
    _, dep, resolution = predicted
    rows = compare_mapped(resolution, [], loaded=False)
    assert str(dep) not in {row.predicted for row in rows}
