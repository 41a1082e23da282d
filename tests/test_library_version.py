"""The version of a library's copy: by what the file itself says, the labels held against it."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cuda_wheels import compiled, library
from support.material import require
from trees import make_distribution

from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.library_version import (
    LibraryVersion,
    families,
    library_version,
    parse_name,
    version_key,
)

#: The number of each library's version function, by its header's own formula.
CUDART_12_1, CUDNN_9_1_0, CUBLAS_12_1_3, NCCL_2_20_5 = 12010, 90100, 120103, 22005


def version_of(path: Path, *site_dirs: str, torch: str | None = None) -> LibraryVersion:
    dynamic = DynamicObject.open(str(path))
    try:
        return library_version(str(path), dynamic, site_dirs, torch)
    finally:
        dynamic.close()


def placed(source: Path, directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(source, directory / name))


def storing(soname: str, function: str, number: int) -> Path:
    """A library whose version function stores a number through its first argument."""
    source = f"int {function}(int *out) {{ *out = {number}; return 0; }}"
    return compiled(source, "", ("-O2", f"-Wl,-soname,{soname}"))


def returning(soname: str, function: str, number: int) -> Path:
    source = f"unsigned long {function}(void) {{ return {number}; }}"
    return compiled(source, "", ("-O2", f"-Wl,-soname,{soname}"))


@pytest.mark.parametrize(
    ("name", "family", "hashed", "version"),
    [
        ("libcudart.so.12", "libcudart", None, "12"),
        ("libcudart.so.11.0", "libcudart", None, "11.0"),
        ("libcudart.7ec1eba6.so.12", "libcudart", "7ec1eba6", "12"),
        ("libcudart-9335f6a2.so.12.1.105", "libcudart", "9335f6a2", "12.1.105"),
        ("libstdc++.so.6.0.30", "libstdc++", None, "6.0.30"),
        ("libtorch_cpu.so", "libtorch_cpu", None, ""),
    ],
)
def test_a_file_name_is_taken_apart(
    name: str, family: str, hashed: str | None, version: str
) -> None:
    found = parse_name(name)
    assert found is not None
    assert (found.family.name, found.hash, found.version) == (family, hashed, version)


@pytest.mark.parametrize(
    "name", ["libcudart_static.a", "libcudart", "libfoo.so.1", "libcudart.so.12.bak", "so", ""]
)
def test_other_names_are_none_of_ours(name: str) -> None:
    assert parse_name(name) is None


@pytest.fixture
def x86_64() -> None:
    if subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() != "x86_64":
        pytest.skip("numbers are read from x86_64 code alone")
    require("gcc")


@pytest.mark.usefixtures("x86_64")
@pytest.mark.parametrize(
    ("soname", "function", "number", "version"),
    [
        ("libcudart.so.12", "cudaRuntimeGetVersion", CUDART_12_1, "12.1"),
        ("libcudart.so.11.0", "cudaRuntimeGetVersion", 11080, "11.8"),
        ("libnccl.so.2", "ncclGetVersion", NCCL_2_20_5, "2.20.5"),
        ("libnccl.so.2", "ncclGetVersion", 2708, "2.7.8"),
    ],
)
def test_a_number_that_is_stored_tells(
    soname: str, function: str, number: int, version: str, tmp_path: Path
) -> None:
    path = placed(storing(soname, function, number), tmp_path, soname)
    assert version_of(path).version == version


@pytest.mark.usefixtures("x86_64")
@pytest.mark.parametrize(
    ("soname", "function", "number", "version"),
    [
        ("libcublasLt.so.12", "cublasLtGetVersion", CUBLAS_12_1_3, "12.1.3"),
        ("libcublasLt.so.11", "cublasLtGetVersion", 11401, "11.4.1"),
        ("libcusparse.so.12", "cusparseGetVersion", 12100, "12.1.0"),
        ("libcudnn.so.8", "cudnnGetVersion", 8907, "8.9.7"),
    ],
)
def test_a_number_that_is_returned_tells(
    soname: str, function: str, number: int, version: str, tmp_path: Path
) -> None:
    path = placed(returning(soname, function, number), tmp_path, soname)
    assert version_of(path).version == version


@pytest.mark.usefixtures("x86_64")
def test_a_number_of_another_major_version_is_no_version(tmp_path: Path) -> None:
    path = placed(
        storing("libcudart.so.12", "cudaRuntimeGetVersion", 11080), tmp_path, "libcudart.so.12"
    )
    assert version_of(path) == LibraryVersion(None, "its name says no more than 12")


@pytest.mark.usefixtures("x86_64")
def test_two_numbers_that_both_fit_say_nothing(tmp_path: Path) -> None:
    source = (
        "int cudaRuntimeGetVersion(int *out) { *out = 12010; return 0; }\n"
        "int other(int *out) { *out = 12040; return 0; }"
    )
    path = placed(compiled(source, "", ("-O2",)), tmp_path, "libcudart.so.12")
    assert version_of(path).version is None


@pytest.mark.usefixtures("x86_64")
def test_cudnn_is_told_by_its_graph_part_beside_it(tmp_path: Path) -> None:
    placed(
        returning("libcudnn_graph.so.9", "cudnnGetVersion", CUDNN_9_1_0),
        tmp_path,
        "libcudnn_graph.so.9",
    )
    front = placed(library("libcudnn.so.9", {"": ("cudnnCreate",)}), tmp_path, "libcudnn.so.9")
    found = version_of(front)
    assert found.version == "9.1.0"
    assert "libcudnn_graph beside it" in found.how


def test_the_newest_name_of_nvjitlink_tells(tmp_path: Path) -> None:
    names = ("__nvJitLinkCreate_12_1", "__nvJitLinkCreate_12_9", "__nvJitLinkCreate_12_10")
    built = library("libnvJitLink.so.12", {"libnvJitLink.so.12": names})
    path = placed(built, tmp_path, "libnvJitLink.so.12")
    assert version_of(path).version == "12.10"


def test_a_text_in_nccl_tells_before_its_number(tmp_path: Path) -> None:
    source = 'const char *banner(void) { return "NCCL version 2.20.5+cuda12.4"; }'
    path = placed(compiled(source, "", ("-O2",)), tmp_path, "libnccl.so.2")
    assert version_of(path) == LibraryVersion("2.20.5", "it says NCCL version 2.20.5")


def test_libstdcxx_is_told_by_its_interface_and_not_by_its_file_name(tmp_path: Path) -> None:
    built = library("libstdc++.so.6", {"GLIBCXX_3.4.9": ("one",), "GLIBCXX_3.4.30": ("two",)})
    path = placed(built, tmp_path, "libstdc++.so.6.0.30")
    assert version_of(path) == LibraryVersion("3.4.30", "it defines GLIBCXX_3.4.30")


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A site directory with nvidia-cuda-runtime-cu12 12.1.105, and its libcudart's place."""
    site = tmp_path / "site"
    lib = site / "nvidia" / "cuda_runtime" / "lib"
    make_distribution(
        site, "nvidia-cuda-runtime-cu12", "12.1.105", ["nvidia/cuda_runtime/lib/libcudart.so.12"]
    )
    yield site, lib


@pytest.mark.usefixtures("x86_64")
def test_the_wheel_has_the_longer_version_where_the_file_agrees(
    installed: tuple[Path, Path],
) -> None:
    site, lib = installed
    built = storing("libcudart.so.12", "cudaRuntimeGetVersion", CUDART_12_1)
    found = version_of(placed(built, lib, "libcudart.so.12"), str(site))
    assert found.version == "12.1.105"
    assert found.contradicts is None
    assert "its wheel nvidia-cuda-runtime-cu12" in found.how


@pytest.mark.usefixtures("x86_64")
def test_the_file_is_believed_before_its_wheel(installed: tuple[Path, Path]) -> None:
    site, lib = installed
    built = storing("libcudart.so.12", "cudaRuntimeGetVersion", 12080)
    found = version_of(placed(built, lib, "libcudart.so.12"), str(site))
    assert (found.version, found.contradicts) == ("12.8", "12.1.105")


def test_a_label_counts_where_the_file_says_nothing(installed: tuple[Path, Path]) -> None:
    site, lib = installed
    built = library("libcudart.so.12", {"libcudart.so.12": ("cudaMalloc",)})
    found = version_of(placed(built, lib, "libcudart.so.12"), str(site))
    assert found == LibraryVersion("12.1.105", "its wheel nvidia-cuda-runtime-cu12")


def test_torch_is_told_by_the_installation_it_lies_in(tmp_path: Path) -> None:
    path = placed(library("libc10.so", {"": ("c10_name",)}), tmp_path, "libc10.so")
    assert version_of(path, torch="2.4.0+cu121").version == "2.4.0+cu121"


def test_a_file_of_random_bytes_around_a_header_says_nothing(tmp_path: Path) -> None:
    built = library("libcudart.so.12", {"libcudart.so.12": ("cudaMalloc",)}).read_bytes()
    path = tmp_path / "libcudart.so.12"
    path.write_bytes(built[:64] + struct.pack("<I", 12010) * 2_000)
    assert version_of(path).version is None


def test_versions_compare_by_their_numbers() -> None:
    assert version_key("12.10") > version_key("12.9.86")
    assert version_key("2.14.1+cu130") == (2, 14)


def test_every_row_of_the_table_has_a_way_to_tell_or_is_of_torch() -> None:
    ways = {"number", "exports", "text", "versions", "beside"}
    for family in families().values():
        assert family.torch or ways & family.row.keys(), family.name
        for other in ("beside", "opened_by"):
            assert family.row.get(other, family.name) in families()
        for scales in family.row.get("number", {}).get("scales", ()):
            assert list(scales) == sorted(scales, reverse=True)
