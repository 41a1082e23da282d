"""What the lines about the runtime say: their group, and which of their fields are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts

#: What the lines are about, by their subject; the first that fits.
_GROUPS = (
    ("torch", re.compile(r"torch\b", re.IGNORECASE)),
    ("python", re.compile(r"(python|interpreter|abi tag)\b", re.IGNORECASE)),
    ("driver", re.compile(r"(driver\b|libcuda)", re.IGNORECASE)),
    ("gpus", re.compile(r"gpus?\b", re.IGNORECASE)),
    ("variables", re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$")),
    ("toolkit", re.compile(r"(nvcc|cuda toolkit|toolkit|/)", re.IGNORECASE)),
    ("system", re.compile(r"")),
)

#: Subjects that other documents know by another name.
_SUBJECTS = {("python", "python"): "Python"}

#: Fields that go by another name, by group.
_ASPECTS = {
    ("torch", "cuda"): "CUDA",
    ("torch", "hip"): "HIP",
    ("torch", "archs"): "GPU architectures",
    ("driver", "cuda"): "CUDA it supports",
}

#: Fields that are not compared: what another field says better, how a thing was found, and
#: where a person's own files lie.
_UNTOLD = {
    "torch": {"release", "path"},
    "python": {"path", "real_path", "base_prefix"},
    "driver": {"known_by", "library_path"},
    "toolkit": {"named_by", "path", "nvcc", "version_known_by", "header_version"},
    "variables": {"value"},
    "system": {"symbol_version", "distribution_id", "shown_by"},
}


def runtime_group(subject: str, facts: Mapping[str, object]) -> str:
    """The group of a line of the runtime layer."""
    if "used_for_builds" in facts:  # a toolkit goes by what named it: a path, a variable
        return "toolkit"
    return next(group for group, words in _GROUPS if words.match(subject))


def runtime_subject(group: str, subject: str) -> str:
    """The subject as all documents know it."""
    return _SUBJECTS.get((group, subject), subject)


def runtime_aspect(group: str, field: str, alias: str) -> str | None:
    """The aspect that a field is told as, None where it is not compared."""
    if field in _UNTOLD.get(group, ()):
        return None
    return _ASPECTS.get((group, field), alias)


def put_gpus(into: Facts, rows: list[Mapping[str, object]]) -> None:
    """Note the GPUs of a machine, from the lines about each kind."""
    kinds, counts, memories = [], [], []
    for facts in rows:
        name = plain.text(facts, "name")
        if name is None:
            continue
        kinds.append(f"{name} ({plain.text(facts, 'capability')})")
        count, memory = plain.scalar(facts.get("count")), facts.get("memory_bytes")
        if count is not None:
            counts.append(f"{name} x{count}")
        if isinstance(memory, int):
            memories.append(f"{name} {plain.gibibytes(memory)}")
    into.put("gpus", "GPUs", "kinds", plain.as_set(kinds))
    into.put("gpus", "GPUs", "count", plain.as_set(counts))
    into.put("gpus", "GPUs", "memory", plain.as_set(memories))
