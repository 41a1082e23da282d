"""NVIDIA's compatibility rules: each with a case that passes and one that fails, and the tools.

Sources, named in the rows: the CUDA Programming Guide (PG) with its sections, the Blackwell
compatibility guide (BCG), the CUDA Compatibility guide (CC). The tools are ptxas and nvlink:
what PTX ptxas compiles for a target, and which machine code nvlink takes for one, are the same
rules at work.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest
from support.material import require

from fa_forensics.facts.gpus import parse_gpu
from fa_forensics.rules.coverage import (
    JIT,
    NATIVE,
    NONE,
    CodeGroup,
    fit,
    gpu_fit,
    parse_arch,
    what_would_run,
)


def group(arch: str, **changes: object) -> CodeGroup:
    """One image of an architecture: machine code, or PTX for a name that says compute."""
    facts: dict[str, object] = {
        "kind": "ptx" if arch.startswith("compute") else "cubin", "arch": arch,
        "isa": "8.4" if arch.startswith("compute") else None, "relocatable": False,
        "zstd": False, "images": 1, "stored_bytes": 100, "containers": frozenset((0,)),
    }  # fmt: skip
    return CodeGroup(**{**facts, **changes})  # type: ignore[arg-type]


def runs(arch: str, gpu: str, **changes: object) -> str:
    return fit(group(arch, **changes), parse_gpu(gpu)[0].capability).runs


#: (rule and source, code and GPU where it runs and how, code and GPU where it does not)
RULES: list[tuple[str, tuple[str, str, str], tuple[str, str]]] = [
    ("same major, newer minor: PG Binary Compatibility", ("sm_80", "8.6", NATIVE),
     ("sm_86", "8.0")),
    ("same major, newer minor: PG", ("sm_86", "8.9", NATIVE), ("sm_89", "8.6")),
    ("same major only: PG", ("sm_90", "9.0", NATIVE), ("sm_80", "9.0")),
    ("never backwards: PG", ("sm_89", "8.9", NATIVE), ("sm_90", "8.9")),
    ("10.0 code runs on 10.3: BCG", ("sm_100", "10.3", NATIVE), ("sm_103", "10.0")),
    ("10.x and 12.x are two: BCG", ("sm_120", "12.1", NATIVE), ("sm_100", "12.0")),
    ("Volta and Turing share a major: PG", ("sm_70", "7.5", NATIVE), ("sm_75", "7.0")),
    ("a: exactly one: PG Architecture-Specific", ("sm_90a", "9.0", NATIVE), ("sm_90a", "10.0")),
    ("a: not even the same family: PG", ("sm_100a", "10.0", NATIVE), ("sm_100a", "10.3")),
    ("f: its family: PG Family-Specific", ("sm_100f", "10.3", NATIVE), ("sm_100f", "12.0")),
    ("f: forwards in its family: PG", ("sm_103f", "10.3", NATIVE), ("sm_103f", "10.0")),
    ("f: 12.x: PG", ("sm_120f", "12.1", NATIVE), ("sm_121f", "12.0")),
    ("Tegra: not between desktop and Tegra: PG", ("sm_87", "8.7", NATIVE), ("sm_80", "8.7")),
    ("Tegra: not the other way: PG", ("sm_87", "Jetson Orin", NATIVE), ("sm_87", "8.9")),
    ("Tegra: not between Tegras: PG", ("sm_72", "7.2", NATIVE), ("sm_70", "7.2")),
    ("Thor was 10.1 until CUDA 12.9: CUDA 13.0 notes", ("sm_101a", "Thor", NATIVE),
     ("sm_100", "Thor")),
    ("Thor is 11.0 since: CUDA 13.0 notes", ("sm_110", "Thor", NATIVE), ("sm_110", "12.0")),
    ("PTX moves forwards: PG PTX Compatibility", ("compute_70", "12.0", JIT),
     ("compute_90", "8.9")),
    ("PTX reaches Tegra too: PG", ("compute_80", "8.7", JIT), ("compute_89", "8.7")),
    ("PTX a: one part: PG", ("compute_90a", "9.0", JIT), ("compute_90a", "10.0")),
    ("PTX f: one family: PG", ("compute_100f", "10.3", JIT), ("compute_100f", "12.0")),
    ("PTX 11.0 for 12.0, by number: ptxas", ("compute_110", "12.0", JIT), ("compute_120", "11.0")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "passes", "fails"), RULES, ids=[row[0] for row in RULES])
def test_each_rule_lets_one_through_and_stops_another(
    rule: str, passes: tuple[str, str, str], fails: tuple[str, str]
) -> None:
    assert runs(passes[0], passes[1]) == passes[2]
    assert runs(*fails) == NONE


@pytest.mark.parametrize(
    ("arch", "changes"),
    [
        ("sm_80", {"kind": "lto-ir"}), ("sm_80", {"relocatable": True}),
        ("compute_80", {"relocatable": True}), ("compute_80", {"kind": "relocatable-ptx"}),
        ("sm_80", {"kind": "tile-ir"}), ("sm_80", {"kind": "index"}),
        ("sm_80", {"kind": "old-cubin"}), ("sm_80", {"kind": "unknown-77"}),
        ("sm_", {}), ("", {}), ("sm_80x", {}), ("sm_99999999999999999999", {}),
    ],
)  # fmt: skip
def test_what_is_no_loadable_code_runs_nowhere(arch: str, changes: dict[str, object]) -> None:
    assert runs("sm_80", "8.0") == NATIVE
    assert runs(arch, "8.0", **changes) == NONE


# --- the tools ----------------------------------------------------------------------------------

PTX_TARGETS = ("75", "80", "87", "90", "90a", "100", "100a", "100f", "103f", "110", "110f", "120f",
               "121f", "101", "101a")  # fmt: skip
CUBIN_TARGETS = ("75", "80", "86", "87", "88", "89", "90", "90a", "100", "100a", "100f", "103",
                 "103f", "110", "110f", "120", "120a", "120f", "121", "121f")  # fmt: skip
#: The GPUs as targets; an "a" target is a GPU too, with that feature set.
REAL = ("75", "80", "86", "87", "88", "89", "90", "100", "103", "110", "120", "121")


def gpus_near(target: str) -> list[str]:
    """The GPUs of the same and the neighbouring major versions, the oldest and the newest."""
    major = int(target.rstrip("af")) // 10
    near = [gpu for gpu in REAL if abs(int(gpu) // 10 - major) <= 1]
    return sorted({*near, "75", "121"})


def ptx(target: str) -> str:
    isa = "8.7" if target.startswith("101") else "9.0"
    return f".version {isa}\n.target sm_{target}\n.address_size 64\n.visible .entry k(){{ret;}}\n"


@cache
def targets_of_ptxas() -> str:
    """The help text of ptxas, which lists its targets; the matrix is that of CUDA 13."""
    text = subprocess.run([require("ptxas"), "--help"], capture_output=True, text=True).stdout
    if "sm_110a" not in text or "sm_103f" not in text:
        pytest.skip("this ptxas does not know the targets of CUDA 13")
    return text


@pytest.mark.parametrize("target", PTX_TARGETS)
def test_ptxas_compiles_the_ptx_that_the_rules_let_through(target: str, tmp_path: Path) -> None:
    targets_of_ptxas()
    source = tmp_path / "k.ptx"
    source.write_text(ptx(target))
    name = f"compute_{target}"
    for gpu in gpus_near(target):
        # A driver compiles for all that the GPU has, so for the "a" target where there is one.
        best = f"{gpu}a" if int(gpu) >= 90 else gpu
        out = tmp_path / "k.cubin"
        command = ["ptxas", f"-arch=sm_{best}", str(source), "-o", str(out)]
        accepted = subprocess.run(command, capture_output=True).returncode == 0
        capability = parse_arch(f"sm_{gpu}")
        assert capability is not None
        found = fit(group(name), capability.capability).runs
        assert (found == JIT) == accepted, f"{name} for {gpu}: ptxas {accepted}, rules {found}"


@pytest.mark.parametrize("target", CUBIN_TARGETS)
def test_nvlink_takes_the_machine_code_that_the_rules_let_through(
    target: str, tmp_path: Path
) -> None:
    targets_of_ptxas()
    nvlink = require("nvlink")
    source, code = tmp_path / "k.ptx", tmp_path / "k.cubin"
    source.write_text(ptx(target))
    subprocess.run(["ptxas", "-c", f"-arch=sm_{target}", source, "-o", code], check=True)
    for gpu in gpus_near(target):
        out = tmp_path / "linked.cubin"
        # The "a" target where the code has one: nvlink asks for it by the very name.
        wanted = f"{gpu}a" if target == f"{gpu}a" else gpu
        command = [nvlink, f"-arch=sm_{wanted}", str(code), "-o", str(out)]
        accepted = subprocess.run(command, capture_output=True).returncode == 0
        capability = parse_arch(f"sm_{gpu}")
        assert capability is not None
        found = fit(group(f"sm_{target}"), capability.capability).runs
        assert (found == NATIVE) == accepted, f"sm_{target} on {gpu}: nvlink {accepted}"


# --- what the words say -------------------------------------------------------------------------


def test_the_folk_belief_is_corrected_in_the_reason() -> None:
    gpu = parse_gpu("RTX 4090")[0]
    found = gpu_fit([group("sm_80"), group("sm_86")], gpu)
    assert (found.runs, found.arch) == (NATIVE, "sm_86")
    assert found.reason == "sm_86 code runs on 8.9: same major version, not newer"
    found = gpu_fit([group("sm_90")], gpu)
    assert found.runs == NONE
    assert found.refused == (("sm_90", "sm_90 code runs on 9.0 and later 9.x alone"),)


@pytest.mark.parametrize(
    ("gpu", "code"),
    [
        ("8.9", "sm_80, sm_86, sm_89 code, or PTX up to compute_89"),
        ("8.7", "sm_87 code, or PTX up to compute_87"),
        ("12.1", "sm_120, sm_121 code, or PTX up to compute_121"),
        ("7.5", "sm_70, sm_75 code, or PTX up to compute_75"),
    ],
)
def test_what_would_run_is_named(gpu: str, code: str) -> None:
    assert what_would_run(parse_gpu(gpu)[0].capability) == code


def test_the_code_that_most_sources_have_is_the_one_named() -> None:
    gpu = parse_gpu("H100")[0]
    common = group("sm_90", containers=frozenset(range(30)))
    special = group("sm_90a", containers=frozenset((7, 30)))
    found = gpu_fit([common, special], gpu)
    assert (found.arch, found.native, found.without) == ("sm_90", 31, 0)
    assert gpu_fit([group("sm_90"), group("sm_90a")], gpu).arch == "sm_90a"
