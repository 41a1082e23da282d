"""The words of ``compare`` and of ``ranks``: what differs between machines, and what it can do.

Plain values, as in ``report``: what the renderers show and JSON schema v1 describes.
"""

from __future__ import annotations

from fa_forensics.records import dataclass
from fa_forensics.report import Finding

#: What the differences are about, in the order they are shown.
GROUPS = (
    "torch",
    "python",
    "libraries",
    "extensions",
    "kernels",
    "driver",
    "gpus",
    "system",
    "toolkit",
    "variables",
    "packages",
    "other",
)

#: Whether a difference can change the numbers that a program computes.
CAN = "can"
CANNOT = "cannot"
UNKNOWN = "unknown"
EFFECTS = (CAN, UNKNOWN, CANNOT)

#: A value: one text, a set of texts in their order, or None for "not there".
Value = str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Compared:
    """One report that was compared: its name, what made it, and what it is about in one line.

    ``kind`` is the command that wrote it ("env", "inspect", "why", "upgrade"), or "rank".
    """

    name: str
    kind: str
    tool_version: str
    about: str


@dataclass(frozen=True, slots=True)
class Held:
    """A value and the reports that hold it, by their place in ``CompareReport.reports``."""

    value: Value
    reports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same in all reports that speak of it.

    ``subject`` is whose it is ("libcublasLt.so.12"), ``aspect`` what of it ("version"); an
    empty aspect is the subject itself, there in some reports and absent from others.
    ``held`` has the value of the most reports first. ``effect`` is one of ``EFFECTS``,
    ``reason`` says why in a sentence, ``source`` whose word that is ("" for our own).
    """

    group: str
    subject: str
    aspect: str
    held: tuple[Held, ...]
    effect: str
    reason: str
    source: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class NotCompared:
    """What could not be compared, and why; ``reports`` are those that could not say it."""

    subject: str
    reason: str
    reports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unread:
    """A report that could not be used, and why, in one sentence."""

    name: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class CompareReport:
    """One run of ``compare``: ``same`` counts what was compared and is the same everywhere."""

    tool_version: str
    reports: tuple[Compared, ...]
    differences: tuple[Difference, ...] = ()
    same: int = 0
    not_compared: tuple[NotCompared, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all differences, in their order."""
        return tuple(difference.finding for difference in self.differences)


#: What became of a rank.
ANSWERED = "answered"
NEVER_ANSWERED = "never-answered"
DIED = "died"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank: its host ("" where it never said) and, unless it answered, why in a sentence."""

    rank: int
    host: str
    state: str
    detail: str = ""
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class RanksReport:
    """One run of ``ranks``, over ``world_size`` ranks.

    The reports of the ``comparison`` are the ranks that answered, in the order of
    ``answered``: the place of a report there gives its rank.
    """

    world_size: int
    ranks: tuple[RankState, ...]
    answered: tuple[int, ...]
    comparison: CompareReport

    @property
    def absent(self) -> tuple[RankState, ...]:
        """The ranks that did not answer."""
        return tuple(rank for rank in self.ranks if rank.state != ANSWERED)
