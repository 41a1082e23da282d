"""Hashes and addresses for ``env --lock``: from a package index, from pip's cache, against pip."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import index, pages, wheel
from test_lock import HASH, locked, pin_of
from trees import environ, make_distribution, make_prefix, make_torch, make_venv

from fa_forensics.facts.pip_cache import cache_directory, read_cache, sha256_of
from fa_forensics.facts.simple_index import IndexFile, project_files, wheel_of
from fa_forensics.render.lock import lock_text


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site-packages of an environment with a torch; its python is three levels up."""
    base = make_prefix(tmp_path / "base", version="3.11.4")
    site = make_venv(tmp_path / "venv", base, extra="version = 3.11.4\n")
    make_torch(site)
    return site


@pytest.mark.parametrize("form", ["html", "json"])
def test_an_index_that_is_named_is_asked_for_what_is_not_known(site: Path, form: str) -> None:
    right = wheel("a", "1")
    (make_distribution(site, "a", "1", []) / "WHEEL").write_text("Tag: py3-none-any\n")
    with index(right, wheel("a", "2"), wheel("a", "1", "cp39-cp39-linux_x86_64"), form=form) as url:
        report = locked(site, index=url)
    pin = pin_of(report, "a")
    assert pin.hashes == (f"sha256:{hashlib.sha256(right[1]).hexdigest()}",)
    assert pin.hash_source == "the index" and pin.url is not None and pin.url.endswith(right[0])
    assert "answers 404" in pin_of(report, "torch").notes[-1]


FILES = [
    IndexFile("a-1-cp311-cp311-manylinux1_x86_64.whl", "u1", HASH),
    IndexFile("a-1-cp310-cp310-manylinux1_x86_64.whl", "u2", HASH),
    IndexFile("a-1-cp311-cp311-manylinux2014_aarch64.whl", "u3", HASH),
    IndexFile("a-2-py3-none-any.whl", "u4", ""),
    IndexFile("a-3-cp311-cp311-manylinux_2_17_x86_64.whl", "u5", HASH),
    IndexFile("a-3-cp311-cp311-manylinux_2_28_x86_64.whl", "u6", HASH),
]


@pytest.mark.parametrize(
    ("version", "tag", "found"),
    [
        ("1", "cp311-cp311-linux_x86_64", "u1"),  # torch's WHEEL names the plain platform
        ("1", "cp311-cp311-manylinux2014_aarch64", "u3"),
        ("1", "cp312-cp312-linux_x86_64", "0 wheels of the index could be the installed one"),
        ("2", "py3-none-any", "the index tells no hash of it"),
        ("3", "cp311-cp311-linux_x86_64", "2 wheels of the index could be the installed one"),
        ("3", "cp311-cp311-manylinux_2_28_x86_64", "u6"),
        ("4", "py3-none-any", "the index has no wheel of this version"),
    ],
)
def test_the_wheel_of_the_index_is_the_one_with_the_installed_tags(
    version: str, tag: str, found: str
) -> None:
    file, why = wheel_of(FILES, version, (tag,))
    assert (file.url if file is not None else why) == found


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"files": 3}', b'{"files": [{"url": 1}]}'])
def test_a_page_that_is_none_is_one_sentence(site: Path, body: bytes) -> None:
    kind = "application/vnd.pypi.simple.v1+json"
    with pages({"simple/torch/": (kind, body)}) as address:
        report = locked(site, index=f"{address}/simple")
    assert "no page of a package index" in pin_of(report, "torch").notes[-1]


def test_the_pages_of_a_project_are_read_in_both_forms() -> None:
    one = wheel("a", "1")
    for form in ("html", "json"):
        with index(one, form=form) as url:
            (file,) = project_files(url, "A")
        assert file.name == one[0] and file.sha256 == hashlib.sha256(one[1]).hexdigest()


def test_an_index_that_does_not_answer_is_asked_once(site: Path) -> None:
    for name in ("a", "b", "c"):
        make_distribution(site, name, "1", [])
    with pages({}) as address:
        pass  # nobody is there any more
    report = locked(site, index=address)
    assert len([note for note in report.notes if "was not asked for all" in note]) == 1
    assert all(pin.line is not None and not pin.hashes for pin in report.pins)


# --- pip as the oracle --------------------------------------------------------------------------

NO_PIP = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="no pip in this Python")


def pip(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check",
               "--trusted-host", "127.0.0.1", *map(str, arguments)]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environ(HOME=home)
    )


@NO_PIP
def test_pip_installs_what_was_printed_and_refuses_other_bytes(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "base", version="3.11.4")
    site = make_venv(tmp_path / "venv", base, extra="version = 3.11.4\n")
    right, other = wheel("a", "1"), wheel("a", "1")[0]
    (make_distribution(site, "a", "1", []) / "WHEEL").write_text("Tag: py3-none-any\n")
    with index(right) as url:
        text = lock_text(locked(site, index=url), "requirements")
        (tmp_path / "r.txt").write_text(text)
        target = tmp_path / "target"
        done = pip(
            tmp_path,
            "install",
            "--no-deps",
            "-i",
            url,
            "--target",
            target,
            "-r",
            tmp_path / "r.txt",
        )
        assert done.returncode == 0, done.stderr
        assert (target / "a.py").read_text() == "version = '1'\n"
    with index((other, right[1] + b"\0")) as url:
        args = ("install", "--no-deps", "-i", url, "--target", tmp_path / "t2")
        done = pip(tmp_path, *args, "-r", tmp_path / "r.txt")
    assert done.returncode != 0 and "HASH" in done.stderr.upper()


@NO_PIP
def test_hashes_are_found_in_pips_own_cache(tmp_path: Path) -> None:
    name, data = wheel("a", "1")
    cache = tmp_path / "cache"
    with index((name, data)) as url:
        done = pip(
            tmp_path, "download", "--cache-dir", cache, "-i", url, "-d", tmp_path / "got", "a==1"
        )
        assert done.returncode == 0, done.stderr
    if not (cache / "http-v2").is_dir():
        pytest.skip("this pip keeps its cache in another form")
    found = read_cache(str(cache), frozenset({("a", "1"), ("b", "1")}))
    archive = found.archive_of(("a", "1"), ("py3-none-any",))
    assert archive is not None
    assert sha256_of(archive) == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert found.archive_of(("b", "1"), ()) is None


def test_the_cache_serves_the_lock(site: Path, tmp_path: Path) -> None:
    (make_distribution(site, "a", "1", []) / "WHEEL").write_text("Tag: py3-none-any\n")
    (make_distribution(site, "b", "1", []) / "WHEEL").write_text("Tag: py3-none-any\n")
    store = tmp_path / "cache" / "http-v2" / "a" / "b"
    store.mkdir(parents=True)
    data = wheel("a", "1")[1]
    (store / "abc.body").write_bytes(data)
    (store / "def.body").write_bytes(b"<html>")
    (store / "cut.body").write_bytes(data[:50])
    built = tmp_path / "cache" / "wheels" / "x"
    built.mkdir(parents=True)
    (built / "b-1-py3-none-any.whl").write_bytes(b"")
    report = locked(site, variables={"PIP_CACHE_DIR": str(tmp_path / "cache")})
    assert pin_of(report, "a").hashes == (f"sha256:{hashlib.sha256(data).hexdigest()}",)
    assert pin_of(report, "a").hash_source == "pip's cache"
    assert "pip built it here" in pin_of(report, "b").notes[0]


def test_where_pips_cache_is() -> None:
    assert cache_directory({"PIP_CACHE_DIR": "/c"}) == "/c"
    assert cache_directory({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == "/x/pip"
    assert cache_directory({"HOME": "/h"}) == "/h/.cache/pip"
