"""Answers about GPU code: none for this GPU, refused by the package, or not known to a compiler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.flash_limits import Limits
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table, parse_capability
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import NONE, parse_arch, what_would_run
from fa_forensics.rules.gpu_remedy import rebuild
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.clues import (
    base,
    called,
    driver_of,
    flash_rows,
    gpus_of,
    inspect_for,
    package_in,
    version_of,
)
from fa_forensics.why.texts.code_here import CodeHere, code_here, torch_code_here
from fa_forensics.why.texts.cuda_alike import nvidia_alone
from fa_forensics.why.texts.gpu_code_owner import (
    bundler,
    called_module,
    in_every_torch,
    of_bitsandbytes,
    own_copy,
    sure_of_package,
    two_runtimes,
)
from fa_forensics.why.texts.gpu_refusals import KIND, TORCH_ARCHS, build_of, refused
from fa_forensics.why.texts.torch_for_gpu import (
    covers,
    first_on_record,
    install_torch,
    old_gpu,
    wheels_with,
)

_BUILD_NOTE = (
    "A build takes the GPUs that it sees where no list is given: one made on another machine, or "
    "in an image build without a GPU, holds code for other GPUs."
)


#: FlashInfer says so of each of its kernels: "RMSNorm failed with error code ...".
_FLASHINFER = re.compile(r"\b\w{3,60} failed with error(?: code)?:? no kernel image")


def _words(seen: Seen) -> str:
    return " ".join((seen.mention.line, *seen.mention.detail.values(), *seen.versions)).lower()


def no_kernel(seen: Seen) -> Answer:
    """``no kernel image is available``, ``invalid device function``: nothing fits this GPU."""
    gpus, package = gpus_of(seen)[:1], of_bitsandbytes(seen) or package_in(seen)
    package = package or called_module(seen)
    if gpus and _torch_lacks(seen, gpus[0]):
        return _torch_answer(seen, gpus[0], _torch_list(seen))
    if gpus and package is None and (mixed := _mixed(seen, gpus[0])):
        return mixed
    rows = flash_rows(seen, package)
    if not gpus:
        return _gpu_not_named(seen, package, rows)
    gpu = gpus[0]
    bundled = bundler(seen) if rows and rows[-1].id == "fa3" else None
    if rows and rows[-1].id == "fa3":
        package = bundled or rows[-1].distributions[0]
    if rows and not any(row.accepts(gpu.capability) for row in rows):
        return refused(seen, gpu, package, rows)
    code = code_here(seen, package)
    if code is not None:
        return _looked_into(seen, gpu, package, rows, code)
    advice = rebuild(build_of(seen, package), rows, gpus)
    cause = _who_lacks_it(seen, gpu, package, bundled)
    helps: list[str] = [*advice.help]
    if torch_says_nothing(seen):
        helps.append(f"{seen.python} {TORCH_ARCHS}")
    look = inspect_for(seen, gpus, package)
    notes = [*_beliefs(gpu), *advice.notes]
    if not rows:
        notes.append(_BUILD_NOTE)
    if bundled:
        notes.insert(0, own_copy(bundled))
    if package is None and _FLASHINFER.search(seen.mention.line):
        cause = (
            f"FlashInfer, or sgl-kernel, which has FlashInfer's kernels too, holds no code for "
            f"{called(gpu)}: the words are those of its kernels. Its wheel leaves that GPU out; "
            "torch and the driver play no part."
        )
        look = inspect_for(seen, gpus, "sgl-kernel" if "sglang" in _words(seen) else "flashinfer")
    two = two_runtimes(seen)
    sure = package is not None and sure_of_package(seen, gpu, torch_says_nothing(seen))
    if two:
        notes.insert(0, two)
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none",
        confidence="high" if sure and not two else "medium",
        help=tuple(dict.fromkeys((*helps, look))), notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _who_lacks_it(seen: Seen, gpu: Gpu, package: str | None, bundled: str | None) -> str:
    """What has no code for a GPU: a package, the extension, or one of it and torch."""
    which, runs = called(gpu), what_would_run(gpu.capability)
    if package is None and (_torch_list(seen) is not None or in_every_torch(gpu)):
        return (
            f"The extension whose function failed holds no code for {which}, which runs {runs}; "
            "torch itself has code for it."
        )
    if package is None:
        return (
            f"Something holds no code for {which}, which runs {runs}: the extension whose function "
            "failed, or torch itself."
        )
    version = version_of(seen, package)
    file = f"{package} {version}" if version else package
    if bundled:
        return f"The FlashAttention 3 in {file} holds no code for {which}, which runs {runs}."
    return f"The {file} that is installed holds no code for {which}, which runs {runs}."


def _looked_into(
    seen: Seen, gpu: Gpu, package: str | None, rows: Sequence[Limits], code: CodeHere
) -> Answer:
    """The file is here: what it holds decides."""
    found = code.fit(gpu, driver_of(seen))
    name = base(code.path)
    if found.runs != NONE:
        cause = (
            f"{name} holds code that runs on {called(gpu)} ({found.reason}), so it is not this "
            "file as a whole that lacks it: torch itself or another extension does, or this one "
            "kernel."
        )
        return seen.answer(
            KIND, "FA504", cause, owner=package, direction="none", confidence="medium",
            help=(
                f"{seen.python} {TORCH_ARCHS}",
                f"{inspect_for(seen, (gpu,), package)} --kernels",
            ),
        )  # fmt: skip
    advice = rebuild(build_of(seen, package), rows, (gpu,))
    cause = (
        f"{name} holds {code.archs} alone, and none of it runs on {called(gpu)}, which runs "
        f"{what_would_run(gpu.capability)}."
    )
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none", confidence="high",
        help=(*advice.help, inspect_for(seen, (gpu,), package)),
        notes=tuple(dict.fromkeys((*_beliefs(gpu), *advice.notes))),
    )  # fmt: skip


def torch_says_nothing(seen: Seen) -> bool:
    """Whether torch's own list of GPUs is open."""
    return _torch_list(seen) is None


def _gpu_not_named(seen: Seen, package: str | None, rows: Sequence[Limits]) -> Answer:
    """The kind is clear; which of torch and the extension lacks the code is not."""
    name = package or "an extension"
    if rows and rows[-1].id == "fa3":
        return _hopper(seen, rows[-1])
    if package is None and _FLASHINFER.search(seen.mention.line):
        name = "FlashInfer, or sgl-kernel, which has FlashInfer's kernels too,"
    cause = (
        f"A kernel was started that {name} has no code of for the GPU at hand; the text does not "
        "name the GPU. The first command shows the GPU and what torch itself has code for: "
        "if torch's list covers the GPU, it is the extension that lacks it."
    )
    notes = [] if rows else [_BUILD_NOTE]
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none", confidence="medium",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, (), package)),
        notes=tuple(notes),
    )  # fmt: skip


def _hopper(seen: Seen, row: Limits) -> Answer:
    """FlashAttention 3 without a GPU named: what its build can hold at all says enough."""
    cause = (
        f'{row.name} is compiled for {" and ".join(row.archs)} alone, and code with an "a" runs '
        "on that one part, here compute capability 9.0 (H100, H200), without PTX to fall back on. "
        "On Blackwell (10.x, 12.x) no rebuild and no architecture list helps."
    )
    bundled = bundler(seen)
    owner = bundled or row.distributions[0]
    return seen.answer(
        KIND, "FA504", cause, owner=owner, direction="none", confidence="high",
        help=(f"{seen.python} {TORCH_ARCHS}", inspect_for(seen, (), owner)),
        notes=(
            *((own_copy(bundled),) if bundled else ()),
            "FlashAttention 2 (flash-attn), FlashAttention 4 (flash-attn-4) and torch's own "
            "scaled_dot_product_attention serve other GPUs.",
        ),
    )  # fmt: skip


def _torch_list(seen: Seen) -> tuple[str, ...] | None:
    """What torch holds code for: by its own message, else by the table of its wheels."""
    told = seen.mention.detail.get("supported")
    if told:
        return tuple(re.findall(r"(?:sm|compute)_\d+[af]?", told)) or None
    torch, cuda = seen.torch, seen.torch_cuda
    if torch is None or cuda is None or "git" in torch or re.search(r"\da0", torch):
        return torch_code_here(seen)  # a build of somebody's own
    if _cuda_assumed(seen):
        # Only what all wheels of a release agree on is known of the one in the text.
        every = [set(torch_archs(torch, one) or ()) for one in _cudas(torch)]
        same = bool(every) and all(one == every[0] for one in every)
        return torch_archs(torch, cuda) if same else None
    return torch_archs(torch, cuda) or torch_code_here(seen)


def _cudas(torch: str) -> tuple[str, ...]:
    return cuda_of_minor(".".join(torch.split(".")[:2]))


def _cuda_assumed(seen: Seen) -> bool:
    """Whether torch's CUDA version is that of the default wheel, as the text does not tell."""
    told = "torch_cuda" in seen.versions or "+cu" in (seen.versions.get("torch") or "")
    return seen.elsewhere and seen.place.requested is not None and not told


def _mixed(seen: Seen, gpu: Gpu) -> Answer | None:
    """torch's release is told and its CUDA version is not, and some of its wheels lack the GPU."""
    torch = seen.torch
    if torch is None or not _cuda_assumed(seen):
        return None
    having = [one for one in _cudas(torch) if covers(torch_archs(torch, one) or (), gpu)]
    lacking = [one for one in _cudas(torch) if one not in having]
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
            *_beliefs(gpu),
        ),
    )  # fmt: skip


def _torch_lacks(seen: Seen, gpu: Gpu) -> bool:
    """Whether torch itself has nothing for a GPU; no when that is not known."""
    archs = _torch_list(seen)
    if archs is None and _cuda_assumed(seen) and (torch := seen.torch) is not None:
        every = [torch_archs(torch, one) for one in _cudas(torch)]
        return bool(every) and not any(covers(one or (), gpu) for one in every)
    return archs is not None and not covers(archs, gpu)


def torch_lacks_gpu(seen: Seen) -> Answer:
    """``... with CUDA capability sm_120 is not compatible with the current PyTorch``."""
    gpus = gpus_of(seen)[:1]
    archs = _torch_list(seen)
    if not gpus:
        return _not_in_table(seen)
    return _torch_answer(seen, gpus[0], archs)


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


def _torch_answer(seen: Seen, gpu: Gpu, archs: Sequence[str] | None) -> Answer:
    """torch itself lacks the GPU: a build for another CUDA version has it, or none has."""
    family = gpu_table().family(gpu.capability)
    torch = f"torch {seen.torch} itself" if seen.torch else "torch itself"
    cause = f"{torch} has no code for {called(gpu)}; the extension is not the cause."
    if archs:
        cause = (
            f"{torch} has no code for {called(gpu)}: it holds {', '.join(archs)}. The extension "
            "is not the cause."
        )
    notes: list[str] = []
    parsed = [parse_arch(arch) for arch in archs or ()]
    newest = max((arch.capability for arch in parsed if arch), default=None)
    # torch names the least capability that it takes for a GPU that is older than that.
    old = "least" in seen.mention.detail or (newest is not None and gpu.capability < newest)
    if family is not None and old:
        notes.append(old_gpu(gpu))
    elif family is not None:
        notes.append(
            f"A torch built with CUDA {family.since_cuda} or newer can have it; no CUDA version "
            f"before {family.since_cuda} compiles for compute capability "
            f"{capability_text(gpu.capability)}."
        )
    having = wheels_with(gpu)
    if having:
        notes.append(
            f"Of torch's own wheels from {first_on_record()} on, these have code for it: {having}."
        )
    notes.append(
        "Extensions that are compiled for the torch of now have to be installed or built again for "
        "the new one."
    )
    return seen.answer(
        KIND, "FA504", cause, owner="torch", direction="none", confidence="high",
        help=(*install_torch(seen, gpu), f"{seen.python} {TORCH_ARCHS}"), notes=tuple(notes),
    )  # fmt: skip


def _beliefs(gpu: Gpu) -> tuple[str, ...]:
    family = gpu_table().family(gpu.capability)
    if family is not None and family.integrated:
        number = capability_text(gpu.capability).replace(".", "")
        return (
            f"It is a Tegra part (Jetson): machine code for GPUs of the same major number does not "
            f"run on it, only its own (sm_{number}), or PTX.",
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


def lost_function(seen: Seen) -> Answer:
    """``named symbol not found``, ``an illegal instruction was encountered`` on the GPU."""
    answer = no_kernel(seen)
    note = (
        "The text fits a fault of the kernel itself too; that the code is for another GPU is the "
        "first thing to rule out."
    )
    known = answer.owner == "bitsandbytes" and bool(gpus_of(seen))
    confidence = "medium" if known else "low"
    return replace(answer, confidence=confidence, notes=(note, *answer.notes))


ANSWERERS: dict[str, Answerer] = {
    "no-kernel-image": nvidia_alone(no_kernel),
    "invalid-device-function": nvidia_alone(no_kernel),
    "gpu-not-supported-by-torch": torch_lacks_gpu,
    "gpu-warned": only_warned,
    "named-symbol-not-found": nvidia_alone(lost_function),
    "illegal-instruction": nvidia_alone(lost_function),
}
