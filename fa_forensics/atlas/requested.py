"""``--torch TEXT``: which torch was meant, and what that torch would export and bring along.

What is not in the table is never guessed: a build of its own (nightly, NGC), a release that
is newer than the table and ROCm builds have no answer here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fa_forensics.atlas.brought import answering_to, plain_soname
from fa_forensics.atlas.builds import release_key
from fa_forensics.errors import AtlasDamaged, ForensicsError, UsageError
from fa_forensics.facts.demangle import demangle, mentions_cxx11, mentions_old_string
from fa_forensics.facts.mangled import OTHER_FLAVOUR, SAME_NAME
from fa_forensics.facts.owner import (
    is_cuda_library,
    is_torch,
    libraries_of,
    owner_of,
    owner_of_library,
)
from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.atlas.brought import BroughtLibraries
    from fa_forensics.atlas.builds import Build
    from fa_forensics.atlas.store import Atlas

CXX11, PRE_CXX11, UNKNOWN = "cxx11", "pre-cxx11", "unknown"

#: ``2.9.1``, ``torch==2.9``, ``v2.9.1`` and what follows the number.
_TEXT = re.compile(r"(?:torch\s*(?:==)?\s*)?v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)(.*)", re.DOTALL)
_SUFFIX = re.compile(r"([+.-])(cxx11abi|cpu|cu\d{2,3}|rocm[\d.]*)", re.IGNORECASE)
#: What may follow the number at all, of whatever build: ``.dev20260101+cu130``, ``a0+git1a2b``.
_REST = re.compile(r"[A-Za-z0-9.+_-]*")
_VARIANTS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "torch_variants.json")

#: Which of torch's libraries another one loads (DT_NEEDED of the wheels 1.13 to 2.14).
_LOADS = {
    "libtorch_python.so": ("libshm.so", "libtorch.so"),
    "libtorch.so": ("libtorch_cpu.so", "libtorch_cuda.so"),
    "libshm.so": ("libtorch_cpu.so",),
    "libtorch_cpu.so": ("libc10.so",),
    "libtorch_cuda.so": (
        "libtorch_cpu.so", "libc10_cuda.so", "libtorch_nvshmem.so", "libtorch_cuda_cpp.so",
        "libtorch_cuda_cu.so",
    ),
    "libtorch_cuda_cpp.so": ("libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda_cu.so"),
    "libtorch_cuda_cu.so": ("libtorch_cpu.so", "libc10_cuda.so"),
    "libtorch_cuda_linalg.so": ("libtorch_cuda.so",),
    "libc10_cuda.so": ("libc10.so",),
}  # fmt: skip
#: The NVIDIA driver's: torch opens them when it first uses a GPU.
_DRIVER = frozenset(("libcuda.so.1", "libnvidia-ml.so.1"))
#: Those that only CUDA builds have; with them come the CUDA libraries.
_CUDA_ONLY = frozenset(
    (
        "libc10_cuda.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_cuda_cpp.so",
        "libtorch_cuda_cu.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """A ``--torch`` text in its parts.

    ``release`` is ``2.9.1`` or ``2.9`` (the newest of that minor release); ``cuda`` the
    toolkit asked for (``11.8``), "" for a build without CUDA, None for the build's own;
    ``flavour`` likewise. ``own_build`` is what makes it a build that no table has: the
    rest of a nightly's or NGC's version, or ``rocm``.
    """

    text: str
    release: str
    cuda: str | None
    flavour: str | None
    own_build: str | None


def parse_request(text: str) -> Request:
    """Read ``2.9.1``, ``2.9``, ``2.9.1+cxx11abi``, ``2.9.1-cxx11abi``, ``2.6.0+cu118``.

    Raises ``UsageError`` for a text that names no release.
    """
    match = _TEXT.fullmatch(text.strip()) if len(text) < 200 else None
    if match is None:
        raise UsageError(
            f"{text[:200]!r} names no torch release",
            "name one as 2.9.1, 2.9, 2.9.1+cxx11abi or 2.6.0+cu118",
        )
    release, rest = match.groups()
    if not _REST.fullmatch(rest):
        raise UsageError(
            f"{text[:200]!r} names no torch release: what follows {release} is no version",
            f"name one as {release}, {release}+cxx11abi or {release}+cu126",
        )
    cuda, flavour, own = None, None, None
    at = 0
    while at < len(rest):
        part = _SUFFIX.match(rest, at)
        if part is None:
            own = rest
            break
        word = part[2].lower()
        if word == "cxx11abi":
            flavour = PRE_CXX11 if part[1] == "-" else CXX11
        elif word == "cpu" or word.startswith("cu"):
            if cuda is not None:
                raise UsageError(
                    f"{text[:200]!r} names two kinds of build at once",
                    f"name one: {release}+{word}",
                )
            cuda = _cuda_of(word)
        elif word.startswith("rocm"):
            own = word
        at = part.end()
    return Request(text.strip(), release, cuda, flavour, own)


def _cuda_of(word: str) -> str:
    """``12.8`` for cu128, ``9.2`` for cu92, "" for cpu."""
    if word == "cpu":
        return ""
    return f"{word[2:-1]}.{word[-1]}" if len(word) == 5 else f"{word[2]}.{word[3:]}"


def choose_release(request: Request, known: Sequence[str]) -> str | None:
    """The known release that a request names, or None; ``2.9`` names its newest patch."""
    if request.release in known:
        return request.release
    if request.release.count(".") == 1:
        same = [r for r in known if r.startswith(request.release + ".")]
        return max(same, key=release_key) if same else None
    return None


def is_newer(request: Request, known: Sequence[str]) -> bool:
    """Whether a request names a release later than every known one."""
    return bool(known) and release_key(request.release)[0] > max(release_key(r)[0] for r in known)


def requested_torch(text: str, atlas: Atlas, machine: str) -> RequestedTorch:
    """The release of the table that ``--torch TEXT`` means, for one machine.

    Raises ``UsageError`` for a text that names no release and for a release that there
    never was (the nearest are offered); ``ForensicsError`` for what the table cannot know:
    a release newer than it, a build of its own, one not published for that machine.
    """
    request = parse_request(text)
    known = atlas.releases(machine)
    everywhere = sorted({r for m in atlas.machines() for r in atlas.releases(m)})
    release = choose_release(request, known)
    if request.own_build:
        raise ForensicsError(
            f"torch {request.text} is a build of its own, whose exports no table holds; it could "
            "be judged by its own libraries only, where it is installed"
        )
    if is_newer(request, everywhere):
        newest = max(everywhere, key=release_key)
        raise ForensicsError(
            f"torch {request.text} is newer than the table of releases, which ends at {newest}, "
            "and it is not the one installed here"
        )
    if choose_release(request, everywhere) is None:
        near = atlas.nearest_releases(request.release)
        raise UsageError(
            f"torch {request.text} is no release that this tool knows",
            f"the nearest are {', '.join(near)}" if near else None,
        )
    build = atlas.build(release, machine) if release is not None else None
    if build is None:
        raise ForensicsError(f"torch {request.text} was not published for {machine}")
    if request.cuda and build.cuda is None:
        raise ForensicsError(
            f"of torch {release} for {machine} only the build without CUDA is known"
        )
    published = published_cuda().get(".".join(build.release.split(".")[:2]), ())
    if request.cuda and published and request.cuda not in (build.cuda, *published):
        wheels = [f"{build.release}+cu{cuda.replace('.', '')}" for cuda in published]
        raise UsageError(
            f"torch {build.release} was not published for CUDA {request.cuda}",
            f"its builds are {', '.join(wheels)}",
        )
    return RequestedTorch(request, build, atlas)


class RequestedTorch:
    """A release that need not be here: its exports by the table, its CUDA by its pins.

    ``version`` is what to call it, ``cuda`` its toolkit ("" → None: without CUDA),
    ``flavour`` the std::string flavour it is judged in, which may be the other one than
    its wheel's: a name with a std::string is then looked up by its twin.
    """

    def __init__(self, request: Request, build: Build, atlas: Atlas) -> None:
        self.request = request
        self.build = build
        self.release = build.release
        self._atlas = atlas
        self.cuda = build.cuda if request.cuda is None else request.cuda or None
        self.flavour = request.flavour or _variant_flavour(build, request.cuda) or build.flavour
        own = self.cuda == build.cuda and self.flavour == build.flavour
        self.version = build.version if own else _variant_name(request, build.release)
        self.name = f"torch {self.version}"
        self.folder = f"torch=={self.version}/lib"
        #: Why CUDA's own names could not be looked up, one sentence; None where they could.
        self.problem: str | None = None
        # The wheels carry GCC's OpenMP runtime themselves, under this or a name with a hash.
        self._openmp = frozenset(
            s for s in answering_to(build.needed) if plain_soname(s).startswith("libgomp.")
        )
        self._cuda: BroughtLibraries | None = None
        self._library: dict[str, str | None] = {}

    @property
    def note(self) -> str:
        """One sentence on what the judgement rests on."""
        text = f"{self.build.wheel}, published {self.build.date}"
        if self.version != self.build.version:
            text += f"; {self.version} is derived from that build"
        return text

    def owns(self, soname: str) -> bool:
        """Whether a soname is one of torch's own libraries, of whatever build."""
        return is_torch(owner_of_library(soname) or "")

    def brings(self, soname: str) -> str | None:
        """The place of a library that this torch or one of its CUDA wheels brings, or None."""
        if self.owns(soname):
            there = soname in self.build.libraries and not (
                self.cuda is None and soname in _CUDA_ONLY
            )
            return f"{self.folder}/{soname}" if there else None
        if soname in self._openmp:
            return f"{self.folder}/{soname}"
        if self.cuda is None or not is_cuda_library(plain_soname(soname)):
            return None
        return self._cuda_side().place(soname)

    @property
    def system_libraries(self) -> tuple[str, ...]:
        """The sonames of the system's libraries that torch's own need."""
        return tuple(
            soname
            for soname in self.build.needed
            if not is_cuda_library(plain_soname(soname))
            and soname not in self._openmp
            and soname not in _DRIVER
        )

    def loaded_with(self, sonames: Iterable[str]) -> frozenset[str]:
        """The brought libraries among ``sonames`` and all that these load of torch."""
        found: set[str] = set()
        pending = [soname for soname in sonames if self.brings(soname) is not None]
        while pending:
            soname = pending.pop()
            if soname not in found:
                found.add(soname)
                pending += [s for s in _LOADS.get(soname, ()) if self.brings(s) is not None]
        return frozenset(found)

    def exporter(
        self, symbol: str, version: str | None, version_file: str | None, loaded: frozenset[str]
    ) -> str | None:
        """The place of the library that exports a symbol, of those in ``loaded``; else None."""
        owner = owner_of(symbol, version, demangle(symbol))
        if owner == "libgomp" and self._openmp and "libtorch_cpu.so" in loaded:
            return f"{self.folder}/{min(self._openmp)}"
        with_cuda = any(s in _CUDA_ONLY or is_cuda_library(plain_soname(s)) for s in loaded)
        if self.cuda is not None and not is_torch(owner) and with_cuda:
            wanted = (version_file,) if version_file else libraries_of(owner)
            place = self._cuda_side().exporter(symbol, version, wanted)
            if place is not None:
                return place
        library = self.library_of(symbol)
        if library is None or (self.cuda is None and library in _CUDA_ONLY):
            return None
        return f"{self.folder}/{library}" if library in loaded else None

    def exported_unlinked(self, symbol: str) -> str | None:
        """The place of a torch library that exports a symbol, loaded by the file or not."""
        library = self.library_of(symbol)
        if library is None or self.brings(library) is None:
            return None
        return f"{self.folder}/{library}"

    def library_of(self, symbol: str) -> str | None:
        """The torch library of this release that exports a name in the judged flavour."""
        if symbol not in self._library:
            self._library[symbol] = self._look_up(symbol)
        return self._library[symbol]

    def _look_up(self, symbol: str) -> str | None:
        if self._other_flavour:
            text = demangle(symbol)
            newer = mentions_cxx11(symbol, text)
            if newer or mentions_old_string(text):
                if (CXX11 if newer else PRE_CXX11) != self.flavour:
                    return None
                twin = self._atlas.twin(symbol, self.build.machine)
                return None if twin is None else self._exporting(twin.symbol)
            twin = self._atlas.twin(symbol, self.build.machine)
            if twin is not None and has_string(twin.symbol, twin.demangled):
                # A result's flavour shows in the cxx11 spelling alone: f[abi:cxx11]() and f().
                return self._exporting(twin.symbol) if self.flavour == PRE_CXX11 else None
        return self._exporting(symbol)

    def _exporting(self, symbol: str) -> str | None:
        return next(
            (
                row.library
                for row in self._atlas.exports(symbol, self.build.machine)
                if row.release == self.release
            ),
            None,
        )

    def nearest(self, symbol: str) -> tuple[tuple[str, str, str, str], ...]:
        """(symbol, demangled, place, relation) of this release's names close to a missing one."""
        rows = []
        for named in self._atlas.overloads(symbol, self.build.machine):
            if self.release in named.releases:
                place = f"{self.folder}/{self._exporting(named.symbol)}"
                name, text, relation = named.symbol, named.demangled, named.relation
                if self._other_flavour:
                    # What this build exports, the one asked for has in the other flavour.
                    twin = self._atlas.twin(name, self.build.machine)
                    shown = has_string(name, text)
                    if shown or (twin is not None and has_string(twin.symbol, twin.demangled)):
                        name, text = (name, text) if twin is None else (twin.symbol, twin.demangled)
                        relation = _TURNED.get(relation, relation)
                rows.append((name, text, place, relation))
        return tuple(rows)

    @property
    def _other_flavour(self) -> bool:
        return self.flavour != self.build.flavour and self.build.flavour != UNKNOWN

    def _cuda_side(self) -> BroughtLibraries:
        if self._cuda is None:
            from fa_forensics.atlas.brought import BroughtLibraries
            from fa_forensics.atlas.libraries import CudaLibraries

            table = None
            try:
                table = CudaLibraries.open()
            except AtlasDamaged as error:
                self.problem = error.message
            self._cuda = BroughtLibraries(self.build, self.cuda or "", table, self.folder)
        return self._cuda


def has_string(symbol: str, demangled: str) -> bool:
    """Whether a name shows a std::string flavour."""
    return mentions_cxx11(symbol, demangled) or mentions_old_string(demangled)


#: How a name of the other flavour relates to the question, by how its twin does.
_TURNED = {SAME_NAME: OTHER_FLAVOUR, OTHER_FLAVOUR: SAME_NAME}


def _variant_flavour(build: Build, cuda: str | None) -> str | None:
    """The flavour of a build that is not on the package index, where its makers told it."""
    if cuda is None or cuda == build.cuda:
        return None
    return variant_flavour(build.release, cuda, build.machine)


def variant_flavour(release: str, cuda: str, machine: str) -> str | None:
    """The flavour of the build of a release for another CUDA, where it is not the usual one."""
    with open(_VARIANTS, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    return next(
        (
            str(row["cxx11_abi"])
            for row in rows
            if (row["release"], row["cuda"], row["machine"]) == (release, cuda, machine)
        ),
        None,
    )


def _variant_name(request: Request, release: str) -> str:
    """What to call a build that is not the one of the table: ``2.6.0+cu118-cxx11abi``."""
    name = release
    if request.cuda is not None:
        name += "+cu" + request.cuda.replace(".", "") if request.cuda else "+cpu"
    if request.flavour is not None:
        name += "+cxx11abi" if request.flavour == CXX11 else "-cxx11abi"
    return name
