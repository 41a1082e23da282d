"""``why`` for names of CUDA libraries: first version that has them, and the one that is here.

First versions are those of NVIDIA's own release notes and documentation, or stand in the name
itself (nvJitLink's end in the version that brought them).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support import oracles
from support.inspecting import run
from support.material import stub

from fa_forensics.atlas import libraries
from fa_forensics.atlas.tables import SHIPPED

T24, T29, T213 = "2.4.0+cu121", "2.9.1+cu128", "2.13.0+cpu"
CUDART = ", version libcudart.so.12"
JITLINK = ", version libnvJitLink.so.12"


def answer_of(symbol: str, *options: str, **variables: str) -> dict[str, Any]:
    result = run("why", *options, "--format", "json", "--", symbol, environment=variables)
    assert (result.code, result.stderr) == (0, ""), result.stderr
    (answer,) = result.document["answers"]
    assert answer["kind"] == "versioned-symbol"
    return dict(answer)


@pytest.mark.parametrize(
    ("symbol", "wheel", "version"),
    [
        ("cudaLibraryGetKernel" + CUDART, "nvidia-cuda-runtime-cu12", "12.8"),
        ("cudaGetDriverEntryPointByVersion" + CUDART, "nvidia-cuda-runtime-cu12", "12.5"),
        ("cudaLaunchKernelExC", "nvidia-cuda-runtime-cu11", "11.8"),
        ("__cudaGetKernel@libcudart.so.12", "nvidia-cuda-runtime-cu12", "12.0"),
        ("__nvJitLinkAddData_12_1" + JITLINK, "nvidia-nvjitlink-cu12", "12.1"),
        ("__nvJitLinkComplete_12_4" + JITLINK, "nvidia-nvjitlink-cu12", "12.4"),
        ("__nvJitLinkCreate_12_8" + JITLINK, "nvidia-nvjitlink-cu12", "12.8"),
        ("_nvJitLinkGetErrorLogSize_12_9", "nvidia-nvjitlink-cu12", "12.9"),
        ("ncclCommRegister", "nvidia-nccl-cu12", "2.19"),
        ("ncclCommSplit", "nvidia-nccl-cu12", "2.18"),
        ("ncclCommWindowRegister", "nvidia-nccl-cu12", "2.27"),
        ("cublasGemmGroupedBatchedEx", "nvidia-cublas-cu12", "12.5"),
    ],
)
def test_the_first_version_is_that_of_the_makers_notes(
    symbol: str, wheel: str, version: str
) -> None:
    answer = answer_of(symbol, "--torch", "2.4.0")
    of_wheel = [e for e in answer["exported_by"] if e.split()[0] == wheel]
    assert of_wheel[0].split()[1].startswith(version + ".")
    assert f"{wheel} {of_wheel[0].split()[1]}" in answer["interval"]


def test_a_runtime_older_than_the_name_is_said_to_be_older() -> None:
    """torch 2.4.0 pins the CUDA runtime 12.1.105 (its METADATA); the function came with 12.8."""
    for options in (("--torch", "2.4.0"), ("--python", str(stub(T24).python))):
        answer = answer_of("cudaLibraryGetKernel" + CUDART, *options)
        assert (answer["owner"], answer["provider"]) == ("cudart", None)
        assert answer["direction"] == "file-newer"
        assert "12.1.105" in answer["cause"] and "12.8." in answer["cause"]
        # The first torch built with CUDA 12.8.
        assert answer["help"][0].endswith('-m pip install "torch==2.8.0"')


def test_a_name_that_this_torch_brings_is_missing_only_beside_another_copy() -> None:
    answer = answer_of("__nvJitLinkCreate_12_8" + JITLINK, "--torch", "2.9.1")
    assert answer["direction"] == "none" and "LD_LIBRARY_PATH" in answer["cause"]
    assert answer["help"][0] == "env -u LD_LIBRARY_PATH python -c 'import torch'"
    assert any("need no CUDA toolkit" in note for note in answer["notes"])


def test_a_library_on_ld_library_path_is_found_out(tmp_path: Path) -> None:
    """Any library under nvJitLink's name stands for an old one: it lacks the name."""
    tree = stub(T29)
    (jitlink,) = tree.site_packages.glob("nvidia/nvjitlink/lib/libnvJitLink.so.12")
    symbol = "__nvJitLinkCreate_12_8"
    names = {name for _, (name, _, _) in oracles.nm_rows(jitlink, "--defined-only")}
    assert symbol in {name.partition("@")[0] for name in names}
    (other,) = tree.site_packages.glob("nvidia/cusparse/lib/libcusparse.so.12")
    shutil.copy(other, tmp_path / "libnvJitLink.so.12")
    options = ("--python", str(tree.python))
    here = answer_of(symbol + JITLINK, *options)
    assert here["provider"] == str(jitlink) and here["direction"] == "none"
    answer = answer_of(symbol + JITLINK, *options, LD_LIBRARY_PATH=str(tmp_path))
    assert (answer["provider"], answer["direction"]) == (None, "file-newer")
    assert f"{tmp_path}/libnvJitLink.so.12 instead (found by LD_LIBRARY_PATH)" in answer["cause"]
    assert answer["help"][0] == f"env -u LD_LIBRARY_PATH {tree.python} -c 'import torch'"


def test_a_torch_without_cuda_brings_none_of_it() -> None:
    answer = answer_of("ncclCommRegister", "--python", str(stub(T213).python))
    assert answer["provider"] is None and answer["exported_by"]
    assert "none is loaded with torch 2.13.0+cpu" in answer["cause"]


def test_inner_names_of_cudnn_belong_to_it_and_mean_two_copies() -> None:
    symbol = "_ZN11nvrtcHelper4loadEb, version libcudnn_ops_infer.so.8"
    answer = answer_of(symbol, "--torch", "2.0.1")
    assert answer["owner"] == "cudnn"
    assert any("two copies of it are mixed" in note for note in answer["notes"])


def test_a_damaged_table_leaves_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.inspecting import invoke

    for path in Path(SHIPPED).glob("cuda.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-7])
    monkeypatch.setattr(libraries, "SHIPPED", str(tmp_path))
    result = invoke("why", "--python", stub(T24).python, "--format", "json", "cudaNoSuchThing")
    (answer,) = result.document["answers"]
    assert result.code == 0 and not answer["releases_looked_up"]
    assert "does not export it" in answer["cause"]
    assert any(note.startswith("Could not look") for note in answer["notes"])
