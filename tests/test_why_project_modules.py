"""Modules that programs build from their own sources, and what a package can be compiled for."""

from __future__ import annotations

import pytest
from support.asking import first, said

from fa_forensics.facts.tables import read_table
from fa_forensics.rules.remedy import known_packages

NO_MODULE = "ModuleNotFoundError: No module named '{name}'"


def test_each_module_has_one_project_and_no_package_has_it() -> None:
    table = read_table("project_modules.json")
    names = [name for row in table["projects"] for name in row["modules"]]
    assert len(names) == len(set(names))
    packaged = {name for row in known_packages() for name in row["modules"]}  # type: ignore[attr-defined]
    assert not packaged.intersection(names)


@pytest.mark.parametrize("name", ["selective_scan_cuda_core", "selective_scan_cuda_oflex"])
def test_a_module_of_vmamba_is_none_of_mamba_ssm(name: str) -> None:
    answer = first(NO_MODULE.format(name=name), "I have already installed the mamba-ssm package.")
    assert answer.owner == "VMamba" and "no part of mamba-ssm" in answer.cause
    assert any("kernels/selective_scan && " in command for command in answer.help)
    assert not any("mamba-ssm" in command for command in answer.help)


def test_the_directory_is_read_out_of_the_file_that_imports_it() -> None:
    answer = first(
        "Traceback (most recent call last):",
        '  File "/home/me/DINO/models/dino/ops/functions/func.py", line 18, in <module>',
        "    import MultiScaleDeformableAttention as MSDA",
        NO_MODULE.format(name="MultiScaleDeformableAttention"),
    )
    assert any("cd /home/me/DINO/models/dino/ops && " in command for command in answer.help)


def test_a_package_that_is_installed_still_has_its_own_module() -> None:
    assert first(NO_MODULE.format(name="selective_scan_cuda")).owner == "mamba-ssm"


def test_apex_is_not_built_for_a_torch_before_1_0() -> None:
    text = NO_MODULE.format(name="fused_layer_norm_cuda")
    old = first(text, "ubuntu 16.04, python 3.7, pytorch 0.4.1, V100, cuda 9.0")
    assert "torch 1.0 and later" in said(old) and not any("git+" in c for c in old.help)
    assert any("git+" in command for command in first(text).help)


def test_a_directory_in_tmp_is_another_one_at_the_next_start() -> None:
    path = "/tmp/python_env_pu73bg/0/lib/python3.8/site-packages/torch/lib/libgomp-d22c30c5.so.1"
    answer = first(
        f"OSError: {path}: cannot allocate memory in static TLS block", "torch==1.11.0, ARM64"
    )
    assert not any("python_env_pu73bg" in command for command in answer.help)
    assert "aarch64" in said(answer) and "Triton" in said(answer)
