"""Which driver knows which CUDA version, and which CUDA version knows which PTX.

Four things are told apart here: the driver's own version (580.65.06), the CUDA version that it
supports (13.0), the CUDA release that made a piece of code, and the PTX ISA (9.0) in which it
was written. Tables: ``data/cuda_drivers.json`` and ``data/ptx_isa.json``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fa_forensics.facts.tables import read_table

CudaVersion = tuple[int, int]


class Driver(NamedTuple):
    """The driver of a machine: its version and the CUDA version it supports, where known."""

    version: str | None
    cuda: CudaVersion | None


class DriverTable(NamedTuple):
    """What the release notes say of drivers. Versions of drivers are those for Linux.

    releases: CUDA release → first driver of that CUDA version; None where it is not known.
    floors: CUDA major version → the driver from which on all code of that major runs.
    zstd: the CUDA version whose drivers first unpack zstd-compressed code.
    isa: PTX ISA version → the first CUDA version that knows it.
    """

    releases: dict[CudaVersion, str | None]
    floors: dict[int, str]
    zstd: CudaVersion
    isa: dict[str, CudaVersion]

    def cuda_of_isa(self, isa: str | None) -> CudaVersion | None:
        """The CUDA version a driver must support to compile PTX of this ISA; None if unknown."""
        return self.isa.get(isa) if isa is not None else None

    def driver_for(self, cuda: CudaVersion) -> str | None:
        """The first driver that supports a CUDA version, or None where it is not known."""
        return self.releases.get(cuda)


class Ended(NamedTuple):
    """The last driver branch of an architecture ("390") and the CUDA version that it supports."""

    architecture: str
    branch: str
    cuda: CudaVersion


def last_driver(gpu: str) -> Ended | None:
    """The last branch of drivers for a chip or a product; None where the newest driver serves it.

    "GF108M [GeForce GT 540M]", "GeForce GTX 580", "Tesla K80". An unknown name is None too.
    """
    for row in read_table("cuda_drivers.json")["ended"]:
        chip = re.match(rf"{row['chip']}\d\d", gpu)
        product = re.search(rf"(?:^|[\s\[])(?:{row['names']})(?![\w])", gpu)
        if chip is not None or product is not None:
            return Ended(row["architecture"], row["branch"], parse_cuda(row["cuda"]))
    return None


def cuda_text(version: CudaVersion) -> str:
    """``12.4``."""
    return f"{version[0]}.{version[1]}"


def parse_cuda(text: str) -> CudaVersion:
    """``12.4`` → (12, 4), ``11.3.1`` → (11, 3). The text is one of our own tables."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@lru_cache(maxsize=1)
def driver_table() -> DriverTable:
    """The tables that this package ships."""
    drivers = read_table("cuda_drivers.json")
    isa = read_table("ptx_isa.json")["isa"]
    return DriverTable(
        releases={parse_cuda(cuda): driver for cuda, driver in drivers["releases"].items()},
        floors={int(major): driver for major, driver in drivers["minor_compatibility"].items()},
        zstd=parse_cuda(drivers["zstd"]),
        isa={version: min(map(parse_cuda, releases)) for version, releases in isa.items()},
    )


def cuda_of_isa(isa: str) -> tuple[str, ...]:
    """The CUDA releases whose newest PTX ISA is this one: ``8.5`` is that of 12.5 and of 12.6."""
    releases: dict[str, list[str]] = read_table("ptx_isa.json")["isa"]
    return tuple(releases.get(isa, ()))


def driver_needed(cuda: CudaVersion) -> str:
    """``a driver for CUDA 12.4 (550.54.14 or newer)``."""
    version = driver_table().driver_for(cuda)
    known = f" ({version} or newer)" if version else ""
    return f"a driver for CUDA {cuda_text(cuda)}{known}"


def driver_numbers(version: str) -> tuple[int, ...]:
    """What driver versions compare by: (535, 104, 5) for "535.104.05"; () for no such text."""
    parts = version.split(".")
    plain = all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts)
    return tuple(map(int, parts)) if plain else ()


def cuda_of_driver(version: str) -> CudaVersion | None:
    """The newest CUDA release whose own driver is not newer than this one; None if unknown.

    "525" alone is a whole branch of drivers.
    """
    own = driver_numbers(version)
    if len(own) == 1:  # "driver 525": some driver of that branch
        own = (*own, 9999)
    fitting = [
        cuda
        for cuda, first in driver_table().releases.items()
        if first is not None and own and driver_numbers(first) <= own
    ]
    return max(fitting, default=None)
