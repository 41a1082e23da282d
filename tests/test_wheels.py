"""``wheels``: the right wheel for an environment, the ways out where there is none, the text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.inspecting import ROOT, Run, invoke, one_sentence, run
from support.wheel_runs import codes, query
from trees import make_prefix, make_torch, make_venv, shared_object

from fa_forensics.facts.wheel_matrix import builds


def environment(tmp_path: Path, version: str, cuda: str | None, pre_cxx11: bool,
                short: str = "3.11", conda: bool = False) -> Path:  # fmt: skip
    """A virtual environment with a torch as far as its files are read; its python."""
    base = make_prefix(tmp_path / "base", short, f"{short}.4")
    site = make_venv(tmp_path / "venv", base, short)
    make_torch(site, version, cuda, pre_cxx11)
    if conda:
        (tmp_path / "venv" / "conda-meta").mkdir()
    return tmp_path / "venv" / "bin" / "python"


# --- the wheel for an environment ---------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    {(b.torch, b.cxx11_abi): b for b in builds() if b.release >= "2.7.4"}.values(),
    ids=lambda b: f"{b.torch}-{b.cxx11_abi}",
)
def test_an_environment_on_disk_gets_the_row_that_it_was_made_from(
    build: Any, tmp_path: Path
) -> None:
    version = build.torch_built + "+cu" + "".join(build.cuda_built.split(".")[:2])
    cuda = ".".join(build.cuda_built.split(".")[:2])
    python = environment(tmp_path, version, cuda, build.cxx11_abi == "pre-cxx11", build.python)
    answer = query("--python", python)
    assert build.file_name in {one["file_name"] for one in answer["candidates"]}
    assert {one["torch"] for one in answer["candidates"]} == {build.torch}
    assert {one["cxx11_abi"] for one in answer["candidates"]} == {build.cxx11_abi}
    assert answer["code"] == 0 and answer["best"] is not None


def test_the_same_is_found_without_an_environment() -> None:
    answer = query("--torch", "2.5.1", "--python", "3.11", "--cuda", "12", "--abi", "FALSE")
    best = answer["candidates"][0]
    assert answer["best"] == best["file_name"]
    assert best["torch"] == "2.5" and best["cxx11_abi"] == "pre-cxx11" and best["python"] == "3.11"
    assert best["url"].endswith("/" + best["file_name"])
    assert best["command"] == f'python3.11 -m pip install "{best["url"]}"'


def test_a_release_brings_the_flavour_and_cuda_of_its_published_build() -> None:
    wanted = query("--torch", "2.6.0", "--python", "3.11")["wanted"]
    assert (wanted["cuda"], wanted["cxx11_abi"]) == ("12.4", "pre-cxx11")
    wanted = query("--torch", "2.6.0", "--python", "3.11", "--cuda", "12.6")["wanted"]
    assert (wanted["cuda"], wanted["cxx11_abi"]) == ("12.6", "cxx11")


def test_a_wheel_whose_name_tells_another_flavour_is_not_chosen() -> None:
    """Issues 1717 and 1783 of flash-attention: 2.8.2's FALSE wheel on torch 2.6.0+cu124."""
    answer = query("--torch", "2.6.0", "--python", "3.11")
    assert answer["best"].startswith("flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE")
    called = [one for one in answer["candidates"] if one["release"].startswith("2.8.")]
    assert called and all("the file in it is cxx11" in one["cautions"][-1] for one in called)


def test_a_wheel_built_on_a_nightly_is_flagged_and_goes_behind_the_others() -> None:
    answer = query("--torch", "2.6.0", "--python", "3.11")
    flagged = [one for one in answer["candidates"] if one["nightly"]]
    assert flagged and all("nightly torch 2.6.0.dev" in one["cautions"][0] for one in flagged)
    chosen = next(one for one in answer["candidates"] if one["file_name"] == answer["best"])
    assert chosen["cautions"] == []


def test_an_old_glibc_gets_the_newest_release_that_runs_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.confstr", lambda name: "glibc 2.31")
    torch = ("--torch", "2.6.0", "--cuda", "12.6", "--python", "3.11")
    answer = query(*torch, "--platform", "linux_x86_64")
    assert answer["best"].startswith("flash_attn-2.7.4.post1+")
    newest = answer["candidates"][0]
    assert newest["cautions"] == ["it needs glibc 2.32, this machine has 2.31"]


def test_an_unknown_flavour_picks_nothing_and_says_so(tmp_path: Path) -> None:
    python = environment(tmp_path, "2.6.0+cu124", "12.4", True)
    library = tmp_path / "venv/lib/python3.11/site-packages/torch/lib/libc10.so"
    library.write_bytes(shared_object())
    answer = query("--python", python)
    assert answer["best"] is None and answer["code"] == 4
    assert any("flavour" in text for text in answer["unknown"])
    assert {one["cxx11_abi"] for one in answer["candidates"]} == {"cxx11", "pre-cxx11"}


def test_a_torch_that_is_no_release_is_told(tmp_path: Path) -> None:
    python = environment(tmp_path, "2.6.0a0+ecf3bae40a.nv25.01", "12.8", False)
    answer = query("--python", python)
    assert answer["candidates"][0]["cxx11_abi"] == "cxx11"
    assert any("no published release" in note for note in answer["notes"])


# --- none ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--torch", "2.9.1", "--python", "3.12"), "none is for torch 2.9"),
        (("--torch", "2.6.0", "--python", "3.14"), "none is for Python 3.14"),
        (("--torch", "2.6.0", "--python", "3.13t"), "free-threaded"),
        (("--torch", "2.6.0+cpu", "--python", "3.11"), "built without CUDA"),
        (("--torch", "2.6.0", "--python", "3.11", "--cuda", "13"), "none is for CUDA 13"),
        (("--torch", "2.6.0", "--python", "3.11", "--cuda", "12", "--platform", "aarch64"),
         "none is for the platform linux_aarch64"),
        (("--torch", "2.6.0", "--python", "3.8"), "with all else the same there are wheels for Py"),
    ],
)  # fmt: skip
def test_where_no_wheel_is_the_reason_is_told(arguments: tuple[str, ...], reason: str) -> None:
    answer = query(*arguments)
    assert answer["code"] == 1 and answer["candidates"] == [] and answer["best"] is None
    assert codes(answer) == ["FA849"]
    texts = [entry["text"] for entry in answer["findings"][0]["evidence"]]
    assert any(reason in text for text in texts), texts


def test_the_nearest_published_torch_that_has_a_wheel_is_offered() -> None:
    answer = query("--torch", "2.9.1", "--python", "3.12", "--cuda", "12")
    others = [way for way in answer["ways"] if way["kind"] == "other-torch"]
    assert "torch 2.8.0" in others[0]["text"] and "torch 2.7.1" in others[1]["text"]
    # torch 2.8.0 is published in the cxx11 flavour: so must the wheel be.
    assert "torch2.8cxx11abiTRUE-cp312" in others[0]["help"][-1]


def test_a_build_from_source_names_the_gpu_and_the_jobs() -> None:
    answer = query("--torch", "2.9.1", "--python", "3.12", "--gpu", "H100")
    (source,) = [way for way in answer["ways"] if way["kind"] == "source"]
    command = source["help"][-1]
    for part in ("FLASH_ATTN_CUDA_ARCHS=90", "FLASH_ATTENTION_FORCE_BUILD=TRUE", "MAX_JOBS=",
                 "--no-build-isolation"):  # fmt: skip
        assert part in command
    assert "TORCH_CUDA_ARCH_LIST=" not in command


def test_a_conda_environment_is_offered_condas_build(tmp_path: Path) -> None:
    python = environment(tmp_path, "2.13.0+cu130", "13.0", False, conda=True)
    ways = query("--python", python)["ways"]
    assert ways[0]["kind"] == "conda-forge"
    assert ways[0]["help"][-1] == "conda install -c conda-forge flash-attn"


def test_a_gpu_that_the_package_refuses_is_told() -> None:
    answer = query("--torch", "2.6.0", "--python", "3.11", "--gpu", "Tesla V100")
    assert all("itself refuses Tesla V100" in one["cautions"][0] for one in answer["candidates"])
    assert (answer["best"], codes(answer), answer["code"]) == (None, ["FA849"], 1)
    (source,) = [way for way in answer["ways"] if way["kind"] == "source"]
    assert source["help"] == [] and "No rebuild can help" in " ".join(source["notes"])


@pytest.mark.parametrize(
    ("torch", "python", "cuda", "gpu", "release", "says"),
    [
        # nvcc knows sm_120 from CUDA 12.8 on: wheels that were built with 12.4 have no such code.
        ("2.6.0", "3.11", "12.6", "RTX 5090", "2.8.", "with CUDA 12.4.1 the release's build makes"),
        # sm_90 from CUDA 11.8 on.
        ("2.0.1", "3.10", "11.7", "H100", "2.5.", "itself|no code for H100"),
        # The files of 2.8 that are called cxx11abiFALSE for torch 2.6 are cxx11.
        ("2.6.0", "3.11", "12.4", "RTX 4090", "2.7.4", "called cxx11abiFALSE, and the file"),
    ],
)  # fmt: skip
def test_the_wheel_that_is_picked_has_code_for_the_gpu(
    torch: str, python: str, cuda: str, gpu: str, release: str, says: str
) -> None:
    answer = query("--torch", torch, "--python", python, "--cuda", cuda, "--gpu", gpu)
    best = next(one for one in answer["candidates"] if one["file_name"] == answer["best"])
    cautions = [text for one in answer["candidates"] for text in one["cautions"]]
    assert best["cautions"] == [], best
    assert any(re.search(says, text) for text in cautions)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("xformers",), "'xformers' are not known"),
        (("--package", "vllm"), "'vllm' are not known"),
        (("--torch", "2.6.0", "--abi", "maybe"), "no std::string flavour"),
        (("--torch", "2.6.0", "--cuda", "twelve"), "no version of CUDA"),
        (("--torch", "2.6.0", "--platform", "win_amd64"), "no platform"),
        (("--torch", "newest",), "names no torch release"),
        (("--python", "/nonexistent/python"), "does not exist"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence(arguments: tuple[str, ...], says: str) -> None:
    result = invoke("wheels", *arguments)
    assert result.code == 2 and says in one_sentence(result)


def test_without_a_torch_it_says_what_to_name(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "base")
    make_venv(tmp_path / "venv", base)
    result = invoke("wheels", "--python", tmp_path / "venv")
    assert result.code == 2
    assert "which wheel fits depends on torch" in one_sentence(result)
    assert "--torch 2.6.0" in result.stderr


# --- how it is shown ----------------------------------------------------------------------------


def shown(*arguments: str | Path) -> Run:
    return invoke("wheels", *map(str, arguments))


def test_the_text_names_the_wheel_and_the_command() -> None:
    text = shown("--torch", "2.6.0", "--python", "3.11").stdout
    assert "looking for: torch 2.6.0" in text and "ok flash-attn 2." in text
    assert "-m pip install" in text and "(--all lists them)" in text
    every = shown("--torch", "2.6.0", "--python", "3.11", "--all").stdout
    assert every.count(".whl") > text.count(".whl") and "nightly torch 2.6.0.dev" in every


def test_the_command_runs_in_a_process_of_its_own() -> None:
    result = run("wheels", "--torch", "2.6.0", "--python", "3.11", cwd=ROOT)
    assert result.code == 0 and "pip install" in result.stdout
