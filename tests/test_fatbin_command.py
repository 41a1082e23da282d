"""``python -m fa_forensics.facts.fatbin``: output, exit codes, and what it does not import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_fatbin_containers import host
from test_hip import bundle

from fixtures import husk

ROOT = Path(__file__).parent.parent
MEMBER = "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(Path(husk.unpack("vllm_flash_attn-2.6.2", tmp_path_factory.mktemp("h"))) / MEMBER)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fa_forensics.facts.fatbin", *arguments]
    return subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_list_has_one_line_an_image_and_a_summary(library: str) -> None:
    done = run(library)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(lines) == 128 + 1 + 2
    assert lines[0].split()[:3] == ["1", "cubin", "sm_80"]
    assert lines[-1].split()[:4] == ["64", "x", "cubin", "sm_90"]


def test_json_holds_the_fields_of_the_contract(library: str) -> None:
    document = json.loads(run(library, "--json").stdout)
    assert [(row["kind"], row["arch"], row["count"]) for row in document["gpu_code"]] == [
        ("cubin", "sm_80", 64),
        ("cubin", "sm_90", 64),
    ]
    assert sum(row["bytes"] for row in document["gpu_code"]) == sum(
        image["stored_bytes"] for image in document["images"]
    )


def test_bad_input_is_one_sentence_and_exit_code_3(tmp_path: Path) -> None:
    text = tmp_path / "bad\x1bname.so"
    text.write_text("not ELF")
    for path in (str(tmp_path / "missing.so"), str(text), str(tmp_path)):
        done = run(path)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1
        assert "\x1b" not in done.stderr


def test_wrong_usage_is_exit_code_2() -> None:
    for arguments in ((), ("a", "b")):
        done = run(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: ")


def test_file_without_gpu_code_says_so() -> None:
    done = run(sys.executable)
    assert (done.returncode, done.stdout) == (0, "no GPU code\n")


def test_code_for_other_vendors_is_named(tmp_path: Path) -> None:
    path = tmp_path / "libamd.so"
    path.write_bytes(host({".hip_fatbin": bundle("hipv4-amdgcn-amd-amdhsa--gfx942")}))
    done = run(str(path))
    assert done.returncode == 0
    assert done.stdout.startswith("no CUDA code\n")
    assert "AMD GPUs by ROCm (gfx942)" in done.stdout
    document = json.loads(run(str(path), "--json").stdout)
    assert document["gpu_code"] == []
    assert document["other_gpu_code"][0]["targets"] == ["gfx942"]


def test_it_starts_without_heavy_imports(library: str) -> None:
    code = (
        "import sys; sys.argv = ['x', sys.argv[1]]; import runpy\n"
        "try: runpy.run_module('fa_forensics.facts.fatbin', run_name='__main__')\n"
        "except SystemExit: print(*sys.modules)"
    )
    command = [sys.executable, "-S", "-c", code, library]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "fa_forensics.facts.fatbin.reader" in loaded
    heavy = {"click", "elftools", "lief", "dataclasses", "subprocess", "pathlib", "json"}
    assert not loaded & (heavy | {"fa_forensics.facts.fatbin.provenance", "zstandard", "argparse"})
