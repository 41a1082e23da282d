"""What a file needs at least: of glibc, libstdc++, libgcc, of a manylinux system, of Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fa_forensics.facts.elf.facts import ElfFacts
from fa_forensics.facts.manylinux import Satisfied, is_system_library, satisfied
from fa_forensics.facts.owner import PYTHON
from fa_forensics.facts.stable_abi import StableAbi, stable_abi
from fa_forensics.facts.system_releases import FAMILIES, family_of, newest
from fa_forensics.records import dataclass

#: The tags of files for Python's stable ABI.
ABI3_TAGS = ("abi3", "abi3t")
STB_WEAK = 2
#: Symbols of libstdc++ are taken to be unversioned needs of it by their owner.
LIBSTDCXX = "libstdc++"


@dataclass(frozen=True, slots=True)
class Claim:
    """The tags that a file's wheel claims, and where they are written.

    ``python_tags`` ("cp39"), ``abi_tags`` ("abi3") and ``platform_tags``
    ("manylinux_2_17_x86_64") as the name of a wheel or its WHEEL file lists them.
    """

    python_tags: tuple[str, ...]
    abi_tags: tuple[str, ...]
    platform_tags: tuple[str, ...]
    source: str

    @property
    def stable_abi(self) -> bool:
        """Whether the wheel is tagged for the stable ABI alone."""
        return bool(self.abi_tags) and all(tag in ABI3_TAGS for tag in self.abi_tags)


@dataclass(frozen=True, slots=True)
class Floor:
    """The newest version of one family that a file needs of the system, and of which library."""

    family: str
    version: str
    library: str


@dataclass(frozen=True, slots=True)
class Floors:
    """All that one file needs at least.

    ``versions`` is in the order of ``FAMILIES``. ``unversioned`` are names of libstdc++ that the
    file needs without a version, as one does that was not linked with it. ``python`` is None
    for a file that does not claim Python's stable ABI.
    """

    versions: tuple[Floor, ...]
    unversioned: tuple[str, ...]
    manylinux: Satisfied
    python: StableAbi | None
    claim: Claim | None

    def of(self, family: str) -> str | None:
        """``GLIBC`` → ``GLIBC_2.32``, or None where nothing of the family is needed."""
        return next((row.version for row in self.versions if row.family == family), None)


def read_floors(
    elf: ElfFacts, owners: Mapping[int, tuple[str, str]], claim: Claim | None
) -> Floors:
    """The floors of a file. ``owners`` maps a symbol's index to (demangled, owner)."""
    needs = [
        (file, version)
        for file, version, weak in elf.versions_needed
        if not weak and (is_system_library(file) or file.startswith("ld-linux"))
    ]
    undefined = elf.undefined
    names = [symbol.name.decode("utf-8", "backslashreplace") for symbol in undefined]
    return Floors(
        versions=tuple(_floors(needs)),
        unversioned=tuple(
            name
            for symbol, name in zip(undefined, names, strict=True)
            if symbol.version is None
            and symbol.bind != STB_WEAK
            and owners[symbol.index][1] == LIBSTDCXX
        ),
        manylinux=satisfied(
            elf.machine, elf.needed, [(f, v) for f, v, _ in elf.versions_needed], names
        ),
        python=_python(elf, owners, claim),
        claim=claim,
    )


def _floors(needs: Sequence[tuple[str, str]]) -> Iterable[Floor]:
    for family in FAMILIES:
        version = newest((v for _, v in needs), family)
        if version is not None:
            yield Floor(family, version, next(file for file, v in needs if v == version))


def _python(
    elf: ElfFacts, owners: Mapping[int, tuple[str, str]], claim: Claim | None
) -> StableAbi | None:
    tagged = claim is not None and claim.stable_abi and elf.python_tag is None
    if elf.python_tag not in ABI3_TAGS and not (tagged and elf.init_modules):
        return None
    return stable_abi(
        symbol.name.decode("utf-8", "backslashreplace")
        for symbol in elf.undefined
        if symbol.bind != STB_WEAK and owners[symbol.index][1] == PYTHON
    )


def claim_of_tags(tags: Iterable[str], source: str) -> Claim | None:
    """The claim of the ``Tag:`` lines of a WHEEL file; None where there is none to read."""
    parts = [tag.split("-", 2) for tag in tags if tag.count("-") >= 2]
    if not parts:
        return None
    columns = [tuple(dict.fromkeys(column)) for column in zip(*parts, strict=True)]
    return Claim(columns[0], columns[1], columns[2], source)


def versions_by_library(elf: ElfFacts) -> dict[str, tuple[str, ...]]:
    """Library → the versions of the system's families that a file needs of it, weak ones apart."""
    found: dict[str, list[str]] = {}
    for file, version, weak in elf.versions_needed:
        if family_of(version) is not None and not weak:
            found.setdefault(file, []).append(version)
    return {file: tuple(versions) for file, versions in found.items()}
