"""Whether tags fit an interpreter, as pip decides it. Oracle: packaging.tags."""

from __future__ import annotations

import itertools

import packaging.tags
import pytest
from packaging._manylinux import _GLibCVersion
from packaging.tags import Tag

from fa_forensics.facts.wheel_tags import TagHost, impossible_pair, misfit

HERE = TagHost("3.11", "", "cpython", "x86_64", "glibc", (2, 31))

PYTHONS = ["cp27", "cp3", "cp36", "cp39", "cp310", "cp311", "cp312", "py2", "py3", "py311", "py312",
           "pp311", "py30"]  # fmt: skip
ABIS = ["none", "abi3", "cp39", "cp310", "cp311", "cp311t", "cp312", "cp27mu"]
PLATFORMS = ["any", "linux_x86_64", "linux_aarch64", "manylinux1_x86_64", "manylinux2014_x86_64",
             "manylinux_2_5_x86_64", "manylinux_2_31_x86_64", "manylinux_2_32_x86_64",
             "manylinux_2_28_aarch64", "musllinux_1_2_x86_64", "win_amd64",
             "macosx_11_0_arm64"]  # fmt: skip


def supported(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> set[Tag]:
    """The tags that pip takes on a CPython of x86_64 with glibc 2.31."""
    monkeypatch.setattr("packaging._manylinux._get_glibc_version", lambda: _GLibCVersion(2, 31))
    monkeypatch.setattr("packaging._manylinux._have_compatible_abi", lambda *a: True)
    monkeypatch.setattr("packaging._musllinux._get_musl_version", lambda executable: None)
    platforms = list(packaging.tags._linux_platforms(is_32bit=False))
    assert "manylinux_2_31_x86_64" in platforms
    number = "".join(map(str, version))
    return {
        *packaging.tags.cpython_tags(version, [f"cp{number}"], platforms),
        *packaging.tags.compatible_tags(version, f"cp{number}", platforms),
    }


@pytest.mark.skipif(
    packaging.tags.sysconfig.get_platform() != "linux-x86_64", reason="the oracle asks its machine"
)
def test_tags_fit_where_pip_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    takes = supported(monkeypatch, (3, 11))
    for python, abi, platform in itertools.product(PYTHONS, ABIS, PLATFORMS):
        fits = misfit(HERE, (python,), (abi,), (platform,)) is None
        assert fits == (Tag(python, abi, platform) in takes), (python, abi, platform)


def test_one_fitting_combination_is_enough() -> None:
    platforms = ("manylinux_2_99_x86_64", "manylinux_2_17_x86_64")
    assert misfit(HERE, ("cp310", "cp311"), ("cp310", "cp311"), platforms) is None


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        (("cp310", "cp310", "linux_x86_64"), "it is for Python 3.10, here is Python 3.11"),
        (("cp311", "cp311t", "linux_x86_64"), "its ABI is cp311t, here is Python 3.11 (cp311)"),
        (("cp312", "abi3", "linux_x86_64"), "it is for Python 3.12 and later, here is Python 3.11"),
        (("cp311", "cp311", "linux_aarch64"), "it is for aarch64, this Python is for x86_64"),
        (("cp311", "cp311", "win_amd64"), "it is for Windows, here is Linux"),
        (("cp311", "cp311", "manylinux_2_32_x86_64"), "it asks for glibc 2.32, here is 2.31"),
        (("cp311", "cp311", "musllinux_1_2_x86_64"), "it is for musl, this Python runs on glibc"),
        (("pp311", "pypy311_pp73", "linux_x86_64"), "it is for PyPy 3.11, here is Python 3.11"),
    ],
)
def test_what_does_not_fit_is_said_in_words(tags: tuple[str, str, str], says: str) -> None:
    assert misfit(HERE, *((tag,) for tag in tags)) == says


def test_a_free_threaded_python_takes_its_own_tag_and_no_abi3() -> None:
    free = HERE._replace(python="3.13", abiflags="t")
    assert misfit(free, ("cp313",), ("cp313t",), ("linux_x86_64",)) is None
    assert misfit(free, ("cp313",), ("cp313",), ("linux_x86_64",)) is not None
    problem = misfit(free, ("cp39",), ("abi3",), ("linux_x86_64",))
    assert problem is not None and "free-threaded" in problem


def test_an_unknown_glibc_holds_nothing_against_a_wheel() -> None:
    unknown = HERE._replace(libc_version=None)
    assert misfit(unknown, ("cp311",), ("cp311",), ("manylinux_2_99_x86_64",)) is None


def test_a_name_without_tags_fits_nothing() -> None:
    problem = misfit(HERE, (), (), ())
    assert problem is not None and "no tags" in problem


def test_a_pair_that_no_python_takes() -> None:
    takes = {
        (tag.interpreter, tag.abi)
        for minor in (6, 9, 10, 11, 12, 13)
        for number in (f"3{minor}",)
        for tag in (
            *packaging.tags.cpython_tags((3, minor), [f"cp{number}", f"cp{number}t"], ["any"]),
            *packaging.tags.compatible_tags((3, minor), f"cp{number}", ["any"]),
        )
    }
    for python, abi in takes:
        assert not impossible_pair((python,), (abi,)), (python, abi)
    for python, abi in (("py311", "cp311"), ("cp310", "cp311"), ("py3", "cp39"), ("py3", "abi3")):
        assert (python, abi) not in takes and impossible_pair((python,), (abi,))
    assert not impossible_pair(("cp310", "cp311"), ("cp310", "cp311"))
