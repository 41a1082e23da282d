"""The files a process really mapped, held against the files the resolver predicted.

The confirmation lists what is mapped after ``import torch`` and after the load. Where a
provider is mapped from another place than predicted, the file's undefined symbols are
looked up again in the file that is really there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fa_forensics.errors import ForensicsError
from fa_forensics.facts.elf.dynamic import DynamicObject, gnu_hash
from fa_forensics.records import dataclass
from fa_forensics.resolve.resolution import Binding, Resolution


@dataclass(frozen=True, slots=True)
class MappedDifference:
    """One provider that is not mapped from where it was predicted.

    ``actual`` is the file of the same name that is mapped instead, None when no such file
    is mapped; ``symbols`` counts what was to come from it, ``lacking`` names those that
    the actual file does not export (None when it could not be read, ``problem`` says why).
    """

    predicted: str
    actual: str | None
    symbols: int
    lacking: tuple[str, ...] | None
    problem: str | None = None


def compare_mapped(
    resolution: Resolution, mapped: Sequence[str], loaded: bool
) -> tuple[MappedDifference, ...]:
    """Predicted providers that are not among the ``mapped`` files (real paths).

    ``loaded`` says that the file itself was loaded; otherwise only those providers count
    that ``import torch`` should have mapped already.
    """
    there = set(mapped)
    with_torch = {os.path.realpath(path) for path in resolution.loaded_with_torch}
    bound: dict[str, list[Binding]] = {}
    for binding in resolution.bindings:
        if binding.provider is not None:
            bound.setdefault(os.path.realpath(binding.provider), []).append(binding)
    differences = []
    for predicted, bindings in bound.items():
        if predicted in there or (not loaded and predicted not in with_torch):
            continue
        actual = _same_library(bindings[0], predicted, mapped)
        differences.append(_compare(predicted, actual, bindings))
    return tuple(differences)


def _same_library(binding: Binding, predicted: str, mapped: Sequence[str]) -> str | None:
    """The mapped file that goes by the predicted one's file name or soname."""
    names = {os.path.basename(predicted), binding.provider_soname}
    for path in mapped:
        # "libc10.so" may be mapped as "libc10-1a2b3c4d.so"; then only its soname tells.
        if os.path.basename(path) in names or _soname(path) in names - {None}:
            return path
    return None


def _soname(path: str) -> str | None:
    try:
        dynamic = DynamicObject.open(path)
    except ForensicsError:
        return None  # gone since it was mapped: its name was compared already
    try:
        return dynamic.soname
    finally:
        dynamic.close()


def _compare(predicted: str, actual: str | None, bindings: Sequence[Binding]) -> MappedDifference:
    if actual is None:
        return MappedDifference(predicted, None, len(bindings), None)
    try:
        dynamic = DynamicObject.open(actual)
    except ForensicsError as error:
        return MappedDifference(predicted, actual, len(bindings), None, error.message)
    try:
        lacking = []
        for binding in bindings:
            name = binding.symbol.encode("utf-8", "surrogateescape")
            if dynamic.lookup(name, gnu_hash(name), binding.version) is None:
                lacking.append(binding.symbol)
        return MappedDifference(predicted, actual, len(bindings), tuple(lacking))
    finally:
        dynamic.close()
