"""The words of an answer of ``why``: what the renderers show and what its schema describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fa_forensics.records import dataclass

if TYPE_CHECKING:
    from fa_forensics.report import JudgedTorch


@dataclass(frozen=True, slots=True)
class Overload:
    """A name that differs from the asked one only in its parameters or its flavour.

    ``interval`` is ``exported_by`` as text; ``change`` says what turned the signature
    before it into this one, where the two followed one another.
    """

    symbol: str
    demangled: str
    exported_by: tuple[str, ...] = ()
    interval: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of ``why``, in the words of the JSON contract.

    ``interval`` is ``exported_by`` as text ("2.1.0 - 2.2.2"). ``looked_here`` is false when
    this environment could not be searched, ``releases_looked_up`` when there was no table
    of releases to look in: an empty ``exported_by`` then says nothing.
    """

    kind: str
    code: str
    symbol: str | None
    demangled: str | None
    owner: str | None
    provider: str | None
    cause: str
    direction: str = "unknown"
    confidence: str = "medium"
    exported_by: tuple[str, ...] = ()
    interval: str = ""
    overloads: tuple[Overload, ...] = ()
    help: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source_line: str | None = None
    looked_here: bool = True
    releases_looked_up: bool = True


@dataclass(frozen=True, slots=True)
class WhyReport:
    """One run of ``why``: the environment it was answered in and its answers.

    ``problem`` says what could not be looked up; it goes to stderr and makes the exit
    code 3. ``torch`` is the one that was asked for, where no environment was looked at;
    ``note`` says by what a pasted text was judged that is not of this environment.
    """

    tool_version: str
    environment: Mapping[str, object] | None
    answers: tuple[Answer, ...]
    problem: str | None = None
    torch: JudgedTorch | None = None
    note: str | None = None
