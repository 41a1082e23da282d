"""A report as single facts that can be held against those of another."""

from __future__ import annotations

from dataclasses import field

from fa_forensics.records import dataclass
from fa_forensics.report_compare import Compared, Value

#: (group, subject, aspect)
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Fact:
    """What a report says of one aspect; ``problem`` is set where it could not look."""

    value: Value
    problem: str | None = None


@dataclass(slots=True)
class Facts:
    """All that one report says.

    ``speaks_of`` are the (group, family) pairs whose subjects are all named, so that a
    subject without a fact is absent and not merely untold; family "" stands for the whole
    group. ``problems`` says what of the report had no shape that is known.
    """

    report: Compared
    facts: dict[Key, Fact] = field(default_factory=dict)
    speaks_of: set[tuple[str, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    _subjects: tuple[int, frozenset[tuple[str, str]]] | None = None

    def has(self, group: str, subject: str) -> bool:
        """Whether anything is said of a subject."""
        if self._subjects is None or self._subjects[0] != len(self.facts):
            found = frozenset((group, subject) for group, subject, _aspect in self.facts)
            self._subjects = len(self.facts), found
        return (group, subject) in self._subjects[1]

    def put(self, group: str, subject: str, aspect: str, value: Value) -> None:
        """Note a fact; what is None was not said, and the first word stands."""
        if value is not None:
            self.facts.setdefault((group, subject, aspect), Fact(value))

    def could_not_look(self, group: str, subject: str, aspect: str, reason: str) -> None:
        """Note that a report could not look."""
        self.facts.setdefault((group, subject, aspect), Fact(None, reason))


def family_of(subject: str) -> str:
    """What a file is told together with: the package it lies in, by its first folder."""
    return subject.partition("/")[0]
