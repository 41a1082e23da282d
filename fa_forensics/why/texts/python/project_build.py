"""A package of its own project that was compiled with, or for, another CUDA than torch's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.report_why import Answer
from fa_forensics.rules.wheel_pages import page_of
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows, with_toolkit
from fa_forensics.why.texts.clues import version_of

KIND, CODE = "wrong-torch", "FA602"


def of_a_project(
    seen: Seen, row: Mapping[str, object], package: str, cause: str, cuda: str
) -> Answer:
    """The project's wheel for torch's CUDA, else a build with that toolkit.

    Torch's own index has no such package, and the package index has its source or one build.
    """
    name = str(row["distribution"])
    release = (version_of(seen, name) or "").partition("+")[0]
    without = seen.mention.detail.get("package_cuda", "").rstrip(".") in ("0.0", "0", "-1")
    cause += _how_it_came(name, without)
    if "wheel_page" in seen.versions and release:
        cause += (
            f" The page behind -f is searched beside the package index: if it has no wheel of "
            f"{name} {release} for this Python, pip took the source from there."
        )
    helps = [
        f"{seen.python} -c 'import torch, importlib.metadata as m; print(torch.__version__, "
        f'torch.version.cuda, m.version("{name}"))\''
    ]
    notes = []
    address, known = _filled(seen, row, cuda)
    if address:
        helps.append(
            f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --only-binary {name} "
            f"{name} -f {address}"
        )
        notes.append(
            f"torch stays as it is: with --only-binary pip takes the newest {name} that has a "
            "wheel on its project's page for that torch and CUDA, and compiles nothing."
        )
        if not known:
            notes.append(
                "In the address X.Y is torch's minor release and cuNNN its CUDA (cu118 for 11.8), "
                "as the first command prints them."
            )
    toolkit = cuda or "CUDA_OF_TORCH"
    pin = f'"{name}=={release}"' if release else name
    again = (
        f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir --no-build-isolation "
        f"--no-binary {name} {pin}"
    )
    if row.get("environment") and not on_windows(seen):
        again = f"{row['environment']} {again}"
    if without and not on_windows(seen):
        again = f"FORCE_CUDA=1 {again}"
    helps += with_toolkit(seen, toolkit, again)
    notes.append(
        f"The last command compiles {name} with the toolkit of torch's CUDA, where that one "
        f"({toolkit}) is installed; the CUDA version that the driver shows plays no part."
    )
    notes += _FORCED if without else ()
    return seen.answer(
        KIND, CODE, cause, owner=package, direction="none", confidence="high",
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


_FORCED = (
    "FORCE_CUDA=1 compiles the CUDA part where no GPU is seen. The command is run where nvcc is "
    "found; without nvcc the wheel is the only way.",
)


def _how_it_came(name: str, without: bool) -> str:
    """The next sentences of the cause; 0.0 is what a library without CUDA is told as.

    torch_sparse/__init__.py and its like divide the -1 of such a library as a version.
    """
    if without:
        return (
            f". 0.0 stands for a {name} without CUDA: it was compiled where its setup.py found no "
            "nvcc (CUDA_HOME) or saw no GPU, in docker build or on a login node for instance, or "
            "it is a wheel for the CPU."
        )
    return (
        f". Where pip takes no wheel of {name} it compiles the source with the nvcc that is there, "
        "whatever CUDA torch is for; else its wheel is one for another CUDA."
    )


def _filled(seen: Seen, row: Mapping[str, object], cuda: str) -> tuple[str, bool]:
    """(the address of the project's page, whether torch's release and CUDA are filled in)."""
    torch = (seen.torch or seen.versions.get("wheel_page", "")).partition("+")[0]
    minor = re.match(r"\d{1,2}\.\d{1,3}", torch)
    label = cuda_label(cuda)
    known = minor is not None and bool(label)
    return page_of(row, label or "cuNNN", minor[0] if minor else "X.Y"), known
