"""The GPUs that torch's own wheels hold code for."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from fa_forensics.atlas.store import Atlas
from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.gpus import gpu_table, parse_capability
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs, torch_minors

DATA = Path(__file__).parent.parent / "fa_forensics" / "data"


@pytest.mark.parametrize(
    ("release", "cuda", "has", "lacks"),
    [
        ("2.4.0", "12.1", "sm_90", "sm_120"),
        ("2.7.0.dev20250310", "12.8", "compute_120", "sm_70"),
        ("2.8.0", "12.8", "sm_70", "sm_60"),
        ("2.8.0", "12.6", "sm_60", "sm_100"),
        ("2.11.0", "12.8", "sm_75", "sm_70"),
        ("2.14.1", "13.0", "sm_120", "sm_70"),
        ("1.13.1", "11.7", "sm_37", "sm_90"),
    ],
)
def test_a_wheel_has_the_code_of_its_build_list(
    release: str, cuda: str, has: str, lacks: str
) -> None:
    archs = torch_archs(release, cuda) or ()
    assert has in archs and lacks not in archs


def test_a_pair_that_nobody_published_is_not_known() -> None:
    assert torch_archs("2.4.0", "13.0") is None
    assert torch_archs("99.0.0", "13.0") is None


def test_no_wheel_has_code_that_its_cuda_does_not_compile() -> None:
    table = gpu_table()
    for minor in torch_minors():
        for cuda in cuda_of_minor(minor):
            for arch in torch_archs(minor, cuda) or ():
                number = arch.partition("_")[2]
                family = table.family(parse_capability(f"{number[:-1]}.{number[-1]}"))
                assert family is not None
                assert parse_cuda(family.since_cuda) <= parse_cuda(cuda), (minor, cuda, arch)
                last = family.last_cuda
                assert last is None or parse_cuda(cuda) <= parse_cuda(last), (minor, cuda, arch)


def test_every_release_of_the_atlas_but_the_newest_is_in_the_table() -> None:
    atlas = Atlas.open()
    unknown = {
        build.release
        for build in atlas.builds("x86_64")
        if build.cuda is not None and torch_archs(build.release, build.cuda) is None
    }
    newest = atlas.releases("x86_64")[-1].rsplit(".", 1)[0]
    assert all(release.startswith(newest) for release in unknown)


def test_the_cuda_versions_are_those_of_the_release_matrix() -> None:
    matrix = json.loads((DATA / "torch_cuda.json").read_text(encoding="utf-8"))["cuda"]
    for minor in torch_minors():
        # 2.7 had wheels for 12.8 and 2.1 to 2.3 none for others; more may be experimental.
        if minor in matrix:
            assert set(cuda_of_minor(minor)) <= set(matrix[minor]), minor


@pytest.mark.real
def test_the_library_of_a_wheel_holds_what_the_table_says() -> None:
    from fa_forensics.pipeline import Options, inspect

    looked = 0
    for root in filter(None, os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":")):
        for library in Path(root).glob("lib/python3*/site-packages/torch/lib/libtorch_cuda.so"):
            text = (library.parents[1] / "version.py").read_text(encoding="utf-8")
            version = re.search(r"__version__ = '([^']+)'", text)
            cuda = re.search(r"cuda: Optional\[str\] = '([^']+)'", text)
            assert version is not None and cuda is not None
            archs = torch_archs(version[1], cuda[1])
            if archs is None:
                continue
            (target,) = inspect([str(library)], Options(confirm=False)).targets
            found = {code.arch for code in target.gpu_code if code.kind == "cubin"}
            assert found >= {arch for arch in archs if arch.startswith("sm_")}
            looked += 1
    if not looked:
        pytest.skip("FA_FORENSICS_REAL_ENVS names no environment with a CUDA build of torch")


def test_the_wheels_for_arm_have_a_list_of_their_own() -> None:
    """.ci/aarch64_linux/aarch64_ci_build.sh of 2.9, and OpenRAL pull request 167."""
    assert torch_archs("2.9.1", "12.8", "aarch64") == ("sm_80", "sm_90", "sm_100", "sm_120")
    assert "sm_110" in (torch_archs("2.13.0", "13.2", "aarch64") or ())
    assert torch_archs("2.8.0", "12.8", "aarch64") is None
