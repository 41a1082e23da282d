"""Answers to repositories of the package kernels that have no build for this system."""

from __future__ import annotations

import re

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen

NO_FILE = "FA887"

_VARIANT = lazily(
    r"torch(?P<digits>\d{2,3})-(?P<flavour>cxx11|cxx98)-(?P<kind>cu\d+|rocm\d+|cpu|xpu\d*)"
)


def kernels_variant(seen: Seen) -> Answer:
    """``Cannot find a build variant for this system in kernels-community/...``."""
    if seen.mention.detail.get("wanted"):
        return _of_the_one_wanted(seen)
    text = " ".join((seen.mention.line, *seen.mention.detail.values()))
    variants = sorted(
        {(int(f["digits"][0]), int(f["digits"][1:])) for f in _VARIANT.finditer(text)}
    )
    have = seen.torch
    stated = re.search(r"environment Torch version \((\d+\.\d+)\)", text)
    have = seen.mention.detail.get("here_torch") or (stated[1] if stated else have)
    cause = "The repository has no file for this system that this release of kernels can take"
    if variants and have:
        shown = ", ".join(f"{major}.{minor}" for major, minor in variants[:8])
        cause += f": its variants are for torch {shown}, torch {have} is here"
    elif have:
        cause += f" (torch {have})"
    cause += "."
    direction = "unknown"
    own = re.match(r"(\d+)\.(\d+)", have or "")
    if variants and own is not None:
        mine = (int(own[1]), int(own[2]))
        direction = "file-older" if mine > variants[-1] else "unknown"
        direction = "file-newer" if mine < variants[0] else direction
    torches: tuple[str, ...] = ()
    if variants:
        major, minor = variants[-1]
        torches = (f'{seen.pip} install "torch=={major}.{minor}.*"',)
    return seen.answer(
        "symbol-drift", NO_FILE, cause, owner=seen.mention.detail.get("kernel") or "kernels",
        direction=direction, confidence="high",
        help=(
            f"{seen.pip} install --upgrade kernels",
            *torches,
        ),
        notes=(
            "A variant's name has torch's minor release, the flavour, the CUDA version and the "
            "machine; each must be that of the environment.",
            "Variants that use torch's stable interface alone (names with aoti_torch_ and torch_) "
            "are not bound to one torch, only to a minimum. An older kernels does not select them, "
            "so that a newer one, as typed, may find one; else take a revision that has those, or "
            "a torch and CUDA that the repository has a variant for.",
        ),
    )  # fmt: skip


_WANTED = lazily(
    r"torch(?P<digits>\d{2,3})-(?:(?P<flavour>cxx11|cxx98)-)?(?P<kind>cu\d+|rocm\d+|cpu|xpu\d*|metal)"
    r"-(?P<machine>x86_64|aarch64|arm64)-(?P<system>linux|darwin|windows)"
)


def _of_the_one_wanted(seen: Seen) -> Answer:
    """The name of the variant says what is here: torch, flavour, CUDA, machine and system."""
    wanted, kernel = seen.mention.detail["wanted"], seen.mention.detail.get("kernel", "")
    cause = f"{kernel or 'The repository of kernels'} has no file that was built for this system"
    found = _WANTED.search(wanted)
    torch = f"{found['digits'][0]}.{found['digits'][1:]}" if found else ""
    if found:
        cause += (
            f", which is {found[0]}: torch {torch}, {found['kind']}, {found['machine']} on "
            f"{found['system']}"
        )
    cause += ". No file is damaged, and the GPU plays no part."
    notes = ["A variant's name has torch's minor release, the flavour, the CUDA version and the "
             "machine; each must be that of the environment. The repository's directory build "
             "shows which there are."]  # fmt: skip
    if found and found["machine"] == "aarch64":
        notes.append(
            "Many such repositories have files for x86_64 alone; then no other torch helps: the "
            "kernel has to be built on that aarch64 machine from its source, or comes from a "
            "package that has wheels for aarch64."
        )
    else:
        notes.append(
            "The ways are a newer revision of the repository, a torch and CUDA that it has a file "
            "for, a build of the kernel from its source, or another attention."
        )
    look: tuple[str, ...] = ()
    if kernel:
        look = (
            f"{seen.python} -c 'from huggingface_hub import list_repo_files as ls; "
            f'print(*sorted({{f.split("/")[1] for f in ls("{kernel}") if f.startswith("build/")}}),'
            " sep=chr(10))'",
        )
    return seen.answer(
        "wrong-machine" if found and found["machine"] == "aarch64" else "symbol-drift", NO_FILE,
        cause, owner=kernel or "kernels", direction="unknown", confidence="high",
        help=(*look, f"{seen.pip} install --upgrade kernels"), notes=tuple(notes),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {"kernels-variant": kernels_variant}
