"""The runtime's findings and lines: torch, driver, toolkits, variables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import contexts
from support.torch_trees import build, variables

from fa_forensics.facts.drivers import cuda_of_driver, driver_numbers, driver_table
from fa_forensics.facts.environment import VARIABLES, find_environment
from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.toolkit import ON_PATH, USUAL, Toolkit
from fa_forensics.facts.variables import Arch, effects, parse_arch_list
from fa_forensics.report import Finding
from fa_forensics.report_env import Line
from fa_forensics.rules import runtime as rules
from fa_forensics.rules.runtime import DriverFacts
from fa_forensics.runtime import runtime_lines

H100 = Gpu("NVIDIA H100 80GB HBM3", (9, 0))
RTX5090 = Gpu("NVIDIA GeForce RTX 5090", (12, 0))
ENVIRONMENT = contexts.environment()
#: torch 2.4.0+cu121, as support.contexts has it.
CUDA = "12.1"


def driver(version: str | None, cuda: tuple[int, int] | None = None, **more: Any) -> DriverFacts:
    values = {"source": "NVML", "kernel_module": None, "library": None, "library_path": None}
    return DriverFacts(version, cuda, **{**values, **more})


def toolkit(release: str | None, named_by: str = "CUDA_HOME", **changes: Any) -> Toolkit:
    values = {
        "named": "/opt/cuda", "root": "/opt/cuda", "nvcc": "/opt/cuda/bin/nvcc",
        "nvcc_version": release and f"{release}.105", "nvcc_how": "nvcc's own bytes",
        "header_version": release,
    }  # fmt: skip
    return Toolkit(named_by, **{**values, **changes})


def code(finding: Finding | None) -> str:
    return "" if finding is None else f"{finding.code} {finding.severity}"


def test_the_torch_of_these_tests_is_for_cuda_12_1() -> None:
    assert ENVIRONMENT.torch is not None and ENVIRONMENT.torch.cuda == CUDA


# -- torch and the GPUs ----------------------------------------------------------------


def test_no_torch_is_an_error_with_a_command() -> None:
    environment = contexts.environment(torch=None, torch_problem="no torch in /env")
    found = rules.no_torch(environment)
    assert code(found) == "FA820 error"
    assert found is not None and found.help[0].endswith("-m pip install torch")
    assert rules.no_torch(ENVIRONMENT) is None


@pytest.mark.parametrize(
    ("gpu", "archs", "expected"),
    [
        (H100, ("sm_80", "sm_90"), ""),
        (H100, ("sm_80", "compute_80"), ""),
        (H100, ("sm_80",), "FA821 error"),
        (RTX5090, ("sm_80", "sm_90"), "FA821 error"),
        (RTX5090, ("sm_90a",), "FA821 error"),
        (RTX5090, ("sm_100", "sm_120"), ""),
        (Gpu("RTX 4090", (8, 9)), ("sm_80", "sm_86"), ""),
        (RTX5090, None, ""),
    ],
)
def test_torch_without_code_for_the_gpu_is_told(
    gpu: Gpu, archs: Sequence[str] | None, expected: str
) -> None:
    assert code(rules.torch_without_gpu(ENVIRONMENT, (gpu,), archs)) == expected


def test_a_cpu_build_beside_a_gpu_is_a_warning() -> None:
    environment = contexts.environment(torch=contexts.torch(cuda=None, version="2.4.0+cpu"))
    assert code(rules.torch_without_gpu(environment, (H100,), None)) == "FA821 warning"
    assert rules.torch_without_gpu(environment, (), None) is None


# -- the driver ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "cuda", "expected"),
    [
        ("550.54.15", (12, 4), ""),
        ("530.30.02", (12, 1), ""),
        ("525.60.13", (12, 0), ""),  # the same major version: minor version compatibility
        ("525.53", (12, 0), "FA822 error"),  # older than the first driver of CUDA 12
        ("470.82.01", (11, 4), "FA822 error"),
        ("580.65.06", (13, 0), ""),
        (None, None, ""),
        (None, (12, 0), ""),
    ],
)
def test_a_driver_is_held_against_torchs_cuda(
    version: str | None, cuda: tuple[int, int] | None, expected: str
) -> None:
    assert code(rules.driver_too_old(ENVIRONMENT, driver(version, cuda))) == expected


@pytest.mark.parametrize(
    ("module", "library", "path", "expected"),
    [
        ("535.104.05", "535.129.03", "/usr/lib/libcuda.so.1", "FA839 error"),
        ("535.104.05", "535.104.05", "/usr/lib/libcuda.so.1", ""),
        ("535.104.05", "550.54.15", "/usr/local/cuda/compat/libcuda.so.1", ""),
        (None, "550.54.15", "/usr/lib/libcuda.so.1", ""),
        ("535.104.05", None, None, ""),
    ],
)
def test_the_two_halves_of_a_driver_are_of_one_version(
    module: str | None, library: str | None, path: str | None, expected: str
) -> None:
    facts = driver("535.104.05", kernel_module=module, library=library, library_path=path)
    assert code(rules.driver_halves(facts)) == expected


def test_every_driver_of_the_table_supports_its_own_cuda() -> None:
    for cuda, first in driver_table().releases.items():
        if first is not None:
            assert cuda_of_driver(first) == cuda
    assert cuda_of_driver("535.104.05") == (12, 2)
    assert cuda_of_driver("1.0") is None
    assert cuda_of_driver("a.b") is None
    assert driver_numbers("550.54.14") < driver_numbers("550.100")


# -- toolkits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "expected"),
    [("12.1", ""), ("12.4", "FA823 note"), ("11.8", "FA823 warning"), ("13.0", "FA823 warning"),
     (None, "")],
)  # fmt: skip
def test_the_toolkit_of_a_build_is_held_against_torchs_cuda(
    release: str | None, expected: str
) -> None:
    assert code(rules.toolkit_mismatch(ENVIRONMENT, toolkit(release), None)) == expected


def test_an_nvcc_that_only_lies_on_path_is_a_note() -> None:
    found = rules.toolkit_mismatch(ENVIRONMENT, toolkit("13.0", ON_PATH), None)
    assert code(found) == "FA823 note"


def test_a_toolkit_that_fits_is_named_where_there_is_one() -> None:
    found = rules.toolkit_mismatch(ENVIRONMENT, toolkit("11.8"), "/opt/cuda-12.1")
    assert found is not None and found.help == ("export CUDA_HOME=/opt/cuda-12.1",)
    without = rules.toolkit_mismatch(ENVIRONMENT, toolkit("11.8"), None)
    assert without is not None and without.help == ()


@pytest.mark.parametrize(
    ("kits", "expected"),
    [
        ((toolkit("12.1"), toolkit("12.1", ON_PATH)), ""),
        ((toolkit("12.1"), toolkit("13.0", ON_PATH)), "FA824 warning"),
        ((toolkit("12.1"), toolkit("13.0", USUAL)), ""),
        ((toolkit("12.1", header_version="12.4"),), "FA824 warning"),
        ((toolkit("12.1", header_version=None),), ""),
        ((), ""),
    ],
)
def test_two_toolkits_at_once_are_told(kits: tuple[Toolkit, ...], expected: str) -> None:
    assert code(rules.two_toolkits(kits)) == expected


def test_a_cuda_home_without_a_compiler_is_told() -> None:
    broken = toolkit(None, nvcc=None, problem="/opt/cuda has no bin/nvcc")
    assert code(rules.broken_home(broken)) == "FA825 warning"
    other = toolkit(None, ON_PATH, problem="/bin/nvcc is a script")
    assert rules.broken_home(other) is None


# -- variables -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("elements", "expected", "command"),
    [
        ([("/opt/lib", True)], "", ""),
        ([("/opt/lib", True), ("", True)], "FA826 warning", "export LD_LIBRARY_PATH=/opt/lib"),
        ([("lib", True)], "FA826 warning", "unset LD_LIBRARY_PATH"),
        ([("/none", False)], "FA826 note", "unset LD_LIBRARY_PATH"),
        ([("$ORIGIN/x", True)], "", ""),
    ],
)
def test_elements_of_the_library_path_are_judged(
    elements: list[tuple[str, bool]], expected: str, command: str
) -> None:
    found = rules.library_path_elements(elements)
    assert code(found) == expected
    assert found is None or found.help == (command,)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("libjemalloc.so.2", "/usr/lib/libjemalloc.so.2")], "FA827 note"),
        ([("/opt/libcudart.so.12", "/opt/libcudart.so.12")], "FA827 warning"),
        ([("/none.so", None)], "FA827 note"),
        ([], ""),
    ],
)
def test_preloaded_libraries_are_told(entries: list[tuple[str, str | None]], expected: str) -> None:
    assert code(rules.preloaded(entries)) == expected


@pytest.mark.parametrize(
    ("value", "gpus", "expected"),
    [
        ("8.0;9.0", (H100,), ""),
        ("8.0 8.6+PTX", (H100,), ""),
        ("8.0", (H100,), "FA828 warning"),
        ("9.0a", (H100,), ""),
        ("9.0a+PTX", (RTX5090,), "FA828 warning"),
        ("Hopper", (H100,), ""),
        ("Ampere", (RTX5090,), ""),  # the last of its numbers has PTX
        ("Hoper", (H100,), "FA828 warning"),
        ("sm_90", (), "FA828 warning"),
        ("8.0", (), ""),
        ("", (H100,), ""),
    ],
)
def test_a_list_of_architectures_is_held_against_the_gpu(
    value: str, gpus: tuple[Gpu, ...], expected: str
) -> None:
    assert code(rules.arch_list(value, gpus)) == expected


def test_names_of_architectures_are_put_in_as_torch_does() -> None:
    archs, unknown = parse_arch_list("Ampere+Tegra;Volta 9.0a")
    assert archs == (
        Arch((8, 7), "", False), Arch((7, 0), "", True), Arch((9, 0), "a", False)
    )  # fmt: skip
    assert unknown == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, "FA829 warning"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "FA829 warning"),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, ""),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8c4f"}, ""),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, "FA829 warning"),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, ""),
        ({}, ""),
    ],
)
def test_hidden_gpus_are_told(values: dict[str, str], expected: str) -> None:
    assert code(rules.hidden_gpus(values)) == expected


def test_every_variable_that_is_explained_is_one_that_is_read() -> None:
    assert set(effects()) <= set(VARIABLES)
    for text in effects().values():
        assert (text and not text.endswith(".") and text[0] == text[0].lower()) or text[0].isupper()


# -- the lines -------------------------------------------------------------------------


def lines(prefix: Path, **more: str) -> dict[str, Line]:
    environ = variables(**more)
    found = runtime_lines(find_environment(str(prefix), None, environ), environ)
    return {line.subject: line for line in found}


def test_the_lines_say_what_is_there(tmp_path: Path) -> None:
    found = lines(build(tmp_path).prefix)
    assert found["torch"].facts["version"] == "2.4.0+cu121"
    assert found["python"].facts["abi_tag"] == "cp311"
    assert found["glibc"].state == "ok"
    assert {"system", "cpu", "container", "driver", "GPU"} <= set(found)


def test_a_torch_that_would_not_import_is_wrong(tmp_path: Path) -> None:
    tree = build(tmp_path)
    assert lines(tree.prefix)["torch"].facts["importable"] is True
    broken = lines(tree.prefix, LD_LIBRARY_PATH=str(tree.old))["torch"]
    assert (broken.state, broken.facts["importable"]) == ("wrong", False)
    assert "has no __nvJitLinkCreate_12_1 (see library copies)" in broken.text


def test_a_torch_without_its_extension_module_is_not_whole(tmp_path: Path) -> None:
    tree = build(tmp_path)
    (tree.site / "torch" / "_C.cpython-311.so").unlink()
    found = lines(tree.prefix)["torch"].finding
    assert found is not None
    assert (found.code, "torch/_C is missing" in found.title) == ("FA820", True)


def test_glibc_is_the_one_that_this_machine_says(tmp_path: Path) -> None:
    import platform

    name, version = platform.libc_ver()
    if name != "glibc":
        pytest.skip("the C library here is no glibc")
    assert lines(build(tmp_path).prefix)["glibc"].facts["version"] == version


def test_facts_are_plain_values(tmp_path: Path) -> None:
    for line in lines(build(tmp_path).prefix, LD_LIBRARY_PATH="/nonexistent").values():
        json.dumps(dict(line.facts), allow_nan=False)


def test_library_path_says_what_is_taken_from_it(tmp_path: Path) -> None:
    tree = build(tmp_path)
    found = lines(tree.prefix, LD_LIBRARY_PATH=str(tree.old))["LD_LIBRARY_PATH"]
    assert f"takes {tree.old}/libnvJitLink.so.12 from there" in found.text
    idle = lines(tree.prefix, LD_LIBRARY_PATH=str(tmp_path))["LD_LIBRARY_PATH"]
    assert "nothing that `import torch` loads comes from there" in idle.text


def test_a_preloaded_library_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    found = lines(build(tmp_path).prefix, LD_PRELOAD="/nonexistent/libx.so")["LD_PRELOAD"]
    assert found.finding is not None
    assert (found.state, found.finding.code) == ("note", "FA827")


def test_a_broken_cuda_home_is_one_wrong_line(tmp_path: Path) -> None:
    found = lines(build(tmp_path).prefix, CUDA_HOME=str(tmp_path / "none"))["CUDA_HOME"]
    assert found.state == "wrong"
    assert found.finding is not None and found.finding.code == "FA825"


def test_a_musl_interpreter_leaves_the_system_libraries_unknown(tmp_path: Path) -> None:
    from trees import make_prefix

    make_prefix(tmp_path / "musl", loader="/lib/ld-musl-x86_64.so.1")
    found = lines(tmp_path / "musl")
    assert found["glibc"].state == "could-not-look"
    assert found["torch"].finding is not None and found["torch"].finding.code == "FA820"
