"""Answers where a program of the toolkit ended a build by itself: crashed, stopped, or too old."""

from __future__ import annotations

import re

from fa_forensics.facts.gpus import capability_text
from fa_forensics.facts.numbers import minor_numbers
from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.least_cuda import fitting
from fa_forensics.why.texts.builds.toolkit_commands import (
    build_command,
    on_windows,
    which_toolkit,
    with_jobs,
    with_toolkit,
)
from fa_forensics.why.texts.clues import called, flash_rows, gpus_of, package_in

KIND, COMPILE, MEMORY = "wrong-torch", "FA883", "FA885"


def compiler_crashed(seen: Seen) -> Answer:
    """``'cudafe++' died due to signal 11``: a program of the toolkit crashed on this source."""
    detail = seen.mention.detail
    program = detail.get("program") or "a program of the CUDA toolkit"
    source = detail.get("source", "")
    cause = (
        f"{program} crashed (signal 11) while it compiled, so that the extension was never "
        "built: this release of the toolkit fails on the source or on the host compiler's headers, "
        "and another release of the same CUDA major version need not. The kernel ends a process "
        "for lack of memory with signal 9, so memory is the less likely cause: where it crashes "
        "with one job too, it is none."
    )
    again = build_command(seen)
    rest = () if on_windows(seen) else ("gcc --version", "free -g; df -h ${TMPDIR:-/tmp}")
    return seen.answer(
        KIND, COMPILE, cause, owner="nvcc", direction="none", confidence="medium",
        help=(which_toolkit(seen), *with_jobs(seen, 1, again), *rest),
        notes=_for_hopper(seen, source) if re.search(r"sm_?90", source) else (),
    )  # fmt: skip


def _for_hopper(seen: Seen, source: str) -> tuple[str, ...]:
    """FlashAttention 3's files, on which the ptxas of CUDA 12.6 is known to crash."""
    notes = []
    if source.startswith("flash_"):
        notes.append(
            "It is known of the ptxas of CUDA 12.6 with FlashAttention 3's files for Hopper "
            "(flash-attention issue 1453); its own setup.py fetches the ptxas of CUDA 12.8 for "
            "them."
        )
    gpus = gpus_of(seen)
    if gpus and capability_text(gpus[0].capability) != "9.0":
        number = capability_text(gpus[0].capability)
        notes.append(
            f"{called(gpus[0])} runs no code for compute capability 9.0: "
            f"TORCH_CUDA_ARCH_LIST={number} leaves such files out, where the package's build "
            "goes by it."
        )
    return tuple(notes)


def _sort_of(said: str) -> str:
    low = said.lower()
    return next((sort for words, sort in build_names()["fatal"].items() if words in low), "")


def tool_stopped(seen: Seen, again: tuple[str, ...]) -> Answer:
    """``nvcc fatal``, ``ptxas fatal``, ``nvlink fatal``: by the words after it."""
    said, tool = seen.mention.detail.get("said", ""), seen.mention.detail.get("tool", "nvcc")
    quoted = f'{tool} stopped ("{said[:120].rstrip(". ")}"), so that the extension was never built'
    sort = _sort_of(said)
    if sort == "memory":
        return seen.answer(
            KIND, MEMORY, f"{quoted}: it got no memory. Fewer jobs at once need less.",
            owner=package_in(seen), direction="none", confidence="medium",
            help=with_jobs(seen, 1, build_command(seen)),
        )  # fmt: skip
    why, helps = _why_it_stopped(seen, sort, tool)
    owner = {"disk": None, "link": package_in(seen), "host": "gcc"}.get(sort, "nvcc")
    return seen.answer(
        KIND, COMPILE, f"{quoted}: {why}", owner=owner, direction="none",
        confidence="medium" if sort else "low", help=(*helps, *again),
        notes=("The whole command stands above this line; with ninja -v it is printed.",)
        if sort not in ("disk", "host") else (),
    )  # fmt: skip


def _why_it_stopped(seen: Seen, sort: str, tool: str) -> tuple[str, tuple[str, ...]]:
    """(what the words mean, the commands that go on from there)."""
    if sort == "disk":
        return (
            "it could not write its output. The disk of TMPDIR or of the build directory is full, "
            "or may not be written to; neither the source nor the options are at fault.",
            ("echo %TEMP% & dir %TEMP%",) if on_windows(seen) else
            ("df -h ${TMPDIR:-/tmp} .; ls -ld ${TMPDIR:-/tmp}",
             f"mkdir -p ~/tmp && TMPDIR=~/tmp {build_command(seen)}"),
        )  # fmt: skip
    if sort == "link":
        return (
            "device code calls a function that no file of this step defines. The source is not "
            "whole, or its build files leave out the option for separate compilation (-rdc=true).",
            ("nvcc --version",),
        )
    if sort == "words":
        return (
            "a part of its command is neither an option nor a file of a kind that it takes: most "
            "often the rest of a path with a blank in it (the source, the environment or "
            "CUDA_HOME), for which a directory without blanks is the way out, else an option of "
            "the host compiler or a library that the build files hand to nvcc.",
            ("pwd; echo CUDA_HOME=$CUDA_HOME", "nvcc --version"),
        )
    if sort == "host":
        return (
            "the host compiler could not be run, or compiles for another kind of machine than nvcc "
            "does (a 32-bit or arm64 prompt of Visual Studio, a cross compiler in CC or -ccbin).",
            ("where cl",) if on_windows(seen) or "cl.exe" in seen.mention.line else
            ("echo CC=$CC CXX=$CXX NVCC_CCBIN=$NVCC_CCBIN; gcc -dumpmachine; gcc --version",),
        )  # fmt: skip
    if sort == "half":
        return (
            "a file of its own toolkit is not there. The nvcc that was found is a part of a "
            "toolkit alone (one package of pip or conda), or the installation is not whole.",
            ("readlink -f $(command -v nvcc); ls -d /usr/local/cuda*", "nvcc --version"),
        )
    if sort == "option":
        return (
            "it does not take an option. The options come from the package's build files, and this "
            "toolkit is older or newer than they are written for.",
            ("nvcc --version; ls -d /usr/local/cuda*",),
        )
    return f"these words alone do not tell why {tool} did.", ("nvcc --version",)


def toolkit_too_old(seen: Seen) -> Answer:
    """``FlashAttention is only supported on CUDA 11.7 and above``: setup.py asked nvcc."""
    detail = seen.mention.detail
    asks = detail.get("asks", "")
    package = package_in(seen) or asks or None
    if asks.endswith("-3"):
        package = "flash-attn-3"
    rows = flash_rows(seen, package) if package else ()
    least = detail.get("least") or (rows[-1].min_cuda if rows else None)
    found = seen.versions.get("cuda")
    name = package or "The package"
    cause = f"{name} is compiled with CUDA {least or 'of a newer release'} or newer"
    if detail.get("for"):
        cause = (
            f"For compute capability {detail['for']}, {package or 'the package'} is compiled with "
            f"CUDA {least} or newer"
        )
    if found and not (least and minor_numbers(found) >= minor_numbers(least)):
        cause += f", and the nvcc that was found is {found}."
    elif found := found or seen.versions.get("driver_cuda"):
        cause += (
            f", and the nvcc that was found is older: not the CUDA {found} that the text names "
            "(torch's own, the driver's, or a toolkit that CUDA_HOME does not name)."
        )
    else:
        cause += ", and the nvcc that was found is older."
    helps = [which_toolkit(seen)]
    cuda, more = seen.torch_cuda, tuple[str, ...]()
    if cuda and least and minor_numbers(cuda) >= minor_numbers(least):
        build = build_command(seen)
        helps.extend(with_toolkit(seen, cuda, build))
    elif cuda:
        fits = fitting(seen, package, cuda, build_command(seen))
        more = fits.notes
        if more and fits.command:
            helps.extend(with_toolkit(seen, fits.cuda, fits.command))
    system = "The nvcc in /usr/bin is the distribution's (package nvidia-cuda-toolkit), often old."
    return seen.answer(
        KIND, COMPILE, cause, owner=package, direction="none", confidence="high",
        help=tuple(helps),
        notes=(
            "CUDA_HOME decides which nvcc is taken; it need not be the newest, only of torch's "
            "CUDA major version and new enough.",
            *more,
            *(() if on_windows(seen) else (system,)),
            "The CUDA version that nvidia-smi shows is the driver's and plays no part in this.",
            *((f"Without a GPU of that kind, TORCH_CUDA_ARCH_LIST without {detail['for']} is the "
               "other way out.",) if detail.get("for") else ()),
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "cuda-too-old-to-build": toolkit_too_old,
    "compiler-crashed": compiler_crashed,
}
