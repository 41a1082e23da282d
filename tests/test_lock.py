"""``env --lock``: what pip takes again, with the hashes that are known. Oracle: pip itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.inspecting import invoke, one_sentence
from support.inspecting import validator as schema
from trees import environ, make_distribution, make_prefix, make_torch, make_venv

from fa_forensics.lock import lock
from fa_forensics.render.lock import lock_text
from fa_forensics.report_lock import LockReport, Pin

HASH = "0" * 63 + "1"
URL = "https://host/v2.8.3/flash_attn-2.8.3+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site-packages of an environment with a torch; its python is three levels up."""
    base = make_prefix(tmp_path / "base", version="3.11.4")
    site = make_venv(tmp_path / "venv", base, extra="version = 3.11.4\n")
    make_torch(site)
    return site


def locked(site: Path, **more: Any) -> LockReport:
    variables = environ(PIP_CACHE_DIR=site / "nocache")
    return lock(str(site.parents[2]), {**variables, **more.pop("variables", {})}, **more)


def pin_of(report: LockReport, name: str) -> Pin:
    (pin,) = [pin for pin in report.pins if pin.name == name]
    return pin


def record(url: str, **more: object) -> str:
    return json.dumps({"url": url, **more})


# --- where a distribution came from -------------------------------------------------------------


def test_a_plain_distribution_is_pinned_by_its_version(site: Path) -> None:
    make_distribution(site, "typing-extensions", "4.12.2", [])
    pin = pin_of(locked(site), "typing-extensions")
    assert (pin.source, pin.line, pin.hashes) == ("index", "typing-extensions==4.12.2", ())


def test_torch_stands_first_and_pip_by_itself(site: Path) -> None:
    make_distribution(site, "aaa", "1", [])
    make_distribution(site, "pip", "24.0", [])
    report = locked(site)
    assert [pin.name for pin in report.pins] == ["torch", "aaa"]
    assert report.pip == "24.0"


def test_an_address_is_kept_with_the_hash_that_pip_recorded(site: Path) -> None:
    text = record(URL, archive_info={"hashes": {"sha256": HASH}})
    make_distribution(site, "flash-attn", "2.8.3", [], direct_url__json=text)
    pin = pin_of(locked(site), "flash-attn")
    assert pin.source == "url" and pin.line == f"flash-attn @ {URL}"
    assert pin.hashes == (f"sha256:{HASH}",) and pin.hash_source == "direct_url.json"


def test_the_hash_of_an_older_record_is_understood(site: Path) -> None:
    text = record(URL, archive_info={"hash": f"sha256={HASH}"})
    make_distribution(site, "flash-attn", "2.8.3", [], direct_url__json=text)
    assert pin_of(locked(site), "flash-attn").hashes == (f"sha256:{HASH}",)


def test_a_password_in_an_address_is_not_printed(site: Path) -> None:
    text = record("https://me:secret@host/a-1-py3-none-any.whl", archive_info={})
    make_distribution(site, "a", "1", [], direct_url__json=text)
    assert "secret" not in lock_text(locked(site))


def test_a_repository_is_kept_with_its_commit(site: Path) -> None:
    vcs = {"vcs": "git", "commit_id": "ab12" * 10}
    text = record("https://host/flash-attention.git", vcs_info=vcs, subdirectory="csrc/rotary")
    make_distribution(site, "rotary-emb", "0.1", [], direct_url__json=text)
    pin = pin_of(locked(site), "rotary-emb")
    assert pin.line == (
        f"rotary-emb @ git+https://host/flash-attention.git@{'ab12' * 10}#subdirectory=csrc/rotary"
    )
    assert pin.hashes == () and "no hash" in pin.notes[0]


@pytest.mark.parametrize(
    "more",
    [{"dir_info": {"editable": True}}, {"archive_info": {"hashes": {"sha256": HASH}}}],
    ids=["editable", "file"],
)
def test_what_lies_on_this_machine_alone_is_said_to(site: Path, more: dict[str, object]) -> None:
    text = record("file:///home/me/wheels/a-1-py3-none-any.whl", **more)
    make_distribution(site, "a", "1", [], direct_url__json=text)
    report = locked(site)
    pin = pin_of(report, "a")
    assert (pin.source, pin.line) == ("local", None) and "on this machine" in pin.notes[0]
    text = lock_text(report)
    assert "\n# a==1\n" in text and "\na==1" not in text


def test_a_local_version_says_that_the_default_index_has_it_not(site: Path) -> None:
    make_distribution(site, "torchvision", "0.19.0+cu121", [])
    pin = pin_of(locked(site), "torchvision")
    assert "--extra-index-url" in pin.notes[0]


def test_the_official_wheel_of_flash_attn_is_named_where_pip_recorded_none(site: Path) -> None:
    make_distribution(site, "flash-attn", "2.7.4.post1", [])
    pin = pin_of(locked(site), "flash-attn")
    assert pin.url is not None and pin.url.endswith(
        "flash_attn-2.7.4.post1+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    )
    assert "not recorded" in pin.notes[0]


def test_what_the_system_or_conda_installed_is_not_pips(site: Path) -> None:
    (make_distribution(site, "a", "1", []) / "INSTALLER").write_text("debian\n")
    (make_distribution(site, "b", "2", []) / "INSTALLER").write_text("conda\n")
    records = site.parents[2] / "conda-meta"
    records.mkdir()
    (records / "b-2-py311_0.json").write_text(
        json.dumps({"name": "b", "version": "2", "build": "py311_0",
                    "channel": "https://host/conda-forge/linux-64"})
    )  # fmt: skip
    (records / "broken.json").write_text("{")
    report = locked(site)
    assert pin_of(report, "a").source == "system" and pin_of(report, "b").line is None
    assert report.channels == ("conda-forge",)
    text = lock_text(report, "environment")
    assert "  - 'b=2=py311_0'" in text and "b==2" not in text
    assert any("broken.json is no record of conda" in note for note in report.notes)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"url": 1}', '{"url": "https://h/a b"}', '{"url": "https://h/a\\nnumpy==1"}', ""],
)
def test_a_broken_record_makes_no_line_of_its_own(site: Path, text: str) -> None:
    make_distribution(site, "a", "1", [], direct_url__json=text)
    made = lock_text(locked(site), "requirements")
    assert not [line for line in made.split("\n") if line.startswith(("numpy", "b"))]


def test_a_hostile_name_makes_no_line(site: Path) -> None:
    info = make_distribution(site, "a", "1", [])
    (info / "METADATA").write_text("Name: a; rm -rf /\nVersion: 1\n\n")
    made = lock_text(locked(site), "requirements")
    assert not [line for line in made.split("\n") if "rm -rf" in line and line[0] != "#"]


def test_a_broken_distribution_is_told_and_the_rest_is_pinned(site: Path) -> None:
    (site / "lost-1.dist-info").mkdir()
    make_distribution(site, "a", "1", [])
    report = locked(site)
    assert pin_of(report, "a").line == "a==1"
    assert any("lost-1.dist-info" in note for note in report.notes)


# --- hashes: all or none ------------------------------------------------------------------------


def whole(site: Path) -> LockReport:
    """An environment of which all hashes are known."""
    for info in site.glob("torch-*.dist-info"):
        for file in info.iterdir():
            file.unlink()
        info.rmdir()
    text = record(URL, archive_info={"hashes": {"sha256": HASH}})
    make_distribution(site, "flash-attn", "2.8.3", [], direct_url__json=text)
    return locked(site)


def test_hashes_are_given_to_pip_where_all_are_known(site: Path) -> None:
    report = whole(site)
    text = lock_text(report)
    assert report.whole and f"    --hash=sha256:{HASH}\n" in text
    assert "--require-hashes" in lock_text(report, "dockerfile")


def test_one_unknown_hash_leaves_them_all_as_comments(site: Path) -> None:
    whole(site)
    make_distribution(site, "a", "1", [])
    report = locked(site)
    made = lock_text(report, "requirements")
    assert not report.whole and f"    # --hash=sha256:{HASH}" in made
    assert "1 of 2 hashes are known" in made
    assert "--require-hashes" not in lock_text(report, "dockerfile")


# --- the command --------------------------------------------------------------------------------


def test_the_document_keeps_to_the_schema_and_carries_the_files(site: Path) -> None:
    make_distribution(site, "a", "1", [])
    result = invoke("env", "--lock", "--format", "json", "--python", site.parents[2])
    document = json.loads(result.stdout)
    schema().validate(document)
    assert result.code == 0
    assert set(document["lock"]["files"]) == {"requirements.txt", "environment.yml", "Dockerfile"}
    assert document["lock"]["image"].startswith("python:3.11.4-slim-")


def test_one_file_alone_is_that_file(site: Path) -> None:
    result = invoke("env", "--lock", "requirements", "--python", site.parents[2])
    assert result.code == 0 and "----" not in result.stdout and "torch==2.4.0" in result.stdout


def test_something_that_cannot_be_had_again_is_exit_code_4(site: Path) -> None:
    text = record("file:///src/a", dir_info={"editable": True})
    make_distribution(site, "a", "1", [], direct_url__json=text)
    assert invoke("env", "--lock", "--python", site.parents[2]).code == 4


def test_an_index_that_is_no_address_is_wrong_usage(site: Path) -> None:
    python = str(site.parents[2])
    result = invoke("env", "--lock", "all", "--lock-index", "nowhere", "--python", python)
    assert result.code == 2
    one_sentence(result)
    assert invoke("env", "--lock-index", "http://h", "--python", python).code == 2


def test_the_environment_file_is_yaml_as_conda_reads_it(site: Path) -> None:
    text = lock_text(locked(site), "environment")
    lines = text.splitlines()
    assert lines[0] == "name: 'venv'" and "dependencies:" in lines
    assert "  - 'python=3.11.4'" in lines and "      - 'torch==2.4.0+cu121'" in lines
