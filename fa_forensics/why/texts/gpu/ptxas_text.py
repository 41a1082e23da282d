"""Answers about ptxas, the assembler that Triton and other compilers start at run time."""

from __future__ import annotations

from fa_forensics.facts.drivers import cuda_of_isa, cuda_text, parse_cuda
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.facts.triton_ptxas import first_with, wheel_of
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import cuda_version, gpus_of, named, version_of

_OWN = (
    "Triton and other compilers at run time bring a ptxas of their own; a newer release of "
    "them brings a newer one, and TRITON_PTXAS_PATH names another, such as a newer toolkit's "
    "/usr/local/cuda/bin/ptxas."
)
#: Triton's third_party/nvidia/backend/compiler.py, get_ptxas: from architecture 100 on.
_BLACKWELL = (
    "ptxas-blackwell is the second ptxas that Triton brings, for GPUs from compute capability 10.0 "
    "on: a newer Triton brings a newer one, and TRITON_PTXAS_BLACKWELL_PATH names another, such as "
    "a newer toolkit's /usr/local/cuda/bin/ptxas. TRITON_PTXAS_PATH has no effect on it."
)
_BOTH = (
    "Releases of Triton that bring a ptxas-blackwell too take that one for this GPU: there it is "
    "TRITON_PTXAS_BLACKWELL_PATH that names another."
)


def _started(seen: Seen) -> str:
    """The ptxas that the text shows, where it is not the one in Triton's own wheel."""
    path = seen.versions.get("ptxas", "")
    return "" if "/triton/" in path or "-packages/" in path else path


def own_ptxas(seen: Seen) -> str:
    """Print the version of each ptxas that Triton brings."""
    package = f"$({seen.python} -c 'import triton; print(triton.__path__[0])')"
    return f"find \"{package}\" -name 'ptxas*' -type f -exec '{{}}' --version ';'"


def ptxas_commands(seen: Seen, since: str = "") -> tuple[str, ...]:
    """What Triton brings, and what is on the path: another program as a rule."""
    started, variable = _started(seen), _variable(seen)
    toolkit = cuda_version(seen.versions.get("cuda"))
    old = bool(since) and toolkit is not None and toolkit < parse_cuda(since)
    place = "/usr/local/cuda"
    if started or old:
        place = f"/usr/local/cuda-{since or 'X.Y'}"
    look = "command -v ptxas; ptxas --version"
    own: tuple[str, ...] = ()
    if started:
        look = f"{started} --version; ls -d /usr/local/cuda*"
        own = (f"env -u {variable} {seen.python} YOUR_PROGRAM.py",)
    return (
        own_ptxas(seen),
        f"{look}; echo $TRITON_PTXAS_PATH $TRITON_PTXAS_BLACKWELL_PATH",
        *own,
        f"{variable}={place}/bin/ptxas {seen.python} YOUR_PROGRAM.py",
    )


def _at_fault(seen: Seen, since: str) -> tuple[str, ...]:
    """The text names the ptxas that was started: to name that one again changes nothing."""
    started = _started(seen)
    if not started:
        return ()
    needed = f"of CUDA {since} or newer" if since else "of a newer CUDA"
    return (
        f"The text shows {started} as the one that was started: it is the one that is too old, and "
        "to name it again changes nothing. Without the variable Triton takes its own, where its "
        f"wheel brings one; else the variable has to name the ptxas {needed}, which may have to be "
        "installed beside.",
    )


def _variable(seen: Seen) -> str:
    blackwell = "ptxas-blackwell" in seen.mention.line.lower()
    return "TRITON_PTXAS_BLACKWELL_PATH" if blackwell else "TRITON_PTXAS_PATH"


def _tritons(seen: Seen, gpu: Gpu, since: str) -> tuple[str, ...]:
    """Which Triton has a ptxas that compiles for a GPU, and what the one in the text has."""
    new = gpu.capability >= (10, 0)
    needed = parse_cuda(since)
    first, mine = first_with(needed, new), wheel_of(version_of(seen, "triton"), seen.torch)
    notes = []
    if mine is not None:
        program = "ptxas-blackwell" if new and mine.blackwell is not None else "ptxas"
        cuda = cuda_text(mine.cuda_for(new))
        notes.append(f"The {program} in Triton {mine.release} is that of CUDA {cuda}.")
        if mine.cuda_for(new) >= needed:
            notes.append(
                "That one would compile for it: another is started, as TRITON_PTXAS_PATH names it "
                "or as a build of Triton's own has it."
            )
    if first is not None:
        notes.append(
            f"Triton {first.release}, which torch {first.torch[0]} asks for, and newer bring one "
            f"that compiles for it; {_variable(seen)} with a toolkit's does without another torch."
        )
    return tuple(notes)


def ptxas_notes(seen: Seen, gpu: Gpu | None, since: str = "") -> tuple[str, ...]:
    """How another ptxas is named, and an older name of the GPU's architecture."""
    blackwell = "ptxas-blackwell" in seen.mention.line.lower()
    notes = [*(_at_fault(seen, since) or (_BLACKWELL if blackwell else _OWN,))]
    if gpu is not None and since:
        notes += _tritons(seen, gpu, since)
    if gpu is not None and gpu.capability >= (10, 0) and not blackwell:
        notes.append(_BOTH)
    family = gpu_table().family(gpu.capability) if gpu is not None else None
    if family is not None and family.was is not None:
        before = capability_text(family.was).replace(".", "")
        notes.append(
            f"Before CUDA {family.since_cuda} the same GPU was called sm_{before}, so that an "
            "older ptxas does not know the name of today."
        )
    return tuple(notes)


def ptxas_too_old(seen: Seen) -> Answer:
    """``Unsupported .version 8.4; current version is '8.2'``, of a ptxas program."""
    wrote, knows = seen.mention.detail.get("ptx", ""), seen.mention.detail.get("knows", "")

    def cuda(version: str) -> str:
        releases = cuda_of_isa(version)
        return f" (CUDA {' or '.join(releases)})" if releases else ""

    cause = (
        f"The PTX is of version {wrote}{cuda(wrote)}, and the ptxas that was started knows PTX up "
        f"to {knows}{cuda(knows)}"
    )
    counted = _counted_by_triton(wrote, knows)
    notes: tuple[str, ...] = ("Neither the GPU nor the driver plays a part in it.",)
    if counted:
        cause += (
            f". Older releases of Triton write {wrote} for the ptxas of CUDA {counted}, as if each "
            "release of CUDA 12 had a PTX version of its own: then it is Triton's table that is "
            "wrong, and no toolkit is."
        )
        notes = (
            "Two ways out: a newer Triton (the one that torch asks for comes with torch), or the "
            "ptxas that Triton brings, in place of the one that TRITON_PTXAS_PATH names.",
            *notes,
        )
    else:
        cause += ": it is older than what wrote the PTX counts on."
        notes = (*ptxas_notes(seen, None), *notes)
    return seen.answer(
        "gpu-arch", "FA510", cause, owner="triton" if counted else "ptxas", direction="none",
        confidence="medium" if counted else "high", help=ptxas_commands(seen), notes=notes,
    )  # fmt: skip


def _counted_by_triton(wrote: str, knows: str) -> str:
    """The CUDA release whose PTX version early Tritons take for one too high, or "".

    They add the minor number to 8.0; CUDA 12.6 brought no PTX version of its own, so that from
    there on the sum is one too many (third_party/nvidia/backend/compiler.py, ptx_get_version).
    """
    release = f"12.{wrote[2:]}" if wrote.startswith("8.") else ""
    one_more = wrote[:2] == knows[:2] and wrote[2:].isdigit() and knows[2:].isdigit()
    if not one_more or int(wrote[2:]) != int(knows[2:]) + 1:
        return ""
    return release if release in cuda_of_isa(knows) else ""


def ptxas_failed(seen: Seen) -> Answer:
    """``Cannot find ptxas``, and a command of ptxas whose own words are not in the text."""
    gpus = gpus_of(seen)[:1] if seen.mention.detail.get("sm") else ()
    if gpus:
        family = gpu_table().family(gpus[0].capability)
        since = f", which takes CUDA {family.since_cuda} or newer" if family else ""
        cause = (
            f"ptxas failed when it compiled for {named(gpus[0])}{since}; its own words are not in "
            "the text. Most often it is older than that GPU."
        )
    else:
        cause = (
            "Triton compiles with ptxas, a program that its wheel brings, and does not find it: "
            "the wheel is not whole, or a build of Triton's own has none."
        )
    return seen.answer(
        "gpu-arch", "FA510", cause, owner="ptxas", direction="none",
        confidence="low" if gpus else "medium",
        help=(*ptxas_commands(seen), f"{seen.pip} show triton"),
        notes=ptxas_notes(seen, gpus[0] if gpus else None),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "ptxas-too-old": ptxas_too_old,
    "ptxas-failed": ptxas_failed,
}
