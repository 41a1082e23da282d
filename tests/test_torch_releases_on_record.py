"""The tables of torch's own builds reach as far as the atlas, and their rows stand in order."""

from __future__ import annotations

import pytest

from fa_forensics.atlas.builds import minor_of
from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_minors
from fa_forensics.facts.torch_cuda import cuda_builds, published_cuda
from fa_forensics.facts.torch_install import is_own_build, is_unreleased


def _key(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def test_the_cuda_of_a_wheel_on_the_package_index_is_one_of_its_release() -> None:
    published = published_cuda()
    for build in Atlas.open().builds("x86_64"):
        rows = published.get(minor_of(build.release))
        if rows is not None and build.cuda is not None:
            assert build.cuda in rows, build.release


def test_every_minor_release_of_the_atlas_but_the_newest_has_its_cuda_builds() -> None:
    minors = {minor_of(release) for release in Atlas.open().releases("x86_64")}
    newest = max(minors, key=_key)  # its row comes with PyTorch's RELEASE.md
    assert {one for one in minors - {newest} if _key(one) >= (1, 12)} <= set(published_cuda())


def test_a_build_whose_gpu_code_is_on_record_is_one_of_its_release() -> None:
    for minor in torch_minors():
        assert set(cuda_of_minor(minor)) <= set(cuda_builds(minor)), minor


@pytest.mark.parametrize("name", ["torch_cuda.json", "rocm_sonames.json"])
def test_the_rows_stand_in_the_order_of_releases_and_no_build_goes_back(name: str) -> None:
    table = read_table(name)
    rows = table["cuda"] if "cuda" in table else table["by_torch"]
    assert list(rows) == sorted(rows, key=_key)
    assert all(row == sorted(row, key=_key) for row in rows.values())
    last = [_key(row[-1])[0] for row in rows.values()]
    assert last == sorted(last)
    assert table["source"] and table["date"]


def test_torch_for_rocm_has_the_releases_that_torch_for_cuda_has() -> None:
    rows = read_table("rocm_sonames.json")["by_torch"]
    assert set(published_cuda()) <= set(rows)


@pytest.mark.parametrize(
    ("version", "own", "unreleased"),
    [
        ("2.6.0a0+ecf3bae40a.nv25.01", True, True),  # nvcr.io/nvidia/pytorch:25.01-py3
        ("2.4.0a0+git1234567", True, True),
        ("2.5.1+gita8d6afb", True, True),
        ("2.9.0.dev20250701+cu128", False, True),
        ("2.5.0rc1", False, True),
        ("2.4.0+cu121", False, False),
        ("2.4.0.post301", False, False),  # conda-forge
    ],
)
def test_builds_from_source_are_told_from_nightlies_and_releases(
    version: str, own: bool, unreleased: bool
) -> None:
    assert (is_own_build(version), is_unreleased(version)) == (own, unreleased)
