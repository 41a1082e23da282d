"""The line that names the environment, and what there is to note of it."""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.render.style import escape, strings_of, text_of


def environment_notes(environment: Mapping[str, object] | None) -> list[str]:
    """What was left aside while the environment was chosen, and other torches that lie in it."""
    if environment is None:
        return []
    others = [f"another torch lies in {path}" for path in strings_of(environment, "other_torches")]
    return strings_of(environment, "notes") + others


def environment_line(environment: Mapping[str, object] | None) -> str:
    """One sentence: interpreter, torch, its CUDA and flavour, where, and how it was found."""
    if environment is None:
        return "environment: none looked at"
    version = text_of(environment, "python_version")
    parts = [f"Python {escape(version)}" if version else "Python of unknown version"]
    torch = environment.get("torch")
    if isinstance(torch, Mapping):
        parts.append(_torch(torch))
    else:
        problem = text_of(environment, "torch_problem")
        # "no torch in PREFIX" would repeat this line; another problem is news.
        plain = problem is None or problem.startswith("no torch")
        parts.append("no torch" if plain else f"no torch ({escape(problem or '')})")
    place = text_of(environment, "prefix") or text_of(environment, "python")
    found_by = text_of(environment, "found_by")
    if place:
        parts.append(escape(place) + (f" ({escape(found_by)})" if found_by else ""))
    return "environment: " + ", ".join(parts)


def _torch(torch: Mapping[str, object]) -> str:
    version = text_of(torch, "version") or text_of(torch, "release") or "of unknown version"
    details = []
    cuda = text_of(torch, "cuda")
    hip = text_of(torch, "hip")
    if hip:
        details.append(f"ROCm {escape(hip)}")
    else:
        details.append(f"CUDA {escape(cuda)}" if cuda else "no CUDA")
    flavour = torch.get("cxx11_abi")
    if isinstance(flavour, bool):
        flavour = "cxx11" if flavour else "pre-cxx11"
    if isinstance(flavour, str) and flavour:
        details.append(escape(flavour))
    return f"torch {escape(version)} ({', '.join(details)})"
