"""The GPUs that a build compiles for: torch's list of names, and who asks for what."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.compile_errors import build_names
from fa_forensics.report_why import Answer
from fa_forensics.why.history import order_key
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import cuda_version, package_in
from fa_forensics.why.texts.toolkit_commands import on_windows, with_toolkit

KIND, COMPILE = "gpu-arch", "FA883"

_ENTRY = r"\d{1,2}\.\d[af]?(?:\+PTX)?"
_LIST = re.compile(rf"{_ENTRY}(?:[;, ]{{1,3}}{_ENTRY})*")


def asked_in_full(seen: Seen) -> str:
    """``compute_100a`` → "10.0a", ``10.1+PTX`` → "10.1"; "" where it is no such number."""
    arch = seen.mention.detail.get("arch", "")
    found = re.search(r"(?<![\d.])(\d{1,2})\.(\d)([af]?)", arch) or re.search(
        r"(\d{1,2})(\d)([af]?)$", arch
    )
    return f"{found[1]}.{found[2]}{found[3]}" if found else ""


def in_full(seen: Seen, number: str) -> str:
    """A capability as nvcc was asked for it: with the letter, where the message has one."""
    asked = asked_in_full(seen)
    return asked if asked.rstrip("af") == number else number


def the_list(seen: Seen) -> str:
    """TORCH_CUDA_ARCH_LIST as the text has it, "" where it names none."""
    told = _LIST.match(seen.versions.get("env:TORCH_CUDA_ARCH_LIST", "").strip("'\" "))
    return told[0] if told else ""


def list_lacks(seen: Seen, number: str) -> bool:
    """Whether the text has a TORCH_CUDA_ARCH_LIST without the target that was refused."""
    told, plain = the_list(seen), (asked_in_full(seen) or number).rstrip("af")
    entries = [one.split("+")[0].rstrip("af") for one in re.split(r"[;, ]+", told)]
    return bool(told) and plain not in entries


def leave_out(seen: Seen, number: str) -> str:
    """How to build without a target: by the list, or, where the list has it not, elsewhere."""
    told, asked = the_list(seen), asked_in_full(seen) or number
    if list_lacks(seen, number):
        return (
            f"TORCH_CUDA_ARCH_LIST in the text ({told}) does not have {asked}: the package's own "
            "build files ask for it. Another release of the package, or its own option that leaves "
            "those kernels out, is the way out where that GPU is not there."
        )
    return (
        f"Without a GPU of that kind, leave {number} out: TORCH_CUDA_ARCH_LIST, or "
        "FLASH_ATTN_CUDA_ARCHS for flash-attn."
    )


def toolkit_that_can(
    seen: Seen, since: str, number: str
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """(commands, notes, whether a newer torch may have to come first).

    The commands name another toolkit of the machine, where one is told that compiles it.
    """
    calls = not list_lacks(seen, number)
    calls = calls and (seen.torch_cuda or "").split(".")[0] != since.split(".")[0]
    notes: list[str] = []
    nvcc = seen.mention.detail.get("nvcc", "")
    if nvcc.startswith("/usr/bin/"):
        notes.append(
            f"{nvcc} is the toolkit of the distribution (package nvidia-cuda-toolkit), often older "
            "than one in /usr/local/cuda: CUDA_HOME and PATH decide which is taken."
        )
    needed = cuda_version(since)
    told = (*seen.mention.detail.get("others", "").split(), seen.torch_cuda or "")
    fitting = [one for one in told if needed and (cuda_version(one) or (0, 0)) >= needed]
    look = () if on_windows(seen) else ("ls -d /usr/local/cuda*",)
    if not fitting:
        return look, tuple(notes), calls
    again = f"{seen.pip} install --no-build-isolation {package_in(seen) or 'PACKAGE'}"
    return (*look, *with_toolkit(seen, fitting[0], again)), tuple(notes), False


def helper_lacks(seen: Seen, ask: str) -> Answer | None:
    """``Unknown CUDA arch (10.1)``: by the releases of torch that know the entry."""
    asked = asked_in_full(seen)
    if not asked:
        return None
    rows = build_names()["helper_archs"]
    torch = re.match(r"\d+\.\d+", seen.torch or "")
    mine = f" (torch {seen.torch})" if torch else ""
    if asked not in rows:
        cause = (
            f"torch's build helper{mine} does not know compute capability {asked}, and no torch on "
            "record does: the entry of TORCH_CUDA_ARCH_LIST, or of the list that the package sets, "
            "is mistyped, or is for a newer torch than these."
        )
        return _helper(seen, cause, ask, "medium", asked)
    first, last = rows[asked]
    if last and (not torch or order_key(torch[0]) > order_key(last)):
        cause = (
            f"torch's build helper{mine} does not know {asked} any more: torch {first} to {last} "
            "took that entry of TORCH_CUDA_ARCH_LIST, or of the list that the package sets."
        )
        new = build_names()["renumbered"].get(asked.rstrip("a"))
        notes: tuple[str, ...] = ()
        if new:
            notes = (
                f"CUDA 13 gave compute capability {asked} the number {new}: with it and a newer "
                f"torch the entry is {new}; without such a GPU leave it out.",
            )
        return _helper(seen, cause, ask, "high" if torch else "medium", asked, notes)
    if torch and order_key(torch[0]) >= order_key(first):
        return None
    cause = (
        f"torch's build helper{mine} does not know compute capability {asked}: torch {first} and "
        "newer take it."
    )
    return _helper(seen, cause, ask, "high", asked)


def _helper(
    seen: Seen, cause: str, ask: str, confidence: str, asked: str, more: tuple[str, ...] = ()
) -> Answer:
    look = "echo %TORCH_CUDA_ARCH_LIST%" if on_windows(seen) else "echo $TORCH_CUDA_ARCH_LIST"
    return seen.answer(
        KIND, COMPILE, cause, owner="torch", direction="none", confidence=confidence,
        help=(ask, look, f"grep -rnF '{asked}' setup.py CMakeLists.txt"),
        notes=(
            "The list of names is torch's own (TORCH_CUDA_ARCH_LIST is held against it), whatever "
            "nvcc is there and whether or not a GPU is seen.",
            *more,
            *(() if more else (leave_out(seen, asked),)),
        ),
    )  # fmt: skip
