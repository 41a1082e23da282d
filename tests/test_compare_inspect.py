"""``compare`` over documents of ``inspect``: files, kernels, libraries, GPUs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from fa_forensics.compare.run import compare_documents
from fa_forensics.report_compare import CompareReport

Change = Callable[[dict[str, Any]], object]
SITE = "/home/me/env/lib/python3.11/site-packages"
FILE = "flash_attn_2_cuda.so"


def group(label: str, kernels: int) -> dict[str, Any]:
    archs = [{"arch": "sm_80", "kernels": kernels, "empty": False}]
    return {"label": label, "kernels": kernels, "archs": archs, "options": [], "example": "_Z1f",
            "flash": None}  # fmt: skip


def inspect_report() -> dict[str, Any]:
    target = {
        "path": f"{SITE}/{FILE}", "member": None, "verdict": "loads", "headline": "it loads",
        "findings": [], "skipped": [], "missing": [], "cxx11_abi": "cxx11", "stable_abi": False,
        "links_with": ["2.6.0"], "built_on": ["2.6.0"], "toolkits": ["CUDA 12.4"],
        "elf": {
            "machine": "x86_64", "soname": None, "needed": ["libc10.so", "libcudart.so.12"],
            "rpath": [], "runpath": ["$ORIGIN/../torch/lib"], "build_id": "aa01",
            "compilers": ["GCC 11.4.0"], "python_tag": "cp311", "size_bytes": 4096,
            "versions_needed": [{"file": "libc.so.6", "version": "GLIBC_2.32", "weak": False}],
            "libraries": [
                {"soname": "libc10.so", "path": f"{SITE}/torch/lib/libc10.so"},
                {"soname": "libcudart.so.12", "path": f"{SITE}/nvidia/lib/libcudart.so.12"},
            ],
        },
        "undefined": [
            {"symbol": "cudaFree", "version": None, "bind": "global", "demangled": "cudaFree",
             "owner": "cudart", "provider": f"{SITE}/nvidia/lib/libcudart.so.12"},
        ],
        "gpu_code": [{"kind": "cubin", "arch": "sm_80", "count": 2, "bytes": 100}],
        "coverage": {
            "gpus_from": "machine", "driver": {"version": "550.54.15", "cuda": "12.4"},
            "gpus": [{"name": "NVIDIA H100", "capability": "9.0"}], "rows": [],
        },
        "kernels": {"complete": True, "count": 3, "archs": ["sm_80"], "head_dims": [],
                    "groups": [group("FA2 forward hdim 64 fp16", 2), group("other", 1)]},
        "confirm": {"status": "confirmed", "detail": "", "steps": []},
        "problem": None, "hint": None,
    }  # fmt: skip
    return {
        "schema_version": 1,
        "tool": {"name": "fa-forensics", "version": "0.1.0"},
        "environment": {
            "python": "/home/me/env/bin/python", "python_version": "3.11.7",
            "prefix": "/home/me/env", "site_dirs": [SITE], "torch": None, "variables": {},
        },
        "targets": [target],
    }  # fmt: skip


def changed(change: Change) -> dict[str, Any]:
    report = copy.deepcopy(inspect_report())
    change(report["targets"][0])
    return report


def compared(one: dict[str, Any], other: dict[str, Any]) -> CompareReport:
    return compare_documents([("a", one), ("b", other)])


def told(report: CompareReport) -> list[tuple[str, str, str]]:
    return [(d.group, d.subject, d.aspect) for d in report.differences]


def elf(**fields: object) -> Change:
    return lambda target: target["elf"].update(fields)


def field(**fields: object) -> Change:
    return lambda target: target.update(fields)


PLANTED: list[tuple[Change, str, str, str]] = [
    (elf(build_id="aa02"), "extensions", FILE, "build-id"),
    (elf(build_id=None), "extensions", FILE, "build-id"),
    (elf(size_bytes=4097), "extensions", FILE, "size in bytes"),
    (elf(needed=["libcudart.so.12", "libc10.so"]), "extensions", FILE, "needs"),
    (elf(runpath=[]), "extensions", FILE, "RUNPATH"),
    (elf(rpath=["/opt/lib"]), "extensions", FILE, "RPATH"),
    (elf(compilers=["GCC 13.2.0"]), "extensions", FILE, "compilers"),
    (elf(python_tag="abi3"), "extensions", FILE, "Python tag"),
    (elf(versions_needed=[]), "extensions", FILE, "versions needed"),
    (elf(libraries=[{"soname": "libc10.so", "path": f"{SITE}/torch/lib/libc10.so"},
                    {"soname": "libcudart.so.12", "path": "/usr/local/cuda/lib64/libcudart.so.12"},
                    ]), "libraries", "libcudart.so.12", "taken from"),
    (elf(libraries=[{"soname": "libc10.so", "path": f"{SITE}/torch/lib/libc10.so"},
                    {"soname": "libcudart.so.12", "path": None}]),
     "libraries", "libcudart.so.12", "taken from"),
    (field(verdict="fails"), "extensions", FILE, "verdict"),
    (field(missing=["_ZN1aE"]), "extensions", FILE, "missing symbols"),
    (field(built_on=["2.5.1"]), "extensions", FILE, "built on torch"),
    (field(stable_abi=True), "extensions", FILE, "stable ABI"),
    (field(findings=[{"code": "FA201", "severity": "error", "title": "t"}]),
     "extensions", FILE, "findings"),
    (field(gpu_code=[{"kind": "ptx", "arch": "compute_80", "count": 2, "bytes": 100}]),
     "extensions", FILE, "GPU code"),
    (field(gpu_code=[{"kind": "cubin", "arch": "sm_80", "count": 3, "bytes": 100}]),
     "extensions", FILE, "GPU images"),
    (field(confirm={"status": "refuted"}), "extensions", FILE, "real load"),
    (lambda t: t["undefined"][0].update(provider="/usr/lib/libother.so"),
     "extensions", FILE, "symbols bound"),
    (lambda t: t["kernels"].update(groups=[group("FA2 forward hdim 64 fp16", 2)]),
     "kernels", FILE, "kernels"),
    (lambda t: t["coverage"]["driver"].update(version="560.1"), "driver", "driver", "version"),
    (lambda t: t["coverage"]["gpus"][0].update(name="NVIDIA H200"), "gpus", "GPUs", "kinds"),
]  # fmt: skip


@pytest.mark.parametrize("row", PLANTED, ids=[f"{n}-{r[3]}" for n, r in enumerate(PLANTED)])
def test_a_planted_difference_is_found_and_nothing_else(row: Any) -> None:
    change, *where = row
    assert told(compared(inspect_report(), changed(change))) == [tuple(where)]


@pytest.mark.parametrize(
    "change",
    [
        field(headline="other words"), field(links_with=["2.5.0", "2.6.0"]), field(hint="x"),
        field(confirm={"status": "not-run", "detail": "switched off"}),
        field(findings=[]), elf(problems=["x"]), field(cuobjdump={"status": "absent"}),
    ],
)  # fmt: skip
def test_words_and_what_was_not_run_are_no_difference(change: Change) -> None:
    report = compared(inspect_report(), changed(change))
    assert [d for d in told(report) if d[2] != "real load"] == []


def test_a_member_of_a_wheel_is_the_same_wherever_the_wheel_lies() -> None:
    one = changed(field(path="/home/me/Downloads/a-1.whl", member="flash.so"))
    other = changed(field(path="/srv/wheels/a-1.whl", member="flash.so"))
    assert told(compared(one, other)) == []


def test_kernels_that_could_not_all_be_read_are_not_compared() -> None:
    report = compared(inspect_report(), changed(lambda t: t["kernels"].update(complete=False)))
    assert told(report) == []
    (line,) = report.not_compared
    assert "not every image" in line.reason and line.reports == (1,)


def test_a_file_that_could_not_be_read_is_not_compared() -> None:
    broken = field(elf=None, problem="it is cut short", verdict="inconclusive", kernels=None,
                   undefined=[], coverage=None)  # fmt: skip
    report = compared(inspect_report(), changed(broken))
    assert told(report) == [("extensions", FILE, "verdict")]
    assert "it is cut short" in [line.reason for line in report.not_compared]


def test_files_of_a_package_that_only_one_report_was_asked_about_are_no_difference() -> None:
    one = inspect_report()
    other = copy.deepcopy(inspect_report())
    other["targets"][0]["path"] = f"{SITE}/xformers/_C.so"
    assert told(compared(one, other)) == []


def test_a_file_more_in_the_same_package_is_a_difference() -> None:
    one, other = (changed(field(path=f"{SITE}/xformers/_C.so")) for _ in range(2))
    more = copy.deepcopy(one["targets"][0])
    more["path"] = f"{SITE}/xformers/_D.so"
    other["targets"].append(more)
    assert told(compared(one, other)) == [("extensions", "xformers/_D.so", "")]
