"""Files made here by nvcc are listed as nvcc was told to make them, and as cuobjdump lists them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.agreement import compare
from fa_forensics.facts.fatbin.cuobjdump import find_cuobjdump, start
from fa_forensics.facts.fatbin.images import DeviceCode
from fa_forensics.facts.fatbin.provenance import read_toolkits
from fa_forensics.facts.fatbin.reader import read_file

SOURCE = """
__global__ void scale(float *values) { values[threadIdx.x] *= 2; }
"""
NVCC = shutil.which("nvcc")
pytestmark = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")


def release() -> str:
    done = subprocess.run([NVCC or "", "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    assert found is not None
    return found.group(1)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nvcc") / "scale.cu"
    path.write_text(SOURCE)
    return path


def nvcc(source: Path, target: Path, *options: str) -> DeviceCode:
    command = [NVCC or "", *options, str(source), "-o", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode and "Unsupported gpu architecture" in done.stderr + done.stdout:
        pytest.skip(f"nvcc {release()} does not know one of these architectures")
    assert done.returncode == 0, done.stderr
    code = read_file(str(target))
    assert code.problems == ()
    check_with_cuobjdump(target, code)
    return code


def check_with_cuobjdump(path: Path, code: DeviceCode) -> None:
    """Hold the list against cuobjdump, where there is one as new as this nvcc."""
    named = os.environ.get("FA_FORENSICS_CUOBJDUMP", "").partition(os.pathsep)[0]
    exe = named or find_cuobjdump([], os.environ)
    if exe is None:
        return
    listing = start(str(path), exe, 60).finish()
    made_by: tuple[int, ...] = tuple(int(part) for part in release().split("."))
    if listing.version and tuple(int(part) for part in listing.version.split(".")) >= made_by:
        report = compare(code, listing)
        assert report.status == "agrees", report


def kinds(code: DeviceCode) -> list[tuple[str, str]]:
    return sorted({(image.kind, image.arch) for image in code.images})


def test_shared_library_with_machine_code_and_ptx(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "lib.so"
    options = ["-shared", "-Xcompiler", "-fPIC"]
    for arch, real in (("80", "sm_80"), ("90a", "sm_90a"), ("90", "compute_90")):
        options += ["-gencode", f"arch=compute_{arch},code={real}"]
    code = nvcc(source, target, *options)
    assert kinds(code) == [("cubin", "sm_80"), ("cubin", "sm_90a"), ("ptx", "compute_90")]
    assert code.found_by == "sections"
    with ElfImage(str(target)) as image:
        toolkits = read_toolkits(image, code)
    assert toolkits.problems == ()
    assert {kit.release.partition(" ")[0] for kit in toolkits.toolkits} == {release()}


def test_family_specific_code_keeps_its_f(source: Path, tmp_path: Path) -> None:
    code = nvcc(
        source, tmp_path / "family.fatbin", "-fatbin",
        "-gencode", "arch=compute_100f,code=sm_100f",
        "-gencode", "arch=compute_100f,code=compute_100f",
    )  # fmt: skip
    assert kinds(code) == [("cubin", "sm_100f"), ("ptx", "compute_100f")]
    assert code.found_by == "whole-file"


def test_relocatable_object_has_relocatable_images(source: Path, tmp_path: Path) -> None:
    code = nvcc(source, tmp_path / "part.o", "-dc", "-arch=sm_80")
    assert kinds(code) == [("cubin", "sm_80"), ("ptx", "compute_80")]
    assert {image.section for image in code.images} == {"__nv_relfatbin"}
    assert {image.relocatable for image in code.images} == {True}


def test_link_time_code_is_listed_as_such(source: Path, tmp_path: Path) -> None:
    code = nvcc(source, tmp_path / "lto.o", "-dc", "-gencode", "arch=compute_90,code=lto_90")
    assert kinds(code) == [("lto-ir", "lto_90")]


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_90a", "sm_120"])
def test_bare_cubin_tells_its_own_architecture(arch: str, source: Path, tmp_path: Path) -> None:
    code = nvcc(source, tmp_path / "bare.cubin", "-cubin", f"-arch={arch}")
    assert kinds(code) == [("cubin", arch)]
    assert code.found_by == "whole-file"
    assert code.images[0].relocatable is False
