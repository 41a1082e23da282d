"""What the ``environment`` object of any document says."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.compare import plain
from fa_forensics.compare.model import Facts
from fa_forensics.compare.places import Places

_PYTHON = {"python_version": "version", "implementation": "implementation", "machine": "machine"}
_TORCH = {
    "version": "version",
    "cuda": "CUDA",
    "hip": "HIP",
    "cxx11_abi": "C++ string flavour",
}

#: Variables that name the environment itself: which one it is, its prefix says.
_ITSELF = {"VIRTUAL_ENV", "CONDA_PREFIX"}


def put_environment(
    into: Facts, environment: Mapping[str, object], places: Places, per_process: frozenset[str]
) -> None:
    """Note what an environment says; ``per_process`` are variables that are never compared."""
    for field, aspect in _PYTHON.items():
        into.put("python", "Python", aspect, plain.text(environment, field))
    into.put("system", "libc", "kind", plain.text(environment, "libc"))
    torch = plain.mapping(environment, "torch")
    into.speaks_of |= {("variables", "")}
    if torch:
        for field, aspect in _TORCH.items():
            value = plain.text(torch, field)
            into.put("torch", "torch", aspect, value if value is not None else "none")
        into.put("torch", "torch", "CUDA libraries", plain.scalar(torch.get("has_cuda_libraries")))
        path = plain.text(torch, "path")
        if path is not None:
            into.put("torch", "torch", "place", places.name(path))
        into.speaks_of.add(("torch", ""))
    elif "torch" in environment:
        # Without a torch there is no version to differ: that it is absent is the difference.
        into.speaks_of.add(("torch", ""))
    variables = plain.mapping(environment, "variables")
    for name in variables:
        setting = plain.text(variables, name)
        if setting is not None and name not in _ITSELF and name not in per_process:
            into.put("variables", name, "", places.name(setting) or "(empty)")


def about(environment: Mapping[str, object]) -> str:
    """The environment in one line."""
    torch = plain.text(plain.mapping(environment, "torch"), "version")
    parts = [
        f"torch {torch}" if torch else "no torch",
        f"Python {plain.text(environment, 'python_version') or 'of unknown version'}",
    ]
    prefix = plain.text(environment, "prefix")
    return ", ".join([*parts, *([prefix] if prefix else [])])
