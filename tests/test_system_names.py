"""Since when the driver and libstdc++ have a name: the tables against their sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import oracles
from support.material import system_library

from fa_forensics.facts.drivers import driver_table, parse_cuda
from fa_forensics.facts.system_names import debian_package, driver_since, libstdcxx_since
from fa_forensics.facts.system_releases import gcc_of


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("cuTensorMapEncodeTiled", "12.0"),
        ("cuTensorMapEncodeIm2col", "12.0"),
        ("cuGetProcAddress", "11.3"),
        ("cuGetProcAddress_v2", "12.0"),
        ("cuMemAlloc_v2", "3.2"),
        ("cuStreamBeginCapture_v2", "10.1"),
        ("cuNoSuchThing", None),
    ],
)
def test_the_driver_has_a_function_since(name: str, since: str | None) -> None:
    assert driver_since(name) == since


def test_each_function_of_a_toolkit_here_is_in_the_table() -> None:
    headers = sorted(Path("/usr/local").glob("cuda*/include/cudaTypedefs.h"))
    if not headers:
        pytest.skip("no cudaTypedefs.h")
    text = headers[-1].read_text()
    versions: dict[str, list[int]] = {}
    for name, version in re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)", text):
        versions.setdefault(name, []).append(int(version))
    for name, all_versions in versions.items():
        first = min(all_versions)
        assert driver_since(name) == f"{first // 1000}.{first % 1000 // 10}", name


def test_each_version_of_the_driver_api_is_one_that_drivers_are_known_for() -> None:
    for name in ("cuTensorMapEncodeTiled", "cuStreamGetId", "cuKernelGetName"):
        since = driver_since(name)
        assert since is not None
        assert driver_table().driver_for(parse_cuda(since)) is not None


def test_the_table_of_libstdcxx_is_what_nm_says() -> None:
    out = oracles.output_of("nm", "-D", "--defined-only", system_library("libstdc++.so.6"))
    found = 0
    for line in out.splitlines():
        match = re.search(r" (\S+?)@@?GLIBCXX_3\.4\.(\d+)$", line)
        if match is None or not 21 <= int(match[2]) <= 30:
            continue
        since = libstdcxx_since(match[1])
        if since is None:
            assert "cxx11" in match[1]
            continue
        found += 1
        assert since == f"GLIBCXX_3.4.{match[2]}", match[1]
    assert found > 500


def test_each_version_of_libstdcxx_is_that_of_a_known_compiler() -> None:
    version = libstdcxx_since("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev")
    assert version == "GLIBCXX_3.4.26" and gcc_of(version) == "9.1"


def test_packages_of_system_libraries() -> None:
    assert debian_package("libGL.so.1") == "libgl1"
    assert debian_package("libc10.so") is None
