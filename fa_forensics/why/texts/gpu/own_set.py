"""Instructions that one GPU architecture alone has, compiled for another one or without its "a"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.flash_limits import all_limits
from fa_forensics.facts.gpus import Capability, Gpu, capability_text
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.build_targets import the_list, with_list
from fa_forensics.why.texts.builds.toolkit_commands import package_built
from fa_forensics.why.texts.clues import called, gpus_of, package_in
from fa_forensics.why.texts.gpu.gpu_refusals import TORCH_ARCHS

#: What an instruction begins with: the capabilities that have it, and what they are called
#: (PTX ISA, "Target ISA Notes" of wgmma and tcgen05).
_ONLY: dict[str, tuple[tuple[Capability, ...], str]] = {
    "wgmma": (((9, 0),), "Hopper (compute capability 9.0, target 9.0a)"),
    "tcgen05": (
        ((10, 0), (10, 3), (11, 0)),
        "Blackwell of the data centre (compute capability 10.0, 10.3 and 11.0, target 10.0a)",
    ),
}


def _dotted(number: str) -> str:
    found = re.search(r"(\d{1,2})(\d)([af]?)$", number.replace(".", ""))
    return f"{found[1]}.{found[2]}{found[3]}" if found else number


def own_set(seen: Seen, needs: str, name: str) -> Answer:
    """Instructions of one architecture alone, which a plain target (sm_90) does not have."""
    detail = seen.mention.detail
    have = _dotted(detail["sm"]) if detail.get("sm") else ""
    known = _ONLY.get(name.split(".")[0].lower())
    if known is not None and have:
        return _of_known(seen, name, have, *known)
    quoted = f'"{name}"' if name else "an instruction"
    cause = f"The code that is compiled uses {quoted}, which belongs to one architecture's own set"
    cause += f" (here {_dotted(needs)})" if needs else ""
    cause += f", and it is compiled for {have}" if have else ""
    cause += (
        '. Such code takes a target with an "a" or "f" (9.0a, 10.0a, 12.0a) and a GPU of that '
        "very architecture; on another one it cannot run, whatever the toolkit is."
    )
    return _answer(
        seen, cause, "medium", (),
        (
            'Where the GPU is of that architecture, the build names it without the letter: '
            'TORCH_CUDA_ARCH_LIST="9.0a" and the like.',
        ),
    )  # fmt: skip


def _answer(
    seen: Seen, cause: str, confidence: str, commands: tuple[str, ...], notes: tuple[str, ...]
) -> Answer:
    return seen.answer(
        "gpu-arch", "FA509", cause, owner=package_in(seen), direction="none",
        confidence=confidence,
        help=(f"{seen.python} {TORCH_ARCHS}", *(commands or ("nvcc --version",))), notes=notes,
    )  # fmt: skip


def _of_known(
    seen: Seen, name: str, have: str, owners: tuple[Capability, ...], which: str
) -> Answer:
    """An instruction whose architecture is known, and the target that it was compiled for."""
    gpu = next(iter(_machine(seen)), None)
    plain = have.rstrip("af")
    here = next((one for one in owners if capability_text(one) == plain), None)
    cause = f'The instruction "{name}" exists on {which} alone'
    theirs = gpu is not None and gpu.capability in owners
    if here is not None and plain == have:
        cause += f", and there with the target {have}a: the build compiles for {have} without it."
        if gpu is None or theirs:
            return _with_letter(seen, cause, f"{capability_text(gpu.capability) if gpu else have}a")
        cause += f" {called(gpu)} runs no such code, with the letter or without it."
    else:
        cause += (
            f"; the build compiles the source file that uses it for {have} too, which no toolkit "
            "and no torch makes possible."
        )
    told = [one for one in re.split(r"[;, ]+", the_list(seen)) if one]
    numbers = tuple(capability_text(one) for one in owners)
    gone = [one for one in told if one.split("+")[0].rstrip("af") in numbers]
    value = _targets(gpu, theirs, [one for one in told if one not in gone]) or plain
    commands, notes = _by_list(seen, value), []
    if not commands:
        notes.append(_own_options(seen))
    elif gone and not theirs:
        notes.append(
            f"TORCH_CUDA_ARCH_LIST in the text has {', '.join(gone)} beside the others: with it in "
            "the list a project builds its kernels for that architecture, and torch passes every "
            "target of the list to every file. Without it those kernels stay out, and this error "
            f"with them{f'; {called(gpu)} does not run them anyway' if gpu else ''}."
        )
    else:
        notes.append(
            "Either the list of targets is to have that architecture alone, where the GPU is of "
            "it, or the project's option that leaves those kernels out is to be set, where it is "
            "not: each target of a list goes to every source file."
        )
    notes.append("An old build directory goes first (rm -rf build, in a source directory).")
    return _answer(seen, cause, "high", commands, tuple(notes))


def _targets(gpu: Gpu | None, theirs: bool, kept: Sequence[str]) -> str:
    """What is built for: the GPU of the text, and what is left of the text's list where it has it.

    Code for 10.0a runs on 10.0 alone, so that a GPU with the instruction takes its own number.
    """
    if gpu is None:
        return ";".join(kept)
    number = capability_text(gpu.capability)
    if theirs:
        return f"{number}a"
    return ";".join(kept) if number in [one.split("+")[0] for one in kept] else number


def _with_letter(seen: Seen, cause: str, target: str) -> Answer:
    """The plain target of an architecture that has the instruction: the letter is what it lacks."""
    commands = _by_list(seen, target)
    note = (
        f'TORCH_CUDA_ARCH_LIST="{target}" is the way out, or that target among the -gencode '
        "options that the project writes itself."
    )
    return _answer(seen, cause, "high", commands, (note if commands else _own_options(seen),))


def _by_list(seen: Seen, value: str) -> tuple[str, ...]:
    """The build with torch's list; nothing for a package whose setup.py does not read it."""
    package = package_built(seen)
    own = package is not None and any(package in row.distributions for row in all_limits())
    return () if own else with_list(seen, value, package)


def _own_options(seen: Seen) -> str:
    return (
        f"{package_built(seen)} writes its own -gencode options and does not read "
        "TORCH_CUDA_ARCH_LIST: which targets they name is changed in its setup.py."
    )


def _machine(seen: Seen) -> tuple[Gpu, ...]:
    """The GPU that the text names as the machine's, and not the target in the message."""
    from fa_forensics.why.texts.clues import named_gpu

    told = seen.versions.get("gpu") or seen.versions.get("capability") or ""
    found = named_gpu(told) if told else None
    if found is not None:
        return (found,)
    return () if seen.elsewhere or seen.mention.detail.get("sm") else gpus_of(seen)
