"""FA504-FA508: whether the file's GPU code runs on the GPUs at hand, or on those asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fa_forensics.facts.drivers import driver_needed
from fa_forensics.facts.flash_limits import Limits
from fa_forensics.facts.gpus import Capability, Gpu, capability_text
from fa_forensics.report import Evidence, Finding
from fa_forensics.rules.base import RANK_IMPORT, RANK_NONE, Judged
from fa_forensics.rules.coverage import (
    JIT,
    NONE,
    CodeGroup,
    GpuFit,
    code_for,
    fit,
    gpu_fit,
    group_images,
    what_would_run,
)
from fa_forensics.rules.gpu_remedy import Advice, Build, rebuild

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Protocol

    from fa_forensics.facts.elf.facts import ElfFacts
    from fa_forensics.facts.environment import Environment
    from fa_forensics.facts.fatbin.images import Image
    from fa_forensics.facts.fatbin.kernels import KernelInventory
    from fa_forensics.facts.fatbin.provenance import Toolkit
    from fa_forensics.facts.nvml import AskedGpus
    from fa_forensics.facts.package import Distribution

    class FitContext(Protocol):
        """The part of ``Context`` that these rules read."""

        @property
        def name(self) -> str:
            """File name."""

        @property
        def elf(self) -> ElfFacts:
            """The file."""

        @property
        def environment(self) -> Environment | None:
            """Where it is judged."""

        @property
        def distribution(self) -> Distribution | None:
            """The package it belongs to."""

        @property
        def python_command(self) -> str:
            """The interpreter to write into commands."""

        @property
        def fit(self) -> FitFacts | None:
            """The GPUs it is judged for; None: none was looked for."""


#: Codes of errors that leave the import alone and stop the first kernel.
NO_KERNEL_CODES = frozenset(("FA504", "FA506", "FA507"))
#: After the import: the file loads, and fails when it is used.
RANK_LAUNCH = RANK_IMPORT + 1_000


class KernelGap(NamedTuple):
    """Kernels that a GPU does not get. only: architecture → how many exist for it alone.

    examples: some names of missing kernels, as the inventory gives them.
    """

    gpu: Gpu
    available: int
    missing: int
    only: tuple[tuple[str, int], ...]
    examples: tuple[str, ...]


class FitFacts(NamedTuple):
    """The GPUs that a file is judged for, and what it has for them.

    fits: one for each GPU. overview: all GPUs were asked for, so that none of them is a
    requirement. groups: the file's code. limits: the FlashAttention rows of its release.
    jobs: MAX_JOBS for this machine. gaps: from the kernel inventory, where it was read.
    named: the GPUs that are a requirement all the same, where all were asked for.
    """

    fits: tuple[GpuFit, ...]
    overview: bool
    groups: tuple[CodeGroup, ...]
    limits: tuple[Limits, ...] = ()
    jobs: int | None = None
    gaps: tuple[KernelGap, ...] = ()
    named: tuple[Gpu, ...] = ()


def fit_facts(
    images: Iterable[Image],
    toolkits: Sequence[Toolkit],
    asked: AskedGpus,
    limits: tuple[Limits, ...],
    jobs: int | None,
    inventory: KernelInventory | None = None,
) -> FitFacts:
    """Hold the code of a file against the GPUs that it is judged for."""
    groups = group_images(images)
    gaps: tuple[KernelGap, ...] = ()
    if inventory is not None and inventory.complete:
        kernels = kernels_by_arch(inventory)
        gaps = tuple(kernel_gap(kernels, gpu) for gpu in asked.gpus)
    return FitFacts(
        tuple(gpu_fit(groups, gpu, asked.driver, toolkits) for gpu in asked.gpus),
        asked.source == "all",
        groups,
        limits,
        jobs,
        gaps,
        asked.named,
    )


def no_kernel_headline(findings: Sequence[Finding]) -> str | None:
    """The headline of a file that loads and whose kernels cannot run; None for all others."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors or any(finding.code not in NO_KERNEL_CODES for finding in errors):
        return None
    return errors[0].title


def no_code(ctx: FitContext) -> Sequence[Judged]:
    """FA504: the file has GPU code, and none of it runs on a GPU that it is judged for."""
    found = _judged_for(ctx)
    lacking = [one for one in found if one.runs == NONE]
    if not lacking:
        return ()
    advice = _advice(ctx, [one.gpu for one in lacking])
    first = lacking[0]
    notes = [
        f"{_called(first.gpu)} runs {what_would_run(first.gpu.capability)}.",
        *_beliefs(ctx, first.gpu.capability),
        *advice.notes,
    ]
    finding = Finding(
        code="FA504",
        severity="error" if len(lacking) == len(found) else "warning",
        confidence="high",
        title=f"{ctx.name} has no code for {_all_called(lacking)}",
        evidence=_evidence(ctx, first.refused),
        notes=tuple(notes),
        help=advice.help,
    )
    return (Judged(RANK_LAUNCH, finding),)


def by_jit(ctx: FitContext) -> Sequence[Judged]:
    """FA505: only PTX fits; the driver compiles it when it is first used."""
    found = [f for f in _judged_for(ctx) if f.runs == JIT and f.driver_ok is not False]
    if not found:
        return ()
    first = found[0]
    needs = ""
    if first.needs_cuda is not None and first.driver_ok is None:
        needs = f" It takes {driver_needed(first.needs_cuda)}."
    finding = Finding(
        code="FA505",
        severity="note",
        confidence="high",
        title=f"{ctx.name} runs on {_all_called(found)} only after the driver has compiled it",
        evidence=(Evidence(first.reason, ctx.elf.path),),
        notes=(f"That takes a while at the first use, and is kept in ~/.nv/ComputeCache.{needs}",),
    )
    return (Judged(RANK_NONE, finding),)


def driver_too_old(ctx: FitContext) -> Sequence[Judged]:
    """FA506: the code fits the GPU, but the driver is too old for it."""
    found = [f for f in _judged_for(ctx) if f.driver_ok is False]
    if not found:
        return ()
    first = found[0]
    says = "the provided PTX was compiled with an unsupported toolchain"
    notes = (
        f'The launch fails with "{says}"; minor version compatibility does not cover PTX.'
        if first.runs == JIT
        else 'The launch fails with "device kernel image is invalid", or CUDA does not start at '
        "all; a newer toolkit does not help, it is the driver that loads the code."
    )
    finding = Finding(
        code="FA506",
        severity="error",
        confidence="high" if first.runs == JIT else "medium",
        title=f"the driver is too old for the GPU code of {ctx.name}",
        evidence=(Evidence(first.driver_reason or first.reason, ctx.elf.path),),
        notes=(notes,),
    )
    return (Judged(RANK_LAUNCH, finding),)


def refused_by_package(ctx: FitContext) -> Sequence[Judged]:
    """FA507: FlashAttention's own check refuses the GPU, although code for it is there."""
    limits = ctx.fit.limits if ctx.fit is not None else ()
    found = [
        one
        for one in _judged_for(ctx)
        if one.runs != NONE
        and limits
        and not any(row.accepts(one.gpu.capability) for row in limits)
    ]
    if not found:
        return ()
    advice = _advice(ctx, [one.gpu for one in found])
    row = limits[-1]
    release = f" {ctx.distribution.version}" if ctx.distribution else ""
    finding = Finding(
        code="FA507",
        severity="error",
        confidence="high",
        title=f"{row.name}{release} refuses {_all_called(found)} by a check of its own",
        evidence=(
            Evidence(f'it raises "{row.refusal}" but for {", ".join(row.gpus)}', ctx.elf.path),
        ),
        notes=advice.notes,
        help=advice.help,
    )
    return (Judged(RANK_LAUNCH, finding),)


def partly_covered(ctx: FitContext) -> Sequence[Judged]:
    """FA508: some of the compiled sources, or kernels, have code for other GPUs only."""
    found = [f for f in _judged_for(ctx) if f.runs != NONE and f.without]
    if not found:
        return ()
    first = found[0]
    total = first.native + first.by_jit + first.without
    notes = ["What they hold is not there on this GPU; the package may not need it there."]
    gap = next((g for g in ctx.fit.gaps if g.gpu == first.gpu), None) if ctx.fit else None
    if gap is not None and gap.missing:
        notes.append(_gap_sentence(gap))
    finding = Finding(
        code="FA508",
        severity="note",
        confidence="high",
        title=f"{first.without} of the {total} compiled sources in {ctx.name} have no code for "
        f"{_called(first.gpu)}",
        evidence=_evidence(ctx, first.refused),
        notes=tuple(notes),
    )
    return (Judged(RANK_NONE, finding),)


def kernels_by_arch(inventory: KernelInventory) -> dict[str, set[str]]:
    """The kernels of an inventory by architecture, those left out that are empty there.

    Libraries compile a kernel that is written for one architecture for all of them, and leave
    it empty for the others: what is small here and larger elsewhere is such a one.
    """
    kernels: dict[str, set[str]] = {}
    for kernel in inventory.kernels:
        empty = set(kernel.small) if len(kernel.small) < len(kernel.archs) else set()
        for arch in kernel.archs:
            if arch not in empty:
                kernels.setdefault(arch, set()).add(kernel.name)
    return kernels


def kernel_gap(kernels: Mapping[str, Collection[str]], gpu: Gpu) -> KernelGap:
    """What an inventory (architecture → kernel names) means for one GPU."""
    here: set[str] = set()
    for arch, names in kernels.items():
        if fit(code_for(arch), gpu.capability).runs != NONE:
            here.update(names)
    missing = {name for names in kernels.values() for name in names} - here
    only = []
    for arch, names in kernels.items():
        others = {name for a, more in kernels.items() if a != arch for name in more}
        alone = len(missing.intersection(names) - others)
        if alone:
            only.append((arch, alone))
    return KernelGap(gpu, len(here), len(missing), tuple(only), tuple(sorted(missing)[:3]))


def _gap_sentence(gap: KernelGap) -> str:
    only = ", ".join(f"{count} for {arch} alone" for arch, count in gap.only)
    return f"{gap.missing} of {gap.missing + gap.available} kernels have none" + (
        f" ({only})." if only else "."
    )


def _judged_for(ctx: FitContext) -> tuple[GpuFit, ...]:
    """The GPUs that the file must serve: where all were looked over, those that were named."""
    if ctx.fit is None or not ctx.fit.groups:
        return ()
    if ctx.fit.overview:
        return tuple(one for one in ctx.fit.fits if one.gpu in ctx.fit.named)
    return ctx.fit.fits


def _called(gpu: Gpu) -> str:
    return f"{gpu.name} (compute capability {capability_text(gpu.capability)})"


def _all_called(fits: Sequence[GpuFit]) -> str:
    names = [_called(one.gpu) for one in fits]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _evidence(ctx: FitContext, refused: Sequence[tuple[str, str]]) -> tuple[Evidence, ...]:
    """One row for each reason; what is waiting to be linked says nothing new."""
    rows = dict.fromkeys(reason for _arch, reason in refused if "must be linked" not in reason)
    if not rows:
        rows = dict.fromkeys(reason for _arch, reason in refused)
    return tuple(Evidence(reason, ctx.elf.path, ".nv_fatbin") for reason in rows)


def _beliefs(ctx: FitContext, capability: Capability) -> tuple[str, ...]:
    """What people expect to work and does not, where the file tempts to it."""
    assert ctx.fit is not None  # _judged_for gave GPUs
    notes = []
    archs = {group.arch for group in ctx.fit.groups if group.kind == "cubin"}
    if capability < (9, 0) and archs & {"sm_90", "sm_90a"}:
        notes.append("Newer machine code never runs on an older GPU; only PTX moves forward.")
    specific = sorted(arch for arch in archs if arch.endswith("a"))
    if capability >= (10, 0) and specific:
        notes.append(
            f'Code with an "a" ({", ".join(specific)}) runs on that one part, not on later ones.'
        )
    return tuple(notes)


def _advice(ctx: FitContext, gpus: Sequence[Gpu]) -> Advice:
    assert ctx.fit is not None  # _judged_for gave GPUs
    torch = ctx.environment.torch if ctx.environment is not None else None
    build = Build(
        ctx.python_command,
        ctx.distribution,
        torch.cuda if torch is not None else None,
        ctx.fit.jobs,
    )
    return rebuild(build, ctx.fit.limits, gpus)
