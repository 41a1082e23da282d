"""What FlashAttention itself allows: GPUs, head dimensions, types, parameters, by release.

GPU code that would run is of no use where the package refuses the GPU. The tables are
``data/flash_attn_limits.json`` and ``data/flash_attn_api.json``; both name their source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from fa_forensics.facts.gpus import Capability, parse_capability
from fa_forensics.facts.package import normalized
from fa_forensics.facts.tables import read_table

_RELEASE = re.compile(r"(\d{1,9}(?:\.\d{1,9})*)(?:\.?(?:a|b|rc)(\d{1,9}))?")

ReleaseKey = tuple[tuple[int, ...], tuple[int, int]]


class Limits(NamedTuple):
    """The limits of a span of releases (``since`` included, ``before`` not; None: no end).

    id: fa1 … fa4. gpus: what its own check accepts: ``8.x``, ``9.0``, ``8.0+``.
    refusal: the text it raises for other GPUs.
    archs: what its build compiles; arch_variable narrows that to some of arch_choices.
    min_cuda: the oldest toolkit that compiles it; None where that is not known.
    head_dims: head dimensions with kernels of their own; others are rounded up to one.
    backward: what the backward pass wants beyond the forward one; None: nothing.
    """

    id: str
    name: str
    distributions: tuple[str, ...]
    modules: tuple[str, ...]
    since: str
    before: str | None
    gpus: tuple[str, ...]
    refusal: str
    archs: tuple[str, ...]
    arch_variable: str | None
    arch_choices: tuple[str, ...]
    min_cuda: str | None
    dtypes: tuple[str, ...]
    bf16_from: str
    head_dim_max: int
    head_dim_multiple: int
    head_dims: tuple[int, ...]
    backward: str | None

    def accepts(self, capability: Capability) -> bool:
        """Whether the package's own check lets a GPU through."""
        return any(_matches(pattern, capability) for pattern in self.gpus)

    def serves_head_dim(self, dim: int) -> int | None:
        """The head dimension whose kernel serves ``dim``; None where there is none."""
        if dim < 1 or dim > self.head_dim_max or dim % self.head_dim_multiple:
            return None
        return next((size for size in sorted(self.head_dims) if size >= dim), None)


def _matches(pattern: str, capability: Capability) -> bool:
    if pattern.endswith(".x"):
        return capability[0] == int(pattern[:-2])
    if pattern.endswith("+"):
        return capability >= parse_capability(pattern[:-1])
    return capability == parse_capability(pattern)


def release_key(text: str) -> ReleaseKey | None:
    """A sortable release: ``2.5.9.post1+cu118`` counts as 2.5.9, ``4.0.0b5`` before 4.0.0."""
    match = _RELEASE.match(text)
    if match is None:
        return None
    numbers = tuple(int(part) for part in match[1].split("."))
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers, (0, int(match[2])) if match[2] else (1, 0)


@lru_cache(maxsize=1)
def all_limits() -> tuple[Limits, ...]:
    """Every row of the table, older releases of a package first."""
    rows = read_table("flash_attn_limits.json")["rows"]
    return tuple(_row(row) for row in rows)


def _row(row: dict[str, Any]) -> Limits:
    values: dict[str, Any] = {}
    for name in Limits._fields:
        value = row.get(name)
        values[name] = tuple(value) if isinstance(value, list) else value
    return Limits(**values)


@lru_cache(maxsize=1)
def build_costs() -> tuple[int, int]:
    """(memory in bytes, cores) that one job of a source build takes."""
    jobs = read_table("flash_attn_limits.json")["jobs"]
    return int(jobs["memory_per_job_gb"]) << 30, int(jobs["cores_per_job"])


def limits_of(
    distribution: str | None, version: str | None, module: str | None
) -> tuple[Limits, ...]:
    """The rows that can hold for a file: one where its release is known, else its module's.

    Empty for a file that is not FlashAttention's.
    """
    name = normalized(distribution) if distribution else None
    rows = [row for row in all_limits() if name in {normalized(d) for d in row.distributions}]
    if not rows:
        rows = [row for row in all_limits() if module is not None and module in row.modules]
    key = release_key(version) if version and name else None
    if key is None:
        # Without a release, the module tells the generation at least.
        return tuple(row for row in rows if module is None or module in row.modules)
    return tuple(row for row in rows if _holds(row, key))


def _holds(row: Limits, key: ReleaseKey) -> bool:
    first = release_key(row.since)
    end = release_key(row.before) if row.before else None
    return first is not None and first <= key and (end is None or key < end)


def first_accepting(generation: str, capability: Capability) -> str | None:
    """The release of a generation (fa2 …) from which on a GPU is accepted, None for never."""
    for row in all_limits():
        if row.id == generation and row.accepts(capability):
            return row.since
    return None


def parameters(release: str, function: str) -> tuple[str, ...] | None:
    """The parameters of a flash_attn function in a release, or None where it has none such."""
    key = release_key(release)
    found: tuple[str, ...] | None = None
    for change in _api():
        first = release_key(change["since"])
        if key is None or first is None or first > key:
            break
        if function in change.get("removed", ()):
            found = None
        found = tuple(change["functions"].get(function, found or ())) or None
    return found


def parameter_since(function: str, parameter: str) -> str | None:
    """The release from which on a function has a parameter; None where no release has it."""
    for change in _api():
        names = [text.partition("=")[0] for text in change["functions"].get(function, ())]
        if parameter in names:
            since: str = change["since"]
            return since
    return None


@lru_cache(maxsize=1)
def _api() -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = read_table("flash_attn_api.json")["changes"]
    return changes
