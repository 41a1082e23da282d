"""The kernels of real files, and of files made here by nvcc, are those that cuobjdump shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from test_fatbin_real import real_files

from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.cuobjdump import find_cuobjdump
from fa_forensics.facts.fatbin.kernels import KernelInventory, read_kernels
from fa_forensics.facts.fatbin.reader import read_device_code

SOURCE = """
namespace shapes {
template <int N, typename T> __global__ void scale(T *values) { values[threadIdx.x] *= N; }
template __global__ void scale<2, float>(float *);
template __global__ void scale<3, double>(double *);
namespace { __global__ void hidden(int *values) { values[0] += 1; } }
void launch(int *values) { hidden<<<1, 1>>>(values); }
__device__ __noinline__ int helper(int value) { return value * 3; }
}
__global__ void empty() {}
extern "C" __global__ void plain(int *values) { values[0] = shapes::helper(values[1]); }
"""
NVCC = shutil.which("nvcc")
Names = dict[str, set[str]]


def inventory(path: str) -> KernelInventory:
    with ElfImage(path) as image:
        return read_kernels(image, read_device_code(image))


def by_arch(found: KernelInventory, prefix: str) -> Names:
    names: Names = defaultdict(set)
    for kernel in found.kernels:
        for arch in kernel.archs:
            if arch.startswith(prefix):
                names[arch].add(kernel.name)
    return dict(names)


def shown_by(exe: str, path: str) -> tuple[Names, int]:
    """Entry functions by architecture, from ``cuobjdump --dump-elf-symbols``; its exit code."""
    names: Names = defaultdict(set)
    arch = ""
    command = [exe, "--dump-elf-symbols", path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            if line.startswith("arch = "):
                arch = words[2]
            elif words and words[0] in ("FUNC", "STT_FUNC") and "ENTRY" in line:
                names[arch].add(words[-1])
    return dict(names), process.returncode


def ptx_shown_by(exe: str, path: str) -> Names:
    """Entry directives by target, from ``cuobjdump -ptx``."""
    names: Names = defaultdict(set)
    arch = ""
    with subprocess.Popen(
        [exe, "-ptx", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(".target"):
                arch = "compute_" + line.split()[1].rstrip(",").removeprefix("sm_")
            elif found := re.match(r"(?:\.\w+ )*\.entry (\w+)", line):
                names[arch].add(found[1])
    return dict(names)


def our_cuobjdump() -> str:
    named = os.environ.get("FA_FORENSICS_CUOBJDUMP", "").partition(os.pathsep)[0]
    exe = named or find_cuobjdump([], os.environ)
    if exe is None:
        pytest.skip("cuobjdump is not installed")
    return exe


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize(
    ("mode", "relocatable"), [("none", False), ("speed", False), ("size", False), ("size", True)]
)
def test_kernels_of_a_library_made_by_nvcc(mode: str, relocatable: bool, tmp_path: Path) -> None:
    exe = our_cuobjdump()
    source, target = tmp_path / "shapes.cu", tmp_path / "shapes.so"
    source.write_text(SOURCE)
    options = ["-shared", "-Xcompiler", "-fPIC", f"--compress-mode={mode}"]
    options += ["-rdc=true"] if relocatable else []
    for arch, real in (("80", "sm_80"), ("90a", "sm_90a"), ("90", "compute_90")):
        options += ["-gencode", f"arch=compute_{arch},code={real}"]
    command = [NVCC or "", *options, str(source), "-o", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode and "compress-mode" in done.stderr + done.stdout:
        pytest.skip("this nvcc knows no --compress-mode")
    assert done.returncode == 0, done.stderr
    found = inventory(str(target))
    assert found.problems == ()
    cubins, code = shown_by(exe, str(target))
    assert code == 0
    assert by_arch(found, "sm_") == cubins
    assert set(cubins) == {"sm_80", "sm_90a"}
    assert all(any("hidden" in name for name in names) for names in cubins.values())
    if not relocatable:  # a device link drops kernels that no launch refers to
        assert {len(names) for names in cubins.values()} == {5}
        small = {kernel.name: kernel.small for kernel in found.kernels}
        assert "sm_80" in small["_Z5emptyv"]
        assert by_arch(found, "compute_") == ptx_shown_by(exe, str(target))
        assert by_arch(found, "compute_")["compute_90"] == cubins["sm_90a"]


@pytest.mark.real
def test_kernels_equal_a_live_cuobjdump_s_on_whole_files() -> None:
    """FA_FORENSICS_CUOBJDUMP names one or more cuobjdump; the first that finishes is believed."""
    files = real_files()
    tools = os.environ.get("FA_FORENSICS_CUOBJDUMP", "").split(os.pathsep)
    if not files or not all(os.access(tool, os.X_OK) for tool in tools):
        pytest.skip("FA_FORENSICS_REAL_DIR and FA_FORENSICS_CUOBJDUMP do not name files")
    compared = 0
    for path in files:
        found = inventory(path)
        assert found.problems == (), path
        for tool in tools:
            shown, code = shown_by(tool, path)
            if code == 0:
                assert by_arch(found, "sm_") == shown, path
                compared += len(shown)
                break
    assert compared
