"""Answers about GPU code: none for this GPU, refused by the package, or not known to a compiler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.drivers import parse_cuda
from fa_forensics.facts.flash_limits import Limits, all_limits
from fa_forensics.facts.gpus import Gpu, capability_text, gpu_table
from fa_forensics.facts.torch_archs import cuda_of_minor, torch_archs, torch_minors
from fa_forensics.report import Answer
from fa_forensics.rules.coverage import NONE, CodeGroup, fit, parse_arch, what_would_run
from fa_forensics.rules.gpu_remedy import Build, rebuild
from fa_forensics.why.clues import (
    called,
    distribution_of,
    flash_rows,
    gpus_of,
    inspect_for,
    jobs_of,
    package_in,
    raw_python,
    version_of,
)
from fa_forensics.why.seen import Answerer, Seen

KIND = "gpu-arch"

#: Tells torch's own code and the extension's apart.
_TORCH_ARCHS = (
    "-c 'import torch; print(torch.__version__, torch.cuda.get_device_capability(), "
    "torch.cuda.get_arch_list())'"
)
_BUILD_NOTE = (
    "A build takes the GPUs that it sees where no list is given: one made on another machine, or "
    "in an image build without a GPU, holds code for other GPUs."
)


def no_kernel(seen: Seen) -> Answer:
    """``no kernel image is available``, ``invalid device function``: nothing fits this GPU."""
    gpus, package = gpus_of(seen)[:1], package_in(seen)
    if gpus and _torch_lacks(seen, gpus[0]):
        return _torch_answer(seen, gpus[0], _torch_list(seen))
    rows = flash_rows(seen, package)
    if not gpus:
        return _gpu_not_named(seen, package, rows)
    gpu = gpus[0]
    if rows and rows[-1].id == "fa3":
        package = rows[-1].distributions[0]
    if rows and not any(row.accepts(gpu.capability) for row in rows):
        return _refused(seen, gpu, package, rows)
    advice = rebuild(_build(seen, package), rows, gpus)
    name = package or "the extension"
    version = version_of(seen, package) if package else None
    called_file = f"{name} {version}" if version else name
    cause = (
        f"The {called_file} that is installed holds no code for {called(gpu)}, which runs "
        f"{what_would_run(gpu.capability)}."
    )
    helps: list[str] = [*advice.help]
    if torch_says_nothing(seen):
        helps.append(f"{seen.python} {_TORCH_ARCHS}")
    look = inspect_for(seen, gpus, package)
    notes = [*_beliefs(gpu), *advice.notes]
    if not rows:
        notes.append(_BUILD_NOTE)
    if package is None:
        cause = (
            f"Something holds no code for {called(gpu)}, which runs "
            f"{what_would_run(gpu.capability)}: the extension whose function failed, or torch "
            "itself."
        )
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none",
        confidence="high" if package else "medium",
        help=tuple(dict.fromkeys((*helps, look))), notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def torch_says_nothing(seen: Seen) -> bool:
    """Whether torch's own list of GPUs is open."""
    return _torch_list(seen) is None


def _gpu_not_named(seen: Seen, package: str | None, rows: Sequence[Limits]) -> Answer:
    """The kind is clear; which of torch and the extension lacks the code is not."""
    name = package or "an extension"
    if rows and rows[-1].id == "fa3":
        return _hopper(seen, rows[-1])
    cause = (
        f"A kernel was started that {name} has no code of for the GPU at hand; the text does not "
        "name the GPU. The first command shows the GPU and what torch itself has code for: "
        "if torch's list covers the GPU, it is the extension that lacks it."
    )
    notes = [] if rows else [_BUILD_NOTE]
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none", confidence="medium",
        help=(f"{seen.python} {_TORCH_ARCHS}", inspect_for(seen, (), package)),
        notes=tuple(notes),
    )  # fmt: skip


def _hopper(seen: Seen, row: Limits) -> Answer:
    """FlashAttention 3 without a GPU named: what its build can hold at all says enough."""
    cause = (
        f'{row.name} is compiled for {" and ".join(row.archs)} alone, and code with an "a" runs '
        "on that one part, here compute capability 9.0 (H100, H200), without PTX to fall back on. "
        "On Blackwell (10.x, 12.x) no rebuild and no architecture list helps."
    )
    return seen.answer(
        KIND, "FA504", cause, owner=row.distributions[0], direction="none", confidence="high",
        help=(f"{seen.python} {_TORCH_ARCHS}", inspect_for(seen, (), row.distributions[0])),
        notes=(
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
        return None  # a build of somebody's own
    return torch_archs(torch, cuda)


def _torch_lacks(seen: Seen, gpu: Gpu) -> bool:
    """Whether torch itself has nothing for a GPU; no when that is not known."""
    archs = _torch_list(seen)
    return archs is not None and not _covers(archs, gpu)


def _covers(archs: Sequence[str], gpu: Gpu) -> bool:
    return any(fit(_code(arch), gpu.capability).runs != NONE for arch in archs)


def _code(arch: str) -> CodeGroup:
    kind = "ptx" if arch.startswith("compute") else "cubin"
    return CodeGroup(kind, arch, None, False, False, 1, 0, frozenset((0,)))


def torch_lacks_gpu(seen: Seen) -> Answer:
    """``... with CUDA capability sm_120 is not compatible with the current PyTorch``."""
    gpus = gpus_of(seen)[:1]
    archs = _torch_list(seen)
    if not gpus:
        return seen.answer(
            KIND, "FA504",
            "torch itself has no code for this GPU, so that no extension can be the cause.",
            owner="torch", direction="none", confidence="high",
            help=(f"{seen.python} {_TORCH_ARCHS}",),
        )  # fmt: skip
    return _torch_answer(seen, gpus[0], archs)


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
        notes.append(_old_gpu(gpu))
    elif family is not None:
        notes.append(
            f"A torch built with CUDA {family.since_cuda} or newer can have it; no CUDA version "
            f"before {family.since_cuda} compiles for compute capability "
            f"{capability_text(gpu.capability)}."
        )
    having = _wheels_with(gpu)
    if having:
        notes.append(f"torch's own wheels with code for it: {having}.")
    return seen.answer(
        KIND, "FA504", cause, owner="torch", direction="none", confidence="high",
        help=(*_install_torch(seen, gpu), f"{seen.python} {_TORCH_ARCHS}"), notes=tuple(notes),
    )  # fmt: skip


def _old_gpu(gpu: Gpu) -> str:
    family = gpu_table().family(gpu.capability)
    last = family.last_cuda if family else None
    until = f"; CUDA {last} is the last that compiles for it" if last else ""
    return (
        f"Newer builds of torch leave compute capability {capability_text(gpu.capability)} out"
        f"{until}. A build of torch for an older CUDA version still has it."
    )


def _wheels_with(gpu: Gpu) -> str:
    """``2.7 to 2.11 for CUDA 12.8, …``: one clause for each CUDA version, newest last."""
    found: dict[str, list[str]] = {}
    for minor in torch_minors():
        for cuda in cuda_of_minor(minor):
            archs = torch_archs(minor, cuda)
            if archs is not None and _covers(archs, gpu):
                found.setdefault(cuda, []).append(minor)
    clauses = []
    for cuda in sorted(found, key=parse_cuda):
        minors = found[cuda]
        span = minors[0] if len(minors) == 1 else f"{minors[0]} to {minors[-1]}"
        clauses.append(f"{span} for CUDA {cuda}")
    return ", ".join(clauses)


def _install_torch(seen: Seen, gpu: Gpu) -> tuple[str, ...]:
    """The release nearest to the one in use whose wheel on the index has code for a GPU."""
    atlas = seen.tables.atlas
    if atlas is None:
        return ()
    from fa_forensics.why.history import order_key

    having = []
    for build in atlas.builds(seen.place.machine):
        archs = torch_archs(build.release, build.cuda) if build.cuda else None
        if archs is not None and _covers(archs, gpu):
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _beliefs(gpu: Gpu) -> tuple[str, ...]:
    if gpu.capability >= (10, 0):
        return (
            "Code for sm_90 does not run on it, and sm_90a code runs on 9.0 alone; only PTX moves "
            "forward.",
        )
    if gpu.capability < (8, 0):
        return ("Code for newer GPUs never runs on an older one.",)
    return ()


def _build(seen: Seen, package: str | None) -> Build:
    return Build(raw_python(seen), distribution_of(seen, package), seen.torch_cuda, jobs_of(seen))


def ampere_only(seen: Seen) -> Answer:
    """``FlashAttention only supports Ampere GPUs or newer.``: the package's own check."""
    package = package_in(seen) or "flash-attn"
    rows = _by_refusal(seen.mention.line) or flash_rows(seen, package)
    gpus = gpus_of(seen)[:1]
    if gpus and rows and not any(row.accepts(gpus[0].capability) for row in rows):
        return _refused(seen, gpus[0], package, rows)
    accepted = f"accepts {_gpus_words(rows[-1])} alone" if rows else "accepts newer GPUs alone"
    cause = (
        f"A check in {package} itself raised this before any kernel ran: it {accepted}, and the "
        "GPU that the tensors are on is none of these. A rebuild or another architecture list "
        "changes nothing."
    )
    notes = [
        "On Turing (7.5): FlashAttention 1 (flash-attn 1.x) takes it; on Volta and older no "
        "FlashAttention does. torch's own scaled_dot_product_attention needs none of them.",
    ]
    if gpus:
        notes.append(
            f"The GPU named, {called(gpus[0])}, would be accepted: the tensors were on another one."
        )
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none",
        confidence="medium" if gpus else "high",
        help=(f"{seen.python} {_TORCH_ARCHS}",), notes=tuple(notes),
    )  # fmt: skip


def _by_refusal(line: str) -> tuple[Limits, ...]:
    """The rows whose own words a message has, where they are those of one generation."""
    rows = tuple(row for row in all_limits() if row.refusal.rstrip(".") in line)
    return rows if len({row.id for row in rows}) == 1 else ()


def _gpus_words(row: Limits) -> str:
    """``compute capability 8.0 and newer``, ``8.x, 9.0``."""
    words = [f"{gpu[:-1]} and newer" if gpu.endswith("+") else gpu for gpu in row.gpus]
    return f"compute capability {', '.join(words)}"


def _refused(seen: Seen, gpu: Gpu, package: str | None, rows: Sequence[Limits]) -> Answer:
    """FlashAttention's own check does not let this GPU through."""
    row = rows[-1]
    version = version_of(seen, package) if package else None
    release = f" {version}" if version else ""
    advice = rebuild(_build(seen, package), rows, (gpu,))
    cause = (
        f"{row.name}{release} refuses {called(gpu)} by a check of its own: it accepts "
        f"{_gpus_words(row)} alone."
    )
    if not advice.helps:
        cause += " No rebuild and no architecture list changes that."
    helps = advice.help or (f"{seen.python} {_TORCH_ARCHS}",)
    return seen.answer(
        KIND, "FA507", cause, owner=package, direction="none", confidence="high",
        help=helps, notes=advice.notes,
    )  # fmt: skip


def compiler_lacks_arch(seen: Seen) -> Answer:
    """``nvcc fatal : Unsupported gpu architecture 'compute_120'``."""
    gpus = gpus_of(seen)[:1]
    cuda = seen.mention.detail.get("cuda") or seen.versions.get("cuda")
    mine = f"the nvcc of CUDA {cuda}" if cuda else "the nvcc that was found"
    if not gpus:
        return seen.answer(
            KIND, "FA883", f"{_capital(mine)} does not know the architecture asked for.",
            owner="nvcc", direction="none", confidence="medium", help=("nvcc --version",),
        )  # fmt: skip
    family = gpu_table().family(gpus[0].capability)
    number = capability_text(gpus[0].capability)
    notes: list[str] = []
    cause = f"{_capital(mine)} does not compile for compute capability {number}"
    if family is not None:
        cause += f": that takes CUDA {family.since_cuda} or newer"
        cause += f", up to {family.last_cuda}." if family.last_cuda else "."
        notes.append(
            "The toolkit that compiles must also be of torch's own CUDA major version, so a newer "
            "torch may have to come first."
        )
        notes.append(
            f"Without a GPU of that kind, leave {number} out: TORCH_CUDA_ARCH_LIST, or "
            "FLASH_ATTN_CUDA_ARCHS for flash-attn."
        )
    else:
        cause += "."
    return seen.answer(
        KIND, "FA883", cause, owner="nvcc", direction="none", confidence="high",
        help=("nvcc --version", f"{seen.python} {_TORCH_ARCHS}"), notes=tuple(notes),
    )  # fmt: skip


def lost_function(seen: Seen) -> Answer:
    """``named symbol not found``, ``an illegal instruction was encountered`` on the GPU."""
    answer = no_kernel(seen)
    note = (
        "The text fits a fault of the kernel itself too; that the code is for another GPU is the "
        "first thing to rule out."
    )
    return replace(answer, confidence="low", notes=(note, *answer.notes))


ANSWERERS: dict[str, Answerer] = {
    "no-kernel-image": no_kernel,
    "invalid-device-function": no_kernel,
    "gpu-not-supported-by-torch": torch_lacks_gpu,
    "ampere-only": ampere_only,
    "arch-unsupported-by-nvcc": compiler_lacks_arch,
    "named-symbol-not-found": lost_function,
    "illegal-instruction": lost_function,
}
