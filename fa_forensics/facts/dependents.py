"""The installed extensions of torch: files of packages whose metadata asks for torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import SHN_UNDEF, STB_WEAK, DynamicObject
from fa_forensics.facts.files import read_bounded
from fa_forensics.facts.package import (
    MAX_METADATA,
    Distribution,
    info_directories,
    normalized,
    read_distribution,
    recorded_files,
    torch_requirement,
)
from fa_forensics.facts.torch_install import Torch

#: The files of a metadata directory that can hold requirements.
_REQUIRING = ("METADATA", "PKG-INFO", "requires.txt")


def torch_dependents(site_dirs: Sequence[str]) -> Iterator[Distribution]:
    """Every installed distribution, torch itself aside, that requires torch."""
    for site in site_dirs:
        for info in info_directories(site):
            if not _names_torch(info):
                continue  # the cheap look: environments hold hundreds of packages
            found = read_distribution(info)
            if (
                found is not None
                and normalized(found.name) != "torch"
                and torch_requirement(found.requires) is not None
            ):
                yield found


def _names_torch(info: str) -> bool:
    """Whether metadata holds the name at all: where it does not, it need not be read as such."""
    for file in (*(os.path.join(info, part) for part in _REQUIRING), info):
        try:
            if b"torch" in read_bounded(file, MAX_METADATA).lower():
                return True
        except OSError:
            continue  # a directory has some of these files, an .egg-info file is one itself
    return False


def extensions_of(distribution: Distribution) -> list[str]:
    """The shared objects that a distribution's RECORD lists and that are there."""
    return [path for path in recorded_files(distribution, ".so") if os.path.isfile(path)]


def files_that_need(symbol: str, site_dirs: Sequence[str]) -> list[str]:
    """Installed torch extensions that have a name among their undefined symbols.

    Files that cannot be read are passed over: they are no witness for or against.
    """
    name = symbol.encode("utf-8", "surrogateescape")
    return [
        path
        for distribution in torch_dependents(site_dirs)
        for path in extensions_of(distribution)
        if _needs(path, name)
    ]


def file_needs(path: str, symbol: str) -> bool | None:
    """Whether a file has a name among its undefined symbols; None where it cannot be read."""
    try:
        DynamicObject.open(path).close()
    except ForensicsError:
        return None
    return _needs(path, symbol.encode("utf-8", "surrogateescape"))


def needed_names(path: str) -> frozenset[str] | None:
    """The names that a file needs from others, weak ones left out; None where it is unreadable."""
    try:
        dynamic = DynamicObject.open(path)
    except ForensicsError:
        return None
    try:
        return frozenset(
            s.name.decode("utf-8", "surrogateescape")
            for s in dynamic.symbols()
            if s.shndx == SHN_UNDEF and s.name and s.bind != STB_WEAK
        )
    finally:
        dynamic.close()


def needed_libraries(path: str) -> tuple[str, ...] | None:
    """The libraries that a file names (DT_NEEDED); None where it cannot be read."""
    try:
        dynamic = DynamicObject.open(path)
    except ForensicsError:
        return None
    try:
        return dynamic.needed
    finally:
        dynamic.close()


def _needs(path: str, name: bytes) -> bool:
    try:
        dynamic = DynamicObject.open(path)
    except ForensicsError:
        return False
    try:
        # The string table is searched first: most files do not have the name at all.
        if b"\0" + name + b"\0" not in dynamic.strings():
            return False
        return any(s.name == name and s.shndx == 0 for s in dynamic.symbols())
    finally:
        dynamic.close()


def cuda_extensions(distribution: Distribution, site_dirs: Sequence[str]) -> list[str]:
    """The shared objects of a distribution that use torch or CUDA, sorted.

    Without a RECORD of any, the source tree of an editable install is looked at, where
    the metadata asks for torch. A damaged file counts with a package that asks for torch.
    """
    # Imported here: a symbol's answer needs nothing of it.
    from fa_forensics.facts.targets import find_targets, uses_torch_or_cuda

    asks = torch_requirement(distribution.requires) is not None
    files = [path for path in recorded_files(distribution, ".so") if path.endswith(".so")]
    if not files and asks and (distribution.editable or distribution.record_path is None):
        try:
            with find_targets(distribution.name, site_dirs) as targets:
                files = [target.path for target in targets]
        except ForensicsError:
            return []  # a package without any compiled extension
    return sorted(
        {path for path in files if os.path.isfile(path) and uses_torch_or_cuda(path, asks)}
    )


def comes_with_torch(torch: Torch | None) -> set[str]:
    """The distributions that come and go with a torch, itself included: those that it pins."""
    names = {
        normalized(text.partition(";")[0].partition("==")[0].strip())
        for text in (torch.requires if torch else ())
        if "==" in text.partition(";")[0]
    }
    return names | {"torch", "triton"}
