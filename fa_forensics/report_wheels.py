"""The words of ``wheels``: which official wheel an environment takes, and what a wheel is worth.

Plain values, as in ``report``: what the renderers show and JSON schema v1 describes.
"""

from __future__ import annotations

from collections.abc import Mapping

from fa_forensics.records import dataclass
from fa_forensics.report import Finding, TargetReport

#: What a judged wheel comes to.
FITS, DOES_NOT_FIT, CANNOT_SAY = "fits", "does-not-fit", "cannot-say"
WHEEL_VERDICTS = (FITS, DOES_NOT_FIT, CANNOT_SAY)

#: What was given: a file on disk, an address, or a file name alone.
FILE, ADDRESS, NAME = "file", "url", "name"

#: The ways out where no official wheel is for an environment.
OTHER_TORCH, CONDA_FORGE, SOURCE = "other-torch", "conda-forge", "source"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One official wheel that fits an environment.

    ``torch_built`` is the torch it was compiled against, ``cuda_built`` the toolkit; ``glibc``
    what it is known to need (None: not known). ``cautions`` are sentences on what speaks
    against it, ``blocked`` whether one of them rules it out here; ``command`` installs it.
    """

    release: str
    date: str
    file_name: str
    url: str
    torch: str
    torch_built: str
    cuda: str
    cuda_built: str
    cxx11_abi: str
    python: str
    platform: str
    nightly: bool
    glibc: str | None
    blocked: bool
    cautions: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True)
class Way:
    """A way out where no wheel fits: ``kind`` is one of the words above."""

    kind: str
    text: str
    notes: tuple[str, ...]
    help: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WheelQuery:
    """The official wheels for an environment, newest first.

    ``wanted`` holds what the wheel must be for and how that is known; ``best`` the wheel to
    take: the newest that nothing speaks against, else the newest that is not ruled out.
    ``findings`` say why there is none; ``ways`` what to do then. ``unknown`` names what could
    not be told.
    """

    package: str
    wanted: Mapping[str, object]
    candidates: tuple[Candidate, ...]
    best: Candidate | None
    as_of: str
    findings: tuple[Finding, ...] = ()
    ways: tuple[Way, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a wheel: its state is one of those of a line of ``env``."""

    subject: str
    state: str
    text: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class JudgedWheel:
    """A wheel that was given, judged before it is installed.

    ``official`` is the row of the build matrix that its name is of. ``targets`` are its
    extensions as ``inspect`` reports them; empty where its content was not read. ``size`` and
    ``received`` are bytes: the wheel's, and those that came over the network.
    """

    given: str
    kind: str
    name: str
    version: str
    verdict: str
    headline: str
    checks: tuple[Check, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    official: Candidate | None = None
    size: int | None = None
    received: int | None = None
    help: tuple[str, ...] = ()
    problem: str | None = None
    hint: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of its checks, then those of its extensions."""
        own = tuple(check.finding for check in self.checks if check.finding is not None)
        return own + tuple(finding for target in self.targets for finding in target.findings)


@dataclass(frozen=True, slots=True)
class WheelsReport:
    """One run of ``wheels``: an answer for the environment, or for wheels that were given."""

    tool_version: str
    environment: Mapping[str, object] | None
    query: WheelQuery | None = None
    wheels: tuple[JudgedWheel, ...] = ()
