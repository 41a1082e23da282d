"""Two reports of one kind of machine, and changes to plant in one of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

SITE = "/home/me/env/lib/python3.11/site-packages"


def library(soname: str, path: str, version: str, build_id: str) -> dict[str, Any]:
    """One group of library copies, as env tells it."""
    taken = {
        "path": path, "real_path": path, "soname": soname, "version": version,
        "version_known_by": "package", "build_id": build_id, "size_bytes": 1000,
        "found_by": "RUNPATH", "needed_by": "libtorch.so", "places": ["torch"], "problem": None,
    }  # fmt: skip
    return {"soname": soname, "library": soname, "loaded": True, "taken": taken, "others": []}


def line(layer: str, subject: str, facts: dict[str, Any], state: str = "ok") -> dict[str, Any]:
    """A line of env."""
    return {
        "layer": layer, "subject": subject, "state": state, "text": f"{subject} is as it is",
        "finding": None, "details": [], "facts": facts,
    }  # fmt: skip


def extension(name: str, build_id: str) -> dict[str, Any]:
    """The line of an extension file."""
    facts = {
        "path": f"{SITE}/{name}", "verdict": "loads", "build_id": build_id, "size_bytes": 4096,
        "python_tag": "cp311", "cxx11_abi": "cxx11", "stable_abi": False, "missing": [],
        "missing_count": 0, "links_with": ["2.6.0"], "built_on": ["2.6.0"],
        "gpu_code": ["cubin sm_80", "cubin sm_90"], "toolkits": ["CUDA 12.4"], "findings": [],
        "problem": None,
    }  # fmt: skip
    return line("artefact", name, facts)


def package(name: str, version: str) -> dict[str, Any]:
    """The line of a package with extension files."""
    facts = {
        "name": name, "version": version, "source_version": version, "origin": "site-packages",
        "location": f"{SITE}/{name}", "installer": "pip", "editable": False, "direct_url": None,
        "requires": ["torch"], "wheel_tags": ["cp311-cp311-linux_x86_64"], "files_compared": 10,
        "files_hashed": 2, "bytes_not_hashed": 12345, "extensions": [f"{SITE}/{name}/_C.so"],
        "copies": [{"name": name, "origin": "site-packages", "path": f"{SITE}/{name}",
                    "version": version}],
    }  # fmt: skip
    return line("package", name, facts)


def copies() -> list[dict[str, Any]]:
    """The lines about the copies of libraries."""
    nvidia = f"{SITE}/nvidia"
    libraries = [
        ("libcublasLt.so.12", f"{nvidia}/cublas/lib/libcublasLt.so.12", "12.4.5.8", "ab12"),
        ("libcudnn.so.9", f"{nvidia}/cudnn/lib/libcudnn.so.9", "9.1.0.70", "ab13"),
        ("libnccl.so.2", f"{nvidia}/nccl/lib/libnccl.so.2", "2.21.5", "ab14"),
        ("libcudart.so.12", f"{nvidia}/cuda_runtime/lib/libcudart.so.12", "12.4.127", "ab15"),
    ]
    own = library("libc10.so", f"{SITE}/torch/lib/libc10.so", "2.6.0+cu124", "ab10")
    return [
        line("copies", "torch's libraries", {"libraries": [own]}),
        *(line("copies", row[0], library(*row)) for row in libraries),
    ]


TORCH = {
    "version": "2.6.0+cu124", "release": "2.6.0", "cuda": "12.4", "hip": None,
    "path": f"{SITE}/torch", "cxx11_abi": "pre-cxx11",
}  # fmt: skip


def runtime() -> list[dict[str, Any]]:
    """The lines about the runtime."""
    toolkit = {
        "named_by": "nvcc on PATH", "path": "/usr/local/bin/nvcc", "root": "/usr/local/cuda",
        "nvcc": "/usr/local/cuda/bin/nvcc", "version": "12.4.131", "header_version": "12.4",
        "version_known_by": "version.json", "used_for_builds": True,
    }  # fmt: skip
    python = {
        "version": "3.11.7", "implementation": "cpython", "abi_tag": "cp311", "machine": "x86_64",
        "kind": "venv", "path": "/home/me/env/bin/python", "real_path": "/usr/bin/python3.11",
        "base_prefix": "/usr",
    }  # fmt: skip
    torch = {**TORCH, "git_version": "2236df17", "editable": False, "archs": ["sm_80", "sm_90"]}
    driver = {
        "version": "550.54.15", "cuda": "12.4", "kernel_module": "550.54.15",
        "library": "550.54.15", "library_path": "/lib/libcuda.so.1", "known_by": "NVML",
    }  # fmt: skip
    gpu = {"name": "NVIDIA H100", "capability": "9.0", "memory_bytes": 85_899_345_920, "count": 2}
    glibc = {"version": "2.35", "symbol_version": "GLIBC_2.35", "path": "/lib/libc.so.6"}
    libstdcxx = {"version": "3.4.30", "symbol_version": "GLIBCXX_3.4.30", "path": "/lib/c++.so"}
    system = {"distribution": "Ubuntu 22.04.4 LTS", "kernel": "5.15.0", "distribution_id": "u"}
    cpu = {"model": "Xeon 8480", "cores": 96, "memory_bytes": 2 << 40}
    return [
        line("runtime", "torch", torch),
        line("runtime", "python", python),
        line("runtime", "glibc", glibc),
        line("runtime", "libstdc++", libstdcxx),
        line("runtime", "system", system, "note"),
        line("runtime", "cpu", cpu, "note"),
        line("runtime", "container", {"container": None, "shown_by": None}, "note"),
        line("runtime", "driver", driver),
        line("runtime", "GPU", gpu),
        line("runtime", "nvcc", toolkit),
        line("runtime", "CUDA_HOME", {"value": "/usr/local/cuda"}, "note"),
        line("runtime", "OMP_NUM_THREADS", {"value": "8"}, "note"),
    ]


def env_report() -> dict[str, Any]:
    """What env writes on a machine with two GPUs, parts of it left out."""
    versions = {"numpy": "2.1.0", "transformers": "4.50.0", "torch": "2.6.0", "filelock": "3.1"}
    search = {"directories": [{"origin": "site-packages", "path": SITE}]}
    return {
        "schema_version": 1,
        "tool": {"name": "fa-forensics", "version": "0.1.0"},
        "environment": {
            "python": "/home/me/env/bin/python", "python_version": "3.11.7",
            "implementation": "cpython", "prefix": "/home/me/env", "found_by": "VIRTUAL_ENV",
            "machine": "x86_64", "libc": "glibc", "site_dirs": [SITE],
            "torch": {**TORCH, "has_cuda_libraries": True},
            "torch_problem": None, "other_torches": [], "notes": [],
            "variables": {"VIRTUAL_ENV": "/home/me/env", "CUDA_HOME": "/usr/local/cuda",
                          "OMP_NUM_THREADS": "8"},
        },
        "lines": [
            package("flash-attn", "2.8.3"),
            package("xformers", "0.0.29"),
            line("package", "distributions", {"files_compared": 900, "versions": versions}),
            line("package", "sys.path", search),
            extension("flash_attn_2_cuda.so", "aa01"),
            extension("xformers/_C.so", "aa02"),
            *copies(),
            *runtime(),
        ],
        "counts": {"ok": 15, "wrong": 0, "could-not-look": 0, "note": 1},
        "problem": None,
    }  # fmt: skip


def facts_of_line(report: dict[str, Any], subject: str) -> Any:
    """The facts of the line of that subject."""
    return line_of(report, subject)["facts"]


def line_of(report: dict[str, Any], subject: str) -> Any:
    """The line of that subject."""
    (found,) = [row for row in report["lines"] if row["subject"] == subject]
    return found


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The same report with one change planted in it."""
    report = copy.deepcopy(env_report())
    change(report)
    return report


def elsewhere(value: Any) -> Any:
    """The same with another home, as another person's machine would tell it."""
    if isinstance(value, str):
        return value.replace("/home/me/env", "/scratch/users/you/conda/envs/flash")
    if isinstance(value, list):
        return [elsewhere(item) for item in value]
    if isinstance(value, dict):
        return {key: elsewhere(item) for key, item in value.items()}
    return value


def shuffled(value: Any) -> Any:
    """The same with every list that has no order turned round."""
    ordered = ("directories", "lines")
    if isinstance(value, dict):
        return {
            key: [shuffled(item) for item in part]
            if key in ordered and isinstance(part, list)
            else shuffled(part)
            for key, part in reversed(value.items())
        }
    if isinstance(value, list):
        return [shuffled(item) for item in reversed(value)]
    return value
