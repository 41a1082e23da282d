"""One target's facts, read once: they hold in every environment and under every torch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fa_forensics.facts.build_paths import read_build_paths
from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, read_facts
from fa_forensics.facts.environment import Environment
from fa_forensics.facts.fatbin.images import DeviceCode, summary
from fa_forensics.facts.fatbin.provenance import Toolkits, read_toolkits
from fa_forensics.facts.fatbin.reader import read_device_code
from fa_forensics.facts.flavour import Flavour, flavour_of
from fa_forensics.facts.floors import Claim, Floors, claim_of_tags, read_floors
from fa_forensics.facts.numbers import release_numbers
from fa_forensics.facts.owner import OWN, STABLE, is_torch, owner_of
from fa_forensics.facts.package import Distribution, find_distribution
from fa_forensics.facts.targets import Target
from fa_forensics.facts.traces import Traces, read_traces
from fa_forensics.fitting import GpuAnswer, GpuQuestion
from fa_forensics.records import dataclass
from fa_forensics.report import GpuCode, OtherGpuCode, Skipped, Witness
from fa_forensics.rules.base import GpuFacts

if TYPE_CHECKING:
    from fa_forensics.facts.elf.image import ElfImage
    from fa_forensics.facts.fatbin.agreement import CuobjdumpReport


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one file says, whatever it is judged against.

    ``owners`` maps the index of each undefined symbol to (demangled, owner); ``traces`` are
    what torch's headers left in it; ``distribution`` is its package; ``as_package`` is true
    when that was named and not the file. ``fitting`` is where its GPU code runs;
    ``options`` are those that ptxas was given, ``build_paths`` the directories it was built in,
    where they were left in it. ``skipped`` are questions that could not be answered.
    """

    target: Target
    elf: ElfFacts
    owners: Mapping[int, tuple[str, str]]
    flavour: Flavour
    stable_abi: bool
    distribution: Distribution | None
    as_package: bool
    traces: Traces
    gpu: GpuFacts | None
    gpu_code: tuple[GpuCode, ...]
    toolkits: Toolkits
    fitting: GpuAnswer
    other_gpu_code: tuple[OtherGpuCode, ...]
    options: tuple[str, ...]
    ptx_isas: tuple[str, ...]
    build_paths: tuple[str, ...]
    cuobjdump: Witness | None
    floors: Floors
    skipped: tuple[Skipped, ...]

    @property
    def uses_torch_names(self) -> bool:
        """Whether it takes a name of torch's libraries, or only lists them among its needs."""
        return any(is_torch(owner) for _, owner in self.owners.values())

    @property
    def name(self) -> str:
        """The file's own name, without directories."""
        return os.path.basename(self.target.member or self.target.path)


def read_file(
    target: Target,
    environment: Environment,
    cuobjdump: str | None,
    package: Distribution | None,
    gpus: GpuQuestion | None = None,
    claim: Claim | None = None,
) -> FileFacts:
    """Read everything that the file itself says.

    ``cuobjdump`` is the witness to ask: None for none, "" for the one that is found, or a
    path. ``package`` is the installed package that the file was named by, None otherwise.
    ``gpus`` is what is asked of its GPU code; None: nothing. ``claim`` are the tags of the
    wheel it lies in; None: those that its installed package recorded. Raises
    ``ForensicsError`` when the file cannot be read or is no ELF file.
    """
    dynamic = DynamicObject.open(target.path)
    try:
        return _read_open(target, dynamic, environment, cuobjdump, package, gpus, claim)
    finally:
        dynamic.close()


def _read_open(
    target: Target,
    dynamic: DynamicObject,
    environment: Environment,
    cuobjdump: str | None,
    package: Distribution | None,
    gpus: GpuQuestion | None,
    claim: Claim | None,
) -> FileFacts:
    elf = read_facts(dynamic)
    code = read_device_code(dynamic.image)
    run = _start_witness(target.path, environment, cuobjdump)
    toolkits = read_toolkits(dynamic.image, code)
    owners = _owners(elf)
    witness = run.finish(code, toolkits) if run is not None else None
    distribution = package or find_distribution(target.path, environment.site_dirs)
    name = os.path.basename(target.member or target.path)
    fitting = GpuAnswer()
    if gpus is not None:
        module = elf.module_name
        fitting = gpus.ask(dynamic.image, code, toolkits, distribution, name, module)
    names = (
        (symbol.name.decode("utf-8", "backslashreplace"), *owners[symbol.index])
        for symbol in elf.undefined
    )
    return FileFacts(
        target=target,
        elf=elf,
        owners=owners,
        flavour=flavour_of(names),
        stable_abi=_stable_abi([owner for _, owner in owners.values()]),
        distribution=distribution,
        as_package=package is not None,
        traces=read_traces(dynamic, elf),
        gpu=_gpu_facts(code, witness, fitting.problems) if dynamic.image.supported else None,
        gpu_code=tuple(GpuCode(*row) for row in summary(code.images)),
        toolkits=toolkits,
        fitting=fitting,
        other_gpu_code=_other_gpu_code(dynamic.image, code),
        options=_options(code),
        ptx_isas=tuple(sorted({i.isa for i in code.images if i.isa}, key=release_numbers)),
        build_paths=read_build_paths(dynamic.image),
        cuobjdump=None
        if witness is None
        else Witness(witness.status, witness.path, witness.detail),
        floors=read_floors(elf, owners, claim or _recorded_claim(distribution)),
        skipped=(
            *(() if dynamic.image.supported else (_ONLY_64_BIT,)),
            *(Skipped("toolkit", problem) for problem in toolkits.problems),
            *fitting.skipped,
        ),
    )


_ONLY_64_BIT = Skipped("gpu", "GPU code is read from 64-bit little-endian files only")


def _recorded_claim(distribution: Distribution | None) -> Claim | None:
    """The tags that an installed package's WHEEL file records."""
    if distribution is None:
        return None
    info = os.path.dirname(distribution.metadata_path)
    return claim_of_tags(distribution.wheel_tags, os.path.join(info, "WHEEL"))


def _owners(elf: ElfFacts) -> dict[int, tuple[str, str]]:
    rows = {}
    for symbol in elf.undefined:
        name = symbol.name.decode("utf-8", "backslashreplace")
        demangled = demangle(name)
        owner = owner_of(name, symbol.version, demangled)
        if owner == OWN and symbol.version_file:
            owner = symbol.version_file  # .gnu.version_r says which library it is
        rows[symbol.index] = (demangled, owner)
    return rows


def _stable_abi(owners: Sequence[str]) -> bool:
    """Whether all that the file needs of torch is its stable C interface."""
    torch = {owner for owner in owners if is_torch(owner)}
    return torch == {STABLE}


def _other_gpu_code(image: ElfImage, code: DeviceCode) -> tuple[OtherGpuCode, ...]:
    """Code for AMD GPUs and SYCL devices. One build is for one vendor, so it is sought last."""
    if code.images:
        return ()
    from fa_forensics.facts.hip import describe, read_other_code

    return tuple(OtherGpuCode(*found, describe(found)) for found in read_other_code(image))


def _options(code: DeviceCode) -> tuple[str, ...]:
    """What ptxas was told, as far as nvcc recorded it; each text once."""
    return tuple(sorted({" ".join(i.options.split()) for i in code.images if i.options} - {""}))


def _gpu_facts(
    code: DeviceCode, cuobjdump: CuobjdumpReport | None, unlisted: tuple[str, ...]
) -> GpuFacts:
    return GpuFacts(
        image_count=len(code.images),
        found_by=code.found_by,
        problems=(*code.problems, *unlisted),
        witness_status=None if cuobjdump is None else cuobjdump.status,
        witness_detail="" if cuobjdump is None else cuobjdump.detail,
        witness_differences=() if cuobjdump is None else cuobjdump.differences,
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


def _start_witness(
    path: str, environment: Environment, cuobjdump: str | None
) -> _WitnessRun | None:
    if cuobjdump is None:
        return None
    return _WitnessRun(path, environment, cuobjdump)
