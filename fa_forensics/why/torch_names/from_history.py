"""A missing torch name judged by its history alone: no libraries of a torch are here to look in."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.demangle import mentions_old_string, readable
from fa_forensics.facts.owner import libraries_of, library_then
from fa_forensics.why.judgement import (
    FLAVOUR,
    NEWER,
    NONE,
    OLDER,
    UNKNOWN,
    Judgement,
    Question,
    who_exports,
)
from fa_forensics.why.place import CUDA_OWNERS, Place
from fa_forensics.why.torch_names.history import LONG_AGO, History, Present, order_key
from fa_forensics.why.torch_names.nowhere import (
    cut_off,
    hidden_before,
    is_without_parameters,
    never_exported,
)  # fmt: skip
from fa_forensics.why.torch_names.other_flavour import (
    all_in_this_flavour,
    also_other_flavour,
    flavour_of_name,
    had_words,
    in_neither,
    limits,
    newer_than_both,
    of_stated_flavour,
    older_than_both,
    rather_flavour,
)
from fa_forensics.why.torch_names.reach import of_cuda, touched
from fa_forensics.why.ways.unlisted import can_be_before, is_before, left_from_then


def without_torch(question: Question, place: Place, history: History, line: str) -> Judgement:
    """No torch here: the history alone, and what it says of any torch that lacks the name.

    ``line`` says how the signature changed.
    """
    if not history.alive:
        bare = is_without_parameters(question, history)
        return (cut_off if bare else never_exported)(question, place if bare else None, history)
    stated = of_stated_flavour(question, place, history)
    if stated is not None:
        return stated
    if history.twin is not None and history.twin.releases:
        return _one_of_two_flavours(question, place, history)
    if _all_have_it(history, place):
        if mentions_old_string(question.demangled):
            return all_in_this_flavour(place, history)
        return _not_loaded_before(question, place, history)
    direction, words, confidence = _who_lacks(question, history, place)
    hidden = hidden_before(question.demangled)
    if hidden is not None and direction == NEWER:
        return kept_to_itself(history, *hidden)
    if direction == NEWER and (rather := rather_flavour(question.demangled, history)):
        return rather
    listed = place.told is not None and place.told.looked_in  # a file linked by hand lists none
    if question.owner == "torch/torch_python" and confidence == "high" and not listed:
        words += "; or the file was linked without libtorch_python.so, and no release is wrong"
        confidence = "medium"
    reach = touched(history, _meant(question, place, history), direction)
    if history.moved is not None:
        reach = (moved_words(history), *reach)
    if mentions_old_string(question.demangled):
        # Its twin of the cxx11 flavour was never on the package index, and is elsewhere.
        reach = (_OR_FLAVOUR, *reach)
        confidence = "medium" if confidence == "high" else confidence
    return Judgement("symbol-drift", "FA201", direction, f"{words}{line}.", reach, confidence)


def _all_have_it(history: History, place: Place) -> bool:
    """Whether every torch that can be meant has the name."""
    return not _sides(history, _meant(None, place, history))


def _not_loaded_before(question: Question, place: Place, history: History) -> Judgement:
    """No release is wrong: the file does not list the library that has the name."""
    every = "every torch"
    if _sides(history, history.known):
        every = f"every torch {limits(place)}"
    library = libraries_of(question.owner)[0]
    cause = (
        f"torch {who_exports(history, history.alive)} it, so {every} has it, and no release of "
        f"torch is wrong: the file does not list {library} among its needs."
    )
    if can_be_before(place):
        cause += " With torch 1.4 or before, it was imported before torch: import torch first."
    if not is_before(place):
        cause += _FOR_ITSELF
        cause += _LEFT if left_from_then(place) else _LINKED_WITHOUT
    if question.owner in CUDA_OWNERS:
        cause += " CppExtension links without torch's CUDA libraries, CUDAExtension with them."
    return Judgement("import-order", "FA210", UNKNOWN, cause, (), "medium")


#: Since torch 1.5 (its release notes): torch._C is opened with RTLD_LOCAL.
_FOR_ITSELF = (
    " torch 1.5 and later opens its libraries for itself alone, so that importing torch first "
    "gives such a file nothing:"
)
_LEFT = (
    " it is left from torch 1.4 or before, whose build helpers list none of torch's libraries, or "
    "was linked without them, and has to be built again for the torch that is installed, with "
    "nothing taken from pip's cache."
)
_LINKED_WITHOUT = (
    " it was linked without them, and has to be built again with CUDAExtension or CppExtension, "
    "or in CMake with TORCH_LIBRARIES."
)


def kept_to_itself(history: History, macro: str, since: str) -> Judgement:
    """Headers declared the name for releases before the library had it in its exports."""
    cause = (
        f"torch {who_exports(history, history.alive)} it. Headers have declared it since {since} "
        f"at the latest, for the macro {macro}, while the libraries kept it to themselves: a file "
        f"that was built on the very torch that is loaded lacks it too, where that is older than "
        f"{history.alive[0]}. Either the source does without {macro}, or it is built and run on "
        f"torch {history.alive[0]} or later."
    )
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "medium")


#: Said of names that are told by wheels in one flavour alone.
_OR_FLAVOUR = (
    "Its std::string is in the pre-cxx11 flavour: a torch of those very releases that is built in "
    "the cxx11 flavour (the cxx11 download of libtorch, conda-forge's, a container's) lacks this "
    "spelling as well."
)


def _one_of_two_flavours(question: Question, place: Place, history: History) -> Judgement:
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
    limited = place.told is not None and bool(
        place.told.python or place.told.last or place.told.since or place.told.cuda
    )
    meant = _meant(question, place, history)
    if limited and history.releases and not set(meant) & set(history.releases):
        own = flavour_of_name(question.name, question.demangled, history)
        torchs = "pre-cxx11" if own == "cxx11" else "cxx11"
        cause += (
            f". No torch of the former {had_words(place)}: the torch that lacks it is "
            f"a {torchs} one, and the file was built for the {own} flavour."
        )
        sure = "high" if set(meant) <= set(twin.releases) else "medium"
        return Judgement("cxx11-abi", "FA301", FLAVOUR, cause, (), sure)
    every = limited and history.releases and set(meant) <= set(history.releases)
    if every and flavour_of_name(question.name, question.demangled, history) == "pre-cxx11":
        return all_in_this_flavour(place, history)
    older = older_than_both(history, meant)
    dated = place.told is not None and bool(place.told.last)
    if older and dated and not set(meant) & set(twin.releases):
        return newer_than_both(place, history, cause, _OR_FLAVOUR)
    cause += ": the torch that lacks it has most likely the other flavour."
    if older:
        cause += f" Or that torch is older than the file: torch {older} have it in neither."
    return Judgement(
        "cxx11-abi", "FA301", FLAVOUR, cause + in_neither(meant, history), (), "medium"
    )


def _meant(question: Question | None, place: Place, history: History) -> Sequence[str]:
    """The releases that can be loaded: for the text's Python and day, since the package exists."""
    python = place.told.python if place.told else None
    out = _out_by(place.told.last if place.told else "", history.known)
    meant = [r for r in out if python and python in history.pythons.get(r, ())] or out
    told = place.told
    floors = (told.gpu_since, told.since) if told is not None else ()
    for since in (*floors, question.since if question else ""):
        meant = [r for r in meant if not since or order_key(r) >= order_key(since)] or meant
    return of_cuda(told.cuda, meant) if told is not None and told.cuda else meant


def _out_by(last: str, known: Sequence[str]) -> Sequence[str]:
    """The releases up to one, and those of the next minor version, which nightlies are of."""
    if last not in known:
        return known
    later = known[known.index(last) + 1 :]
    minors = dict.fromkeys(order_key(release)[:2] for release in (last, *later))
    return [r for r in known if order_key(r)[:2] <= [*minors][:2][-1]]


def meant_for(place: Place, history: History) -> Sequence[str]:
    """The releases of torch that the text's machine can have: by its Python, day and GPU."""
    return _meant(None, place, history)


def _who_lacks(question: Question, history: History, place: Place) -> tuple[str, str, str]:
    """(direction, half a sentence, confidence): which torches lack the name."""
    exports = who_exports(history, history.alive)
    sides = _sides(history, history.known)
    python = place.told.python if place.told else None
    meant = _meant(question, place, history)
    left = _sides(history, meant) or sides
    if len(left) > 1:
        if _GAP not in left:
            serving = [r for r in history.known if python and python in history.pythons.get(r, ())]
            serving = serving or list(history.known)
            if _likely_newer(history, serving):
                return _most_likely(history, exports, serving)
            last = place.told.last if place.told else ""
            if last and order_key(last) > order_key(history.alive[-1]):
                # Most reports are of a torch of their day, which lacks the name.
                return _most_likely(history, exports, meant)
            words = f"torch {exports} it: a torch that lacks it is older or newer than that"
            return UNKNOWN, words, "high"
        lacking = [release for release in history.known if release not in history.alive]
        words = f"torch {exports} it: a torch that lacks it is {history.interval(lacking)}"
        return UNKNOWN, words, "high"
    by_python = _sides(history, _meant(None, place, history)) == left
    why = f"is one that {question.package} exists for, {question.since} or later,"
    why = f"has wheels for Python {python}" if by_python else why
    if (
        by_python
        and place.told is not None
        and (place.told.last or place.told.gpu_since or place.told.since or place.told.cuda)
    ):
        why = had_words(place)
    return _one_side(history, left[0], why if len(sides) > 1 else "", exports, meant)


def _one_side(
    history: History, side: str, why: str, exports: str, meant: Sequence[str]
) -> tuple[str, str, str]:
    """The words where torches on one side alone can lack the name; ``why`` leaves out the other."""
    first, last = history.alive[0], history.alive[-1]
    which = f"a torch that lacks it and {why}" if why else "a torch that lacks it"
    if side == _GAP:
        gap = [r for r in meant if r not in history.alive]
        gap = [r for r in gap if order_key(first) < order_key(r) < order_key(last)]
        words = f"torch {exports} it: {which} is one of {history.interval(gap)}"
        return UNKNOWN, f"{words}, and the file was built for one before or after those", "high"
    confidence = "medium" if why else "high"
    if side == OLDER:
        words = f"torch {exports} it: {which} is newer than {last}"
        if first == history.known[0] and order_key(last) < order_key("1.2.0"):
            # In those days people came from torch 0.4, of which there is no record.
            words += f", or older than the record, which begins with {first}"
            return OLDER, f"{words}; most likely the file is the older one", "medium"
        return OLDER, f"{words}, so the file was built for an older torch than that", confidence
    words = f"torch {exports} it: {which} is older than {first}"
    words += ", so the file was built for a newer torch than that"
    if order_key(first) <= LONG_AGO:
        # Few have so old a torch; the other way to lack such a name is no release's.
        words += "; else torch is not whole, or was not imported before the file"
        confidence = "medium"
    return NEWER, words, confidence


def _likely_newer(history: History, releases: Sequence[str]) -> bool:
    """Whether far more minor releases after the name's last one lack it than before its first.

    More of them before it say nothing: the newest releases are those that people have.
    """
    first, last = order_key(history.alive[0]), order_key(history.alive[-1])
    older = {order_key(r)[:2] for r in releases if order_key(r) < first}
    newer = {order_key(r)[:2] for r in releases if order_key(r) > last}
    return len(newer) >= _FAR_MORE * len(older)


def _most_likely(history: History, exports: str, releases: Sequence[str]) -> tuple[str, str, str]:
    first, last = history.alive[0], history.alive[-1]
    others = history.interval([r for r in releases if order_key(r) < order_key(first)])
    words = (
        f"torch {exports} it: a torch that lacks it is most likely newer than {last}, so the "
        "file was built for an older torch than that (of the older releases, "
        f"{others} lack it too)"
    )
    return OLDER, words, "medium"


#: So many times the minor releases on one side of a name's life make that side the likelier.
_FAR_MORE = 4
#: A side that lacks a name: releases between those that have it.
_GAP = "gap"


def _sides(history: History, releases: Sequence[str]) -> list[str]:
    """On which sides of a name's life some of these releases lie, as the file's direction."""
    first, last = order_key(history.alive[0]), order_key(history.alive[-1])
    found: dict[str, None] = {}
    for release in releases:
        own = order_key(release)
        if own < first:
            found[NEWER] = None
        elif own > last:
            found[OLDER] = None
        elif release not in history.alive:
            found[_GAP] = None
    return list(found)


def told_inside(question: Question, place: Place, history: History) -> Judgement:
    """A published torch that has the name, known by its version alone."""
    present = place.present
    assert present is not None
    if place.told is not None and not place.told.flavour:
        both = also_other_flavour(question, present, history)
        if both is not None:
            return both
    notes = (moved_words(history),) if history.moved is not None else ()
    if _left_over(question, present, history):
        return _of_torch_14(question, present)
    fact = f"torch {present.release} exports it"
    return exported_there(question, history, fact, notes, present.release)


def _left_over(question: Question, present: Present, history: History) -> bool:
    """Whether a file of an older torch explains what the text's torch has all the same."""
    own, first = order_key(present.version), order_key(history.alive[0])
    soon = (1, 5, 0, False) <= own < (1, 9, 0, False)
    return soon and first <= (1, 4, 0, True) and bool(question.package)


def _of_torch_14(question: Question, present: Present) -> Judgement:
    """A build of torch 1.4 or before, which lists none of torch's libraries (notes of 1.5.0)."""
    cause = (
        f"torch {present.release} exports it, so no other release of torch is wanted. Most likely "
        f"the file of {question.package} is left from torch 1.4 or before: builds of that time "
        "list none of torch's libraries, and torch 1.5 and later no longer opens its libraries for "
        "all files. It has to be built again for the torch that is installed, with nothing taken "
        "from pip's cache. Else another torch is loaded than the text says."
    )
    return Judgement("wrong-torch", "FA607", OLDER, cause, (), "medium")


def before_the_record(question: Question, history: History, present: Present) -> Judgement:
    """A torch that is older than all on record, and a name that the oldest of these has."""
    library = libraries_of(question.owner)[0]
    if len(history.alive) == len(history.known):
        cause = (
            f"Every torch on record has the name, from {history.known[0]} on, so torch "
            f"{present.release} most likely has it too: the file was loaded before torch and does "
            f"not list {library} among its needs (import torch first). Else it was built for a "
            "newer torch."
        )
        return Judgement("import-order", "FA210", UNKNOWN, cause, (), "medium")
    cause = (
        f"The record begins with torch {history.known[0]}, which has the name; whether torch "
        f"{present.release} had it is not known. Two causes fit: the file was built for a newer "
        f"torch, or it does not list {library} among its needs and was loaded before torch."
    )
    return Judgement("symbol-drift", "FA201", UNKNOWN, cause, (), "low")


def exported_there(
    question: Question, history: History, fact: str, notes: tuple[str, ...], release: str = ""
) -> Judgement:
    """The text's torch has the name: another one is loaded, or the file does not list its library.

    A name that hardly any torch is too old for is missed for the second reason.
    """
    interval = history.interval(history.alive)
    library = library_then(question.owner, release, question.demangled or "")
    if not history.long_there:
        cause = f"{fact}; it cannot be missing from torch {interval}"
        cause += ": where an error names it, another torch was loaded than this one."
        cause += f" Or the file does not list {library} among its needs, and nothing loaded it."
        cause += history.lacked_by(release)
        return Judgement("wrong-torch", "FA607", NONE, cause, notes, "medium")
    cause = f"{fact}; torch {interval} have it, so no release is wrong."
    cause += f" Most likely the file does not list {library} among its needs."
    if question.owner in CUDA_OWNERS:
        cause += " CppExtension links without torch's CUDA libraries, CUDAExtension with them."
    if release and order_key(release) < (1, 5, 0, False):
        cause += " Importing torch before the file may hide it."
    else:
        cause += " Importing torch first does not help since torch 1.5: it has to be built again."
    cause += " Else another torch was loaded."
    return Judgement("import-order", "FA210", NONE, cause, notes, "medium")


def moved_words(history: History) -> str:
    """The name of another scope that took a name's place, in a sentence."""
    assert history.moved is not None
    return (
        f"{readable(history.moved.demangled)} took its place "
        f"(torch {history.interval(history.moved.releases)})."
    )
