"""The CUDA tables that come with the package: what they say of well-known names, and how fast."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from fa_forensics.atlas import tables
from fa_forensics.atlas.libraries import CudaLibraries
from fa_forensics.atlas.store import Atlas

#: (soname, name, symbol version, last version without, first version with it), by nm -D on the
#: libraries of both versions; there is no version before the first one where it says None.
FIRST = [
    ("libnvJitLink.so.12", "__nvJitLinkAddData_12_1", "libnvJitLink.so.12", "12.0.140", "12.1.55"),
    ("libnvJitLink.so.12", "__nvJitLinkComplete_12_4", "libnvJitLink.so.12", "12.3.101", "12.4.99"),
    ("libnccl.so.2", "ncclCommRegister", None, "2.18.3", "2.19.3"),
    ("libcudart.so.11.0", "cudaLaunchKernelExC", "libcudart.so.11.0", "11.7.99", "11.8.89"),
    ("libcudart.so.12", "__cudaGetKernel", "libcudart.so.12", None, "12.0.107"),
]
#: What torch 2.4.0's wheels pin (its METADATA), and what those libraries have by nm -D.
PINNED_BY_TORCH_2_4_0 = [
    ("nvidia-cuda-runtime-cu12", "12.1.105", "libcudart.so.12", "__cudaGetKernel", True),
    ("nvidia-cuda-runtime-cu12", "12.1.105", "libcudart.so.12", "cudaGraphAddNode_v2", False),
    ("nvidia-nccl-cu12", "2.20.5", "libnccl.so.2", "ncclCommRegister", True),
    ("nvidia-nccl-cu12", "2.20.5", "libnccl.so.2", "ncclCommWindowRegister", False),
]


@pytest.fixture(scope="module")
def shipped() -> CudaLibraries:
    return CudaLibraries.open()


@pytest.mark.parametrize("soname, name, version, without, first", FIRST)
def test_the_names_of_well_known_errors_have_their_first_version(
    shipped: CudaLibraries,
    soname: str,
    name: str,
    version: str | None,
    without: str | None,
    first: str,
) -> None:
    found = shipped.first_with(soname, name, version)
    assert found is not None and found.version == first
    versions = shipped.versions(soname)
    before = versions[: versions.index(first)]
    assert without == (before[-1] if before else None)


@pytest.mark.parametrize("distribution, version, soname, name, there", PINNED_BY_TORCH_2_4_0)
def test_what_a_pinned_wheel_has_is_known(
    shipped: CudaLibraries, distribution: str, version: str, soname: str, name: str, there: bool
) -> None:
    assert soname in shipped.sonames_of(distribution, version)
    releases = shipped.exported_by(soname, name)
    assert releases  # some version has each of these names
    assert ((soname, distribution, version) in releases) is there


def test_every_wheel_that_a_torch_release_pins_is_there_and_complete(
    shipped: CudaLibraries,
) -> None:
    complete = {(w.distribution, w.version): w.complete for w in shipped.wheels()}
    builds = Atlas.open().builds("x86_64")
    pins = {pin for build in builds for pin in build.requires.items() if pin[0] != "nvidia-cuda"}
    assert len(pins) > 60
    assert {pin: complete.get(pin) for pin in pins} == dict.fromkeys(pins, True)


def test_opening_and_asking_cost_next_to_nothing() -> None:
    began = time.perf_counter()
    opened = CudaLibraries.open()
    opening = time.perf_counter() - began
    names = ["cudaMalloc", "ncclCommRegister", "__nvJitLinkAddData_12_1", "cublasCreate_v2", "no"]
    best = min(_seconds(opened, names) for _ in range(20))
    assert opening < 0.1  # 10 ms on an idle machine; tests run on busy ones
    assert best / len(names) < 100e-6


def _seconds(opened: CudaLibraries, names: list[str]) -> float:
    began = time.perf_counter()
    for name in names:
        opened.first_with(None, name)
    return time.perf_counter() - began


def test_the_tables_stay_small() -> None:
    files = [Path(tables.SHIPPED) / name for name in ("cuda.json", "cuda.trie")]
    assert sum(file.stat().st_size for file in files) < 1_500_000


def test_the_list_of_projects_is_sound() -> None:
    settings = json.loads((Path(tables.SHIPPED) / "cuda.wheels.json").read_text())
    names = [row["name"] for row in settings["distributions"]]
    assert len(set(names)) == len(names) > 40
    for row in settings["distributions"]:
        assert row["line"] in (11, 12, 13)
        assert row["name"].endswith(f"-cu{row['line']}") or row["line"] == 13
    assert settings["source"] and settings["date"]
