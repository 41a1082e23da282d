"""``wheels``: the right wheel for an environment, ways out, and wheels judged before installing."""

from __future__ import annotations

import json
import random
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.inspecting import ROOT, Run, invoke, one_sentence, run
from support.inspecting import validator as schema
from support.material import husk_file, stub
from support.ranges import serving
from trees import make_prefix, make_torch, make_venv, shared_object

from fa_forensics.facts.wheel_matrix import builds

#: Real builds, small ones: the first links with torch 2.4.0 - 2.6.0, the other with 2.2 alone. Both
#: are pre-cxx11, for CUDA 12, with code for GPUs until 9.0.
BUILD = "autoawq_kernels-0.0.9:awq_v2_ext.cpython-311-x86_64-linux-gnu.so"
OLDER = "autoawq_kernels-0.0.4:exl_ext.cpython-311-x86_64-linux-gnu.so"


def wheels(*arguments: str | Path) -> dict[str, Any]:
    """The JSON document of a run in this process, held to the schema; its exit code with it."""
    result = invoke("wheels", *map(str, arguments), "--format", "json")
    document: dict[str, Any] = json.loads(result.stdout)
    schema().validate(document)
    return {**document, "code": result.code}


def query(*arguments: str | Path) -> dict[str, Any]:
    """The answer for an environment."""
    document = wheels(*arguments)
    answer: dict[str, Any] = document["query"]
    return {**answer, "code": document["code"]}


def judged(*arguments: str | Path) -> dict[str, Any]:
    """The judgement on the one wheel that was given."""
    document = wheels(*arguments)
    (wheel,) = document["wheels"]
    return {**wheel, "code": document["code"], "states": states(wheel)}


def states(wheel: dict[str, Any]) -> dict[str, str]:
    return {check["subject"]: check["state"] for check in wheel["checks"]}


def codes(found: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in found["findings"]]


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
    answer = query("--torch", "2.6.0", "--python", "3.11", "--cuda", "12", "--abi", "FALSE")
    best = answer["candidates"][0]
    assert answer["best"] == best["file_name"]
    assert best["torch"] == "2.6" and best["cxx11_abi"] == "pre-cxx11" and best["python"] == "3.11"
    assert best["url"].endswith("/" + best["file_name"])
    assert best["command"] == f'python3.11 -m pip install "{best["url"]}"'


def test_a_release_brings_the_flavour_and_cuda_of_its_published_build() -> None:
    wanted = query("--torch", "2.6.0", "--python", "3.11")["wanted"]
    assert (wanted["cuda"], wanted["cxx11_abi"]) == ("12.4", "pre-cxx11")
    wanted = query("--torch", "2.6.0", "--python", "3.11", "--cuda", "12.6")["wanted"]
    assert (wanted["cuda"], wanted["cxx11_abi"]) == ("12.6", "cxx11")


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
    answer = query("--torch", "2.6.0", "--python", "3.11", "--platform", "linux_x86_64")
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
    assert any("refuses" in note and "7.0" in note for note in answer["notes"])


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


# --- given wheels -------------------------------------------------------------------------------


@cache
def husk_bytes(identity: str) -> bytes:
    return husk_file(identity).read_bytes()


def make(path: Path, name: str, identity: str = BUILD, requires: str = "torch") -> Path:
    """A wheel of a real build under a file name of one's choice."""
    path.mkdir(exist_ok=True)
    version, tags = name.split("-", 2)[1], name.removesuffix(".whl").split("-", 2)[2]
    file = path / name
    info = f"flash_attn-{version.partition('+')[0]}.dist-info"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("flash_attn/other.bin", random.Random(1).randbytes(400_000))
        archive.writestr(identity.partition(":")[2], husk_bytes(identity))
        archive.writestr(
            f"{info}/METADATA",
            f"Name: flash-attn\nVersion: {version.partition('+')[0]}\nRequires-Dist: {requires}\n"
            "Requires-Python: >=3.8\n\n",
        )
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {tags}\n")
    return file


RIGHT = "flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with that wheel in it."""
    folder = tmp_path_factory.mktemp("wheels")
    make(folder, RIGHT)
    return folder


def test_a_wheel_that_fits_is_said_to_fit(made: Path) -> None:
    found = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python)
    assert (found["verdict"], found["code"]) == ("fits", 0), found["headline"]
    assert set(found["states"].values()) <= {"ok", "note"}, found["states"]
    assert found["official"]["release"] == "2.6.3"
    assert found["targets"][0]["cxx11_abi"] == "pre-cxx11"


def test_the_same_wheel_at_an_address_gets_the_same_judgement(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python)
    with serving({RIGHT: (made / RIGHT).read_bytes()}) as server:
        there = judged(server.url(RIGHT), "--python", stub("2.4.0+cu121").python)
        assert len(server.asked) < 6
    assert there["kind"] == "url" and there["received_bytes"] <= there["size_bytes"]
    for key in ("verdict", "headline", "checks", "findings", "code"):
        assert there[key] == here[key]
    assert list(tmp_path.iterdir()) == []


def test_a_label_over_code_of_the_other_flavour_is_a_finding(made: Path, tmp_path: Path) -> None:
    name = RIGHT.replace("abiFALSE", "abiTRUE")
    (tmp_path / name).write_bytes((made / RIGHT).read_bytes())
    found = judged(tmp_path / name, "--python", stub("2.4.0+cu121").python)
    assert "FA844" in codes(found)
    assert found["states"]["ABI inside"] == "wrong"
    assert found["verdict"] == "fits"  # the code is of torch's flavour: it loads all the same


def test_the_content_decides_against_a_label_that_promises(made: Path) -> None:
    found = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python, "--torch", "2.9.1")
    assert (found["verdict"], found["code"]) == ("does-not-fit", 1)
    assert found["targets"][0]["verdict"] == "fails"


def test_a_wrong_cuda_label_is_a_finding(made: Path, tmp_path: Path) -> None:
    name = RIGHT.replace("cu123", "cu118")
    (tmp_path / name).write_bytes((made / RIGHT).read_bytes())
    found = judged(tmp_path / name, "--python", stub("2.4.0+cu121").python)
    assert "FA842" in codes(found)  # the label; what is inside is for CUDA 12
    assert found["states"]["CUDA inside"] == "wrong"


def test_a_wheel_for_another_torch_does_not_fit(tmp_path: Path) -> None:
    name = "flash_attn-2.5.6+cu122torch2.1cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    wheel = make(tmp_path, name, OLDER)
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert found["verdict"] == "does-not-fit"
    assert "FA201" in [f["code"] for f in found["targets"][0]["findings"]]


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        (RIGHT, None, "cannot-say"),
        (RIGHT.replace("cp311", "cp310"), "FA840", "does-not-fit"),
        (RIGHT.replace("x86_64", "aarch64"), "FA840", "does-not-fit"),
        (RIGHT.replace("torch2.4", "torch2.3"), "FA841", "does-not-fit"),
        (RIGHT.replace("cu123", "cu118"), "FA842", "does-not-fit"),
        (RIGHT.replace("abiFALSE", "abiTRUE"), "FA843", "does-not-fit"),
        ("flash_attn-2.5.9+cu122torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl", "FA845",
         "cannot-say"),
    ],
)  # fmt: skip
def test_a_name_alone_is_judged_by_its_labels(name: str, code: str | None, verdict: str) -> None:
    found = judged(name, "--python", stub("2.4.0+cu121").python)
    assert found["kind"] == "name" and found["verdict"] == verdict
    assert codes(found) == ([code] if code else [])
    assert found["states"]["content"] == "could-not-look"


def test_a_name_that_is_official_offers_the_address_to_read() -> None:
    found = judged(RIGHT, "--python", stub("2.4.0+cu121").python)
    assert found["help"] and found["help"][0].endswith(f'/v2.6.3/{RIGHT}"')


def test_a_release_that_needs_a_newer_glibc_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.confstr", lambda name: "glibc 2.31")
    name = "flash_attn-2.8.3+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    assert codes(judged(name, "--python", stub("2.4.0+cu121").python)) == ["FA846"]


def test_metadata_that_would_change_torch_is_an_error(tmp_path: Path) -> None:
    wheel = make(tmp_path, RIGHT, requires="torch==2.3.0")
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert codes(found) == ["FA850"] and found["verdict"] == "does-not-fit"


def test_a_renamed_wheel_is_told(made: Path, tmp_path: Path) -> None:
    name = RIGHT.replace("2.6.3", "2.6.1")
    (tmp_path / name).write_bytes((made / RIGHT).read_bytes())
    assert "FA847" in codes(judged(tmp_path / name, "--python", stub("2.4.0+cu121").python))


def test_at_an_address_content_is_left_alone_where_the_tags_refuse_it(made: Path) -> None:
    name = RIGHT.replace("cp311", "cp310")
    data = (made / RIGHT).read_bytes()
    with serving({name: data}) as server:
        found = judged(server.url(name), "--python", stub("2.4.0+cu121").python)
        assert found["verdict"] == "does-not-fit" and found["targets"] == []
        assert found["received_bytes"] < len(data) / 2
        asked = judged(server.url(name), "--python", stub("2.4.0+cu121").python, "--content")
        assert len(asked["targets"]) == 1


def test_a_gpu_is_held_against_what_is_inside(made: Path) -> None:
    fits = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python, "--gpu", "RTX 4090")
    assert fits["verdict"] == "fits"
    not_so = judged(made / RIGHT, "--python", stub("2.4.0+cu121").python, "--gpu", "sm_120")
    assert not_so["verdict"] == "does-not-fit"


@pytest.mark.parametrize("where", ["disk", "address"])
@pytest.mark.parametrize("kind", ["missing", "html"])
def test_what_is_no_wheel_is_one_sentence(tmp_path: Path, where: str, kind: str) -> None:
    files = {RIGHT: b"<html></html>"} if kind == "html" else {}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with serving(files) as server:
        given = server.url(RIGHT) if where == "address" else str(tmp_path / RIGHT)
        result = invoke("wheels", given, "--python", str(stub("2.4.0+cu121").python))
    assert result.code == 3
    one_sentence(result)


def test_a_pure_wheel_links_with_any_torch(tmp_path: Path) -> None:
    wheel = tmp_path / "einops-0.8.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("einops-0.8.0.dist-info/METADATA", "Name: einops\nVersion: 0.8.0\n\n")
        archive.writestr("einops-0.8.0.dist-info/WHEEL", "Tag: py3-none-any\n")
    found = judged(wheel, "--python", stub("2.4.0+cu121").python)
    assert found["verdict"] == "fits" and found["states"]["content"] == "note"


# --- how it is shown ----------------------------------------------------------------------------


def shown(*arguments: str | Path) -> Run:
    return invoke("wheels", *map(str, arguments))


def test_the_text_names_the_wheel_and_the_command() -> None:
    text = shown("--torch", "2.6.0", "--python", "3.11").stdout
    assert "looking for: torch 2.6.0" in text and "ok flash-attn 2." in text
    assert "-m pip install" in text and "(--all lists them)" in text
    every = shown("--torch", "2.6.0", "--python", "3.11", "--all").stdout
    assert every.count(".whl") > text.count(".whl") and "nightly torch 2.6.0.dev" in every


def test_the_text_of_a_judgement_has_one_line_for_each_question(made: Path) -> None:
    text = shown(made / RIGHT, "--python", stub("2.4.0+cu121").python).stdout
    assert "ok it fits this environment" in text
    for subject in ("tags", "metadata", "torch label", "CUDA inside", "content"):
        assert f"ok {subject}" in text


def test_hostile_names_cannot_move_the_cursor() -> None:
    text = shown("evil\x1b[2J-1-py3-none-any.whl", "--python", stub("2.4.0+cu121").python).stdout
    assert "\x1b" not in text and "\\x1b" in text


def test_the_command_runs_in_a_process_of_its_own() -> None:
    result = run("wheels", "--torch", "2.6.0", "--python", "3.11", cwd=ROOT)
    assert result.code == 0 and "pip install" in result.stdout
