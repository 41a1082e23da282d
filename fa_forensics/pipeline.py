"""Target → report: the order in which facts are read, resolved, judged and confirmed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from fa_forensics import __version__
from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, bind_name, read_facts
from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.fatbin.images import DeviceCode, summary
from fa_forensics.facts.fatbin.provenance import Toolkits, read_toolkits
from fa_forensics.facts.fatbin.reader import read_device_code
from fa_forensics.facts.files import absolute
from fa_forensics.facts.flavour import flavour_of
from fa_forensics.facts.owner import OWN, STABLE, is_torch, owner_of
from fa_forensics.facts.package import find_distribution
from fa_forensics.facts.targets import Target, find_targets
from fa_forensics.judge import judge
from fa_forensics.report import (
    INCONCLUSIVE,
    BoundSymbol,
    GpuCode,
    Report,
    Skipped,
    TargetReport,
    Witness,
)
from fa_forensics.resolve.target import Linked, link_target
from fa_forensics.rules.base import Context, GpuFacts
from fa_forensics.views import elf_view, environment_view, relabel

if TYPE_CHECKING:
    from fa_forensics.facts.fatbin.agreement import CuobjdumpReport


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of ``inspect`` was asked for.

    ``confirm`` is True (asked for), False (forbidden) or None (only for files inside the
    inspected environment). ``cuobjdump`` is None (not asked), "" (find one) or a path.
    ``timeout_s`` bounds each child process.
    """

    python: str | None = None
    confirm: bool | None = None
    cuobjdump: str | None = None
    timeout_s: float = 60.0


def inspect(
    arguments: Sequence[str], options: Options, environ: Mapping[str, str] | None = None
) -> Report:
    """Inspect files, directories, wheels or installed packages.

    Raises ``UsageError`` and ``EnvironmentNotFound`` when a request cannot be carried
    out; a file that cannot be analysed becomes a target with a ``problem``.
    """
    variables = os.environ if environ is None else environ
    first = absolute(arguments[0]) if os.path.exists(arguments[0]) else None
    environment = find_environment(options.python, first, variables)
    reports: list[TargetReport] = []
    for argument in arguments:
        try:
            found = find_targets(argument, environment.site_dirs)
        except ForensicsError as error:
            if isinstance(error, UsageError) and len(arguments) == 1:
                raise
            reports.append(_unread(Target(argument, None, argument), error))
            continue
        with found:
            for target in found:
                report = _inspect_one(target, environment, options, found.package is not None)
                if target.member is not None:
                    # The unpacked copy is gone when the report is read.
                    copy = target.path[: -len(target.member)]
                    report = cast(TargetReport, relabel(report, copy, ""))
                    report = replace(report, path=argument)
                reports.append(report)
    return Report(__version__, environment_view(environment), tuple(reports))


def _unread(target: Target, error: ForensicsError) -> TargetReport:
    return TargetReport(
        path=target.path,
        member=target.member,
        verdict=INCONCLUSIVE,
        headline=error.message,
        skipped=(Skipped("file", error.message),),
        problem=error.message,
        hint=error.hint,
    )


def _inspect_one(
    target: Target, environment: Environment, options: Options, as_package: bool
) -> TargetReport:
    try:
        dynamic = DynamicObject.open(target.path)
    except ForensicsError as error:
        return _unread(target, error)
    try:
        return _inspect_open(target, dynamic, environment, options, as_package)
    finally:
        dynamic.close()


def _inspect_open(
    target: Target,
    dynamic: DynamicObject,
    environment: Environment,
    options: Options,
    as_package: bool,
) -> TargetReport:
    elf = read_facts(dynamic)
    code = read_device_code(dynamic.image)
    witness = _start_witness(target.path, environment, options)
    toolkits = read_toolkits(dynamic.image, code)
    owners = _owners(elf)
    linked = link_target(target.path, elf, environment, owners, as_package)
    cuobjdump = witness.finish(code, toolkits) if witness is not None else None
    gpu = _gpu_facts(code, cuobjdump) if dynamic.image.supported else None
    ctx = _context(target, elf, environment, owners, linked, gpu)
    judgement = judge(ctx, target.path, options.confirm, options.timeout_s)
    problem = _problem(ctx, elf)
    return TargetReport(
        path=target.path,
        member=target.member,
        verdict=judgement.verdict,
        headline=judgement.headline,
        findings=judgement.findings,
        skipped=(
            *linked.skipped,
            *_gpu_skips(dynamic.image),
            *_standing_skips(),
            *_toolkit_skips(toolkits.problems),
        ),
        elf=elf_view(elf, linked.resolution),
        undefined=_bound_symbols(elf, linked, owners),
        missing=tuple(item.binding.symbol for item in linked.missing),
        cxx11_abi=ctx.flavour.value,
        stable_abi=ctx.stable_abi,
        gpu_code=tuple(GpuCode(*row) for row in summary(code.images)),
        toolkits=tuple(
            f"CUDA {t.release} ({', '.join(t.archs)}; {t.source})" for t in toolkits.toolkits
        ),
        cuobjdump=None
        if cuobjdump is None
        else Witness(cuobjdump.status, cuobjdump.path, cuobjdump.detail),
        confirm=judgement.confirm,
        problem=problem,
        hint=_hint(linked, environment) if problem is not None else None,
    )


def _owners(elf: ElfFacts) -> dict[int, tuple[str, str]]:
    """Index of each undefined symbol → (demangled, owner)."""
    rows = {}
    for symbol in elf.undefined:
        name = symbol.name.decode("utf-8", "backslashreplace")
        demangled = demangle(name)
        owner = owner_of(name, symbol.version, demangled)
        if owner == OWN and symbol.version_file:
            owner = symbol.version_file  # .gnu.version_r says which library it is
        rows[symbol.index] = (demangled, owner)
    return rows


def _gpu_facts(code: DeviceCode, cuobjdump: CuobjdumpReport | None) -> GpuFacts:
    return GpuFacts(
        image_count=len(code.images),
        found_by=code.found_by,
        problems=code.problems,
        witness_status=None if cuobjdump is None else cuobjdump.status,
        witness_detail="" if cuobjdump is None else cuobjdump.detail,
        witness_differences=() if cuobjdump is None else cuobjdump.differences,
    )


def _context(
    target: Target,
    elf: ElfFacts,
    environment: Environment,
    owners: Mapping[int, tuple[str, str]],
    linked: Linked,
    gpu: GpuFacts | None,
) -> Context:
    names = (
        (symbol.name.decode("utf-8", "backslashreplace"), *owners[symbol.index])
        for symbol in elf.undefined
    )
    return Context(
        name=os.path.basename(target.member or target.path),
        elf=elf,
        environment=environment,
        resolution=linked.resolution,
        skips=linked.skipped,
        missing=linked.missing,
        siblings=linked.siblings,
        flavour=flavour_of(names),
        distribution=find_distribution(target.path, environment.site_dirs),
        stable_abi=_stable_abi([owner for _, owner in owners.values()]),
        uses_torch=linked.uses_torch,
        gpu=gpu,
        as_package=linked.as_package,
        left_with_siblings=linked.left_with_siblings,
    )


class _WitnessRun:
    """cuobjdump, started in the background while the native readers work."""

    def __init__(self, path: str, environment: Environment, wanted: str) -> None:
        from fa_forensics.facts.fatbin import cuobjdump

        exe = wanted or cuobjdump.find_cuobjdump(environment.site_dirs, os.environ)
        self._running = cuobjdump.start(path, exe) if exe else None

    def finish(self, code: DeviceCode, toolkits: Toolkits) -> CuobjdumpReport:
        """Wait for the witness and compare its list with ours."""
        from fa_forensics.facts.fatbin.agreement import compare

        listing = self._running.finish() if self._running is not None else None
        return compare(code, listing, toolkits.toolkits)


def _start_witness(path: str, environment: Environment, options: Options) -> _WitnessRun | None:
    if options.cuobjdump is None:
        return None
    return _WitnessRun(path, environment, options.cuobjdump)


def _stable_abi(owners: Sequence[str]) -> bool:
    """Whether all that the file needs of torch is its stable C interface."""
    torch = {owner for owner in owners if is_torch(owner)}
    return torch == {STABLE}


def _bound_symbols(
    elf: ElfFacts, linked: Linked, owners: Mapping[int, tuple[str, str]]
) -> tuple[BoundSymbol, ...]:
    providers: dict[int, str | None] = {}
    if linked.resolution is not None:
        providers = {b.index: b.provider for b in linked.resolution.bindings}
    return tuple(
        BoundSymbol(
            symbol=symbol.name.decode("utf-8", "backslashreplace"),
            version=symbol.version,
            bind=bind_name(symbol),
            demangled=owners[symbol.index][0],
            owner=owners[symbol.index][1],
            provider=providers.get(symbol.index),
        )
        for symbol in elf.undefined
    )


def _standing_skips() -> tuple[Skipped, ...]:
    """Questions that this release of the tool cannot answer for any file."""
    return (Skipped("atlas", "the table of torch releases is not part of this version"),)


def _gpu_skips(image: ElfImage) -> tuple[Skipped, ...]:
    if image.supported:
        return ()
    return (Skipped("gpu", "GPU code is read from 64-bit little-endian files only"),)


def _toolkit_skips(problems: Sequence[str]) -> tuple[Skipped, ...]:
    return tuple(Skipped("toolkit", problem) for problem in problems)


def _problem(ctx: Context, elf: ElfFacts) -> str | None:
    """The sentence for stderr when the file could not be analysed to the end."""
    if elf.expected_size > elf.size:
        return (
            f"{ctx.name} is cut short ({elf.size:,} of at least {elf.expected_size:,} bytes); "
            "what is left of it is reported"
        )
    if ctx.resolution is None and ctx.skips:
        return f"{ctx.name}: {ctx.skips[0].reason}"
    return None


def _hint(linked: Linked, environment: Environment) -> str | None:
    """What to do about a missing torch, the one problem that an option can solve."""
    if linked.uses_torch and environment.torch is None:
        return "point at the environment that has torch: --python /path/to/its/bin/python"
    return None
