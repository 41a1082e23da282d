"""GPU code in a whole run: verdicts for named GPUs, the machine's own, kernels, all formats.

The files are real shared objects, built here, into which a container of GPU code was put by
objcopy; a real dlopen says that they load.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.cubins import container, cubin, kernels, packed
from support.inspecting import invoke, run, validator
from support.material import require, stub, tiny_file
from test_hip import bundle

from fa_forensics.facts import nvml
from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.nvml import Machine
from fa_forensics.pipeline import Options, inspect
from fa_forensics.render.json import dumps, inspect_document

NO_MACHINE = Machine((), None, "no GPU could be looked for on this machine")


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU, whatever this one has."""
    monkeypatch.setattr(nvml, "read_machine", lambda: NO_MACHINE)


def with_section(folder: Path, name: str, content: bytes, case: str = "whole") -> Path:
    """A built shared object with one section more."""
    objcopy = require("objcopy")
    (folder / "section").write_bytes(content)
    path = folder / "ext.cpython-311-x86_64-linux-gnu.so"
    command = [objcopy, "--add-section", f"{name}={folder / 'section'}"]
    subprocess.run([*command, tiny_file(case), path], check=True)
    return path


def with_code(folder: Path, *archs: int, case: str = "whole") -> Path:
    """A shared object with a cubin for each of these architectures, one kernel of its own each."""
    images = [packed(2, arch, cubin(kernels(f"_Z6kernel{arch}v")), "lz4") for arch in archs]
    return with_section(folder, ".nv_fatbin", container(*images), case)


def python() -> str:
    return str(stub("2.4.0+cu121").python)


def target_of(path: Path, **options: Any) -> dict[str, Any]:
    """The target's JSON object, held against the schema."""
    report = inspect([str(path)], Options(python=python(), **options), {})
    document = json.loads(dumps(inspect_document(report)))
    validator().validate(document)
    (target,) = document["targets"]
    return dict(target)


def codes(target: dict[str, Any]) -> dict[str, str]:
    return {finding["code"]: finding["severity"] for finding in target["findings"]}


@pytest.mark.parametrize(
    ("gpu", "verdict"),
    [("RTX 4090", "loads"), ("A100", "loads"), ("sm_75", "no-gpu-code"), ("H100", "no-gpu-code")],
)
def test_the_verdict_is_for_the_gpu_that_was_named(tmp_path: Path, gpu: str, verdict: str) -> None:
    target = target_of(with_code(tmp_path, 80), gpu=(gpu,), confirm=False)
    assert target["verdict"] == verdict
    assert codes(target) == ({} if verdict == "loads" else {"FA504": "error"})
    assert target["coverage"]["gpus_from"] == "option"
    (row,) = target["coverage"]["rows"]
    assert (row["arch"], row["cubins"], len(row["runs"])) == ("sm_80", 1, 1)


def test_a_real_load_does_not_take_back_that_no_kernel_runs(tmp_path: Path) -> None:
    target = target_of(with_code(tmp_path, 90), gpu=("A100",), confirm=True)
    assert target["confirm"]["status"] == "confirmed"
    assert target["verdict"] == "no-gpu-code"
    assert "has no code for A100" in target["headline"]


def test_what_stops_the_import_comes_before_what_stops_the_kernel(tmp_path: Path) -> None:
    path = with_code(tmp_path, 90, case="missing-soname")
    target = target_of(path, gpu=("A100",), confirm=False)
    assert target["verdict"] == "fails"
    assert list(codes(target)).index("FA504") > 0


def test_all_gpus_are_an_overview_without_a_verdict(tmp_path: Path) -> None:
    path = with_code(tmp_path, 80, 90)
    target = target_of(path, gpu=("all",), confirm=False)
    assert target["verdict"] == "loads" and target["findings"] == []
    runs = {gpu["capability"]: gpu["runs"] for gpu in target["coverage"]["gpus"]}
    assert runs["8.9"] == "native" and runs["7.5"] == "none" and runs["10.0"] == "none"
    text = invoke("inspect", "--no-confirm", "--python", python(), "--gpu", "all", path).stdout
    assert "GPU coverage" in text and "8.9 RTX 40xx" in text


def test_a_machine_without_a_gpu_is_told_in_json_and_with_verbose_alone(tmp_path: Path) -> None:
    path = with_code(tmp_path, 80)
    target = target_of(path, confirm=False)
    assert target["skipped"] == [{"rule": "gpus", "reason": NO_MACHINE.problem}]
    arguments = ("inspect", "--no-confirm", "--python", python())
    quiet = invoke(*arguments, path)
    assert (quiet.code, quiet.stderr) == (0, "")
    assert "skipped" not in quiet.stdout and "runs on    8.0 8.6 8.9 (sm_80)" in quiet.stdout
    assert NO_MACHINE.problem is not None
    assert NO_MACHINE.problem in invoke(*arguments, "-v", path).stdout
    assert "skipped" not in invoke(*arguments, path, tiny_file("whole")).stdout


def test_the_machines_own_gpu_and_driver_are_judged_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine((Gpu("NVIDIA L4", (8, 9)),), Driver("550.54.14", (12, 4)), None)
    monkeypatch.setattr(nvml, "read_machine", lambda: machine)
    path = with_code(tmp_path, 90)
    target = target_of(path, confirm=False)
    assert target["verdict"] == "no-gpu-code"
    assert target["coverage"]["driver"] == {"version": "550.54.14", "cuda": "12.4"}
    assert target["provenance"]["driver_cuda"] == "12.4"
    assert target["provenance"]["torch_cuda"] == "12.1"
    text = invoke("inspect", "--no-confirm", "--python", python(), path).stdout
    assert "NVIDIA L4 (8.9): does not run" in text
    assert "torch brings 12.1, the driver supports up to 12.4" in " ".join(text.split())


def test_gpus_are_left_alone_where_they_were_not_asked_about(tmp_path: Path) -> None:
    target = target_of(with_code(tmp_path, 90), gpu=None, confirm=False)
    assert target["coverage"] is None and target["skipped"] == []


def test_an_unknown_gpu_is_a_usage_error_with_the_nearest_names(tmp_path: Path) -> None:
    result = invoke("inspect", "--gpu", "RTX 4900", with_code(tmp_path, 80))
    assert (result.code, result.stdout) == (2, "")
    assert "no GPU is known as 'RTX 4900'" in result.stderr and "RTX 4090" in result.stderr


def test_kernels_are_listed_where_they_are_asked_for(tmp_path: Path) -> None:
    path = with_code(tmp_path, 80, 90)
    assert target_of(path, confirm=False)["kernels"] is None
    found = target_of(path, confirm=False, kernels=True)["kernels"]
    assert (found["count"], found["archs"], found["complete"]) == (2, ["sm_80", "sm_90"], True)
    result = run("inspect", "--no-confirm", "--python", python(), "--kernels", path)
    assert "2 kernels for sm_80, sm_90 (2 images read)" in result.stdout
    assert result.stderr == "", "no bar where there is no terminal"


def test_partial_coverage_counts_the_kernels_that_are_lacking(tmp_path: Path) -> None:
    parts = [container(packed(2, sm, cubin(kernels(f"_Z{sm}")), None)) for sm in (80, 90)]
    path = with_section(tmp_path, ".nv_fatbin", b"".join(parts))
    target = target_of(path, gpu=("A100",), kernels=True, confirm=False)
    (finding,) = target["findings"]
    assert (finding["code"], finding["severity"]) == ("FA508", "note")
    assert "1 of 2 kernels have none (1 for sm_90 alone)." in finding["notes"]


def test_kernels_that_cannot_be_read_are_a_finding_and_no_fact(tmp_path: Path) -> None:
    path = with_section(tmp_path, ".nv_fatbin", container(packed(2, 80, b"\x7fELF" * 40, None)))
    target = target_of(path, kernels=True, confirm=False)
    assert target["kernels"]["complete"] is False
    assert codes(target)["FA501"] == "warning"
    assert "kernels" in {skip["rule"] for skip in target["skipped"]}


def test_progress_is_told_by_file(tmp_path: Path) -> None:
    path = with_code(tmp_path, 80, 90)
    seen: list[tuple[str, int, int]] = []
    target_of(path, kernels=True, confirm=False, progress=lambda *step: seen.append(step))
    assert {name for name, _, _ in seen} == {path.name}
    assert seen[-1][1] == seen[-1][2] > 0


def test_code_for_amd_gpus_is_named_for_what_it_is(tmp_path: Path) -> None:
    path = with_section(tmp_path, ".hip_fatbin", bundle("hipv4-amdgcn-amd-amdhsa--gfx942"))
    target = target_of(path, confirm=False)
    (other,) = target["other_gpu_code"]
    assert (other["vendor"], other["targets"]) == ("AMD ROCm", ["gfx942"])
    assert target["coverage"] is None and target["gpu_code"] == []
    text = " ".join(invoke("inspect", "--no-confirm", "--python", python(), path).stdout.split())
    assert "GPU code for AMD GPUs by ROCm (gfx942), which NVIDIA GPUs cannot run" in text
    assert "none found" not in text


def test_markdown_holds_the_table_the_verdict_and_the_findings(tmp_path: Path) -> None:
    path = with_code(tmp_path, 80)
    arguments = ("inspect", "--no-confirm", "--python", python(), "--format", "markdown")
    lines = invoke(*arguments, "--gpu", "A100", "--gpu", "H100", path).stdout.splitlines()
    assert f"## `{path.name}`: loads" in lines
    assert any(line.startswith("**warning FA504**: ") for line in lines)
    at = lines.index("| arch | cubins | PTX | size | A100 (8.0) | H100 (9.0) |")
    assert lines[at + 1].startswith("| --- |")
    assert lines[at + 3].endswith("| **yes** | **-** |")


def test_markdown_of_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    name = "a`b``|<img src=x>](http:x)\n# no heading.so"
    path = tmp_path / name.replace("/", "")
    path.write_bytes(with_code(tmp_path, 90).read_bytes())
    arguments = ("inspect", "--no-confirm", "--python", python(), "--format", "markdown")
    lines = invoke(*arguments, "--gpu", "A100", path).stdout.splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert len(headings) == 3 and all(line.startswith("### ") for line in headings[1:])
    assert headings[0].startswith("## ```a`b``|<img") and headings[0].endswith("```: no GPU code")
    rest = "\n".join(line for line in lines if line != headings[0])
    assert "<img" not in rest.replace("\\<img", "") and "\\|" in rest


def test_the_directories_of_a_build_are_shortened() -> None:
    from fa_forensics.facts.build_paths import shortened_roots

    assert shortened_roots([
        "/home/ada/flash-attention/csrc/flash_attn/flash_api.cpp",
        "/home/ada/flash-attention/csrc/flash_attn/src/x.h",
        "/tmp/pip-install-k3x/xformers/xformers/csrc/boxing.cpp",
        "/opt/python/site-packages/torch/include/ATen/Tensor.h",
        "/src/ops.cu",
    ]) == (
        "~/flash-attention/csrc", "/opt/python/site-packages/torch/include", "/src",
        "/tmp/.../xformers/xformers/csrc",
    )  # fmt: skip
