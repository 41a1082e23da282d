"""The coverage table: from the images of real objects to text, Markdown and plain values."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.fitting import code
from support.material import HUGE, husk_file, require

from fa_forensics.facts.drivers import Driver
from fa_forensics.facts.fatbin.reader import read_file
from fa_forensics.facts.gpus import parse_gpu, parse_gpus
from fa_forensics.render.coverage import (
    coverage_markdown,
    coverage_table,
    gpu_sentences,
    runs_on_parts,
)
from fa_forensics.rules.coverage import CodeGroup, gpu_fit, group_images
from fa_forensics.rules.coverage_view import coverage_view


def view(groups: list[CodeGroup], *gpus: str, driver: Driver | None = None) -> dict[str, Any]:
    found = parse_gpus(gpus)
    fits = [gpu_fit(groups, gpu, driver) for gpu in found]
    return coverage_view(groups, fits, driver, "option")


FA3 = [
    code("sm_80", images=12, containers=frozenset(range(12)), stored_bytes=18 << 20),
    code("sm_90a", images=86, containers=frozenset(range(10, 96)), stored_bytes=59 << 20),
]


def test_text_has_a_row_for_each_architecture_and_a_column_for_each_gpu() -> None:
    lines = coverage_table(view(FA3, "T4", "A100", "RTX 4090", "H100", "B200"), 100)
    assert lines[0].split() == ["arch", "cubins", "PTX", "size", "7.5", "8.0", "8.9", "9.0", "10.0"]
    assert lines[1].split() == ["sm_80", "12", "-", "18.0", "MiB", "-", "yes", "yes", "-", "-"]
    assert lines[2].split() == ["sm_90a", "86", "-", "59.0", "MiB", "-", "-", "-", "yes", "-"]
    assert lines[3].split() == ["all", "-", "part", "part", "part", "-"]
    assert len({len(line) for line in lines[:4]}) == 1, "columns stand under each other"
    assert "part: some of the compiled sources have no code for this GPU." in lines


def test_the_overview_of_all_gpus_fits_into_a_hundred_columns() -> None:
    lines = coverage_table(view(FA3, "all"), 100)
    assert max(map(len, lines)) <= 100
    assert all(line.isascii() for line in lines)


def test_markdown_names_the_gpus_in_its_head() -> None:
    lines = coverage_markdown(view(FA3, "A100", "H100"))
    assert lines[0] == "| arch | cubins | PTX | size | A100 (8.0) | H100 (9.0) |"
    assert lines[2] == "| sm_80 | 12 | - | 18.0 MiB | yes | - |"
    assert {line.count("|") for line in lines} == {7}


def test_ptx_and_machine_code_of_one_architecture_share_a_row() -> None:
    shown = view([code("sm_80"), code("compute_80"), code("sm_70")], "A100", "H100")
    rows = shown["rows"]
    assert [(row["arch"], row["cubins"], row["ptx"]) for row in rows] == [
        ("sm_70", 1, 0),
        ("sm_80", 1, 1),
    ]
    assert rows[1]["runs"] == ["native", "jit"]
    assert any("JIT: the driver compiles" in line for line in coverage_table(shown, 100))


def test_the_short_form_groups_gpus_by_the_code_they_run() -> None:
    assert runs_on_parts(view(FA3, "T4", "A100", "RTX 4090", "H100")) == [
        "8.0 8.9 (sm_80)",
        "9.0 (sm_90a)",
        "not on 7.5",
    ]
    assert runs_on_parts(view([code("compute_80")], "H100")) == ["9.0 (compute_80 by JIT)"]


def test_a_sentence_for_each_gpu_corrects_the_folk_belief() -> None:
    sentences = gpu_sentences(view([code("sm_86")], "RTX 4090", "H100"))
    assert sentences[0] == (
        "RTX 4090 (8.9): runs: sm_86 code runs on 8.9: same major version, not newer"
    )
    assert sentences[1].startswith("H100 (9.0): does not run: of sm_86, nothing runs on")


def test_a_driver_that_is_too_old_is_part_of_the_sentence() -> None:
    driver = Driver("535.104.05", (12, 2))
    (sentence,) = gpu_sentences(view([code("compute_80")], "H100", driver=driver))
    assert "but compiling this PTX needs a driver for CUDA 12.4" in sentence
    (sentence,) = gpu_sentences(view([code("compute_80")], "H100"))
    assert sentence.endswith("needs a driver for CUDA 12.4 or newer")


def test_the_view_is_plain_and_complete() -> None:
    shown = view(FA3, "A100", driver=Driver("580.65.06", (13, 0)))
    assert json.loads(json.dumps(shown)) == shown
    assert shown["driver"] == {"version": "580.65.06", "cuda": "13.0"}
    (gpu,) = shown["gpus"]
    assert (gpu["runs"], gpu["arch"], gpu["capability"]) == ("native", "sm_80", "8.0")
    assert gpu["sources"] == {"native": 12, "jit": 0, "without": 84}


def test_a_file_without_gpu_code_has_no_table() -> None:
    assert coverage_table(view([], "A100"), 100) == []
    assert coverage_markdown(view([], "A100")) == []


@pytest.mark.parametrize("hostile", ["sm_\x1b[31m", "|", "", "sm_99999999999", "sm_80\n"])
def test_names_from_a_hostile_file_are_shown_not_obeyed(hostile: str) -> None:
    shown = view([code(hostile, kind="cubin"), code("sm_80")], "A100")
    lines = coverage_table(shown, 100) + coverage_markdown(shown) + gpu_sentences(shown)
    assert all(line.isprintable() for line in lines)
    assert shown["gpus"][0]["runs"] == "native"


def test_the_real_vllm_extension_serves_ampere_ada_and_hopper_only() -> None:
    groups = group_images(read_file(str(husk_file(HUGE))).images)
    assert [(g.arch, g.images) for g in groups] == [("sm_80", 64), ("sm_90", 64)]
    served = {gpu.capability: gpu_fit(groups, gpu).runs == "native" for gpu in parse_gpu("all")}
    assert [c for c, native in served.items() if native] == [(8, 0), (8, 6), (8, 9), (9, 0)]


def test_objects_of_nvcc_are_judged_as_their_options_say(tmp_path: Path) -> None:
    require("nvcc")
    if re.search(r"release 1[3-9]", _version()) is None:
        pytest.skip("an nvcc before CUDA 13")
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(int *p) { *p = 1; }\n")
    options = ["arch=compute_80,code=sm_80", "arch=compute_90a,code=sm_90a",
               "arch=compute_100f,code=sm_100f", "arch=compute_89,code=compute_89"]  # fmt: skip
    command = ["nvcc", "-c", str(source), "-o", str(tmp_path / "k.o")]
    subprocess.run([*command, *(f"-gencode={option}" for option in options)], check=True)
    groups = group_images(read_file(str(tmp_path / "k.o")).images)
    found = {gpu.capability: gpu_fit(groups, gpu) for gpu in parse_gpu("all")}
    runs = {capability: (one.runs, one.arch) for capability, one in found.items()}
    assert runs[(7, 5)] == ("none", None)
    assert runs[(8, 6)] == ("native", "sm_80")
    assert runs[(8, 7)] == ("none", None)
    assert runs[(8, 9)] == ("native", "sm_80")
    assert runs[(9, 0)] == ("native", "sm_90a")
    assert runs[(10, 3)] == ("native", "sm_100f")
    assert runs[(12, 0)] == ("jit", "compute_89")
    assert found[(12, 0)].isa == "9.0" and found[(12, 0)].needs_cuda == (13, 0)


def _version() -> str:
    nvcc = shutil.which("nvcc") or "nvcc"
    return subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
