"""Target → report: the order in which facts are read, placed, resolved, judged and confirmed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from fa_forensics import __version__
from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.facts.elf.facts import bind_name
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.files import absolute
from fa_forensics.facts.targets import Target, Targets, find_targets
from fa_forensics.fitting import GpuQuestion, Progress
from fa_forensics.flooring import claim_of_wheel, floors_view, own_names_elsewhere, system_for
from fa_forensics.judge import judge
from fa_forensics.placing import ReleaseTable, place_files
from fa_forensics.reading import FileFacts, read_file
from fa_forensics.records import dataclass
from fa_forensics.report import (
    INCONCLUSIVE,
    BoundSymbol,
    ReleaseFacts,
    Report,
    Skipped,
    TargetReport,
)
from fa_forensics.resolve.opened import Opened
from fa_forensics.resolve.target import Linked, Linkers, link_target
from fa_forensics.rules.base import Context
from fa_forensics.views import elf_view, environment_view, provenance_view, relabel

if TYPE_CHECKING:
    from fa_forensics.asked import Asked
    from fa_forensics.atlas.requested import Request

#: Files are read in groups, so that those of one package can be judged together; a group is
#: closed at so many dynamic symbols (each takes some 300 bytes until its file is judged).
MAX_SYMBOLS_AT_ONCE = 400_000


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of ``inspect`` was asked for.

    ``confirm`` is True (asked for), False (forbidden) or None (only for files inside the
    inspected environment). ``cuobjdump`` is None (not asked), "" (find one) or a path.
    ``timeout_s`` bounds each child process. ``torch`` holds the texts of ``--torch``: each
    file is judged against each of them, or without any against the installed one; with
    ``installed_too`` against that one first and then against each of them.
    ``atlas`` is the directory of the table of releases, None for the shipped one.
    ``gpu`` holds the texts of ``--gpu``, none for the machine's own GPUs; None asks nothing of
    GPU code. ``kernels`` lists the kernels in it; ``progress`` is called meanwhile.
    """

    python: str | None = None
    confirm: bool | None = None
    cuobjdump: str | None = None
    timeout_s: float = 60.0
    torch: tuple[str, ...] = ()
    installed_too: bool = False
    atlas: str | None = None
    gpu: tuple[str, ...] | None = ()
    kernels: bool = False
    progress: Progress | None = None


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
    with closing(_Run(environment, options)) as run, ExitStack() as stack:
        for argument in arguments:
            try:
                found = stack.enter_context(find_targets(argument, environment.site_dirs))
            except ForensicsError as error:
                if isinstance(error, UsageError) and len(arguments) == 1:
                    raise
                run.add_unread(Target(argument, None, argument), error)
                continue
            run.add(argument, found)
            if found.wheel is not None:
                run.finish()  # before its unpacked copy goes
                stack.close()
        run.finish()
    return Report(__version__, environment_view(environment), tuple(run.reports))


def inspect_found(
    found: Iterable[tuple[str, Targets]], environment: Environment, options: Options
) -> Report:
    """Inspect files that are known already, each group under the argument that names it.

    Raises ``UsageError`` for a ``--torch`` that names no release.
    """
    with closing(_Run(environment, options)) as run:
        for argument, targets in found:
            run.add(argument, targets)
        run.finish()
    return Report(__version__, environment_view(environment), tuple(run.reports))


@dataclass(frozen=True, slots=True)
class _Read:
    """A file that was read: ``argument`` it came from, ``group`` it is judged with."""

    argument: str
    group: str
    file: FileFacts


class _Run:
    """One run: targets go in, groups of them are judged, reports come out in order."""

    def __init__(self, environment: Environment, options: Options) -> None:
        self.environment = environment
        self.options = options
        self.reports: list[TargetReport] = []
        self._table = ReleaseTable(options.atlas)
        self._linkers = Linkers(environment)
        self._requests: tuple[Request, ...] = ()
        if options.torch:
            from fa_forensics.asked import read_requests

            self._requests = read_requests(options.torch, self._table, environment)
        self._gpus: GpuQuestion | None = None
        if options.gpu is not None:
            self._gpus = GpuQuestion(options.gpu, options.kernels, options.progress)
        self._pending: list[_Read | TargetReport] = []
        self._symbols = 0

    def close(self) -> None:
        """Unmap the libraries that the files were resolved with."""
        self._linkers.close()

    def add_unread(self, target: Target, error: ForensicsError) -> None:
        """Keep the place of a target that could not be read."""
        self._pending.append(_unread(target, error))

    def add(self, argument: str, found: Targets) -> None:
        """Read the files of one argument."""
        for target in found:
            try:
                witness, package = self.options.cuobjdump, found.package
                claim = claim_of_wheel(found.wheel)
                file = read_file(target, self.environment, witness, package, self._gpus, claim)
            except ForensicsError as error:
                self.add_unread(target, error)
                continue
            self._pending.append(_Read(argument, _group_of(argument, file), file))
            self._symbols += len(file.elf.symbols)
            if self._symbols > MAX_SYMBOLS_AT_ONCE:
                self.finish()

    def finish(self) -> None:
        """Judge all that was read since the last time."""
        read = [entry for entry in self._pending if isinstance(entry, _Read)]
        places: dict[int, ReleaseFacts | None] = {}
        for group in dict.fromkeys(entry.group for entry in read):
            members = [entry for entry in read if entry.group == group]
            placed = place_files([entry.file for entry in members], self._table)
            places.update(zip(map(id, members), placed, strict=True))
        for entry in self._pending:
            if isinstance(entry, TargetReport):
                self.reports.append(entry)
            else:
                self.reports += self._judged(entry, places[id(entry)])
        self._pending, self._symbols = [], 0

    def _judged(self, entry: _Read, releases: ReleaseFacts | None) -> Iterator[TargetReport]:
        for asked in self._asked(entry.file.elf.machine):
            report = _report(entry.file, releases, asked, self._linkers, self.options, self._table)
            target = entry.file.target
            if target.member is not None:
                # The unpacked copy is gone when the report is read.
                copy = target.path[: -len(target.member)]
                report = cast(TargetReport, relabel(report, copy, ""))
                report = replace(report, path=entry.argument)
            yield report

    def _asked(self, machine: str) -> Sequence[Asked | None]:
        if not self._requests:
            return (None,)
        from fa_forensics.asked import asked_for

        asked = [asked_for(r, self._table, self.environment, machine) for r in self._requests]
        return [None, *asked] if self.options.installed_too else asked


def _group_of(argument: str, file: FileFacts) -> str:
    """Files of one wheel, package or directory are of one build."""
    if file.target.member is None and file.distribution is not None:
        return file.distribution.metadata_path
    return argument


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


def _report(
    file: FileFacts,
    releases: ReleaseFacts | None,
    asked: Asked | None,
    linkers: Linkers,
    options: Options,
    table: ReleaseTable,
) -> TargetReport:
    """One file judged in the environment, or against the torch that was asked for."""
    environment = linkers.environment
    linked, judged_in = _link(file, releases, asked, linkers)
    if releases is not None:
        gone = [item.binding.symbol for item in linked.missing if item.owner.startswith("torch/")]
        lives, texts = table.lives(gone, file.elf.machine)
        releases = replace(releases, exported_by=lives, exported_text=texts)
    ctx = _context(file, judged_in, linked, releases, asked, linkers.opened)
    judgement = judge(ctx, file.target.path, options.confirm, options.timeout_s)
    problem = _problem(ctx)
    uses_table = releases is None and linked.uses_torch
    return TargetReport(
        path=file.target.path,
        member=file.target.member,
        verdict=judgement.verdict,
        headline=judgement.headline,
        findings=judgement.findings,
        skipped=(
            *linked.skipped,
            *file.skipped,
            *(table.skipped(file.elf.machine) if uses_table else ()),
            *_cuda_skips(asked),
            *_header_skips(releases),
        ),
        elf=elf_view(file.elf, linked.resolution),
        undefined=_bound_symbols(file, linked),
        missing=tuple(item.binding.symbol for item in linked.missing),
        cxx11_abi=ctx.flavour.value,
        stable_abi=ctx.stable_abi,
        links_with=() if releases is None else releases.links_with,
        built_on=() if releases is None else releases.built_on,
        releases=releases,
        torch=None if asked is None else asked.judged,
        gpu_code=file.gpu_code,
        toolkits=tuple(
            f"CUDA {t.release} ({', '.join(t.archs)}; {t.source})" for t in file.toolkits.toolkits
        ),
        coverage=file.fitting.coverage,
        kernels=file.fitting.kernels,
        other_gpu_code=file.other_gpu_code,
        provenance=provenance_view(file, judged_in.torch),
        cuobjdump=file.cuobjdump,
        confirm=judgement.confirm,
        floors=floors_view(file.floors, ctx.system),
        problem=problem,
        hint=_hint(ctx, environment) if problem is not None else None,
    )


def _header_skips(releases: ReleaseFacts | None) -> tuple[Skipped, ...]:
    if releases is None or releases.problem is None:
        return ()
    return (Skipped("atlas", f"torch's headers were not compared: {releases.problem}"),)


def _cuda_skips(asked: Asked | None) -> tuple[Skipped, ...]:
    if asked is None or asked.torch is None or asked.torch.problem is None:
        return ()
    return (Skipped("atlas", f"CUDA's own names were not looked up: {asked.torch.problem}"),)


def _link(
    file: FileFacts, releases: ReleaseFacts | None, asked: Asked | None, linkers: Linkers
) -> tuple[Linked, Environment]:
    """The file resolved, and the environment that it was resolved in."""
    path, elf, owners, environment = file.target.path, file.elf, file.owners, linkers.environment
    if asked is None or asked.judged.judged_by == "installed":
        linked = link_target(path, elf, environment, owners, file.as_package, None, linkers)
        return linked, environment
    if asked.torch is None:
        reason = asked.problem or "it could not be looked up"
        comment = _comment(releases, asked)
        uses_torch = releases is not None
        return Linked(None, (), (), (Skipped("torch", reason + comment),), uses_torch), environment
    from fa_forensics.asked import with_torch

    linked = link_target(path, elf, environment, owners, file.as_package, asked.torch)
    return linked, with_torch(environment, asked.torch, elf.machine)


def _comment(releases: ReleaseFacts | None, asked: Asked) -> str:
    """What the table says of the release that such a build is named after: a comment only."""
    release = asked.judged.release
    if releases is None or release is None:
        return ""
    links = "links" if release in releases.links_with else "does not link"
    return f" (the file {links} with the published torch {release}; that build may differ)"


def _context(
    file: FileFacts,
    environment: Environment,
    linked: Linked,
    releases: ReleaseFacts | None,
    asked: Asked | None,
    opened: Opened,
) -> Context:
    return Context(
        name=file.name,
        elf=file.elf,
        environment=environment,
        resolution=linked.resolution,
        skips=linked.skipped,
        missing=linked.missing,
        siblings=linked.siblings,
        flavour=file.flavour,
        distribution=file.distribution,
        stable_abi=file.stable_abi,
        uses_torch=linked.uses_torch,
        gpu=file.gpu,
        as_package=linked.as_package,
        left_with_siblings=linked.left_with_siblings,
        releases=releases,
        asked=None if asked is None else asked.judged,
        fit=file.fitting.fit,
        uses_torch_names=file.uses_torch_names,
        defined_in=own_names_elsewhere(file, linked),
        floors=file.floors,
        system=system_for(file, linked, environment, opened),
    )


def _bound_symbols(file: FileFacts, linked: Linked) -> tuple[BoundSymbol, ...]:
    providers: dict[int, str | None] = {}
    if linked.resolution is not None:
        providers = {b.index: b.provider for b in linked.resolution.bindings}
    return tuple(
        BoundSymbol(
            symbol=symbol.name.decode("utf-8", "backslashreplace"),
            version=symbol.version,
            bind=bind_name(symbol),
            demangled=file.owners[symbol.index][0],
            owner=file.owners[symbol.index][1],
            provider=providers.get(symbol.index),
        )
        for symbol in file.elf.undefined
    )


def _problem(ctx: Context) -> str | None:
    """The sentence for stderr when the file could not be analysed to the end."""
    elf = ctx.elf
    if elf.expected_size > elf.size:
        return (
            f"{ctx.name} is cut short ({elf.size:,} of at least {elf.expected_size:,} bytes); "
            "what is left of it is reported"
        )
    if ctx.resolution is None and ctx.skips:
        return f"{ctx.name}: {ctx.skips[0].reason}"
    return None


def _hint(ctx: Context, environment: Environment) -> str | None:
    """What to do about a missing torch, the one problem that an option can solve."""
    if not ctx.uses_torch or environment.torch is not None or ctx.asked is not None:
        return None
    hint = "point at the environment that has torch: --python /path/to/its/bin/python"
    if ctx.releases is not None and ctx.releases.links_with:
        best = ctx.releases.best
        release = best if best in ctx.releases.links_with else ctx.releases.links_with[-1]
        hint += f", or judge against a release: --torch {release}"
    return hint
