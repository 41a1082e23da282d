"""A function that some releases of torch keep to themselves, though headers may declare it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.facts.demangle import qualified_name
from fa_forensics.facts.python_api import has_partners
from fa_forensics.facts.tables import read_table
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import UNKNOWN
from fa_forensics.why.place import Place
from fa_forensics.why.seen import package_of
from fa_forensics.why.torch_names.history import History, order_key
from fa_forensics.why.ways.commands import inspect_command, install


def not_on_these(history: History) -> str:
    """That a build on one of those releases changes nothing, in a sentence."""
    these, behind = history.interval(history.hidden), _behind(history, history.hidden[0])
    if behind:
        return (
            f"The function is not exported, in any form, by torch {these}: from 2.7.0 on "
            "libtorch_python keeps to itself what its headers do not mark for export. Where they "
            "still declare it, a file that is compiled on such a torch lacks it too; torch "
            f"{behind[0]} and later have it again. A source that does not call it (a newer "
            "release may be one) helps as well."
        )
    return (
        f"The function is not exported, in any form, by torch {these}: from 2.7.0 on "
        "libtorch_python keeps to itself what its headers do not mark for export. Where they "
        "still declare it, a file that is compiled on such a torch lacks it too. A source that "
        "does not call it (a newer release may be one) helps as well."
    )


def has_its_own_release(needed_by: Sequence[str]) -> bool:
    """Whether a file is of a package with a release for each torch, which asks for no such name."""
    packages = [package_of(file) for file in needed_by]
    return any(has_partners(name) for name in packages)


def before_or_behind(
    place: Place, history: History, needed_by: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, remarks) for a torch that is one of those: the releases on both sides of it."""
    present = place.present
    assert present is not None
    python = place.environment.version_short if place.environment else None
    python = python or (place.told.python if place.told else None)
    pythons = history.pythons
    served = [r for r in history.releases if not python or python in pythons.get(r, (python,))]
    older = [r for r in served if order_key(r) < order_key(present.release)]
    newer = [r for r in _behind(history, present.release) if r in served]
    commands = [install(place, f"torch>={newer[0]}")] if newer else []
    commands += [install(place, f"torch=={older[-1]}")] if older else []
    if not commands:
        return (inspect_command(place, needed_by),), (not_on_these(history),)
    note = (
        "A torch that has the name is what helps; it changes torch for all other packages too, "
        "and the extension is built again for it where the last command shows more names that are "
        "missing."
    )
    return (*commands, inspect_command(place, needed_by)), (not_on_these(history), note)


def _behind(history: History, release: str) -> list[str]:
    """The releases after one that have the name again."""
    return [r for r in history.releases if order_key(r) > order_key(release)]


#: Notes on a build of the same source as a way of its own.
_SAME_SOURCE = lazily(r"(?:One of the two commands|Another build of|Where pip compiled)")


def of_another_source(answer: Answer) -> Answer:
    """The answer for a name that torch kept to itself at first: the same build gives it again."""
    row = read_table("hidden_names.json")["names"].get(qualified_name(answer.demangled or ""))
    if row is None or answer.direction != UNKNOWN or answer.kind != "symbol-drift":
        return answer
    note = (
        "The same source compiled again on the same torch gives the same error: a command that "
        f"compiles helps with a source that does without {row['macro']} alone, which is that of "
        "another tag or commit, or together with the other torch."
    )
    kept = (note for note in answer.notes if not _SAME_SOURCE.match(note))
    return replace(answer, notes=(note, *kept))
