"""Functions of bitsandbytes' own that one of its libraries lacks."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.files.machine_text import host_of
from fa_forensics.why.texts.gpu.jetson_text import is_jetson
from fa_forensics.why.texts.libraries.bitsandbytes_files import rocm_told


def own_function(answer: Answer, seen: Seen, file: str) -> Answer:
    """A function of bitsandbytes' own that one of its libraries lacks."""
    name = file.rsplit("/", 1)[-1]
    hip = "_rocm" in name or "_hip" in name or rocm_told(seen)
    backend = "hip" if hip else "cuda"
    cause = (
        f"The name is bitsandbytes' own, and no other library has it: the sources that {name} was "
        "compiled from call a function that they do not define, or files of two versions went "
        "into one build directory. No library of CUDA, ROCm or torch lacks anything."
    )
    if "__device_stub__" in (answer.demangled or ""):
        kernels, calls = ("kernels.hip", "ops.hip") if hip else ("kernels.cu", "ops.cu")
        cause = (
            "The name is bitsandbytes' own: the host's part of a GPU kernel for one type of "
            f"numbers. {calls} of that revision starts the kernel for this type, and {kernels} "
            "does not compile it for it: the two are out of step in the source. The build was not "
            "at fault, and no library of ROCm, CUDA or torch lacks anything."
        )
    elif "AttributeError" in seen.mention.line:
        return _not_of_one_release(answer, seen, name, backend)
    return replace(
        answer, cause=cause, owner="extension", confidence="medium",
        help=(f"{seen.pip} install --upgrade --no-cache-dir bitsandbytes", answer.help[-1]),
        notes=(
            "The way out is another release of bitsandbytes than this one: its newest wheel, or "
            "an older revision of the branch that was built.",
            f"From source it is cmake -DCOMPUTE_BACKEND={backend} -S . and make in an empty copy "
            "of the newest sources, then pip install . there; pip install alone compiles nothing.",
        ),
    )  # fmt: skip


def _not_of_one_release(answer: Answer, seen: Seen, name: str, backend: str) -> Answer:
    """``AttributeError: ...so: undefined symbol``: ctypes asked a library that was loaded."""
    told = seen.versions.get("pkg:bitsandbytes", "")
    plain = re.fullmatch(r"\d+(?:\.\d+){1,3}", told) is not None
    pinned = f"bitsandbytes=={told}" if plain else "bitsandbytes==THE_SAME"
    cause = (
        f"The name is bitsandbytes' own, and no other library has it: {name} was loaded, and "
        "ctypes did not find a function in it that the Python files of the package ask for. Most "
        "likely the two are of different releases: a library that was built or copied there by "
        "hand, or left by another release. No library of CUDA, ROCm or torch lacks anything."
    )
    helps = [f"{seen.pip} show bitsandbytes"]
    notes = [
        "Built from source, both parts come out of one checkout of one release (git checkout of "
        "its tag): the library is made in the package's directory, and pip install . there takes "
        "the Python files and the library together; a library is not copied into an installed "
        "package. Releases before 0.43 have a Makefile (CUDA_VERSION=118 make cuda11x for CUDA "
        f"11.8), later ones cmake -DCOMPUTE_BACKEND={backend} -S . and make.",
    ]
    if is_jetson(seen) or host_of(seen) == "aarch64":
        notes.append(
            "For a Jetson no wheel of the package index has a library, before JetPack 7: a release "
            "that still serves the CUDA and the Python there is built on the board."
        )
    else:
        helps.append(f"{seen.pip} install --force-reinstall --no-deps --no-cache-dir {pinned}")
        notes.append(
            "From a wheel, the second command puts back both parts of one release"
            + (
                "."
                if plain
                else ": THE_SAME is the version that the first one prints, or that of a newer "
                "release which serves the torch and the Python there."
            )
        )
    return replace(
        answer, cause=cause, owner="extension", confidence="medium",
        help=(*helps, answer.help[-1]), notes=tuple(notes),
    )  # fmt: skip
