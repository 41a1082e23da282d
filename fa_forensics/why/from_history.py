"""A missing torch name judged by its history alone: no libraries of a torch are here to look in."""

from __future__ import annotations

from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string, readable
from fa_forensics.why.history import BETWEEN, INSIDE, History, Present
from fa_forensics.why.judgement import (
    FLAVOUR,
    NEWER,
    OLDER,
    UNKNOWN,
    Judgement,
    Question,
    who_exports,
)
from fa_forensics.why.nowhere import never_exported
from fa_forensics.why.place import Place


def without_torch(
    question: Question, place: Place, history: History, line: str, reach: tuple[str, ...]
) -> Judgement:
    """No torch here: the history alone, and what it says of any torch that lacks the name.

    ``line`` says how the signature changed, ``reach`` what else changed with it.
    """
    if not history.alive:
        return never_exported(question, None, history)
    if history.twin is not None and history.twin.releases:
        return _one_of_two_flavours(history)
    direction, words, confidence = _who_lacks(history, place)
    return Judgement("symbol-drift", "FA201", direction, f"{words}{line}.", reach, confidence)


def _one_of_two_flavours(history: History) -> Judgement:
    twin = history.twin
    assert twin is not None
    other = (
        f"torch {who_exports(history, twin.releases)} it in the other one "
        f"({readable(twin.demangled)})"
    )
    if history.releases:
        cause = (
            f"torch {who_exports(history, history.releases)} it in this std::string flavour, "
            f"{other}"
        )
    else:
        cause = f"No wheel on PyPI exports it in this std::string flavour; {other}"
    cause += ": the torch that lacks it has most likely the other flavour."
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")


def _who_lacks(history: History, place: Place) -> tuple[str, str, str]:
    """(direction, half a sentence, confidence): which torches lack the name."""
    first, last = history.alive[0], history.alive[-1]
    exports = who_exports(history, history.alive)
    older, newer = first != history.known[0], last != history.known[-1]
    if not older and not newer:
        words = (
            f"every torch on record ({history.known[0]} and later) exports it: a torch that lacks "
            f"it is older than {history.known[0]}, or not whole, or the file was loaded without "
            "torch's libraries before it"
        )
        return NEWER, words, "medium"
    if older and newer:
        python = place.told.python if place.told else None
        side = _side_by_python(history, python)
        if side == NEWER:
            words = f"a torch that lacks it and has wheels for Python {python} is older"
            return NEWER, f"torch {exports} it: {words} than {first}", "medium"
        if side == OLDER:
            words = f"a torch that lacks it and has wheels for Python {python} is newer"
            return OLDER, f"torch {exports} it: {words} than {last}", "medium"
        words = f"torch {exports} it: a torch that lacks it is older or newer than that"
        return UNKNOWN, words, "high"
    if older:
        words = f"torch {exports} it: a torch that lacks it is older than {first}"
        return NEWER, f"{words}, so the file was built for a newer torch than that", "high"
    words = f"torch {exports} it: a torch that lacks it is newer than {last}"
    return OLDER, f"{words}, so the file was built for an older torch than that", "high"


def _side_by_python(history: History, python: str | None) -> str | None:
    """The direction that the text's Python leaves: torch has wheels for it on one side alone."""
    serving = [r for r in history.known if python and python in history.pythons.get(r, ())]
    if not serving:
        return None
    first = history.known.index(history.alive[0])
    last = history.known.index(history.alive[-1])
    places = [history.known.index(release) for release in serving]
    older, newer = min(places) < first, max(places) > last
    if older == newer:
        return None
    return NEWER if older else OLDER


def told_flavour(question: Question, place: Place, history: History) -> Judgement | None:
    """The other std::string flavour, for a torch that is known by its version alone."""
    present = place.present
    if present is None or present.installed or place.requested is not None:
        return None
    own = flavour_of_name(question.name, question.demangled, history)
    early = not present.published and present.release in history.alive
    if own is None or (history.place(present) not in (INSIDE, BETWEEN) and not early):
        return None
    if present.flavour == own:
        return None
    return _other_flavour(present, own, history)


def _other_flavour(present: Present, own: str, history: History) -> Judgement:
    twin = history.twin
    instead = f" ({readable(twin.demangled)})" if twin is not None else ""
    if present.flavour == "unknown":
        cause = (
            f"{present.text} should have this name or its twin of the other std::string flavour"
            f"{instead}: the file was built for the {own} flavour, so this torch most likely has "
            "the other one."
        )
        return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")
    cause = (
        f"{present.text} is {present.flavour}, the file was built for the {own} flavour of "
        f"std::string: this torch has the same function in its own flavour{instead}."
    )
    notes = (
        "The version matches, the flavour does not: a published wheel and a build of one's own (a "
        "container's, too) differ in it.",
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, notes, "high")


def flavour_of_name(name: str, demangled: str, history: History) -> str | None:
    """The std::string flavour that a name shows, by itself or by its twin; None for neither."""
    if mentions_cxx11(name, demangled):
        return "cxx11" if history.twin is not None else None
    if mentions_old_string(demangled):
        return "pre-cxx11"
    twin = history.twin
    if twin is not None and mentions_cxx11(twin.symbol, twin.demangled):
        return "pre-cxx11"
    return None


def also_other_flavour(question: Question, present: Present, history: History) -> Judgement | None:
    """A published torch that should have the name: another build of it has the other flavour.

    None where the name shows no flavour.
    """
    if flavour_of_name(question.name, question.demangled, history) is None:
        return None
    cause = (
        f"The published torch {present.release} exports it, so two causes fit: the torch that is "
        f"loaded is a build of {present.release} in the other std::string flavour (a container's, "
        "or one from source), or it is another release than the text says. The flavour decides: "
        "torch.compiled_with_cxx11_abi() is "
        f"{_python_bool(question, history)} for a torch that fits this file."
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")


def _python_bool(question: Question, history: History) -> str:
    own = flavour_of_name(question.name, question.demangled, history)
    return "True" if own == "cxx11" else "False"
