"""``compare`` over what ``env`` really writes, of two environments on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.packages import environment, extension, flash_attn, install, linked_with_c10, python_of
from trees import environ

from fa_forensics.compare.documents import facts_of
from fa_forensics.compare.run import compare_documents
from fa_forensics.env import inspect_environment
from fa_forensics.render.json import Document
from fa_forensics.render.json_env import env_document

Change = Callable[[Path], object]


def machine(place: Path) -> Path:
    """The packages of a machine with torch, flash-attn and two more."""
    site = environment(place)
    flash_attn(site)
    install(
        site, "xformers", "0.0.29", {"xformers/__init__.py": b"", "xformers/_C.so": extension()}
    )
    install(site, "filelock", "3.16", {"filelock.py": b"x = 1\n"})
    return site


def document(site: Path, **variables: str) -> Document:
    return env_document(inspect_environment(python_of(site), environ(**variables)))


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return machine(tmp_path / "home/me")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return machine(tmp_path / "scratch/you")


def told(one: Document, other: Document) -> set[tuple[str, str, str]]:
    report = compare_documents([("a", one), ("b", other)])
    return {(d.group, d.subject, d.aspect) for d in report.differences}


def test_two_machines_with_the_same_things_at_other_places_are_the_same(
    one: Path, other: Path
) -> None:
    report = compare_documents([("a", document(one)), ("b", document(other))])
    assert report.differences == () and report.same > 60 and report.unread == ()


def test_what_env_writes_has_the_shape_that_compare_knows(one: Path) -> None:
    facts = facts_of(document(one), "a")
    assert facts.problems == []
    wanted = {
        ("torch", "torch", "version"), ("torch", "torch", "CUDA"), ("python", "Python", "version"),
        ("python", "Python", "abi tag"), ("python", "sys.path", "directories"),
        ("system", "glibc", "version"), ("system", "cpu", "model"),
        ("driver", "driver", "version"), ("libraries", "libc10.so", "build-id"),
        ("libraries", "libc10.so", "taken from"), ("packages", "flash-attn", "version"),
        ("extensions", "flash_attn_2_cuda.so", "build-id"),
        ("extensions", "xformers/_C.so", "verdict"), ("packages", "filelock", "version"),
    }  # fmt: skip
    assert wanted - set(facts.facts) == set()


def _rebuilt(site: Path) -> None:
    (site / "xformers/_C.so").unlink()
    shutil.rmtree(next(site.glob("xformers-*.dist-info")))
    data = linked_with_c10("-Wl,--build-id=0x1234")
    install(site, "xformers", "0.0.29", {"xformers/__init__.py": b"", "xformers/_C.so": data})


def _newer(site: Path) -> None:
    shutil.rmtree(next(site.glob("filelock-*.dist-info")))
    install(site, "filelock", "3.17", {"filelock.py": b"x = 1\n"})


def _without(site: Path) -> None:
    shutil.rmtree(next(site.glob("xformers-*.dist-info")))
    shutil.rmtree(site / "xformers")


def _other_torch(site: Path) -> None:
    path = site / "torch/version.py"
    path.write_text(path.read_text().replace("12.4", "12.6"))


CHANGES: dict[str, tuple[Change, set[tuple[str, str, str]]]] = {
    "another build": (_rebuilt, {("extensions", "xformers/_C.so", "build-id")}),
    "a newer package": (_newer, {("packages", "filelock", "version")}),
    "a package less": (
        _without, {("extensions", "xformers/_C.so", ""), ("packages", "xformers", "")}
    ),
    "another CUDA": (_other_torch, {("torch", "torch", "CUDA")}),
    "an edited file": (
        lambda site: (site / "flash_attn/bert.py").write_text("x = 2\n"),
        {("packages", "flash-attn", "state")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_one_change_on_disk_is_told(one: Path, other: Path, name: str) -> None:
    change, wanted = CHANGES[name]
    change(other)
    assert told(document(one), document(other)) == wanted


def test_a_variable_is_told_by_its_value(one: Path, other: Path) -> None:
    with_value = document(other, NVIDIA_TF32_OVERRIDE="0", HF_TOKEN="secret")
    assert told(document(one), with_value) == {("variables", "NVIDIA_TF32_OVERRIDE", "")}
    assert "secret" not in str(with_value)
