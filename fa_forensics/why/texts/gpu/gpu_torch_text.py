"""Answers about torch itself: it has no code for a GPU, or only warns of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.drivers import last_driver
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table, parse_capability
from fa_forensics.facts.python_api import partner_of, torch_of
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs, torch_minors
from fa_forensics.report_why import Answer
from fa_forensics.rules.arch_choice import oldest_toolkit
from fa_forensics.rules.coverage import parse_arch
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import called, gpus_of, inspect_for
from fa_forensics.why.texts.gpu.code_here import torch_code_here
from fa_forensics.why.texts.gpu.driver_age import in_image
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, TORCH_ARCHS
from fa_forensics.why.texts.gpu.torch_for_gpu import (
    covers,
    first_on_record,
    install_torch,
    machine_with,
    old_gpu,
    wheels_with,
    why_that_one,
)


def torch_lacks_gpu(seen: Seen) -> Answer:
    """``... with CUDA capability sm_120 is not compatible with the current PyTorch``."""
    gpus = gpus_of(seen)[:1]
    archs = torch_list(seen)
    if not gpus:
        return _not_in_table(seen)
    return torch_answer(seen, gpus[0], archs)


def _not_in_table(seen: Seen) -> Answer:
    """A GPU that torch names and no table has: most often one from before all of them."""
    number = re.sub(r"^sm_(\d+)(\d)$", r"\1.\2", seen.mention.detail.get("sm", ""))
    name = seen.mention.detail.get("gpu") or "this GPU"
    gone = gpu_table().gone.get(parse_capability(number)) if "." in number else None
    if gone is None:
        return seen.answer(
            KIND, "FA504",
            "torch itself has no code for this GPU, so that no extension can be the cause.",
            owner="torch", direction="none", confidence="high",
            help=(f"{seen.python} {TORCH_ARCHS}",),
        )  # fmt: skip
    cause = (
        f"torch itself has no code for {name} (compute capability {number}): it is older than all "
        f"GPUs that torch's wheels on record serve. CUDA {gone} is the last that compiles for it, "
        "so that no newer torch, CUDA or driver helps; the extension is not the cause."
    )
    return seen.answer(
        KIND, "FA504", cause, owner="torch", direction="none", confidence="high",
        help=(f"{seen.python} {TORCH_ARCHS}",),
        notes=("What is left is a newer GPU, the CPU, or a torch of that time built from source.",),
    )  # fmt: skip


def torch_answer(seen: Seen, gpu: Gpu, archs: Sequence[str] | None) -> Answer:
    """torch itself lacks the GPU: a build for another CUDA version has it, or none has."""
    family = gpu_table().family(gpu.capability)
    release = seen.torch
    if release and _cuda_assumed(seen):
        release = release.split("+")[0]  # the text names no CUDA of torch's own
    torch = f"torch {release} itself" if release else "torch itself"
    if release is None and "torch_cuda" in seen.versions:
        torch = f"The torch for CUDA {seen.versions['torch_cuda']} itself"
    other = _is_another(seen, gpu, archs)
    torch = "The torch that runs" if other else torch
    cause = f"{torch} has no code for {called(gpu)}; the extension is not the cause."
    if archs:
        cause = (
            f"{torch} has no code for {called(gpu)}: it holds {', '.join(archs)}. The extension "
            "is not the cause."
        )
    notes = [*other]
    parsed = [parse_arch(arch) for arch in archs or ()]
    newest = max((arch.capability for arch in parsed if arch), default=None)
    # torch names the least capability that it takes for a GPU that is older than that.
    old = "least" in seen.mention.detail or (newest is not None and gpu.capability < newest)
    # And a CUDA that all its wheels were built with, none of them for this GPU, has dropped it.
    old = old or (not archs and gpu.capability < (7, 5) and "torch_cuda" in seen.versions)
    machine = machine_with(seen, gpu)
    having = wheels_with(gpu, machine)
    if family is not None and family.integrated:
        notes.append(_WITHOUT_PTX if having else _OF_JETPACK)
    elif family is not None and old:
        notes.append(old_gpu(gpu, machine))
    elif family is not None:
        since = oldest_toolkit(gpu.capability)
        notes.append(
            f"A torch built with CUDA {since} or newer can have code that runs on it; no CUDA "
            f"version before {since} makes any for compute capability "
            f"{capability_text(gpu.capability)}."
        )
    if having:
        notes.append(_wheels_for_it(machine, having))
    if having and release is None and gpu.capability < (10, 0):
        notes.append(
            "Where a project asks for one release of torch, that release for another CUDA is on "
            "torch's own index (its address ends in whl/cu and the number)."
        )
    notes.append(
        "Extensions that are compiled for the torch of now have to be installed or built again for "
        "the new one."
    )
    commands = install_torch(seen, gpu)
    notes[:0] = [_IN_IMAGE] if in_image(seen) else []
    notes += [*why_that_one(seen, commands), *_bound_to_torch(seen, commands)]
    return seen.answer(
        KIND, "FA504", cause, owner="torch", direction="none", confidence="high",
        help=(*commands, f"{seen.python} {_WHICH if other else TORCH_ARCHS}"), notes=tuple(notes),
    )  # fmt: skip


#: Since 1.3.1 torch's own binaries begin with 3.7 (pytorch issue 31319).
_FIRST_SINCE, _SINCE = (3, 7), (1, 3, 1)


def older_than_torch(seen: Seen, gpus: Sequence[Gpu]) -> Answer | None:
    """A GPU from before all that the binaries of the text's torch serve; None for another."""
    release = re.match(r"(\d{1,2})\.(\d{1,3})\.(\d{1,2})", seen.torch or "")
    told, name = seen.place.told, seen.versions.get("old_gpu", "")
    own = told is not None and "source" in told.torch_by
    if release is None or own or tuple(map(int, release.groups())) < _SINCE:
        return None
    if gpus and gpus[0].capability < _FIRST_SINCE:
        which, value = called(gpus[0]), capability_text(gpus[0].capability)
    elif not gpus and name and "GK210" not in name and last_driver(name) is not None:
        which, value = f"{name} (of before compute capability 3.7)", "X.Y"
    else:
        return None
    cause = (
        f"Most likely torch {seen.torch} itself has no code for {which}: its binaries begin with "
        "compute capability 3.7 since 1.3.1. The GPU is too old for it, and neither a driver nor a "
        "newer torch changes that."
    )
    return seen.answer(
        KIND, "FA504", cause, owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}",),
        notes=(
            "What is left: an older torch (1.2 has 3.5), torch compiled from source with "
            f"TORCH_CUDA_ARCH_LIST={value} and a CUDA that still compiles for the GPU (up to 10.2 "
            "for 3.0, 11.8 for 3.5), a newer GPU, or the CPU.",
        ),
    )  # fmt: skip


#: Packages whose wheels ask pip for one release of torch.
_BOUND = ("xformers", "vllm", "torchaudio", "torchvision")


def _bound_to_torch(seen: Seen, commands: Sequence[str]) -> list[str]:
    """The packages of the text that ask for the torch of now, and their releases for the new."""
    new = re.search(r'"torch==(\d{1,2}\.\d{1,2}\.\d)', commands[0] if commands else "")
    notes = []
    for name in _BOUND:
        version = seen.versions.get(f"pkg:{name}", "").partition("+")[0]
        own = torch_of(name, version) if version else None
        fitting = partner_of(name, new[1]) if new is not None else None
        if own and new is not None and fitting and own != new[1] and fitting != version:
            notes.append(
                f"{name} {version} asks pip for torch {own}, so that its install brings that one "
                f"back: for torch {new[1]} it is {name} {fitting}."
            )
    return notes


_OF_JETPACK = (
    "It is a Tegra part (Jetson): torch's own wheels for aarch64 are for servers, and those that "
    "NVIDIA makes for its JetPack hold code for it. Extensions have to be built for that torch."
)
_WITHOUT_PTX = (
    "Machine code for other GPUs of this generation (sm_100, sm_120) does not run on it, and PTX "
    "only where the wheel has some that is not newer than the GPU: the wheels that have code of "
    "its own take the place of this one."
)


def _wheels_for_it(machine: str, having: str) -> str:
    """Which of torch's own wheels on record have code for a GPU."""
    first = first_on_record(machine)
    if machine == "aarch64":
        return (
            f"Of torch's own wheels for aarch64 from {first} on, these have code for it: {having}."
        )
    return f"Of torch's own wheels from {first} on, these have code for it: {having}."


_WHICH = (
    "-c 'import sys, torch; print(sys.executable, torch.__file__, torch.__version__, "
    "torch.cuda.get_arch_list())'"
)


def _is_another(seen: Seen, gpu: Gpu, archs: Sequence[str] | None) -> tuple[str, ...]:
    """What to say where torch's own list is not that of the torch that the text names.

    All wheels on record of that release or CUDA have the GPU, and the list in the message has not.
    """
    told, cuda = seen.mention.detail.get("supported"), seen.versions.get("torch_cuda")
    if not told or not archs or cuda is None or covers(archs, gpu):
        return ()
    torch = seen.torch
    machine = seen.place.machine
    minors = (torch,) if torch else _with_build_for(cuda, machine)
    every = [known for one in minors if (known := torch_archs(one, cuda, machine)) is not None]
    if not every or not all(covers(known, gpu) for known in every):
        return ()
    named = f"torch {torch}" if torch else f"a torch for CUDA {cuda}"
    return (
        f"By its list, that is not {named}: those wheels have code for this GPU. Another torch "
        "runs than the one that the text names, in another environment or with a Python that the "
        "program brings itself: it has to be installed there, by that Python (the last command, "
        "run from the program itself, says which one it is). On Windows the package index has "
        "torch without CUDA: --index-url https://download.pytorch.org/whl/cuNNN has it.",
    )


_IN_IMAGE = (
    "In a container what pip installs is lost with it: the line that installs torch in the image "
    "(its Dockerfile or lock file, with the index .../whl/cuNNN) is the one to change, or a tag "
    "of the image with a torch for a CUDA named below is to be taken."
)


def torchs_with(seen: Seen, gpu: Gpu) -> tuple[str, ...]:
    """Which of torch's own wheels have a GPU, where torch may be what lacks it.

    Not for a GPU that the oldest on record have: nearly all wheels have it then.
    """
    machine = machine_with(seen, gpu)
    first, having = first_on_record(machine), wheels_with(gpu, machine)
    every = cuda_of_minor(first, machine)
    old = any(covers(torch_archs(first, one, machine) or (), gpu) for one in every)
    if old or not having or torch_list(seen) is not None:
        return ()
    if machine == "aarch64":
        return (f"If it is torch that lacks it: {_wheels_for_it(machine, having)}",)
    return (
        f"If it is torch that lacks it: of torch's own wheels from {first} on, these "
        f"have code for this GPU: {having}.",
    )


def torch_lacks(seen: Seen, gpu: Gpu) -> bool:
    """Whether torch itself has nothing for a GPU; no when that is not known."""
    archs = torch_list(seen)
    told, machine = seen.versions.get("torch_cuda"), seen.place.machine
    if archs is None and _tegra_before_7(gpu) and "+cu" in (seen.torch or ""):
        return True  # torch's own wheels, which have had no code for these boards
    if archs is None and seen.torch is None and told is not None:
        every = [torch_archs(one, told, machine) for one in _with_build_for(told, machine)]
        return bool(every) and not any(covers(one or (), gpu) for one in every)
    if archs is None and _cuda_assumed(seen) and (torch := seen.torch) is not None:
        every = [torch_archs(torch, one, machine) for one in _cudas(torch, machine)]
        return bool(every) and not any(covers(one or (), gpu) for one in every)
    return archs is not None and not covers(archs, gpu)


def mixed(seen: Seen, gpu: Gpu) -> Answer | None:
    """torch's release is told and its CUDA version is not, and some of its wheels lack the GPU."""
    torch = seen.torch
    if torch is None or not _cuda_assumed(seen):
        return None
    machine = seen.place.machine
    cudas = _cudas(torch, machine)
    having = [one for one in cudas if covers(torch_archs(torch, one, machine) or (), gpu)]
    lacking = [one for one in cudas if one not in having]
    if not having or not lacking:
        return None
    release = torch.split("+")[0]
    cause = (
        f"Either torch itself or the extension has no code for {called(gpu)}. torch {release} has "
        f"it in its wheels for CUDA {', '.join(having)}, and not in those for CUDA "
        f"{', '.join(lacking)}; the text does not say which one this is (a toolkit's version says "
        "nothing of it)."
    )
    return seen.answer(
        KIND, "FA504", cause, owner=None, direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, (gpu,), None)),
        notes=(
            "The first command lists what torch has code for: where the GPU is not covered, torch "
            "comes first, and then an extension that was built for it.",
            *beliefs(gpu),
        ),
    )  # fmt: skip


def torch_list(seen: Seen) -> tuple[str, ...] | None:
    """What torch holds code for: by its own message, else by the table of its wheels."""
    told = seen.mention.detail.get("supported")
    if told:
        return tuple(re.findall(r"(?:sm|compute)_\d+[af]?", told)) or None
    torch, cuda, machine = seen.torch, seen.torch_cuda, seen.place.machine
    if torch is None or cuda is None or "git" in torch or re.search(r"\da0", torch):
        return torch_code_here(seen)  # a build of somebody's own
    if _cuda_assumed(seen) and _cudas(torch, machine):
        # Only what all wheels of a release agree on is known of the one in the text.
        every = [torch_archs(torch, one, machine) or () for one in _cudas(torch, machine)]
        common = tuple(arch for arch in every[0] if all(arch in one for one in every[1:]))
        same = all(len(one) == len(common) for one in every)
        known = gpus_of(seen)[:1]
        alike = same or (bool(known) and all(covers(one, known[0]) for one in every))
        return common or None if alike else None
    return torch_archs(torch, cuda, machine) or torch_code_here(seen)


def _cudas(torch: str, machine: str) -> tuple[str, ...]:
    return cuda_of_minor(".".join(torch.split(".")[:2]), machine)


def _with_build_for(cuda: str, machine: str) -> tuple[str, ...]:
    """The minor releases on record that have a wheel for a CUDA."""
    return tuple(one for one in torch_minors(machine) if cuda in cuda_of_minor(one, machine))


def _tegra_before_7(gpu: Gpu) -> bool:
    """Whether a GPU is that of a Jetson whose torch NVIDIA makes: all up to JetPack 6."""
    family = gpu_table().family(gpu.capability)
    return family is not None and bool(family.integrated) and gpu.capability < (11, 0)


def _cuda_assumed(seen: Seen) -> bool:
    """Whether torch's CUDA version is that of the default wheel, as the text does not tell."""
    told = "torch_cuda" in seen.versions or "+cu" in (seen.versions.get("torch") or "")
    return seen.elsewhere and seen.place.requested is not None and not told


def torch_says_nothing(seen: Seen) -> bool:
    """Whether torch's own list of GPUs is open."""
    return torch_list(seen) is None


def beliefs(gpu: Gpu) -> tuple[str, ...]:
    """What is often believed of code for a GPU of this kind, and is not so."""
    family = gpu_table().family(gpu.capability)
    if family is not None and family.integrated:
        number = capability_text(gpu.capability).replace(".", "")
        return (
            f"It is a Tegra part (Jetson): machine code for GPUs of the same major number does not "
            f"run on it, only its own (sm_{number}), or PTX.",
        )
    if gpu.capability[0] == 12:
        return (
            "Code for sm_90 does not run on it, and neither does code for sm_100 or sm_103 (10.x "
            "is another family); sm_90a code runs on 9.0 alone; only PTX moves forward.",
        )
    if gpu.capability >= (10, 0):
        return (
            "Code for sm_90 does not run on it, and sm_90a code runs on 9.0 alone; only PTX moves "
            "forward.",
        )
    if gpu.capability < (8, 0):
        return (
            "Code for newer GPUs never runs on an older one; and a build with this GPU in its list "
            "helps only where the kernels are written for it: many use instructions of compute "
            "capability 8.0, which no list gives to an older GPU.",
        )
    return ()


def only_warned(seen: Seen) -> Answer:
    """torch warns of a GPU that is newer than its list, and of the same major capability."""
    most = seen.mention.detail.get("most", "")
    gpus = gpus_of(seen)[:1]
    which = called(gpus[0]) if gpus else "this GPU"
    cause = (
        f"torch only warns: its newest code is for compute capability {most}, and machine code "
        f"runs on newer GPUs of the same major number too, so on {which}. Whatever failed has "
        "another cause."
    )
    return seen.answer(
        KIND, "FA898", cause, owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}",),
        notes=("An extension needs code for this GPU of its own: inspect shows what it has.",),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "gpu-not-supported-by-torch": torch_lacks_gpu,
    "gpu-warned": only_warned,
}
