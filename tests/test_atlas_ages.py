"""The early releases and the main ones read as one atlas.

The intervals were read with ``nm -D`` from the wheels of these releases.
"""

from __future__ import annotations

import pytest

from fa_forensics.atlas.ages import EARLY, Ages
from fa_forensics.atlas.build.early import kept
from fa_forensics.atlas.store import Atlas


@pytest.fixture(scope="module")
def ages() -> Ages:
    return Ages.of(Atlas.open())


def test_the_releases_of_both_tables_follow_one_another(ages: Ages) -> None:
    known = ages.releases()
    assert known[0] == "1.0.0" and known[known.index("1.11.0") + 1] == "1.12.0"
    assert known[-1] == Atlas.open().releases()[-1]
    assert len(set(known)) == len(known)
    assert {b.flavour for b in Atlas.open(EARLY).builds()} == {"pre-cxx11"}


def test_other_machines_begin_where_the_main_tables_do(ages: Ages) -> None:
    assert ages.releases("aarch64") == Atlas.open().releases("aarch64")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("_ZN3c1012CUDATensorIdEv", "1.0.0", "1.2.0"),
        ("_ZN3c1019UndefinedTensorImpl10_singletonE", "1.1.0", None),
        ("_ZN3c1010TensorImpl18compute_contiguousEv", "1.1.0", None),
    ],
)
def test_a_name_lives_across_the_seam(ages: Ages, name: str, first: str, last: str | None) -> None:
    found = ages.releases_of(name) or ages.releases_of(name.replace("_ZN", "_ZNK"))
    assert found[0] == first and (last is None or found[-1] == last)
    if last is None:
        assert "1.11.0" in found and "1.12.0" in found


def test_a_search_finds_names_of_both_once(ages: Ages) -> None:
    found = ages.starting_with("_ZNK3c104Type14isSubtypeOfExtE")
    names = [name for name, _ in found]
    assert len(names) == len(set(names)) >= 3
    assert dict(found)["_ZNK3c104Type14isSubtypeOfExtERKS0_PSo"][0] == "1.11.0"


@pytest.mark.parametrize(
    ("name", "bind", "wanted"),
    [
        ("_ZN3c105ErrorC1ENS_14SourceLocationESs", "global", True),
        ("_Z16THPVariable_WrapN2at6TensorE", "global", True),
        ("THCState_getCurrentStream", "global", True),
        (
            "_ZN6caffe28TypeMeta21_typeMetaDataInstanceIdEEPKNS_6detail12TypeMetaDataEv",
            "weak",
            True,
        ),
        ("mkl_blas_dgemm", "global", False),
        ("_ZN6caffe212ReluOperatorD1Ev", "global", False),
        ("_ZNSt6vectorIN2at6TensorESaIS1_EED1Ev", "weak", False),
    ],
)
def test_only_names_that_extensions_link_with_are_kept(name: str, bind: str, wanted: bool) -> None:
    assert kept(name, bind) is wanted
