"""A name that torch exports, in a library that the file was not linked with, is called that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.inspecting import document_of
from support.material import require, stub

SYMBOL = "_ZN3c104cuda9SetDeviceEa"
TORCH = "2.4.0+cu121"
LIBRARY = "libc10_cuda.so"


def build(directory: Path, *libraries: Path) -> Path:
    """An extension that calls c10::cuda::SetDevice(signed char), linked with ``libraries``."""
    require("g++")
    path = directory / "ext.so"
    source = "namespace c10 { namespace cuda { void SetDevice(signed char); } }\n"
    source += "void use() { c10::cuda::SetDevice(0); }\n"
    flags = ["-shared", "-fPIC", "-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"]
    subprocess.run(
        ["g++", "-x", "c++", "-", "-x", "none", "-o", str(path), *flags, *map(str, libraries)],
        input=source,
        text=True,
        check=True,
    )
    return path


def target_of(path: Path) -> dict[str, Any]:
    (target,) = document_of(path, stub(TORCH).python)["targets"]
    return dict(target)


def test_the_loader_does_not_look_into_a_library_that_only_others_have_loaded(
    tmp_path: Path,
) -> None:
    library = next(Path(stub(TORCH).site_packages).rglob(LIBRARY))
    names = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    assert f" {SYMBOL}\n" in names
    code = (
        "import ctypes, os, sys\n"
        "ctypes.CDLL(sys.argv[1], mode=os.RTLD_LAZY)\n"
        "try: ctypes.CDLL(sys.argv[2], mode=os.RTLD_NOW)\n"
        "except OSError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(library), str(build(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"undefined symbol: {SYMBOL}" in done.stdout


def test_such_a_file_is_told_to_be_linked_with_the_library(tmp_path: Path) -> None:
    target = target_of(build(tmp_path))
    assert target["verdict"] == "fails"
    assert target["missing"] == [SYMBOL]
    assert [finding["code"] for finding in target["findings"]] == ["FA210"]
    finding = target["findings"][0]
    assert LIBRARY in finding["title"]
    assert any("-lc10_cuda" in note for note in finding["notes"])


def test_linked_with_the_library_nothing_is_missing(tmp_path: Path) -> None:
    library = next(Path(stub(TORCH).site_packages).rglob(LIBRARY))
    target = target_of(build(tmp_path, library))
    assert target["missing"] == []
    assert target["findings"] == []


@pytest.mark.parametrize("version", ["2.2.2+cu121", "2.9.1+cu128"])
def test_under_a_torch_without_that_signature_it_is_drift(version: str, tmp_path: Path) -> None:
    path = build(tmp_path)
    (target,) = document_of(path, stub(version).python)["targets"]
    assert [finding["code"] for finding in target["findings"]] == ["FA201"]
