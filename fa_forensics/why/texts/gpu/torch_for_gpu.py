"""Which of torch's own wheels have code for a GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.drivers import driver_table, parse_cuda
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.facts.torch_archs import X86, cuda_of_minor, torch_archs, torch_minors
from fa_forensics.facts.torch_index import TORCH_INDEX
from fa_forensics.patterns import lazily
from fa_forensics.rules.coverage import NONE, code_for, fit
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.clues import cuda_version, gpus_of, serves
from fa_forensics.why.texts.gpu.jetson_text import is_jetson


def covers(archs: Sequence[str], gpu: Gpu) -> bool:
    """Whether one of these architectures (``sm_80``, ``compute_90``) runs on a GPU."""
    return any(fit(code_for(arch), gpu.capability).runs != NONE for arch in archs)


def old_gpu(gpu: Gpu, machine: str = X86) -> str:
    """Why newer builds of torch lack an old GPU, and which one has it."""
    capability = capability_text(gpu.capability)
    if machine != X86 and not wheels_with(gpu, machine):
        return (
            f"No wheel of torch for {machine} that is on record (from {first_on_record(machine)} "
            f"on) has code for compute capability {capability}: torch is compiled from source "
            f"with TORCH_CUDA_ARCH_LIST={capability}, or taken from whoever makes the machine."
        )
    newest = torch_minors(machine)[-1]
    if all(
        covers(torch_archs(newest, cuda, machine) or (), gpu)
        for cuda in cuda_of_minor(newest, machine)
    ):
        return (
            f"It is this build of torch that leaves compute capability {capability} out: torch's "
            "own wheels have code for it up to the newest release on record."
        )
    family = gpu_table().family(gpu.capability)
    last = family.last_cuda if family else None
    until = f"; CUDA {last} is the last that compiles for it" if last else ""
    other = " A newer GPU (T4, L4) is the other way." if gpu.capability < (7, 5) else ""
    return (
        f"Newer builds of torch leave compute capability {capability} out"
        f"{until}. A build of torch for an older CUDA version still has it.{other}"
    )


def wheels_with(gpu: Gpu, machine: str = X86) -> str:
    """``2.7 to 2.11 for CUDA 12.8, …``: one clause for each CUDA version, newest last.

    Of the releases that the table of torch's architectures has (``first_on_record`` and later).
    """
    found: dict[str, list[str]] = {}
    for minor in torch_minors(machine):
        for cuda in cuda_of_minor(minor, machine):
            archs = torch_archs(minor, cuda, machine)
            if archs is not None and covers(archs, gpu):
                found.setdefault(cuda, []).append(minor)
    clauses = []
    for cuda in sorted(found, key=parse_cuda):
        minors = found[cuda]
        span = minors[0] if len(minors) == 1 else f"{minors[0]} to {minors[-1]}"
        clauses.append(f"{span} for CUDA {cuda}")
    return ", ".join(clauses)


def first_on_record(machine: str = X86) -> str:
    """The oldest minor release of torch whose architectures are known."""
    return torch_minors(machine)[0]


#: The number of a release alone: no nightly and nothing built by somebody.
_RELEASE = lazily(r"(\d{1,2}\.\d{1,2}\.\d{1,2})(?:\+(?:cu\d{2,3}|cpu))?")


def torch_index(seen: Seen, wanted: str, cuda: str) -> str:
    """Torch from its own index for one CUDA."""
    return f'{seen.pip} install "{wanted}" --index-url {TORCH_INDEX}{cuda_label(cuda)}'


def _from_index(seen: Seen) -> bool:
    """Whether torch's own index can have what the text's torch is replaced by.

    Not on a Jetson from before JetPack 7, which takes NVIDIA's wheels alone, and not where
    somebody else built that torch (conda's, a distribution's).
    """
    told = seen.place.told
    if told is not None and told.torch_by:
        return False
    return not is_jetson(seen) or any(gpu.capability >= (11, 0) for gpu in gpus_of(seen))


def machine_with(seen: Seen, gpu: Gpu) -> str:
    """The machine whose wheels count for a GPU: a board's own is in none but Arm machines."""
    family = gpu_table().family(gpu.capability)
    return "aarch64" if family is not None and family.integrated else seen.place.machine


def served(seen: Seen, minor: str) -> bool:
    """Whether a minor release has a wheel for the Python of the text, as far as that is told."""
    atlas = seen.tables.atlas
    builds = atlas.builds(seen.place.machine) if atlas is not None else ()
    of_minor = [build for build in builds if build.release.startswith(f"{minor}.")]
    return not of_minor or any(serves(build, seen) for build in of_minor)


def same_for(seen: Seen, cuda: str) -> str | None:
    """Torch's own release for another CUDA, as pip gets it; None where it is no release."""
    release = _RELEASE.fullmatch(seen.torch or "")
    if release is None or not _from_index(seen):
        return None
    if seen.place.machine == "aarch64" and torch_archs(release[1], cuda, "aarch64") is None:
        return None
    tag = cuda_label(cuda)
    return f'{seen.pip} install "torch=={release[1]}+{tag}" --extra-index-url {TORCH_INDEX}{tag}'


def newest_for(seen: Seen, major: int) -> tuple[str, str] | None:
    """(the newest torch for a CUDA major version, from torch's own index, a note on it)."""
    machine = seen.place.machine
    rows = [
        (minor, cuda)
        for minor in torch_minors(machine)
        for cuda in cuda_of_minor(minor, machine)
        if parse_cuda(cuda)[0] == major and served(seen, minor)
    ]
    if not rows or not _from_index(seen):
        return None
    newest, lowest = rows[-1][0], min((c for m, c in rows if m == rows[-1][0]), key=parse_cuda)
    minors = [minor for minor, cuda in rows if cuda == lowest]
    tag = cuda_label(lowest)
    return (
        f'{seen.pip} install "torch=={newest}.*" --index-url {TORCH_INDEX}{tag}',
        f"torch {minors[0]} to {minors[-1]} have a build for CUDA {lowest} on torch's own index "
        f"(its address ends in whl/{tag}): where the program asks for one of these releases, that "
        "release from there is the one to take. A package with CUDA code of its own, as vLLM and "
        "LMDeploy have, is compiled for one CUDA and one torch: its own build for CUDA "
        f"{major} has to go with it, where the project has one. torchvision and torchaudio, where "
        "they are installed, are named in the same command.",
    )


def cuda_with(minor: str, gpu: Gpu, machine: str = X86) -> str | None:
    """The newest CUDA, up to 12 where there is one, whose wheel of a release serves a GPU."""
    every = cuda_of_minor(minor, machine)
    having = [one for one in every if covers(torch_archs(minor, one, machine) or (), gpu)]
    modest = [one for one in having if parse_cuda(one)[0] <= 12]
    return max(modest or having, key=parse_cuda, default=None)


def _by_index(seen: Seen, gpu: Gpu) -> str | None:
    """From torch's own index: the same release for another CUDA, or one for an old GPU."""
    if not _from_index(seen):
        return None
    machine = machine_with(seen, gpu)
    release = _RELEASE.fullmatch(seen.torch or "")
    if release is not None:
        cuda = cuda_with(".".join(release[1].split(".")[:2]), gpu, machine)
        if cuda is None:
            return None
        tag = cuda_label(cuda)
        wanted = f'"torch=={release[1]}+{tag}" --extra-index-url {TORCH_INDEX}{tag}'
        return f"{seen.pip} install --force-reinstall --no-cache-dir {wanted}"
    if seen.torch is not None or (gpu.capability >= (7, 5) and machine != "aarch64"):
        return None
    for minor in reversed(torch_minors(machine)):
        cuda = cuda_with(minor, gpu, machine)
        if cuda is not None and served(seen, minor):
            wanted = f'"torch=={minor}.*" --index-url {TORCH_INDEX}{cuda_label(cuda)}'
            return f"{seen.pip} install --force-reinstall --no-cache-dir {wanted}"
    return None


def why_that_one(seen: Seen, commands: Sequence[str]) -> tuple[str, ...]:
    """Why ``install_torch`` takes no newer release, where the text names no torch."""
    found = re.search(r'"torch==(\d+\.\d+\.\d+)"$', commands[0] if commands else "")
    atlas = seen.tables.atlas
    if found is None or atlas is None or seen.torch is not None:
        return ()
    from fa_forensics.why.texts.builds.toolkit_commands import on_windows

    if on_windows(seen):
        return ()  # where the package index has torch without CUDA
    last = [build for build in atlas.builds(seen.place.machine) if serves(build, seen)][-1]
    if last.release == found[1] or (last.cuda_major or 0) < 13:
        return ()
    return (
        f"torch {found[1]} is the last whose wheel on the package index is for CUDA 12: newer ones "
        f"are for CUDA 13, which takes driver {driver_table().floors[13]} or newer.",
    )


def install_torch(seen: Seen, gpu: Gpu) -> tuple[str, ...]:
    """The release in use for another CUDA, else the nearest whose wheel has code for a GPU."""
    other = _by_index(seen, gpu)
    if other is not None:
        return (other,)
    atlas = seen.tables.atlas
    if atlas is None:
        return ()
    from fa_forensics.why.torch_names.history import order_key

    having = []
    machine = machine_with(seen, gpu)
    for build in atlas.builds(machine):
        archs = torch_archs(build.release, build.cuda, machine) if build.cuda else None
        if archs is not None and covers(archs, gpu) and serves(build, seen):
            having.append(build)
    if not having:
        return ()
    if seen.torch is None:
        # CUDA 13 takes a new driver; without a word about the torch in use, the step before.
        modest = [build for build in having if build.cuda_major and build.cuda_major <= 12]
        release = (modest or having)[-1].release
    else:
        own = order_key(seen.torch.split("+")[0])
        later = [build for build in having if order_key(build.release) >= own]
        release = (later[0] if later else having[-1]).release
    return (f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"',)


def most_of_cuda(seen: Seen) -> tuple[str, ...]:
    """The newest GPUs that torch's CUDA compiles for, where the text does not name the GPU."""
    told = cuda_version(seen.torch_cuda)
    if told is None or told[0] < 8:
        return ()
    rows = [family for family in gpu_table().families if family.column and not family.integrated]
    known = [row for row in rows if parse_cuda(row.since_cuda) <= told]
    majors = {row.capability[0] for row in known}
    # Code for 8.6 runs on 8.9: only a new major version is out of reach.
    later = {row.capability[0]: row for row in reversed(rows) if row.capability[0] not in majors}
    if not known or not later:
        return ()
    most = max(known, key=lambda row: row.capability)
    asks = ", ".join(
        f"{capability_text(row.capability)} ({row.label}) takes CUDA {row.since_cuda}"
        for row in reversed(later.values())
    )
    return (
        f"Torch's CUDA {told[0]}.{told[1]} compiles for compute capability "
        f"{capability_text(most.capability)} at most ({most.label}). For a GPU of a newer "
        f"generation no list of targets gives machine code on that torch: {asks} or newer. A "
        "torch for such a CUDA comes first, and the extension is then built with its toolkit.",
    )
