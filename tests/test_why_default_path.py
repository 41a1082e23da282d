"""An old copy of a CUDA library: in a directory that the loader searches anyway, or elsewhere."""

from __future__ import annotations

import subprocess

import pytest

from fa_forensics.report_why import Answer
from fa_forensics.why import explain
from fa_forensics.why.nvidia.places import in_default_path

LACKS = "Could not load symbol cudnnGetLibConfig. Error: {}: undefined symbol: cudnnGetLibConfig"
PART = "libcudnn_graph.so.9"


def first(text: str, bare: str) -> Answer:
    return explain([text], bare, {}).answers[0]


def test_the_loaders_own_list_of_directories_is_the_default_path() -> None:
    """ld.so tells its built-in directories itself (glibc 2.33 and newer)."""
    listed = subprocess.run(
        ["/lib64/ld-linux-x86-64.so.2", "--list-diagnostics"], capture_output=True, text=True
    ).stdout
    folders = [
        line.partition('="')[2].rstrip('/"')
        for line in listed.splitlines()
        if line.startswith("path.system_dirs[")
    ]
    if not folders:
        pytest.skip("this loader does not tell its directories")
    assert all(in_default_path(f"{folder}/{PART}") for folder in folders)


@pytest.mark.parametrize(
    "folder", ["/usr/local/cuda/lib64", "/usr/lib/wsl/lib", "/opt/cuda/lib", "/usr/local/lib"]
)
def test_other_directories_are_not(folder: str) -> None:
    assert not in_default_path(f"{folder}/{PART}")


@pytest.mark.parametrize(
    "folder", ["/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu"]
)
def test_what_the_loader_finds_by_itself_need_not_leave_a_variable(folder: str, bare: str) -> None:
    answer = first(LACKS.format(f"{folder}/{PART}"), bare)
    assert answer.owner == "cudnn" and answer.direction == "file-newer"
    said = " ".join((answer.cause, *answer.notes))
    assert "has to leave LD_LIBRARY_PATH" not in said and "is the cause" not in said
    assert any("export LD_LIBRARY_PATH=" in text and "cudnn" in text for text in answer.help)


def test_a_toolkits_directory_has_to_leave_the_variable(bare: str) -> None:
    answer = first(LACKS.format(f"/usr/local/cuda-12.1/lib64/{PART}"), bare)
    assert "has to leave LD_LIBRARY_PATH" in answer.cause


def test_torchs_pin_is_no_cure_for_a_file_that_is_not_torchs(bare: str) -> None:
    """transformer_engine's file wants a newer cuBLASLt than any torch of then asks for."""
    path = "/e/lib/python3.12/site-packages/transformer_engine/libtransformer_engine.so"
    name = "undefined symbol: cublasLtGroupedMatrixLayoutInit_internal"
    answer = first(f"{path}: {name}, version libcublasLt.so.13", bare)
    said = " ".join(answer.notes)
    assert "that is the one to install" not in said and "serves torch too" in said
    assert "a release of transformer_engine that was built" in said
    torch = "/e/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"
    own = first(f"{torch}: {name}, version libcublasLt.so.13", bare)
    assert "that is the one to install" in " ".join(own.notes)
