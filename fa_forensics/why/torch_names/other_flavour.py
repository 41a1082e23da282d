"""The other std::string flavour as the cause, for a torch that is known by a text's words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fa_forensics.atlas.variants import variants_of
from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string, readable
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import FLAVOUR, NEWER, Judgement, Question, who_exports
from fa_forensics.why.place import Place
from fa_forensics.why.torch_names.history import (
    BETWEEN,
    INSIDE,
    LONG_AGO,
    History,
    Present,
    order_key,
)

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def month_words(date: str) -> str:
    """``June 2023`` for "2023-06"."""
    year, _, month = date.partition("-")
    return f"{_MONTHS[int(month) - 1]} {year}"


def limits(place: Place) -> str:
    """Which torches can be meant, behind "every wheel of torch": by Python and by the day."""
    told = place.told
    words = f"for Python {told.python}" if told and told.python else ""
    if told and told.cuda:
        words += f"{' and' if words else 'for'} CUDA {told.cuda}"
    if told and told.last:
        words += f"{' ' if words else ''}up to {month_words(told.date)}"
    if told and told.gpu_since:
        words += f"{' ' if words else ''}with code for the GPU in the text"
    if told and told.since_of.startswith("torch>="):
        words += f"{' ' if words else ''}since {told.since}, which the text asks for"
    elif told and told.since:
        words += f"{' ' if words else ''}since {told.since}, as {told.since_of} has wheels for"
    return words


def had_words(place: Place) -> str:
    """The same as what a torch does: ``has wheels for Python 3.10 and was out by June 2023``."""
    told = place.told
    parts = [f"has wheels for Python {told.python}"] if told and told.python else []
    if told and told.cuda:
        parts.append(f"has a build for CUDA {told.cuda}")
    if told and told.last:
        parts.append(f"was out by {month_words(told.date)}")
    if told and told.gpu_since:
        parts.append(f"has code for the GPU in the text ({told.gpu_since} or later)")
    if told and told.since_of.startswith("torch>="):
        parts.append(f"meets the {told.since_of} of the text")
    elif told and told.since:
        parts.append(f"is one that {told.since_of} has wheels for ({told.since} or later)")
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if parts[1:] else "".join(parts)


def of_stated_flavour(question: Question, place: Place, history: History) -> Judgement | None:
    """The text tells the flavour of its torch, though not its release; None where it fits."""
    told = place.told
    own = flavour_of_name(question.name, question.demangled, history)
    if told is None or not told.abi or own is None or own == told.abi:
        return None
    whose = f"The torch in the text is {told.torch_by or told.abi}"
    if told.torch_by:
        whose += f", a build in the {told.abi} flavour of std::string"
    twin = history.twin
    instead = f" ({readable(twin.demangled)})" if twin is not None else ""
    cause = (
        f"{whose}, and the file was built for the {own} one: that torch has the function in its "
        f"own flavour{instead} alone, whatever its release."
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")


def all_in_this_flavour(place: Place, history: History) -> Judgement:
    """Every published torch that can be meant has the name: another build of one lacks it."""
    cause = (
        f"torch {who_exports(history, history.releases)} it, so every wheel of torch "
        f"{limits(place)} has it, in the pre-cxx11 flavour of std::string: the torch that lacks "
        "it is most likely a cxx11 build (conda-forge's, a distribution's, a container's, or one "
        "from source), and the file was built for the pre-cxx11 flavour of the wheels."
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")


#: Before this one hardly any torch has extensions that people load.
_FIRST_IN_USE = (1, 2, 0, False)


def rather_flavour(demangled: str, history: History) -> Judgement | None:
    """A torch that lacks such a name is rather one of the other flavour than one so old.

    None for a name that is not in the pre-cxx11 flavour, or younger than that.
    """
    first = history.alive[0]
    if not mentions_old_string(demangled) or order_key(first) >= _FIRST_IN_USE:
        return None
    cause = (
        f"torch {who_exports(history, history.alive)} it, in the pre-cxx11 flavour of std::string, "
        f"and hardly any torch in use is older than {first}: the torch that lacks it is most "
        "likely a cxx11 build (conda-forge's, a distribution's, a container's, or one from "
        "source), and the file was built for the pre-cxx11 flavour of the wheels. Or that torch is "
        f"older than {first}, and the file of a newer one."
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")


def older_than_both(history: History, meant: Sequence[str]) -> str:
    """The older releases that lack a pre-cxx11 name in either flavour, of those that can be meant.

    "" for a cxx11 name, whose own releases are the newest, and for one that hardly any torch is
    too old for.
    """
    twin = history.twin
    if twin is None or not history.releases or not twin.releases:
        return ""
    first = order_key(history.releases[0])
    if first <= LONG_AGO or first >= order_key(twin.releases[0]):
        return ""
    lacking = [release for release in meant if order_key(release) < first]
    return history.interval(lacking) if lacking else ""


def newer_than_both(place: Place, history: History, exports: str, built_alike: str) -> Judgement:
    """No torch of the other flavour was out by the day of the text: the file is newer."""
    cause = (
        f"{exports}: a torch that lacks it and {had_words(place)} is older than "
        f"{history.releases[0]}, so the file was built for a newer torch than that."
    )
    return Judgement("symbol-drift", "FA201", NEWER, cause, (built_alike,), "medium")


def in_neither(meant: Sequence[str], history: History) -> str:
    """That newer releases have the name in neither flavour; "" where none can be meant."""
    had = (*history.releases, *(history.twin.releases if history.twin else ()))
    last = max(map(order_key, had))
    lacking = [r for r in meant if order_key(r) > last]
    if not lacking:
        return ""
    which = history.interval(lacking)
    return f" Or that torch is newer than the file: in torch {which} neither flavour has it."


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
        "Where the versions match, the flavours need not: a published wheel and a build of one's "
        "own (a container's, too) differ in it.",
    )
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, notes, "high")


#: Notes on another build of the file, and on the container whose torch it would be for.
_ON_BUILDS = lazily(r"(?:Compiled\son|The\spackage\sindex\shas\sthat)")


def without_a_build(
    helped: tuple[tuple[str, ...], tuple[str, ...]], direction: str, present: Present
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(commands, remarks) for a torch before 1.1, whose releases take no other build of the file.

    torch/utils/cpp_extension.py of 1.0.0 and 1.0.1 (_add_gnu_abi_flag_if_binary) sets
    -D_GLIBCXX_USE_CXX11_ABI=0 for every version that is spelt as a release, whatever flavour it
    has, and no flag for a build from source (1.0.0a0+1234567).
    """
    if direction != FLAVOUR or order_key(present.release) >= (1, 1, 0, False):
        return helped
    commands = list(helped[0])
    commands.insert(-1, 'python -m pip install "torch==1.1.0"')
    remarks = [note for note in helped[1] if not _ON_BUILDS.match(note)]
    note = (
        f"torch.__version__ decides what helps. A plain {present.release}: "
        "torch.utils.cpp_extension then sets -D_GLIBCXX_USE_CXX11_ABI=0 whatever flavour that "
        "build has, so that the same build of the file again gives the same error; pip's torch "
        f"{present.release} has that flavour, and with torch==1.1.0, the next release, the flag "
        f"follows the build. A version as a build from source has it ({present.release}a0+1234567, "
        "numbers of Git at its end): no flag is set and the compiler decides, so the file "
        "compiled again in its source directory with GCC 5 or later, build/ removed, is cxx11 as "
        "that torch is."
    )
    return tuple(commands), (note, *remarks)


def before_the_flag(answer: Answer, place: Place) -> Answer:
    """The answer for another flavour of a torch that, by the text's day, is before 1.1.

    torch/utils/cpp_extension.py of 1.0 (_add_gnu_abi_flag_if_binary) sets the flag for every
    version that is spelt as a release, behind those of a setup.py.
    """
    told = place.told
    release = place.present.release if place.present else told.last if told else ""
    if answer.direction != FLAVOUR or not release or order_key(release) >= (1, 1, 0, False):
        return answer
    # Releases before 1.1 have no such function.
    asked = ", torch.compiled_with_cxx11_abi()"
    note = (
        "torch.utils.cpp_extension before 1.1 sets -D_GLIBCXX_USE_CXX11_ABI=0 for every version "
        "that is spelt as a release, whatever flavour that build has, and behind the flags of a "
        "setup.py: the same build again gives the same error. With torch 1.1 or later of the same "
        "source the flag follows the build; until then the line in torch/utils/cpp_extension.py "
        "has to say =1 for a cxx11 torch."
    )
    return replace(
        answer,
        help=tuple(text.replace(asked, "") for text in answer.help),
        notes=(note, *(n for n in answer.notes if not n.startswith("Compiled on that machine"))),
    )


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
        f"loaded is a build of {present.release} in the other std::string flavour (conda-forge's, "
        "a container's, or one from source), or it is another release than the text says. The "
        "flavour decides: torch.compiled_with_cxx11_abi() is "
        f"{_python_bool(question, history)} for a torch that fits this file."
    )
    for cuda, flavour in variants_of(present.release, history.machine):
        cause += f" PyTorch's own build of {present.release} for CUDA {cuda} is {flavour}."
    return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), "medium")


def _python_bool(question: Question, history: History) -> str:
    own = flavour_of_name(question.name, question.demangled, history)
    return "True" if own == "cxx11" else "False"
