"""Answers to builds in an environment of their own: with a torch of its own there, or with none."""

from __future__ import annotations

import re

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import (
    build_variables,
    on_windows,
    package_built,
    prebuilt,
    unnamed,
    what_to_build,
    which_toolkit,
)

KIND, CODE = "wrong-torch", "FA884"


def another_torch_built(seen: Seen, toolkit: str | None, torch: str | None) -> Answer | None:
    """nvcc does not fit the torch of an isolated build, which nobody installed.

    The environment of the build says so, or a torch of the text that nvcc does fit. None where
    neither does.
    """
    by = seen.mention.detail.get("isolated")
    own = seen.versions.get("torch", "")
    local = re.search(r"[+]cu(\d{2})\d$", own)
    major = local[1] if local and torch else ""
    told = bool(major) and _fits(toolkit, major) and not _fits(torch, major)
    if not by and not told:
        return None
    tool = "uv" if by == "uv" else "pip"
    fetched = f", for CUDA {torch}," if torch else ""
    nvcc = f"The nvcc that was found is CUDA {toolkit}" if toolkit else "nvcc is of another CUDA"
    cause = (
        f"{tool} builds in an environment of its own, and the torch there{fetched} is one that it "
        f"fetched for this build, not the installed one{f' ({own})' if told else ''}. {nvcc}, "
        "another major version than that, and torch's build helper refuses the pair. Built "
        "without isolation, the installed torch is taken."
    )
    pip = "uv pip" if tool == "uv" else seen.pip
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction="none",
        confidence="high" if by else "medium",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",
            f"{pip} install packaging ninja psutil wheel setuptools",
            f"{build_variables(seen, package_built(seen))}{pip} install --no-build-isolation "
            f"{what_to_build(seen)}",
            which_toolkit(seen),
        ),
        notes=(
            "The first command shows the installed torch: where its CUDA major version is nvcc's, "
            "nothing else has to be installed. Where it is not, nvcc does not fit that torch "
            "either: CUDA_HOME has to name a toolkit of torch's CUDA major version, or torch has "
            "to be a build for nvcc's.",
            *prebuilt(seen, package_built(seen)),
        ),
    )  # fmt: skip


def _fits(cuda: str | None, major: str) -> bool:
    return cuda is not None and cuda.split(".")[0] == major


def torch_not_reached(seen: Seen) -> Answer:
    """``No module named 'torch'`` while pip, uv or poetry builds a package."""
    package = package_built(seen)
    name = package or "PACKAGE"
    if seen.mention.detail.get("no_isolation"):
        return _not_there(seen)
    tool = seen.mention.detail.get("tool", "pip")
    cause = (
        f"{name if package else 'The package'} asks for torch when it is built, and {tool} builds "
        "in an environment of its own that has none: that torch is installed does not reach there."
    )
    pip = "uv pip" if tool == "uv" else seen.pip
    told = seen.elsewhere and seen.versions.get("torch")
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none",
        confidence="medium" if seen.mention.detail.get("guess") else "high",
        help=(
            f"{pip} install {'' if told else 'torch '}packaging ninja psutil wheel setuptools",
            f"{build_variables(seen, package)}{pip} install --no-build-isolation "
            f"{what_to_build(seen)}",
        ),
        notes=_notes(seen, tool, name),
    )  # fmt: skip


def _notes(seen: Seen, tool: str, name: str) -> tuple[str, ...]:
    from fa_forensics.rules.remedy import row_of

    notes = [f"torch must be installed first, with the same {tool}."]
    unknown = unnamed(what_to_build(seen))
    if tool == "uv":
        notes = [
            "torch must be installed first, in the same environment.",
            "In a project (uv sync, uv add) pyproject.toml says it, in its table tool.uv: "
            f'no-build-isolation-package = ["{name}"], or in newer uv extra-build-dependencies '
            f"with torch for {name}, with match-runtime = true.",
        ]
    elif tool == "poetry":
        notes.append("poetry has no such option for one package: pip in its environment (poetry "
                     "run) installs this one.")  # fmt: skip
    row = row_of(name)
    if on_windows(seen):
        notes.append(
            "On Windows the build takes Visual Studio's C++ compiler and nvcc; a prebuilt wheel "
            "for this torch and Python, where somebody has one, takes neither."
        )
    elif row is not None and "_FORCE_BUILD" in str(row.get("environment", "")):
        notes.append(
            f"The setup.py of {name} takes a prebuilt wheel where its releases have one for this "
            "torch, CUDA and Python, and compiles otherwise."
        )
    return (*notes, *unknown)


def _not_there(seen: Seen) -> Answer:
    """pip ran without isolation, so that the installed torch would have been found."""
    tool = seen.mention.detail.get("tool", "pip")
    pip = "uv pip" if tool == "uv" else seen.pip
    cause = (
        f"{tool} was told to build with what is installed (--no-build-isolation), and the Python "
        f"that it runs has no torch: it is not installed there, or {tool} is another Python's than "
        "the one that has it."
    )
    return seen.answer(
        KIND, CODE, cause, owner="torch", direction="none", confidence="medium",
        help=(
            f"{seen.python} -c 'import sys, torch; print(sys.executable, torch.__version__)'",
            f"{pip} --version" if tool != "uv" else "uv pip show torch",
            f"{pip} install --no-build-isolation {what_to_build(seen)}",
        ),
        notes=(f"torch must be installed first, with the same {tool}."
               + (" python -m pip takes the pip of that very Python." if tool != "uv" else ""),),
    )  # fmt: skip
