"""The words of a verdict: findings with their evidence, what was skipped, the report.

These types are what the renderers show and what JSON schema v1 describes. They hold
plain values only, no open files and no objects of the libraries that read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fa_forensics.records import dataclass

SCHEMA_VERSION = 1

#: Severities and confidences from the strongest to the weakest; ``--fail-on`` uses the order.
SEVERITIES = ("error", "warning", "note")
CONFIDENCES = ("high", "medium", "low")

#: Verdicts, in the words of the JSON contract.
LOADS = "loads"
LINKS = "links"
FAILS = "fails"
NO_GPU_CODE = "no-gpu-code"
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation: where it stands (file, table, entry) and what it says."""

    text: str
    file: str | None = None
    table: str | None = None
    entry: str | None = None
    symbol: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One judged fact. ``help`` holds commands that can be pasted, nothing else does."""

    code: str
    severity: str
    confidence: str
    title: str
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    help: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A question that could not be answered, and why. It is never a silent "fine"."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class BoundSymbol:
    """An undefined dynamic symbol and the object it binds to here.

    ``owner`` is whose name it is (torch, cudart, python, libstdc++ …), a property of
    the name; ``provider`` is the path of the object that defines it in this
    environment, or None.
    """

    symbol: str
    version: str | None
    bind: str
    demangled: str
    owner: str
    provider: str | None


@dataclass(frozen=True, slots=True)
class GpuCode:
    """All images of one kind and architecture: ``count`` of them, ``bytes`` as stored."""

    kind: str
    arch: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OtherGpuCode:
    """GPU code for other vendors' devices: ``bytes`` of it, and ``text`` in one sentence."""

    vendor: str
    targets: tuple[str, ...]
    bytes: int
    problems: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Witness:
    """What cuobjdump said about the same file: agrees, disagrees, stopped or absent."""

    status: str
    path: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """The real dlopen held against the static verdict: confirmed, refuted or not-run."""

    status: str
    detail: str
    steps: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedTorch:
    """The torch that ``--torch`` asked for, as a file was judged against it.

    ``judged_by`` is "table" (its exports as recorded), "installed" (it is the one installed
    here) or "nothing" (it could not be judged). ``note`` is one sentence on the source.
    """

    requested: str
    version: str
    release: str | None
    cuda: str | None
    cxx11_abi: str
    judged_by: str
    note: str


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What the table of torch releases says of one file.

    ``known`` are the releases of the table for the file's machine, oldest first.
    ``missing`` holds groups (releases, the names these do not export), for releases the
    file does not link with; ``nowhere`` the names that no release exports; ``symbols``
    counts the torch names it needs. ``built_on`` is the window of releases it can have been
    built on, ``best`` the likeliest of them, with one sentence of ``evidence`` for each
    bound; ``together`` counts the files of its package that were judged as one,
    ``package_links`` is what all of these link with. ``stable_floor`` is the release where
    the last of the stable interface's names that it needs appeared. ``problem`` is why
    torch's headers could not narrow the window. ``exported_by`` has the releases of names
    that are missing here. The texts are intervals in words: "2.4.0 - 2.6.0".
    """

    machine: str
    known: tuple[str, ...]
    links_with: tuple[str, ...]
    links_text: str
    missing: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    nowhere: tuple[str, ...] = ()
    symbols: int = 0
    built_on: tuple[str, ...] = ()
    built_text: str = ""
    best: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: str = "low"
    together: int = 1
    package_links: tuple[str, ...] = ()
    package_text: str = ""
    stable_floor: str | None = None
    problem: str | None = None
    exported_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exported_text: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetReport:
    """Everything said about one file.

    ``problem`` is one sentence when the file could not be analysed, or only in part; it
    goes to stderr and makes the exit code 3. ``torch`` is set when it was judged against
    a torch that was asked for, ``releases`` where the table of releases could be asked.
    ``coverage``, ``kernels`` and ``provenance`` are the objects of the JSON contract: where
    the GPU code runs, its kernels where they were asked for, and what built the file;
    ``floors`` is what it needs at least of the system and of Python.
    """

    path: str
    member: str | None
    verdict: str
    headline: str
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    elf: Mapping[str, object] | None = None
    undefined: tuple[BoundSymbol, ...] = ()
    missing: tuple[str, ...] = ()
    cxx11_abi: str = "not-applicable"
    stable_abi: bool = False
    links_with: tuple[str, ...] = ()
    built_on: tuple[str, ...] = ()
    releases: ReleaseFacts | None = None
    torch: JudgedTorch | None = None
    gpu_code: tuple[GpuCode, ...] = ()
    toolkits: tuple[str, ...] = ()
    coverage: Mapping[str, object] | None = None
    kernels: Mapping[str, object] | None = None
    other_gpu_code: tuple[OtherGpuCode, ...] = ()
    provenance: Mapping[str, object] | None = None
    cuobjdump: Witness | None = None
    confirm: Confirm = field(default_factory=lambda: Confirm("not-run", "not asked"))
    problem: str | None = None
    hint: str | None = None
    floors: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One run of ``inspect``: the environment it was judged in and its targets."""

    tool_version: str
    environment: Mapping[str, object] | None
    targets: tuple[TargetReport, ...]
