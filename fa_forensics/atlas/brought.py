"""The CUDA libraries that come along with a torch build, by the wheels it pins.

A wheel that is pinned is taken in that version; nvJitLink, where other wheels ask for any
version of it, in the newest. Of another toolkit than the build's own it is the newest wheel of
that CUDA release. A library that the table of CUDA wheels does not hold is believed to have what is
asked of it: it was not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fa_forensics.atlas.builds import release_key
from fa_forensics.facts.owner import is_cuda_library

if TYPE_CHECKING:
    from fa_forensics.atlas.builds import Build
    from fa_forensics.atlas.libraries import CudaLibraries, LibraryRelease

_HASH = re.compile(r"-[0-9a-f]{8}(?=\.so)")
_SUFFIX = re.compile(r"-cu(\d+)$")
#: The first CUDA major version whose wheels carry no ``-cuNN``: nvidia-cublas 13.
_UNSUFFIXED = "13"
#: cuSPARSE and cuSOLVER ask for it themselves from CUDA 12 on; torch does not pin it everywhere.
_UNPINNED = "nvjitlink"


class BroughtLibraries:
    """What ``cuda`` ("12.1") libraries a build brings, and what they export.

    ``folder`` names the place of libraries that no wheel of the table carries. With another
    ``cuda`` than the build's own, the same set of libraries is taken from that toolkit. With
    no table, what torch's own libraries need is all that is known to come along.
    """

    def __init__(self, build: Build, cuda: str, table: CudaLibraries | None, folder: str) -> None:
        self._build = build
        self._needed = answering_to(build.needed)
        self._cuda = cuda
        self._table = table
        self._folder = folder
        self._pins = build.requires if cuda == build.cuda else {}
        stems = {_stem(name) for name in build.requires}
        self._pins_nvjitlink = _UNPINNED in stems
        self._stems = stems | {_UNPINNED}
        self._chosen: dict[str, LibraryRelease | None] = {}

    def place(self, soname: str) -> str | None:
        """The place of a library that comes along, or None."""
        chosen = self.release_of(soname)
        if chosen is not None:
            return f"{chosen.distribution}=={chosen.version}/{soname}"
        same_major = (self._build.cuda or "").split(".")[0] == self._cuda.split(".")[0]
        needed = soname in self._needed and is_cuda_library(plain_soname(soname))
        return f"{self._folder}/{soname}" if needed and same_major else None

    def release_of(self, soname: str) -> LibraryRelease | None:
        """The wheel, and its version, that brings a library; None when none of the table does."""
        if soname not in self._chosen:
            self._chosen[soname] = self._choose(soname)
        return self._chosen[soname]

    def exporter(self, symbol: str, version: str | None, wanted: Sequence[str]) -> str | None:
        """The place of the library among ``wanted`` (sonames or their starts) with a symbol."""
        for soname in self._sonames(wanted):
            chosen = self.release_of(soname)
            if (
                chosen is None
                or self._table is None
                or chosen in self._table.exported_by(soname, symbol, version)
            ):
                return self.place(soname)
        return None

    def _sonames(self, wanted: Sequence[str]) -> list[str]:
        known = {*(self._table.sonames() if self._table else ()), *self._needed}
        return [
            soname
            for soname in sorted(known)
            if any(soname == w or plain_soname(soname).startswith(w + ".") for w in wanted)
            and self.place(soname) is not None
        ]

    def _choose(self, soname: str) -> LibraryRelease | None:
        if self._table is None:
            return None
        rows = [row for row in self._table.releases(soname) if self._comes_along(row)]
        pinned = [row for row in rows if row.distribution in self._pins]
        if pinned:
            return self._at_the_pin(pinned, soname)
        if not rows:
            return None
        if _stem(rows[0].distribution) == _UNPINNED and not self._pins_nvjitlink:
            return max(rows, key=_by_version)  # no wheel names a version: pip takes the newest
        of_toolkit = [row for row in rows if row.version.startswith(self._cuda + ".")]
        return max(of_toolkit or rows, key=_by_version)

    def _at_the_pin(self, rows: Sequence[LibraryRelease], soname: str) -> LibraryRelease | None:
        """The table's row for the pinned version: that one, or the last before it.

        Of large libraries the table holds one build a minor version. A wheel changes its
        soname between versions (cuDNN 8 and 9), so the nearest row of the whole wheel must
        be one that carries it.
        """
        distribution = rows[0].distribution
        pin = release_key(self._pins[distribution])
        if soname not in self._needed and not self._carried(distribution, soname, rows):
            return None
        upto = [row for row in rows if release_key(row.version) <= pin]
        return max(upto, key=_by_version) if upto else min(rows, key=_by_version)

    def _carried(self, distribution: str, soname: str, rows: Sequence[LibraryRelease]) -> bool:
        pinned = self._pins[distribution]
        sonames = self._table.sonames_of(distribution, pinned) if self._table else ()
        if sonames:
            return soname in sonames
        # The table lacks that very version: it lies between two that carry the library.
        versions = sorted(release_key(row.version) for row in rows)
        return versions[0] <= release_key(pinned) and (
            release_key(pinned)[0][:1] <= versions[-1][0][:1]
        )

    def _comes_along(self, row: LibraryRelease) -> bool:
        if row.distribution in self._pins:
            return True
        if _major(row.distribution) != self._cuda.split(".")[0]:
            return False
        return _stem(row.distribution) in self._stems


def plain_soname(soname: str) -> str:
    """The soname without the hash in a wheel's own copy: libcudart-80664282.so.10.2."""
    return _HASH.sub("", soname)


def answering_to(needed: Sequence[str]) -> frozenset[str]:
    """The names that needed libraries answer to once they are loaded.

    The copies in torch's wheels have a hash in their file names and in the DT_NEEDED of
    those who need them, but keep their DT_SONAME.
    """
    return frozenset(needed) | {plain_soname(soname) for soname in needed}


def _by_version(row: LibraryRelease) -> tuple[tuple[int, ...], str]:
    return release_key(row.version)


def _major(distribution: str) -> str:
    """The CUDA major version a wheel is for: of ``nvidia-nccl-cu12`` it is ``12``."""
    found = _SUFFIX.search(distribution)
    return found[1] if found else _UNSUFFIXED


def _stem(distribution: str) -> str:
    """``cuda-runtime`` of ``nvidia-cuda-runtime-cu12`` and of ``nvidia-cuda-runtime``."""
    return _SUFFIX.sub("", distribution).removeprefix("nvidia-")
