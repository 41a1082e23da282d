"""The wheel that flash-attn's own releases have for an environment: minutes instead of a build."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from fa_forensics.facts.gpus import Gpu
from fa_forensics.facts.numbers import release_numbers
from fa_forensics.facts.package import normalized
from fa_forensics.facts.torch_install import is_published
from fa_forensics.facts.wheel_matrix import PACKAGE, Wanted, WheelBuild, candidates
from fa_forensics.rules.wheel_gpus import gpu_cautions


class Home(NamedTuple):
    """Where a wheel is to go; None leaves a part unknown.

    torch is its whole version ("2.4.0+cu121"), flavour that of its std::string ("cxx11",
    "pre-cxx11"), cuda "12.1", python "3.10", machine "x86_64", glibc "2.36".
    """

    torch: str
    flavour: str | None
    cuda: str | None
    python: str | None
    machine: str | None
    glibc: str | None = None
    gpus: tuple[Gpu, ...] = ()


def official_wheel(name: str, version: str, home: Home) -> WheelBuild | None:
    """The official wheel of a distribution for an environment; None where none is sure to fit.

    The release that is installed comes first, then the newest. A part that is not known
    rules all out: a wheel for another Python, CUDA or flavour does not load. Wheels of
    nightlies, and those that most likely were never made, do not count, nor does the file
    that is installed already, which its ``version`` names ("2.7.4+cu12torch2.6cxx11abiTRUE").
    """
    if normalized(name) != PACKAGE or not is_published(home.torch):
        return None
    if home.flavour not in ("cxx11", "pre-cxx11") or not (home.cuda and home.python):
        return None
    if not home.machine:
        return None
    minor = ".".join(home.torch.split("+")[0].split(".")[:2])
    platform = f"linux_{home.machine}"
    found = candidates(Wanted(minor, home.python, home.cuda, home.flavour, platform))
    fitting = [build for build in found if _is_sure(build, home)]
    public = version.partition("+")[0]
    same = [build for build in fitting if build.release == public]
    if same and "+" in version and f"-{version}-" in f"-{same[0].file_name}-":
        return None  # this very file is there, and does not load
    return next(iter(same or fitting), None)


def _is_sure(build: WheelBuild, home: Home) -> bool:
    if build.nightly or build.unlikely or build.mislabelled or any(gpu_cautions(build, home.gpus)):
        return False
    if build.glibc is None or home.glibc is None:
        return True
    return release_numbers(build.glibc) <= release_numbers(home.glibc)


def wheel_command(python: str, build: WheelBuild) -> str:
    """Replace what is installed by an official wheel, and nothing besides."""
    quoted = shlex.quote(python)
    return f'{quoted} -m pip install --no-cache-dir --force-reinstall --no-deps "{build.url}"'


def wheel_does(build: WheelBuild, here: str, glibc: str | None) -> str:
    """What the ``wheel_command`` does, for a torch that is called ``here``."""
    if glibc is None and build.glibc is not None:
        return (
            f"installs {PACKAGE}'s own wheel for {here} and Python {build.python}, for glibc "
            f"{build.glibc} or newer (fa-forensics wheels lists others)"
        )
    return (
        f"installs {PACKAGE}'s own wheel for {here} and Python {build.python} "
        "(fa-forensics wheels lists others)"
    )
