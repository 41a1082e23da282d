"""The official flash-attn wheels: what each release's workflow was set to build.

The table is ``data/flash_attn_wheels.json``, made by ``benchmarks/flash_wheels.py``. It says what
was to be built; that a file was uploaded is known only once it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.tables import read_table
from fa_forensics.facts.torch_cuda import published_cuda

PACKAGE = "flash-attn"
CXX11, PRE_CXX11 = "cxx11", "pre-cxx11"


class WheelBuild(NamedTuple):
    """One wheel of one release.

    torch is the minor release in its name ("2.6"), torch_built the one it was compiled against
    ("2.6.0.dev20241010"); cuda the tag in its name ("cu12", "cu118"), cuda_built the toolkit
    ("12.4.1"). order is the release's place, newer ones higher. python is "3.11".
    """

    release: str
    order: int
    date: str
    torch: str
    torch_built: str
    cuda: str
    cuda_built: str
    cxx11_abi: str
    python: str
    platform: str

    @property
    def file_name(self) -> str:
        """The name of the release's asset."""
        cp = "cp" + self.python.replace(".", "")
        return str(_table()["file_name"]).format(
            release=self.release,
            cuda=self.cuda,
            torch=self.torch,
            abi="TRUE" if self.cxx11_abi == CXX11 else "FALSE",
            python=cp,
            platform=self.platform,
        )

    @property
    def url(self) -> str:
        """Where the release's page has it."""
        return str(_table()["url"]).format(release=self.release, file_name=self.file_name)

    @property
    def nightly(self) -> bool:
        """Whether it was compiled against a nightly torch, named as the release to come."""
        return ".dev" in self.torch_built

    @property
    def cuda_major(self) -> str:
        """CUDA's major version: "11", "12"."""
        return self.cuda_built.partition(".")[0]

    @property
    def unlikely(self) -> bool:
        """Whether no torch of that minor release is published for the toolkit's major version.

        torch's build helper refuses such a pair, so that the file was hardly ever made.
        """
        published = published_cuda().get(self.torch)
        return published is not None and all(
            cuda.partition(".")[0] != self.cuda_major for cuda in published
        )

    @property
    def mislabelled(self) -> bool:
        """Whether its name says cxx11abiFALSE and the file in it is cxx11 all the same."""
        return self.cxx11_abi == PRE_CXX11 and called_pre_cxx11(self.release, self.torch)

    @property
    def glibc(self) -> str | None:
        """The glibc that the release's wheels are known to need; None where it is not known."""
        return glibc_floor(self.release)


class Wanted(NamedTuple):
    """What a wheel must be for; None leaves a part open.

    torch is "2.6", cuda "12" or "12.4", cxx11_abi "cxx11" or "pre-cxx11".
    """

    torch: str | None
    python: str | None
    cuda: str | None
    cxx11_abi: str | None
    platform: str | None


@lru_cache(maxsize=1)
def builds() -> tuple[WheelBuild, ...]:
    """Every wheel of every release, oldest release first."""
    return tuple(_rows())


def _rows() -> Iterator[WheelBuild]:
    table = _table()
    for order, (release, (date, index)) in enumerate(table["releases"].items()):
        for row in () if index is None else table["matrices"][index]:
            minor = ".".join(row["torch"].split(".")[:2])
            if _never_made(release, minor):
                continue
            for cuda, cuda_built in row["cuda"].items():
                for python in row["python"]:
                    for flavour in (PRE_CXX11, CXX11):
                        yield WheelBuild(
                            release, order, date, minor, row["torch"], cuda, cuda_built, flavour,
                            python, row["platform"],
                        )  # fmt: skip


def _never_made(release: str, torch: str) -> bool:
    """Whether a release's source does not compile for a minor torch that its workflow names."""
    rows = _table()["never_made"]
    return any(row["release"] == release and row["torch"] == torch for row in rows)


def candidates(wanted: Wanted) -> tuple[WheelBuild, ...]:
    """The wheels that fit, newest release first; of one release the best CUDA first.

    Best is the toolkit that torch has, then the nearest older one, then a newer one: a name
    that a newer runtime library has may be missing from torch's.
    """
    rows = builds()
    if wanted.torch is not None and wanted.python is not None:
        rows = _by_pair().get((wanted.torch, wanted.python), ())
    fitting = [build for build in rows if fits(build, wanted)]
    return tuple(sorted(fitting, key=lambda b: (-b.order, b.cxx11_abi, *_cuda_rank(b, wanted))))


@lru_cache(maxsize=1)
def _by_pair() -> dict[tuple[str, str], tuple[WheelBuild, ...]]:
    """The rows of each torch and Python: what nearly every question names."""
    found: dict[tuple[str, str], list[WheelBuild]] = {}
    for build in builds():
        found.setdefault((build.torch, build.python), []).append(build)
    return {pair: tuple(rows) for pair, rows in found.items()}


def fits(build: WheelBuild, wanted: Wanted) -> bool:
    """Whether a wheel is for an environment: CUDA by its major version, all else exactly."""
    cuda = wanted.cuda.partition(".")[0] if wanted.cuda is not None else None
    return (
        wanted.torch in (None, build.torch)
        and wanted.python in (None, build.python)
        and cuda in (None, build.cuda_major)
        and wanted.cxx11_abi in (None, build.cxx11_abi)
        and wanted.platform in (None, build.platform)
    )


def _cuda_rank(build: WheelBuild, wanted: Wanted) -> tuple[int, int]:
    minor = int(build.cuda_built.split(".")[1])
    if wanted.cuda is None or "." not in wanted.cuda:
        return 0, -minor
    mine = int(wanted.cuda.split(".")[1])
    return (0, mine - minor) if minor <= mine else (1, minor - mine)


def build_of(file_name: str) -> WheelBuild | None:
    """The wheel of the table that has this file name ("%2B" for "+" is understood)."""
    return _by_name().get(re.sub("%2b", "+", file_name, flags=re.IGNORECASE))


@lru_cache(maxsize=1)
def _by_name() -> dict[str, WheelBuild]:
    return {build.file_name: build for build in builds()}


def glibc_floor(release: str) -> str | None:
    """The glibc that a release's wheels need ("2.32"), None where it is not known."""
    order = list(_table()["releases"])
    if release not in order:
        return None
    known = [row for row in _table()["glibc"] if order.index(row["since"]) <= order.index(release)]
    return str(known[-1]["needs"]) if known else None


def called_pre_cxx11(release: str, torch: str) -> bool:
    """Whether a release's files for a minor torch ("2.6") that are called FALSE are cxx11."""
    order = list(_table()["releases"])
    return release in order and any(
        row["torch"] == torch and order.index(row["since"]) <= order.index(release)
        for row in _table()["mislabelled"]
    )


def newest_release() -> str:
    """The newest release that the table knows."""
    return str(list(_table()["releases"])[-1])


def as_of() -> str:
    """The day on which the table was made."""
    return str(_table()["date"])


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("flash_attn_wheels.json")
    return table
