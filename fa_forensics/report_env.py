"""What ``env`` reports: one line for each thing that was looked at, in three layers.

A line is the unit of the report. It says what state a thing is in and, where that is wrong,
carries the finding with its evidence and the command that cures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fa_forensics.records import dataclass
from fa_forensics.report import Finding

#: The layers of the report, in the order they are shown.
PACKAGE = "package"
ARTEFACT = "artefact"
RUNTIME = "runtime"
COPIES = "copies"
LAYERS = (PACKAGE, ARTEFACT, RUNTIME, COPIES)

#: The states of a line, in the words of the JSON contract. ``NOTE`` is information that is
#: neither right nor wrong.
OK = "ok"
WRONG = "wrong"
COULD_NOT_LOOK = "could-not-look"
NOTE = "note"
STATES = (OK, WRONG, COULD_NOT_LOOK, NOTE)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at.

    ``subject`` is a short label ("flash-attn", "libcudart.so.12"), ``text`` one sentence.
    ``finding`` is what a rule concluded, where it concluded something; ``details`` are shown
    when asked for. ``facts`` are plain values for programs: strings, numbers, booleans, None,
    lists and mappings of them.
    """

    layer: str
    subject: str
    state: str
    text: str
    finding: Finding | None = None
    details: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnvReport:
    """The environment in lines; ``problem`` says why nothing could be looked at, if so.

    ``environment`` is the same view that ``inspect`` gives, None where there is none.
    """

    tool_version: str
    environment: Mapping[str, object] | None
    lines: tuple[Line, ...] = ()
    problem: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all lines, in their order."""
        return tuple(line.finding for line in self.lines if line.finding is not None)
